/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

// Which groups did the nodes have in the steps that ran between two calls of a
// program? tf.cuda.save_plan starts, stops and reads it; the node-level
// executor adds each step's.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_SAVED_PLAN_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_SAVED_PLAN_H_

#include <string>

#include "absl/status/statusor.h"

namespace tensorflow {
namespace multistream {

// Of the whole process. Thread-safe.
class SavedPlan {
 public:
  // Forgets what it knows.
  static void Start();
  // The same.
  static void Stop();
  static bool IsOn();

  static void Add(const std::string& node, int group);

  // "GROUP NAME" for each node, by group and name. InvalidArgument names a node
  // that has had several groups: those of two graphs, say.
  static absl::StatusOr<std::string> Lines();
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_SAVED_PLAN_H_
