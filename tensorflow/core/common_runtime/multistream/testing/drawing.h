// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Graphs drawn as text, for tests:
//
//   x -> a@1 b(9) -> join      x goes to a (in group 1) and b (of 9 us), and
//                              these to join
//
// A `;` or a new line ends a statement. A name that is new makes a node.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_DRAWING_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_DRAWING_H_

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tensorflow::multistream {

// [^]NAME[@GROUP][(WORD,WORD...)][:OUTPUT], or the option NAME=VALUE. A `^`
// makes the edge that leaves the node a control edge.
struct DrawnToken {
  explicit DrawnToken(absl::string_view token) {
    control = absl::ConsumePrefix(&token, "^");
    if (absl::StrContains(token, '=')) {
      std::tie(name, value) = Split(token, '=');
      is_option = true;
      return;
    }
    std::string rest, in_parentheses;
    std::tie(rest, output) = Split(token, ':');
    std::tie(rest, in_parentheses) = Split(absl::StripSuffix(rest, ")"), '(');
    std::tie(name, value) = Split(rest, '@');
    words = absl::StrSplit(in_parentheses, ',', absl::SkipEmpty());
  }
  static std::pair<std::string, std::string> Split(absl::string_view text,
                                                   char at) {
    return absl::StrSplit(text, absl::MaxSplits(at, 1));
  }

  bool control = false;
  bool is_option = false;
  std::string name;
  std::string value;  // of the option, or the node's group
  std::vector<std::string> words;
  std::string output;
};

// Calls `visit` with each token of the drawing, and with those before its
// arrow.
inline void ForEachToken(
    absl::string_view drawing,
    const std::function<void(const DrawnToken&,
                             const std::vector<DrawnToken>&)>& visit) {
  for (absl::string_view statement :
       absl::StrSplit(drawing, absl::ByAnyChar(";\n"))) {
    std::vector<DrawnToken> from;
    for (absl::string_view part : absl::StrSplit(statement, "->")) {
      std::vector<DrawnToken> to;
      for (absl::string_view token :
           absl::StrSplit(part, ' ', absl::SkipEmpty())) {
        to.emplace_back(token);
        visit(to.back(), from);
      }
      from = std::move(to);
    }
  }
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_DRAWING_H_
