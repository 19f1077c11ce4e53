// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What do the TF_* variables ask for? environment_variables.h has the table
// that reads and checks them all; no other code reads a variable.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_OPTIONS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_OPTIONS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensorflow::multistream {

inline constexpr char kGroupCountVariable[] = "TF_GPU_STREAM_GROUP_COUNT";
inline constexpr char kEmulatedGpusVariable[] = "TF_MULTI_STREAM_EMULATED_GPUS";
inline constexpr char kSegmentOwnConstVariable[] = "TF_SEGMENT_OWN_CONST";
inline constexpr char kSpinLocksVariable[] = "TF_MULTI_STREAM_SPIN_LOCKS";
inline constexpr char kNodeLevelVariable[] = "TF_NODE_LEVEL_MULTISTREAM";
inline constexpr char kReduceStreamWaitVariable[] = "TF_REDUCE_STREAM_WAIT";
inline constexpr char kForwardPropagationVariable[] =
    "TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION";
inline constexpr char kStreamFileVariable[] = "TF_STREAM_FROM_FILE";
inline constexpr char kSanitizerVariable[] = "TF_MULTI_STREAM_SANITIZER";
inline constexpr char kThreadModeVariable[] = "TF_GPU_THREAD_MODE";
inline constexpr char kThreadCountVariable[] = "TF_GPU_THREAD_COUNT";
inline constexpr char kSharePoolVariable[] =
    "TF_GPU_STREAM_GROUP_SHARE_MEM_POOL";
inline constexpr char kStreamAwareVariable[] = "TF_GPU_STREAM_AWARE_BFC";
inline constexpr char kExtendLimitVariable[] = "TF_BFC_EXTEND_LIMIT_MB";
inline constexpr char kGpuAllocatorVariable[] = "TF_GPU_ALLOCATOR";
inline constexpr char kPrioritiesVariable[] = "TF_GPU_STREAM_GROUP_PRIORITIES";
inline constexpr char kSmsVariable[] = "TF_GPU_STREAM_GROUP_SMS";
inline constexpr char kMergeVariable[] = "TF_GPU_STREAM_MERGE";
inline constexpr char kHostAllocatorVariable[] = "TF_PER_STREAM_HOST_ALLOCATOR";
inline constexpr char kContextCountVariable[] = "TF_GPU_CONTEXT_COUNT";
inline constexpr char kPolicyVariable[] = "TF_MULTI_STREAM_POLICY";
inline constexpr char kMeasureVariable[] = "TF_MULTI_STREAM_MEASURE";
inline constexpr char kCaptureVariable[] = "TF_MULTI_STREAM_CAPTURE";
inline constexpr char kCaptureMegabytesVariable[] =
    "TF_MULTI_STREAM_CAPTURE_MB";
inline constexpr char kCapturePercentVariable[] =
    "TF_MULTI_STREAM_CAPTURE_PERCENT";
inline constexpr char kCapturePiecesVariable[] =
    "TF_MULTI_STREAM_CAPTURE_PIECES";
inline constexpr char kCaptureVerifyVariable[] =
    "TF_MULTI_STREAM_CAPTURE_VERIFY";
inline constexpr char kCaptureBranchesVariable[] =
    "TF_MULTI_STREAM_CAPTURE_BRANCHES";
inline constexpr char kCaptureFuseVariable[] = "TF_MULTI_STREAM_CAPTURE_FUSE";
inline constexpr char kCaptureLengthsVariable[] =
    "TF_MULTI_STREAM_CAPTURE_LENGTHS";
inline constexpr char kCaptureBatchesVariable[] =
    "TF_MULTI_STREAM_CAPTURE_BATCHES";
inline constexpr char kTfXlaFlagsVariable[] = "TF_XLA_FLAGS";
inline constexpr char kTestFaultsVariable[] = "TF_MULTI_STREAM_TEST_FAULTS";

inline constexpr int kMaxGroupCount = 64;

// Which policies give groups to nodes without marks (free nodes)? node_level/
// implements them.
enum class Policy {
  // Free nodes stay in the caller's group.
  kNone,
  // Clusters of an embedding lookup, the ops that prepare it and its gradients
  // (embedding_clusters.h) go to the least loaded groups, the costliest cluster
  // first. If a mark fixes the lookup's group, the cluster follows. All other
  // nodes stay in the caller's group.
  kEmbedding,
  // Nodes that can run at the same time go to different groups, with the fewest
  // waits: each chain of a chain cover (chain_cover.h) to one group. With more
  // chains than groups, chains that would overlap in time are kept apart as far
  // as possible. The chain with most of the longest path stays in the caller's
  // group. A chain with marked nodes goes to their group.
  kFullGraph,
  // The plan with the shortest estimated step (step_estimate.h), of the other
  // policies' plans and list schedules (list_schedule.h) of 2 and more groups.
  // Of plans that are nearly as short, the one with the fewest groups. If no
  // plan is clearly shorter than kNone's, kNone's plan is used.
  kCost,
};

enum class SanitizerMode { kOff, kLog, kAbort };
// Which steps are captured (captured_steps.h), from fewest to most. kUnset: the
// environment asks neither for capture nor for stream groups, so steps that the
// program asks for.
enum class CaptureMode { kUnset, kOff, kMarked, kInference, kAuto, kRequire };
// Which threads launch ops: see StepThreads::RunnerFor.
enum class ThreadMode { kProcess, kGlobal, kShared, kPrivate };

// "stream group 3", "stream groups 4 to 7".
std::string TextOfGroups(int first, int last);

// Stream groups of each GPU that share SMs (streaming multiprocessors) of their
// own.
struct SmShare {
  int first;  // the groups, `last` included
  int last;
  int sms;
};

// The values of the variables that the comments name; environment_variables.cc
// says what each of them does.
struct Options {
  // TF_GPU_STREAM_GROUP_COUNT: empty if unset; one entry stands for every GPU,
  // several for one visible GPU each. TF_GPU_CONTEXT_COUNT: the same.
  std::vector<int> group_counts;
  std::vector<int> context_counts;
  // group_counts as in the environment, without RequestNodeLevel's additions.
  std::vector<int> default_group_counts;
  // TF_GPU_STREAM_GROUP_PRIORITIES: one for all groups, one for each, or none.
  std::vector<int> priorities;
  std::vector<SmShare> sm_shares;  // TF_GPU_STREAM_GROUP_SMS; no group twice
  bool merge_streams = false;      // TF_GPU_STREAM_MERGE
  int emulated_gpus = 0;           // TF_MULTI_STREAM_EMULATED_GPUS

  bool node_level = false;  // TF_NODE_LEVEL_MULTISTREAM; a policy implies true
  // node_level, or a session's configuration asks for node level.
  bool any_node_level = false;
  Policy policy = Policy::kNone;   // TF_MULTI_STREAM_POLICY
  bool measure = true;             // TF_MULTI_STREAM_MEASURE
  bool reduce_stream_wait = true;  // TF_REDUCE_STREAM_WAIT
  std::string stream_file;         // TF_STREAM_FROM_FILE
  // TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION.
  bool forward_propagation = false;

  // TF_MULTI_STREAM_CAPTURE; at graph level only.
  CaptureMode capture = CaptureMode::kUnset;
  // The environment does not say, and asks for stream groups at graph level:
  // `capture` is kInference.
  bool capture_is_default = false;
  int capture_mb = 1024;     // TF_MULTI_STREAM_CAPTURE_MB
  int capture_verify = 0;    // TF_MULTI_STREAM_CAPTURE_VERIFY
  int capture_branches = 4;  // TF_MULTI_STREAM_CAPTURE_BRANCHES
  bool capture_fuse = true;  // TF_MULTI_STREAM_CAPTURE_FUSE
  // TF_MULTI_STREAM_CAPTURE_PERCENT: of a graph's launches, what
  // CaptureMode::kRequire demands.
  int capture_percent = 100;
  // TF_MULTI_STREAM_CAPTURE_PIECES: the fewest launches of a piece; 0: no
  // pieces.
  int capture_pieces = 8;
  // TF_MULTI_STREAM_CAPTURE_BATCHES, ascending.
  std::vector<int> capture_batches;
  // TF_MULTI_STREAM_CAPTURE_LENGTHS, ascending.
  std::vector<int> capture_lengths;
  // TF_XLA_FLAGS: XLA may use its own streams (PjRt), which are not recorded.
  bool xla_has_streams = false;

  bool share_pool = false;         // TF_GPU_STREAM_GROUP_SHARE_MEM_POOL
  bool stream_aware = false;       // TF_GPU_STREAM_AWARE_BFC
  int extend_limit_mb = 0;         // TF_BFC_EXTEND_LIMIT_MB; 0: no limit
  bool cuda_malloc_async = false;  // TF_GPU_ALLOCATOR=cuda_malloc_async
  bool host_allocators = false;    // TF_PER_STREAM_HOST_ALLOCATOR
  bool segment_own_const = false;  // TF_SEGMENT_OWN_CONST

  // TF_GPU_THREAD_MODE; kProcess if unset.
  ThreadMode thread_mode = ThreadMode::kProcess;
  int thread_count = 2;    // TF_GPU_THREAD_COUNT; as in stock TensorFlow
  bool spin_locks = true;  // TF_MULTI_STREAM_SPIN_LOCKS
  // TF_MULTI_STREAM_SANITIZER.
  SanitizerMode sanitizer = SanitizerMode::kOff;
  bool test_faults = false;  // TF_MULTI_STREAM_TEST_FAULTS

  // Variables that are set and well-formed but have no effect, and why.
  std::vector<std::string> without_effect;

  // True if any GPU gets more than one group.
  bool AsksForSeveralGroups() const;
  // The same, or if GPUs are emulated.
  bool HasSeveralGroups() const;
  // Whether each group has a recorder.
  bool captures() const { return capture > CaptureMode::kOff && !node_level; }
  // Whether the runtime has anything to do. If not, TensorFlow runs as stock.
  bool Enabled() const { return HasSeveralGroups() || captures(); }

  // Whether the groups of a GPU have one pool of memory.
  bool has_pool() const {
    return (share_pool || stream_aware) && !cuda_malloc_async;
  }

  // Number of groups of the `gpu`-th visible GPU; 1 if unset.
  int GroupCount(int gpu) const { return OfGpu(group_counts, gpu); }

  // Of the groups 0 to `groups` - 1, those whose SMs are not their own, for
  // steps of which nobody says where they run; all if there is none.
  std::vector<int> GroupsForAll(int groups) const;

  // How many groups a session has whose configuration does not say.
  int DefaultGroupCount(int gpu) const {
    return OfGpu(default_group_counts, gpu);
  }

  // CUDA's priority of `group`'s streams. CUDA prefers lower numbers.
  int Priority(int group) const {
    return priorities.empty()       ? 0
           : priorities.size() == 1 ? priorities[0]
                                    : priorities[group];
  }

  // InvalidArgument if `priorities` is a list that does not fit `groups`
  // groups.
  absl::Status CheckPriorities(int groups) const;

  // InvalidArgument if `sm_shares` names a group that a GPU with `groups`
  // groups does not have.
  absl::Status CheckSmShares(int groups) const;

  // The CUDA context of `group` of the `gpu`-th visible GPU, from 0.
  int Context(int gpu, int group) const {
    return group % OfGpu(context_counts, gpu);
  }

  // InvalidArgument if group_counts or context_counts is a list that does not
  // fit `visible` GPUs out of `physical`.
  absl::Status CheckGroupCounts(int visible, int physical) const;

 private:
  // The `gpu`-th entry of a list, or its only one; 1 if there is none.
  static int OfGpu(const std::vector<int>& list, int gpu);
};

// The policy of this name in TF_MULTI_STREAM_POLICY, or nullopt.
std::optional<Policy> PolicyOfName(absl::string_view name);

// The mode of this name in TF_MULTI_STREAM_CAPTURE, or nullopt.
std::optional<CaptureMode> CaptureModeOfName(absl::string_view name);
// The name of a mode; "" for kUnset.
const char* NameOf(CaptureMode mode);

// Reads a variable; nullopt if it is not set.
using GetVariable =
    std::function<std::optional<std::string>(const std::string& name)>;

// InvalidArgument names the variable, its value and what is allowed. A
// variable set to the empty string counts as not set.
absl::StatusOr<Options> ParseOptions(const GetVariable& get);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_OPTIONS_H_
