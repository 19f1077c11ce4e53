// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Fields about stream groups that TensorFlow's protocol buffers lack, and the
// functions with which C++ programs set them (through multistream.h).
// message_fields.py has the same for Python.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_MESSAGE_FIELDS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_MESSAGE_FIELDS_H_

#include <string>

namespace tensorflow {

class ConfigProto;

namespace multistream {

// Fields of RewriterConfig.
inline constexpr int kUseMultiStream = 7301;
inline constexpr int kMultiStreamOpts = 7302;

// Field of GPUOptions.
inline constexpr int kCudaGraphEnableJit = 7303;

// Fields of MultiStreamOptions, the message in multi_stream_opts.
inline constexpr int kMultiStreamNum = 1;
inline constexpr int kPartitionPolicy = 2;

// How a session's graphs are split over its streams. Marks of the program count
// with every policy.
enum class MultiStreamPartitionPolicy {
  kNoPartition = 0,
  kUserDefinedPartition = 1,     // the same: only marks count
  kEmbeddingGraphPartition = 2,  // embedding lookups and their gradients
  kFullGraphPartition = 3,       // the most that can run at once
  kCostPartition = 4,            // the plan that is estimated to be fastest
};

// Gives sessions of `config` node level on `streams` stream groups of each GPU,
// whatever the environment says. Groups are made once per process: making a
// session that asks for more groups than exist fails.
void SetMultiStream(int streams, MultiStreamPartitionPolicy policy,
                    ConfigProto* config);

// Turns capture on for sessions of `config`: steps that can be captured are
// (docs/captured-steps-reference.md). Only TF_MULTI_STREAM_CAPTURE=off in the
// environment overrides this.
void SetCudaGraph(bool enable, ConfigProto* config);

// Reads a ConfigProto in text format with the fields above, which TensorFlow's
// parser does not know: use_multi_stream and multi_stream_opts (with
// multi_stream_num and partition_policy) in graph_options.rewrite_options, and
// cuda_graph_enable_jit in gpu_options. Returns "", or the first error and its
// place.
std::string ParseConfigText(const std::string& text, ConfigProto* config);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_MESSAGE_FIELDS_H_
