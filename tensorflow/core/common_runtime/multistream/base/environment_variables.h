// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The table of variables: each TF_* variable that multi-stream reads has a row,
// with its values, its default, a line of documentation and what leaves it
// without effect. ParseOptions, the warnings in the log and docs/variables.md
// all come from the table.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_ENVIRONMENT_VARIABLES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_ENVIRONMENT_VARIABLES_H_

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"

namespace tensorflow::multistream {

// Parses the value of a variable.
struct ValueParser {
  std::string values;   // for the documentation: "1 to 64"
  std::string allowed;  // for errors: "it takes a whole number from 1 to 64"
  // Returns false and leaves the options alone if the value is not allowed.
  std::function<bool(const std::string& value, Options* options)> read;
};

struct Variable {
  const char* name;
  ValueParser parser;
  const char* default_value;
  const char* text;
  // Why the variable, if set, has no effect with these other options; "" if it
  // has one. Null: it always has an effect.
  std::function<std::string(const Options& options)> without_effect = nullptr;
  // Stock TensorFlow reads the variable, too. We check the value only if there
  // are stream groups or captured steps.
  bool is_stock = false;
};

const std::vector<Variable>& Variables();

// The variable's row of docs/variables.md: name, values, default and text.
std::string RowOf(const Variable& variable);

// The words that are values of variables and marks, in any case.
inline constexpr std::pair<const char*, Policy> kPolicies[] = {
    {"none", Policy::kNone},
    {"user_defined", Policy::kNone},  // marks of the program count anyway
    {"embedding", Policy::kEmbedding},
    {"full_graph", Policy::kFullGraph},
    {"cost", Policy::kCost}};

inline constexpr std::pair<const char*, CaptureMode> kCaptureModes[] = {
    {"off", CaptureMode::kOff},
    {"marked", CaptureMode::kMarked},
    {"inference", CaptureMode::kInference},
    {"auto", CaptureMode::kAuto},
    {"require", CaptureMode::kRequire}};

inline constexpr std::pair<const char*, SanitizerMode> kSanitizerModes[] = {
    {"off", SanitizerMode::kOff},
    {"log", SanitizerMode::kLog},
    {"abort", SanitizerMode::kAbort}};

inline constexpr std::pair<const char*, ThreadMode> kThreadModes[] = {
    {"global", ThreadMode::kGlobal},
    {"gpu_private", ThreadMode::kPrivate},
    {"gpu_shared", ThreadMode::kShared}};

// The value of a word in one of these tables; nullopt: no such word.
template <class Words>
auto ValueOfWord(const Words& words, absl::string_view word) {
  std::optional<std::decay_t<decltype(words[0].second)>> found;
  for (const auto& [known, value] : words) {
    if (absl::EqualsIgnoreCase(known, word)) found = value;
  }
  return found;
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_ENVIRONMENT_VARIABLES_H_
