// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does a session's ConfigProto say about stream groups, and what does the
// session get?
//
// In Python, ConfigProto has fields with DeepRec's names (message_fields.py).
// TensorFlow's C++ messages keep them as unknown fields.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_SESSION_CONFIG_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_SESSION_CONFIG_H_

#include <optional>

#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow::multistream {

// graph_options.rewrite_options.use_multi_stream and multi_stream_opts.
struct SessionConfig {
  // multi_stream_num; 1 if use_multi_stream is OFF. nullopt: the default of
  // sessions without this configuration.
  std::optional<int> streams;
  // partition_policy.
  Policy policy = Policy::kNone;
};

// A message's fields by number, known or unknown to TensorFlow. TensorFlow
// knows our fields if it was built from source with our patches.
void ReadFields(const google::protobuf::Message& message,
                google::protobuf::UnknownFieldSet* fields);

// nullopt if the configuration says nothing about streams. InvalidArgument
// names the field, its value and what is allowed.
absl::StatusOr<std::optional<SessionConfig>> ReadSessionConfig(
    const ConfigProto& config);

// gpu_options.cuda_graph_enable_jit: whether to capture the session's steps
// where possible.
bool AsksForCapture(const ConfigProto& config);

// A session's part of one GPU.
struct SessionStreams {
  // The session uses groups 0 to groups - 1 of the GPU.
  int groups = 1;
  // Node level; otherwise graph level.
  bool node_level = false;
  Policy policy = Policy::kNone;
  // For the session's steps, unless a function has a capture mode of its own.
  CaptureMode capture = CaptureMode::kOff;
};

// The session's streams on its `k`-th GPU, which is the platform's `gpu` and
// has `made` groups. FailedPrecondition if the session asks for more.
absl::StatusOr<SessionStreams> StreamsOfSession(const ConfigProto& config,
                                                const Options& options, int k,
                                                int gpu, int made);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_SESSION_CONFIG_H_
