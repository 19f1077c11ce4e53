// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which groups did the nodes have in the steps that ran between two calls of a
// program? tf.cuda.save_plan starts, stops and reads the record; the node-level
// executor adds each step's groups.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_SAVED_PLAN_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_SAVED_PLAN_H_

#include <string>

#include "absl/status/statusor.h"

namespace tensorflow {
namespace multistream {

// One record for the whole process. Thread-safe.
class SavedPlan {
 public:
  // Clears the record.
  static void Start();
  // Clears the record.
  static void Stop();
  static bool IsOn();

  static void Add(const std::string& node, int group);

  // "GROUP NAME" for each node, by group and name. InvalidArgument names a node
  // that has had several groups, for example as two graphs share its name.
  static absl::StatusOr<std::string> Lines();
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_SAVED_PLAN_H_
