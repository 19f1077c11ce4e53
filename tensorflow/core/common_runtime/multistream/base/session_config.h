// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does a session's ConfigProto say about stream groups, and what has the
// session then?
//
// In Python its messages have fields of DeepRec's names (message_fields.py).
// TensorFlow's C++ messages do not know these, and keep them.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_SESSION_CONFIG_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_SESSION_CONFIG_H_

#include <optional>

#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {
namespace multistream {

// graph_options.rewrite_options.use_multi_stream and multi_stream_opts.
struct SessionConfig {
  // multi_stream_num; 1 if use_multi_stream is OFF. Not given: as many as a
  // session without a configuration has.
  std::optional<int> streams;
  // partition_policy.
  Policy policy = Policy::kNone;
};

// A message's fields by their numbers, whether TensorFlow's message knows them,
// as it does ours where it is built from source, or only keeps them.
void ReadFields(const google::protobuf::Message& message,
                google::protobuf::UnknownFieldSet* fields);

// nullopt if the session's configuration does not say. InvalidArgument names
// the field, its value and what is allowed.
absl::StatusOr<std::optional<SessionConfig>> ReadSessionConfig(
    const ConfigProto& config);

// gpu_options.cuda_graph_enable_jit: whether the session's steps are to be
// captured where they can be.
bool AsksForCapture(const ConfigProto& config);

// What a session has on one GPU.
struct SessionStreams {
  // The first so many of the GPU's groups.
  int groups = 1;
  // Whether nodes have groups, rather than steps.
  bool node_level = false;
  Policy policy = Policy::kNone;
  // Of its steps; those of functions that say otherwise are apart.
  CaptureMode capture = CaptureMode::kOff;
};

// Of the session's `k`-th GPU, which is the platform's `gpu` and has `made`
// groups. FailedPrecondition if the session asks for more.
absl::StatusOr<SessionStreams> StreamsOfSession(const ConfigProto& config,
                                                const Options& options, int k,
                                                int gpu, int made);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_SESSION_CONFIG_H_
