// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/options.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/multistream/base/environment_variables.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {
namespace {

absl::Status Bad(const std::string& name, const std::string& value,
                 const std::string& allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, "=\"", value, "\" is not valid: ", allowed));
}

// Reads the variables that are set: with `stock` only stock TensorFlow's
// variables, otherwise only ours.
absl::Status ReadVariables(const GetVariable& get, bool stock,
                           Options* options) {
  for (const Variable& variable : Variables()) {
    if (variable.is_stock != stock) continue;
    const std::string value = get(variable.name).value_or("");
    if (!value.empty() && !variable.parser.read(value, options)) {
      return Bad(variable.name, value, variable.parser.allowed);
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<Policy> PolicyOfName(absl::string_view name) {
  return ValueOfWord(kPolicies, name);
}

std::optional<CaptureMode> CaptureModeOfName(absl::string_view name) {
  return ValueOfWord(kCaptureModes, name);
}

const char* NameOf(CaptureMode mode) {
  for (const auto& [name, known] : kCaptureModes) {
    if (mode == known) return name;
  }
  return "";
}

bool Options::AsksForSeveralGroups() const {
  return std::any_of(group_counts.begin(), group_counts.end(),
                     [](int n) { return n > 1; });
}

bool Options::HasSeveralGroups() const {
  return emulated_gpus > 0 || AsksForSeveralGroups();
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

std::string TextOfGroups(int first, int last) {
  return first == last ? absl::StrCat("stream group ", first)
                       : absl::StrCat("stream groups ", first, " to ", last);
}

std::vector<int> Options::GroupsForAll(int groups) const {
  std::vector<int> all, left;
  for (int group = 0; group < groups; ++group) {
    all.push_back(group);
    const bool is_named = std::any_of(
        sm_shares.begin(), sm_shares.end(), [group](const SmShare& share) {
          return group >= share.first && group <= share.last;
        });
    if (!is_named) left.push_back(group);
  }
  return left.empty() ? all : left;
}

absl::Status Options::CheckSmShares(int groups) const {
  for (const SmShare& share : sm_shares) {
    if (share.last < groups) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(kSmsVariable, " gives SMs to stream group ", share.last,
                     ", and a GPU has the groups 0 to ", groups - 1));
  }
  return absl::OkStatus();
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
  const auto is_set = [&get](const char* name) {
    return !get(name).value_or("").empty();
  };
  Options options;
  TF_RETURN_IF_ERROR(ReadVariables(get, /*stock=*/false, &options));
  const auto& contexts = options.context_counts;
  if (!options.sm_shares.empty() &&
      std::any_of(contexts.begin(), contexts.end(),
                  [](int count) { return count > 1; })) {
    return absl::InvalidArgumentError(
        absl::StrCat(kSmsVariable, " cannot be combined with ",
                     kContextCountVariable, "=", absl::StrJoin(contexts, ","),
                     ": SMs are shared out among groups of one CUDA context"));
  }
  options.default_group_counts = options.group_counts;
  std::sort(options.capture_batches.begin(), options.capture_batches.end());
  std::sort(options.capture_lengths.begin(), options.capture_lengths.end());
  // A policy gives groups to nodes, so it needs node level.
  const bool splits_steps =
      options.policy != Policy::kNone && options.HasSeveralGroups();
  if (splits_steps && !is_set(kNodeLevelVariable)) options.node_level = true;
  options.any_node_level = options.node_level && options.HasSeveralGroups();
  options.capture_is_default = options.capture == CaptureMode::kUnset &&
                               !options.node_level &&
                               options.AsksForSeveralGroups();
  if (options.capture_is_default) options.capture = CaptureMode::kInference;
  if (options.Enabled()) {
    TF_RETURN_IF_ERROR(ReadVariables(get, /*stock=*/true, &options));
  }
  for (const Variable& variable : Variables()) {
    if (variable.without_effect == nullptr || !is_set(variable.name)) continue;
    if (variable.is_stock && !options.Enabled()) continue;
    const std::string why = variable.without_effect(options);
    if (why.empty()) continue;
    options.without_effect.push_back(
        absl::StrCat(variable.name, " (", why, ")"));
  }
  if (splits_steps && !options.node_level) options.policy = Policy::kNone;
  return options;
}

}  // namespace tensorflow::multistream
