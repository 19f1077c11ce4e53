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

#include "tensorflow/core/common_runtime/multistream/base/options.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr char kOfGpus[] = "visible GPU";
constexpr int kMaxPriority = 64;  // what a GPU has is less

absl::Status Bad(const std::string& name, const std::string& value,
                 const std::string& allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, "=\"", value, "\" is not valid: ", allowed));
}

// A list, if `of_each` says of what, or a single number.
absl::Status ParseIntList(const std::string& name, const std::string& value,
                          int lowest, int highest, const std::string& of_each,
                          std::vector<int>* out) {
  const bool list = !of_each.empty();
  const std::string number =
      highest == INT32_MAX
          ? absl::StrCat("a whole number of at least ", lowest)
          : absl::StrCat("a whole number from ", lowest, " to ", highest);
  const std::string allowed =
      absl::StrCat("it takes ", number,
                   list ? absl::StrCat(", or a comma list of such numbers, "
                                       "one for each ",
                                       of_each)
                        : "");
  for (absl::string_view part : absl::StrSplit(value, ',')) {
    int n;
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(part), &n) || n < lowest ||
        n > highest) {
      return Bad(name, value, allowed);
    }
    out->push_back(n);
  }
  if (!list && out->size() != 1) return Bad(name, value, allowed);
  return absl::OkStatus();
}

absl::Status ParseBool(const std::string& name, const std::string& value,
                       bool* out) {
  const std::string lower = absl::AsciiStrToLower(value);
  if (lower == "true" || lower == "1") {
    *out = true;
  } else if (lower == "false" || lower == "0") {
    *out = false;
  } else {
    return Bad(name, value, "it takes true, false, 1 or 0");
  }
  return absl::OkStatus();
}

absl::Status CheckWord(const std::string& name, const std::string& value,
                       const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), absl::AsciiStrToLower(value)) ==
      words.end()) {
    return Bad(name, value,
               absl::StrCat("it takes one of ", absl::StrJoin(words, ", ")));
  }
  return absl::OkStatus();
}

constexpr std::pair<const char*, Policy> kPolicies[] = {
    {"none", Policy::kNone},
    {"user_defined", Policy::kNone},  // what programs say counts anyway
    {"embedding", Policy::kEmbedding},
    {"full_graph", Policy::kFullGraph},
    {"cost", Policy::kCost}};

constexpr std::pair<const char*, CaptureMode> kCaptureModes[] = {
    {"off", CaptureMode::kOff},
    {"marked", CaptureMode::kMarked},
    {"auto", CaptureMode::kAuto},
    {"require", CaptureMode::kRequire}};

// Of one of the tables above.
template <class Table>
auto ValueOfName(const Table& table, absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  std::optional<std::decay_t<decltype(table[0].second)>> value;
  for (const auto& [known, its_value] : table) {
    if (lower == known) value = its_value;
  }
  return value;
}

template <class Table>
std::vector<std::string> NamesIn(const Table& table) {
  std::vector<std::string> names;
  for (const auto& [name, value] : table) names.push_back(name);
  return names;
}

absl::Status ParseResources(const GetVariable& get, Options* options) {
  if (const std::string v = get(kPrioritiesVariable).value_or(""); !v.empty()) {
    absl::Status s =
        ParseIntList(kPrioritiesVariable, v, -kMaxPriority, kMaxPriority,
                     "stream group", &options->priorities);
    if (!s.ok()) return s;
  }
  if (const std::string v = get(kExtendLimitVariable).value_or("");
      !v.empty()) {
    std::vector<int> parsed;
    absl::Status s = ParseIntList(kExtendLimitVariable, v, 1, INT32_MAX,
                                  /*of_each=*/"", &parsed);
    if (!s.ok()) return s;
    options->extend_limit_mb = parsed[0];
    if (!options->share_pool && !options->stream_aware) {
      options->without_effect.push_back(
          absl::StrCat(kExtendLimitVariable, " (without ", kStreamAwareVariable,
                       "=true or ", kSharePoolVariable, "=true)"));
    }
  }
  options->cuda_malloc_async =
      get(kGpuAllocatorVariable).value_or("") == "cuda_malloc_async";
  if (!options->cuda_malloc_async) return absl::OkStatus();
  for (auto [is_set, name] :
       {std::pair<bool, const char*>(options->share_pool, kSharePoolVariable),
        {options->stream_aware, kStreamAwareVariable}}) {
    if (!is_set) continue;
    options->without_effect.push_back(absl::StrCat(
        name, " (with ", kGpuAllocatorVariable,
        "=cuda_malloc_async, whose pool the groups of a GPU share anyway)"));
  }
  return absl::OkStatus();
}

// Who wants a policy wants nodes to have groups.
absl::Status ParsePolicy(const GetVariable& get, Options* options) {
  const std::string value = get(kPolicyVariable).value_or("");
  if (value.empty()) return absl::OkStatus();
  absl::Status s = CheckWord(kPolicyVariable, value, NamesIn(kPolicies));
  if (!s.ok()) return s;
  options->policy = *PolicyOfName(value);
  if (options->policy == Policy::kNone) return absl::OkStatus();
  if (!options->HasSeveralGroups()) {
    options->without_effect.push_back(absl::StrCat(
        kPolicyVariable,
        " (without several stream groups: ", kGroupCountVariable, ")"));
  } else if (!get(kNodeLevelVariable).value_or("").empty() &&
             !options->node_level) {
    options->policy = Policy::kNone;
    options->without_effect.push_back(absl::StrCat(
        kPolicyVariable, " (with ", kNodeLevelVariable, "=false)"));
  } else {
    options->node_level = true;
  }
  return absl::OkStatus();
}

// These two are stock TensorFlow's too, and its business without groups.
absl::Status ParseThreads(const GetVariable& get, Options* options) {
  if (!options->Enabled()) return absl::OkStatus();
  const std::string mode = get(kThreadModeVariable).value_or("");
  if (!mode.empty()) {
    absl::Status s = CheckWord(kThreadModeVariable, mode,
                               {"global", "gpu_private", "gpu_shared"});
    if (!s.ok()) return s;
    const std::string lower = absl::AsciiStrToLower(mode);
    options->thread_mode = lower == "global"       ? ThreadMode::kGlobal
                           : lower == "gpu_shared" ? ThreadMode::kShared
                                                   : ThreadMode::kPrivate;
  }
  const std::string count = get(kThreadCountVariable).value_or("");
  if (!count.empty()) {
    std::vector<int> parsed;
    absl::Status s = ParseIntList(kThreadCountVariable, count, 1,
                                  kMaxThreadCount, /*of_each=*/"", &parsed);
    if (!s.ok()) return s;
    options->thread_count = parsed[0];
    if (options->thread_mode == ThreadMode::kProcess ||
        options->thread_mode == ThreadMode::kGlobal) {
      options->without_effect.push_back(
          absl::StrCat(kThreadCountVariable, " (without ", kThreadModeVariable,
                       "=gpu_private or gpu_shared)"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<Policy> PolicyOfName(absl::string_view name) {
  return ValueOfName(kPolicies, name);
}

std::optional<CaptureMode> CaptureModeOfName(absl::string_view name) {
  return ValueOfName(kCaptureModes, name);
}

const char* NameOf(CaptureMode mode) {
  for (const auto& [name, known] : kCaptureModes) {
    if (mode == known) return name;
  }
  return "";
}

bool Options::HasSeveralGroups() const {
  return emulated_gpus > 0 ||
         std::any_of(group_counts.begin(), group_counts.end(),
                     [](int n) { return n > 1; });
}

int Options::OfGpu(const std::vector<int>& list, int gpu) {
  if (list.empty()) return 1;
  if (list.size() == 1) return list[0];
  return gpu < static_cast<int>(list.size()) ? list[gpu] : 1;
}

absl::Status Options::CheckPriorities(int groups) const {
  const int entries = static_cast<int>(priorities.size());
  if (entries <= 1 || entries == groups) return absl::OkStatus();
  return Bad(
      kPrioritiesVariable, absl::StrJoin(priorities, ","),
      absl::StrCat("the list has ", entries, " numbers, and a GPU has ", groups,
                   " stream groups; give one number for each, "
                   "or a single one for all"));
}

absl::Status Options::CheckGroupCounts(int visible, int physical) const {
  for (const auto& [name, list] :
       {std::pair<const char*, const std::vector<int>&>(kGroupCountVariable,
                                                        group_counts),
        {kContextCountVariable, context_counts}}) {
    const int entries = static_cast<int>(list.size());
    if (entries <= 1 || (entries >= visible && entries <= physical)) continue;
    return Bad(name, absl::StrJoin(list, ","),
               absl::StrCat("the list has ", entries, " numbers, and there ",
                            visible == 1 ? "is 1 visible GPU"
                                         : absl::StrCat("are ", visible,
                                                        " visible GPUs"),
                            "; give one number for each, or a single one for "
                            "all"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Options> ParseOptions(const GetVariable& get) {
  Options options;
  auto value_of = [&](const char* name) {
    return get(name).value_or(std::string());
  };
  if (std::string v = value_of(kGroupCountVariable); !v.empty()) {
    absl::Status s = ParseIntList(kGroupCountVariable, v, 1, kMaxGroupCount,
                                  kOfGpus, &options.group_counts);
    if (!s.ok()) return s;
    options.default_group_counts = options.group_counts;
  }
  if (std::string v = value_of(kContextCountVariable); !v.empty()) {
    absl::Status s = ParseIntList(kContextCountVariable, v, 1, kMaxGroupCount,
                                  kOfGpus, &options.context_counts);
    if (!s.ok()) return s;
  }
  if (std::string v = value_of(kEmulatedGpusVariable); !v.empty()) {
    std::vector<int> parsed;
    absl::Status s = ParseIntList(kEmulatedGpusVariable, v, 0, kMaxEmulatedGpus,
                                  /*of_each=*/"", &parsed);
    if (!s.ok()) return s;
    options.emulated_gpus = parsed[0];
  }
  if (std::string v = value_of(kPythonTurnsVariable); !v.empty()) {
    std::vector<int> parsed;
    absl::Status s = ParseIntList(kPythonTurnsVariable, v, 0, kMaxPythonTurns,
                                  /*of_each=*/"", &parsed);
    if (!s.ok()) return s;
    options.python_turns = parsed[0];
  }
  for (auto [name, out] :
       {std::pair<const char*, bool*>(kSegmentOwnConstVariable,
                                      &options.segment_own_const),
        {kSpinLocksVariable, &options.spin_locks},
        {kNodeLevelVariable, &options.node_level},
        {kReduceStreamWaitVariable, &options.reduce_stream_wait},
        {kMeasureVariable, &options.measure},
        {kForwardPropagationVariable, &options.forward_propagation},
        {kSharePoolVariable, &options.share_pool},
        {kStreamAwareVariable, &options.stream_aware},
        {kMergeVariable, &options.merge_streams},
        {kHostAllocatorVariable, &options.host_allocators},
        {kTestFaultsVariable, &options.test_faults}}) {
    const std::string v = value_of(name);
    if (v.empty()) continue;
    absl::Status s = ParseBool(name, v, out);
    if (!s.ok()) return s;
  }
  options.stream_file = value_of(kStreamFileVariable);
  if (std::string v = value_of(kSanitizerVariable); !v.empty()) {
    absl::Status s = CheckWord(kSanitizerVariable, v, {"off", "log", "abort"});
    if (!s.ok()) return s;
    v = absl::AsciiStrToLower(v);
    options.sanitizer = v == "off"   ? SanitizerMode::kOff
                        : v == "log" ? SanitizerMode::kLog
                                     : SanitizerMode::kAbort;
  }
  if (std::string v = value_of(kCaptureVariable); !v.empty()) {
    absl::Status s = CheckWord(kCaptureVariable, v, NamesIn(kCaptureModes));
    if (!s.ok()) return s;
    options.capture = *CaptureModeOfName(v);
  }
  std::vector<int> megabytes, verify, branches;
  for (auto [name, lowest, highest, of_each, out] :
       {std::tuple{kCaptureMegabytesVariable, 1, 1 << 20, "", &megabytes},
        {kCaptureVerifyVariable, 0, INT32_MAX, "", &verify},
        {kCaptureBranchesVariable, 1, 64, "", &branches},
        {kCaptureBatchesVariable, 1, 1 << 20, "batch that is recorded",
         &options.capture_batches}}) {
    const std::string v = value_of(name);
    if (v.empty()) continue;
    absl::Status s = ParseIntList(name, v, lowest, highest, of_each, out);
    if (!s.ok()) return s;
    if (options.capture <= CaptureMode::kOff) {
      options.without_effect.push_back(
          absl::StrCat(name, " (without ", kCaptureVariable,
                       ", but for what the program captures)"));
    }
  }
  const std::string xla_flags = value_of(kXlaFlagsVariable);
  for (absl::string_view flag :
       absl::StrSplit(xla_flags, absl::ByAnyChar(" \t\n"))) {
    if (absl::ConsumePrefix(&flag, kXlaCommandBufferFlag)) {
      options.xla_launches_graphs = !flag.empty();
    }
  }
  options.xla_has_streams =
      absl::StrContains(value_of(kTfXlaFlagsVariable), "device_api");
  if (!megabytes.empty()) options.capture_mb = megabytes[0];
  if (!verify.empty()) options.capture_verify = verify[0];
  if (!branches.empty()) options.capture_branches = branches[0];
  std::sort(options.capture_batches.begin(), options.capture_batches.end());
  absl::Status policy = ParsePolicy(get, &options);
  if (!policy.ok()) return policy;
  options.any_node_level = options.node_level && options.HasSeveralGroups();
  auto needs_node_level = [&options](bool is_set, const char* name) {
    if (!is_set || options.node_level) return;
    options.without_effect.push_back(
        absl::StrCat(name, " (without ", kNodeLevelVariable,
                     "=true, but for sessions that ask for streams)"));
  };
  needs_node_level(options.forward_propagation, kForwardPropagationVariable);
  needs_node_level(!options.stream_file.empty(), kStreamFileVariable);
  const bool several =
      std::any_of(options.context_counts.begin(), options.context_counts.end(),
                  [](int count) { return count > 1; });
  if (several && !options.HasSeveralGroups()) {
    options.without_effect.push_back(absl::StrCat(
        kContextCountVariable,
        " (without several stream groups: ", kGroupCountVariable, ")"));
  }
  if (options.capture > CaptureMode::kOff && !options.captures()) {
    options.without_effect.push_back(
        absl::StrCat(kCaptureVariable, " (with ", kNodeLevelVariable,
                     "=true, whose steps run on several groups)"));
  }
  absl::Status s = ParseResources(get, &options);
  if (!s.ok()) return s;
  s = ParseThreads(get, &options);
  if (!s.ok()) return s;
  return options;
}

}  // namespace multistream
}  // namespace tensorflow
