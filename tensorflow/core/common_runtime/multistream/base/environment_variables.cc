// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/environment_variables.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace tensorflow::multistream {
namespace {

constexpr int kMaxPriority = 64;  // no GPU has as many
constexpr int kMaxEmulatedGpus = 16;
constexpr int kMaxThreadCount = 1024;
constexpr int kMaxBranches = 64;
constexpr int kMaxMegabytes = 1 << 20;
constexpr int kMaxSms = 1 << 16;  // no GPU has as many
constexpr int kMaxRows = 1 << 20;
constexpr int kNoLimit = INT32_MAX;

bool ReadNumber(absl::string_view text, int lowest, int highest, int* out) {
  return absl::SimpleAtoi(absl::StripAsciiWhitespace(text), out) &&
         *out >= lowest && *out <= highest;
}

std::string NumberAllowed(int lowest, int highest) {
  return highest == kNoLimit
             ? absl::StrCat("it takes a whole number of at least ", lowest)
             : absl::StrCat("it takes a whole number from ", lowest, " to ",
                            highest);
}

std::string NumberValues(int lowest, int highest) {
  return highest == kNoLimit ? absl::StrCat(lowest, " and more")
                             : absl::StrCat(lowest, " to ", highest);
}

// Field: int or std::optional<int>.
template <class Field>
ValueParser Number(Field Options::*field, int lowest, int highest = kNoLimit) {
  return {NumberValues(lowest, highest), NumberAllowed(lowest, highest),
          [=](const std::string& value, Options* options) {
            int number;
            if (!ReadNumber(value, lowest, highest, &number)) return false;
            options->*field = number;
            return true;
          }};
}

// One number, or a list. `of_each`: what a list has a number for, as "GPU".
ValueParser Numbers(std::vector<int> Options::*field, int lowest, int highest,
                    const char* of_each) {
  return {
      absl::StrCat(NumberValues(lowest, highest),
                   ", or a comma list, one number for each ", of_each),
      absl::StrCat(NumberAllowed(lowest, highest),
                   ", or a comma list of such numbers, one for each ", of_each),
      [=](const std::string& value, Options* options) {
        std::vector<int> numbers;
        for (absl::string_view part : absl::StrSplit(value, ',')) {
          if (!ReadNumber(part, lowest, highest, &numbers.emplace_back())) {
            return false;
          }
        }
        options->*field = std::move(numbers);
        return true;
      }};
}

// "0-3:32": the groups 0 to 3 share 32 SMs.
bool ReadSmShare(absl::string_view text, SmShare* share) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  const std::vector<absl::string_view> groups =
      absl::StrSplit(parts.first, '-');
  return groups.size() <= 2 &&
         ReadNumber(groups.front(), 0, kMaxGroupCount - 1, &share->first) &&
         ReadNumber(groups.back(), share->first, kMaxGroupCount - 1,
                    &share->last) &&
         ReadNumber(parts.second, 1, kMaxSms, &share->sms);
}

ValueParser SmShares(std::vector<SmShare> Options::*field) {
  return {"a comma list of GROUP:SMS or FIRST-LAST:SMS",
          absl::StrCat("it takes a comma list of GROUP:SMS or FIRST-LAST:SMS, "
                       "such as 0-3:32,4:16, with numbers of stream groups up "
                       "to ",
                       kMaxGroupCount - 1, ", each at most once"),
          [=](const std::string& value, Options* options) {
            std::vector<SmShare> shares;
            for (absl::string_view part : absl::StrSplit(value, ',')) {
              SmShare share;
              if (!ReadSmShare(part, &share)) return false;
              for (const SmShare& other : shares) {
                if (share.first <= other.last && other.first <= share.last) {
                  return false;
                }
              }
              shares.push_back(share);
            }
            options->*field = std::move(shares);
            return true;
          }};
}

ValueParser Switch(bool Options::*field) {
  return {"true, false", "it takes true, false, 1 or 0",
          [=](const std::string& value, Options* options) {
            const std::string lower = absl::AsciiStrToLower(value);
            const bool is_true = lower == "true" || lower == "1";
            if (!is_true && lower != "false" && lower != "0") return false;
            options->*field = is_true;
            return true;
          }};
}

// `words`: pairs of a word and its value.
template <class Words, class Field>
ValueParser OneOf(const Words& words, Field Options::*field) {
  const std::string names = absl::StrJoin(
      words, ", ",
      [](std::string* out, const auto& word) { out->append(word.first); });
  return {names, absl::StrCat("it takes one of ", names),
          [=, &words](const std::string& value, Options* options) {
            const auto found = ValueOfWord(words, value);
            if (found.has_value()) options->*field = *found;
            return found.has_value();
          }};
}

template <class Read>
ValueParser AnyText(const char* values, Read read) {
  return {values, "", [read](const std::string& value, Options* options) {
            read(value, options);
            return true;
          }};
}

std::string WithoutSeveralGroups() {
  return absl::StrCat("without several stream groups: ", kGroupCountVariable);
}

// For switches: a switch that is off needs no warning about its effect.
template <class Why>
auto IfOn(bool Options::*field, Why why) {
  return [=](const Options& options) {
    return options.*field ? why(options) : std::string();
  };
}

std::string NeedsNodeLevel(const Options& options) {
  if (options.node_level) return "";
  return absl::StrCat("without ", kNodeLevelVariable,
                      "=true, but for sessions that ask for streams");
}

std::string NeedsCapture(const Options& options) {
  if (options.capture > CaptureMode::kOff) return "";
  return absl::StrCat("without ", kCaptureVariable,
                      ", but for what the program captures");
}

std::string NeedsOwnPools(const Options& options) {
  if (!options.cuda_malloc_async) return "";
  return absl::StrCat(
      "with ", kGpuAllocatorVariable,
      "=cuda_malloc_async, whose pool the groups of a GPU share anyway");
}

}  // namespace

const std::vector<Variable>& Variables() {
  static const auto* const variables = new std::vector<Variable>{
      {kGroupCountVariable,
       Numbers(&Options::group_counts, 1, kMaxGroupCount, "visible GPU"), "1",
       "stream groups of each GPU; 1 is stock TensorFlow"},
      {kPrioritiesVariable,
       Numbers(&Options::priorities, -kMaxPriority, kMaxPriority,
               "stream group"),
       "0",
       "CUDA's priority of a group's streams: the lower, the sooner they "
       "are served. An error names what the GPU has (an H200: -5 to 0). "
       "[Tenants in a hurry](serving.md#keep-tenants-apart)"},
      {kSmsVariable, SmShares(&Options::sm_shares), "none",
       "4-7:32 gives stream groups 4 to 7 of each GPU 32 SMs that no other "
       "group uses, and only calls that name these groups run there. The other "
       "groups share the other SMs. An error says in which numbers the GPU "
       "gives SMs (an H200: multiples of 8). "
       "[Tenants in a hurry](serving.md#keep-tenants-apart)",
       [](const Options& options) {
         return options.emulated_gpus > 0
                    ? absl::StrCat("with ", kEmulatedGpusVariable,
                                   ", which have no SMs: it only keeps calls "
                                   "that name no group off these")
                : options.Enabled() ? ""
                                    : WithoutSeveralGroups();
       }},
      {kMergeVariable, Switch(&Options::merge_streams), "false",
       "a group copies to the host and between GPUs on its compute stream, "
       "without a wait between streams. What a step receives from the host "
       "goes that way in any case"},
      {kContextCountVariable,
       Numbers(&Options::context_counts, 1, kMaxGroupCount, "visible GPU"), "1",
       "CUDA contexts of each GPU, for processes under NVIDIA's MPS; group "
       "i has context i mod n: [contexts and MPS](contexts-and-mps.md)",
       [](const Options& options) {
         const auto& counts = options.context_counts;
         return !options.HasSeveralGroups() &&
                        std::any_of(counts.begin(), counts.end(),
                                    [](int count) { return count > 1; })
                    ? WithoutSeveralGroups()
                    : "";
       }},
      {kEmulatedGpusVariable,
       Number(&Options::emulated_gpus, 0, kMaxEmulatedGpus), "0",
       "emulated GPUs of 4 GiB, for machines without one: ops run on the "
       "CPU, groups and allocators are those of a GPU"},

      {kNodeLevelVariable, Switch(&Options::node_level), "false",
       "true: each node of a step has a group of its own; false: a whole "
       "step runs on one group: [training](training.md)"},
      {kReduceStreamWaitVariable, Switch(&Options::reduce_stream_wait), "true",
       "leave out waits that other waits imply"},
      {kForwardPropagationVariable, Switch(&Options::forward_propagation),
       "false", "a node without a group goes where its first input with one is",
       IfOn(&Options::forward_propagation, NeedsNodeLevel)},
      {kStreamFileVariable,
       AnyText("path", [](const std::string& value,
                          Options* options) { options->stream_file = value; }),
       "",
       "[a file](training.md#a-file-instead-of-code) that says which nodes "
       "have which group",
       NeedsNodeLevel},
      {kPolicyVariable, OneOf(kPolicies, &Options::policy), "none",
       "splits the steps of programs that mark nothing: "
       "[policies](policies.md). Implies `TF_NODE_LEVEL_MULTISTREAM=true`",
       [](const Options& options) {
         return options.policy == Policy::kNone ? ""
                : !options.HasSeveralGroups()   ? WithoutSeveralGroups()
                : options.node_level
                    ? ""
                    : absl::StrCat("with ", kNodeLevelVariable, "=false");
       }},
      {kMeasureVariable, Switch(&Options::measure), "true",
       "true: what a policy says counts where it was measured to be faster "
       "than one stream; false: always, from the first step on"},

      {kCaptureVariable, OneOf(kCaptureModes, &Options::capture),
       "inference for several groups at graph level; else marked",
       "auto: steps that launch the same kernels each time are recorded, "
       "and launched as one CUDA graph from then on; inference: only steps "
       "that change no variable; require: a graph that cannot be captured is "
       "an error that names the op; marked: only functions and sessions that "
       "ask for capture; off: not even these: "
       "[captured steps](captured-steps.md)",
       [](const Options& options) {
         return options.capture > CaptureMode::kOff && !options.captures()
                    ? absl::StrCat("with ", kNodeLevelVariable,
                                   "=true, whose steps run on several groups")
                    : "";
       }},
      {kCaptureBatchesVariable,
       Numbers(&Options::capture_batches, 1, kMaxRows,
               "batch that is recorded"),
       "none",
       "recordings are made for batches of so many rows; smaller batches "
       "are padded to the next where rows are independent: "
       "[batches](captured-steps.md#batches-of-any-size)",
       NeedsCapture},
      {kCaptureBranchesVariable,
       Number(&Options::capture_branches, 1, kMaxBranches), "4",
       "so many ops of a recorded step may run side by side, while few "
       "steps run: [branches](captured-steps-why.md#branches-of-one-step)",
       NeedsCapture},
      {kCaptureFuseVariable, Switch(&Options::capture_fuse), "true",
       "true: small elementwise ops of a recorded step, such as those with "
       "which Keras's optimizers update variables, become one kernel: "
       "[one kernel for many ops](captured-steps-why.md#one-kernel-for-many-"
       "small-ops)",
       NeedsCapture},
      {kCaptureLengthsVariable,
       Numbers(&Options::capture_lengths, 1, kMaxRows,
               "length that is recorded"),
       "none",
       "the same for the second dimension of inputs, such as the tokens of a "
       "sentence: [lengths](captured-steps.md#sequences-of-any-length)",
       NeedsCapture},
      {kCaptureMegabytesVariable,
       Number(&Options::capture_mb, 1, kMaxMegabytes), "1024",
       "the most memory that the recordings of one graph take, in MiB",
       NeedsCapture},
      {kCapturePercentVariable, Number(&Options::capture_percent, 1, 100),
       "100",
       "what `require` demands: so many percent of a graph's launches, in "
       "pieces if less than 100",
       [](const Options& options) {
         return options.capture_percent < 100 && options.capture_pieces == 0
                    ? absl::StrCat("with ", kCapturePiecesVariable, "=0")
                    : NeedsCapture(options);
       }},
      {kCapturePiecesVariable, Number(&Options::capture_pieces, 0), "8",
       "of a graph that cannot be captured as a whole, pieces are captured "
       "that launch at least so many ops; 0: none: "
       "[pieces](captured-steps.md#pieces)",
       NeedsCapture},
      {kCaptureVerifyVariable, Number(&Options::capture_verify, 0), "0",
       "every so many replays of a graph the step also runs as always, and "
       "a different bit is an error; 0: never",
       NeedsCapture},
      {kTfXlaFlagsVariable,
       AnyText("stock TensorFlow's",
               [](const std::string& value, Options* options) {
                 options->xla_has_streams =
                     absl::StrContains(value, "device_api");
               }),
       "",
       "`--tf_xla_enable_lazy_compilation=false` lets XLA's clusters be "
       "captured; with `device_api` flags none is: [with "
       "XLA](captured-steps.md#with-xla)"},

      {kSharePoolVariable, Switch(&Options::share_pool), "false",
       "one pool of memory, with one limit, for all groups of a GPU: "
       "[memory](memory.md)",
       IfOn(&Options::share_pool, NeedsOwnPools)},
      {kStreamAwareVariable, Switch(&Options::stream_aware), "false",
       "the same pool, which takes free memory of other groups rather than "
       "become larger than 1.1 times what was in use at once",
       IfOn(&Options::stream_aware, NeedsOwnPools)},
      {kExtendLimitVariable, Number(&Options::extend_limit_mb, 1), "none",
       "the most that such a pool takes from the GPU at a time, in MiB, "
       "unless one tensor needs more",
       [](const Options& options) {
         return options.share_pool || options.stream_aware
                    ? ""
                    : absl::StrCat("without ", kStreamAwareVariable,
                                   "=true or ", kSharePoolVariable, "=true");
       }},
      {kGpuAllocatorVariable,
       AnyText("cuda_malloc_async",
               [](const std::string& value, Options* options) {
                 options->cuda_malloc_async = value == "cuda_malloc_async";
               }),
       "",
       "stock TensorFlow's: the CUDA driver's pool serves all groups, and "
       "the two pools above have no effect"},
      {kHostAllocatorVariable, Switch(&Options::host_allocators), "false",
       "pinned host memory for a group's copies to the GPU from an "
       "allocator of its own, of up to `TF_GPU_HOST_MEM_LIMIT_IN_MB` each"},
      {kSegmentOwnConstVariable, Switch(&Options::segment_own_const), "false",
       "constants of equal value exist once on a GPU, also across sessions "
       "and across the feeds and fetches of one session"},

      {kThreadModeVariable, OneOf(kThreadModes, &Options::thread_mode), "",
       "which threads launch ops. Unset: one a core for all steps; "
       "gpu_private: `TF_GPU_THREAD_COUNT` threads for each group; "
       "gpu_shared: as many for all groups; global: the session's",
       nullptr, /*is_stock=*/true},
      {kThreadCountVariable, Number(&Options::thread_count, 1, kMaxThreadCount),
       "2", "the number of threads for gpu_private and gpu_shared",
       [](const Options& options) {
         return options.thread_mode == ThreadMode::kShared ||
                        options.thread_mode == ThreadMode::kPrivate
                    ? ""
                    : absl::StrCat("without ", kThreadModeVariable,
                                   "=gpu_private or gpu_shared");
       },
       /*is_stock=*/true},
      {kSpinLocksVariable, Switch(&Options::spin_locks), "true",
       "with several groups, threads that wait for a lock of the CUDA "
       "driver spin for a while before they sleep: [driver "
       "locks](driver-locks.md)"},

      {kSanitizerVariable, OneOf(kSanitizerModes, &Options::sanitizer), "off",
       "follows all that is enqueued on the streams, and reports uses of "
       "memory that nothing orders; slow, for tests: "
       "[sanitizers](sanitizers.md)"},
      {kTestFaultsVariable, Switch(&Options::test_faults), "false",
       "for the runtime's own tests: they may break the order of streams"},
  };
  return *variables;
}

std::string RowOf(const Variable& variable) {
  return absl::StrCat("| `", variable.name, "` | ", variable.parser.values,
                      " | ", variable.default_value,
                      *variable.default_value == 0 ? "| " : " | ",
                      variable.text, " |");
}

}  // namespace tensorflow::multistream
