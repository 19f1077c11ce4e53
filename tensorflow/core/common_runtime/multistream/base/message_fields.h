// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The fields about stream groups that TensorFlow's protocol buffers lack, for
// C++, and the functions with which programs use them (by way of
// multistream.h); message_fields.py has the same for Python.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_MESSAGE_FIELDS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_MESSAGE_FIELDS_H_

#include <string>

namespace tensorflow {

class ConfigProto;

namespace multistream {

// Of RewriterConfig.
inline constexpr int kUseMultiStream = 7301;
inline constexpr int kMultiStreamOpts = 7302;

// Of GPUOptions.
inline constexpr int kCudaGraphEnableJit = 7303;

// Of MultiStreamOptions, which is the latter's message.
inline constexpr int kMultiStreamNum = 1;
inline constexpr int kPartitionPolicy = 2;

// How a session's graphs are split over its streams; explicit groups count in
// any case.
enum class MultiStreamPartitionPolicy {
  kNoPartition = 0,
  kUserDefinedPartition = 1,     // the same: as the program says
  kEmbeddingGraphPartition = 2,  // embedding lookups and their gradients
  kFullGraphPartition = 3,       // the most that can run at once
  kCostPartition = 4,            // what is expected to be fastest
};

// Makes sessions of `config` have `streams` streams of each GPU, for the nodes
// of each step, whatever the environment says. Groups are made once per
// process: a session that asks for more than there are cannot be made.
void SetMultiStream(int streams, MultiStreamPartitionPolicy policy,
                    ConfigProto* config);

// Makes steps of sessions of `config` be captured where they can be
// (docs/captured-steps-reference.md), whatever the environment says but
// TF_MULTI_STREAM_CAPTURE=off.
void SetCudaGraph(bool enable, ConfigProto* config);

// Reads a ConfigProto in text format, in which graph_options.rewrite_options
// may have use_multi_stream and multi_stream_opts, with multi_stream_num and
// partition_policy, and gpu_options cuda_graph_enable_jit, which say the same.
// (TensorFlow's own parser does not know them.) Returns the first error, with
// its place, or "".
std::string ParseConfigText(const std::string& text, ConfigProto* config);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_MESSAGE_FIELDS_H_
