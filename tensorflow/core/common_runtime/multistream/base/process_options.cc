// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/process_options.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {
namespace {

std::optional<std::string> FromEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

// Interns options that were parsed from `text`, which has all their inputs.
// They are never deleted, so equal requests must share them: any number of
// failing sessions may make a request and undo it.
const absl::StatusOr<Options>* Kept(std::string text, Options options) {
  static absl::Mutex mu(absl::kConstInit);
  static auto* kept = new std::map<std::string, const absl::StatusOr<Options>*>;
  absl::MutexLock lock(&mu);
  const absl::StatusOr<Options>*& known = (*kept)[std::move(text)];
  if (known == nullptr) {
    known = new absl::StatusOr<Options>(std::move(options));
  }
  return known;
}

// The options of the environment, from the moment of construction.
struct Environment {
  Environment()
      : options(ParseOptions([this](const std::string& name) {
          std::optional<std::string> value = FromEnvironment(name);
          if (value && name != kTfXlaFlagsVariable) has_variables = true;
          return value;
        })) {}

  bool has_variables = false;
  absl::StatusOr<Options> options;
};

const Environment*& LastRead() {
  static const Environment* last = new Environment;
  return last;
}

// Old options are never deleted, so readers may keep references to them.
std::atomic<const absl::StatusOr<Options>*>& Current() {
  static std::atomic<const absl::StatusOr<Options>*> current{
      &LastRead()->options};
  return current;
}

// Makes current the environment's options with these values replaced.
absl::Status Request(const Options& before, const std::vector<int>& counts,
                     bool any_node_level, CaptureMode capture) {
  std::string text = absl::StrCat(
      absl::StrJoin(before.default_group_counts, ","), "\n", any_node_level);
  absl::StatusOr<Options> with =
      ParseOptions([&](const std::string& name) -> std::optional<std::string> {
        std::optional<std::string> value = FromEnvironment(name);
        if (name == kGroupCountVariable && !counts.empty()) {
          value = absl::StrJoin(counts, ",");
        } else if (name == kCaptureVariable &&
                   capture == CaptureMode::kMarked) {
          value = "marked";
        }
        if (value) absl::StrAppend(&text, "\n", name, "=", *value);
        return value;
      });
  if (!with.ok()) return with.status();
  if (with->capture_is_default && !before.capture_is_default) {
    // These groups are of one session, whose steps run on several of them.
    with->capture = CaptureMode::kUnset;
    with->capture_is_default = false;
  }
  with->default_group_counts = before.default_group_counts;
  with->any_node_level = any_node_level;
  Current().store(Kept(std::move(text), *std::move(with)),
                  std::memory_order_release);
  return absl::OkStatus();
}

}  // namespace

const absl::StatusOr<Options>& ProcessOptions() {
  return *Current().load(std::memory_order_acquire);
}

bool IsEnabled() {
  const absl::StatusOr<Options>& options = ProcessOptions();
  return options.ok() && options->Enabled();
}

bool MayCapture() {
  const absl::StatusOr<Options>& options = ProcessOptions();
  return options.ok() && options->captures();
}

absl::Status RequestNodeLevel(int groups) {
  const absl::StatusOr<Options>& before = ProcessOptions();
  if (!before.ok()) return before.status();
  std::vector<int> counts = before->group_counts;
  if (counts.empty()) counts.push_back(1);
  for (int& count : counts) count = std::max(count, groups);
  if (counts == before->group_counts && before->any_node_level) {
    return absl::OkStatus();
  }
  return Request(*before, counts, /*any_node_level=*/true, before->capture);
}

absl::Status CanRequestCapture() {
  const absl::StatusOr<Options>& before = ProcessOptions();
  if (!before.ok()) return before.status();
  if (before->capture == CaptureMode::kOff) {
    return absl::FailedPreconditionError(
        absl::StrCat("no step is captured with ", kCaptureVariable, "=off"));
  }
  if (before->node_level) {
    return absl::FailedPreconditionError(
        absl::StrCat("no step is captured with ", kNodeLevelVariable,
                     "=true, whose steps run on several groups"));
  }
  return absl::OkStatus();
}

absl::Status RequestCapture() {
  TF_RETURN_IF_ERROR(CanRequestCapture());
  const absl::StatusOr<Options>& before = ProcessOptions();
  if (before->captures()) return absl::OkStatus();
  return Request(*before, before->group_counts, before->any_node_level,
                 CaptureMode::kMarked);
}

void RestoreOptions(const absl::StatusOr<Options>& before) {
  Current().store(&before, std::memory_order_release);
}

absl::Status ReadEnvironmentAgain() {
  if (LastRead()->has_variables) {
    return absl::FailedPreconditionError(
        "This process has read multi-stream variables from its environment "
        "already. Start it without them.");
  }
  if (&ProcessOptions() != &LastRead()->options) {
    return absl::FailedPreconditionError(
        "A session or function of this process has asked for streams, or to be "
        "captured. Read the environment before.");
  }
  LastRead() = new Environment;
  Current().store(&LastRead()->options, std::memory_order_release);
  return absl::OkStatus();
}

}  // namespace tensorflow::multistream
