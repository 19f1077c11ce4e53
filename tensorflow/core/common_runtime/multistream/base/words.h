// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The words that are values of variables and marks, in any case.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_WORDS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_WORDS_H_

#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"

namespace tensorflow {
namespace multistream {

inline constexpr std::pair<const char*, Policy> kPolicies[] = {
    {"none", Policy::kNone},
    {"user_defined", Policy::kNone},  // marks of the program count anyway
    {"embedding", Policy::kEmbedding},
    {"full_graph", Policy::kFullGraph},
    {"cost", Policy::kCost}};

inline constexpr std::pair<const char*, CaptureMode> kCaptureModes[] = {
    {"off", CaptureMode::kOff},
    {"marked", CaptureMode::kMarked},
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

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_WORDS_H_
