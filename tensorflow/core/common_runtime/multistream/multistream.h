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

// What a C++ program can ask about stream groups. Link
// libtensorflow_multistream.so before TensorFlow's own libraries.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MULTISTREAM_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MULTISTREAM_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tensorflow {

class ConfigProto;

namespace multistream {

// One stream group at one moment. Counters run from the start of the process
// and add up all sessions and functions.
struct StreamGroupStats {
  int gpu = 0;    // k of /physical_device:GPU:k
  int group = 0;  // 0 is the leader, the visible device itself
  int64_t steps_started = 0;
  int64_t steps_running = 0;
  int64_t steps_failed = 0;
  int64_t bytes_in_use = 0;       // of the group's allocator
  int64_t peak_bytes_in_use = 0;  // of the group's allocator
  // Of the group's allocator; of the pool, where the groups of a GPU share one.
  int64_t bytes_limit = 0;
  // What that allocator, or pool, has taken from the GPU.
  int64_t bytes_reserved = 0;
  // Pinned host memory of the group's own; 0 without
  // TF_PER_STREAM_HOST_ALLOCATOR.
  int64_t host_bytes_in_use = 0;
  int64_t peak_host_bytes_in_use = 0;
  // The StreamExecutor that has the group's cuBLAS, cuDNN and cuFFT handles, as
  // the number of the first group that has it, too.
  int64_t executor = 0;
  // Number of the CUDA context that has the group's streams; 0 is the GPU's
  // primary one.
  int64_t context = 0;
  // CUDA's priority of the group's streams: the lower, the sooner.
  int64_t priority = 0;
  // Work that the group's stream has been given to keep order: waits for other
  // groups, and events for others to wait for.
  int64_t waits = 0;
  int64_t events = 0;
  // Tensors that are kept until the group's stream has passed their last use:
  // memory of other groups, and of the host for copies to the GPU.
  int64_t tensors_held = 0;
  int64_t bytes_held = 0;
  int64_t peak_bytes_held = 0;
  // Closures of the group's steps that wait at this moment for a thread to
  // launch their ops: with more of them for long, there are more clients than
  // the cores and groups can serve.
  int64_t steps_waiting = 0;
  // The longest time that one of them has waited, or has waited so far, or that
  // an op's launch has waited for a lock of the CUDA driver. What an alarm
  // should look at: milliseconds under full load, never a second.
  int64_t longest_launch_wait_micros = 0;
};

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

// Reads a ConfigProto in text format, in which graph_options.rewrite_options
// may have use_multi_stream and multi_stream_opts, with multi_stream_num and
// partition_policy, which say the same. (TensorFlow's own parser does not know
// them.) Returns the first error, with its place, or "".
std::string ParseConfigText(const std::string& text, ConfigProto* config);

// While it lives, the steps that its thread begins (Session::Run, calls of
// functions) run on stream group `group` of their GPU, and so do the functions
// that these call: to keep tenants of one model apart. In place of a field of
// RunOptions, which functions do not have. The innermost one counts; -1 is the
// least loaded group, as without any.
//
// A step that may change variables runs on the leader all the same. If the GPU
// has no such group, or if nodes have groups (TF_NODE_LEVEL_MULTISTREAM=true,
// or the session's configuration asks for streams), the step ends with
// INVALID_ARGUMENT. If multi-stream is not enabled, this has no effect.
class ScopedStreamGroup {
 public:
  explicit ScopedStreamGroup(int group);
  ~ScopedStreamGroup();
  ScopedStreamGroup(const ScopedStreamGroup&) = delete;
  ScopedStreamGroup& operator=(const ScopedStreamGroup&) = delete;

 private:
  const int before_;
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
