// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What a C++ program can ask about stream groups. Link
// libtensorflow_multistream.so before TensorFlow's own libraries.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MULTISTREAM_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MULTISTREAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/base/message_fields.h"
#include "tensorflow/core/common_runtime/multistream/stream/group_stats.h"

namespace tensorflow {

namespace multistream {

// True if the environment asks for more than one stream group, or for
// emulated GPUs.
bool MultiStreamIsEnabled();

// Number of stream groups that the `gpu`-th GPU has or, before the first
// session or eager operation made the devices, will have. 1 if multi-stream
// is not enabled.
int StreamGroupCount(int gpu = 0);

// One entry for each group of each GPU, ordered by GPU, then group. Empty
// until the first session or eager operation has made the devices, and if
// multi-stream is not enabled.
std::vector<StreamGroupStats> StreamStats();

// While it lives, the steps that its thread begins (Session::Run, calls of
// functions) run on stream group `group` of their GPU, or on the least loaded
// of the groups `first` to `last`, and so do the functions that these call: to
// keep tenants of one model apart. In place of a field of RunOptions, which
// functions do not have. The innermost one counts; -1 is the least loaded
// group, as without any.
//
// A step that may change variables runs on the leader all the same. If the GPU
// has no such group, or if nodes have groups (TF_NODE_LEVEL_MULTISTREAM=true,
// or the session's configuration asks for streams), the step ends with
// INVALID_ARGUMENT. If multi-stream is not enabled, this has no effect.
class ScopedStreamGroup {
 public:
  explicit ScopedStreamGroup(int group) : ScopedStreamGroup(group, group) {}
  ScopedStreamGroup(int first, int last);
  ~ScopedStreamGroup();
  ScopedStreamGroup(const ScopedStreamGroup&) = delete;
  ScopedStreamGroup& operator=(const ScopedStreamGroup&) = delete;

 private:
  const int64_t before_;
};

// Races between stream groups that the sanitizer (TF_MULTI_STREAM_SANITIZER)
// has reported. Anything but 0 is a bug in the runtime.
int64_t SanitizerReports();

// What is wrong with the TF_* variables of this process's environment; empty
// if nothing is. Names the variable, its value and what is allowed. If they ask
// for groups, also a function of TensorFlow's whose calls do not reach the
// runtime, because another library was loaded before it.
std::string CheckEnvironment();

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MULTISTREAM_H_
