// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/stream_file.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "re2/re2.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {
namespace {

// If a line has more regexes than this, Summary counts them together: a plan
// written by save_plan has a name for each node.
constexpr size_t kMostListed = 8;
constexpr char kForm[] = "a line is GROUP:REGEX or GROUP:REGEX,REGEX,...";

absl::string_view WithoutComment(absl::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && (i == 0 || absl::ascii_isspace(line[i - 1]))) {
      return line.substr(0, i);
    }
  }
  return line;
}

// The index after the character class, such as [^],[:alpha:]], that starts at
// `text[i]`.
size_t EndOfClass(absl::string_view text, size_t i) {
  ++i;
  if (i < text.size() && text[i] == '^') ++i;
  if (i < text.size() && text[i] == ']') ++i;  // the first one is a member
  while (i < text.size() && text[i] != ']') {
    if (text[i] == '\\') {
      ++i;
    } else if (text.substr(i, 2) == "[:") {
      const size_t end = text.find(":]", i);
      if (end != absl::string_view::npos) i = end + 1;
    }
    ++i;
  }
  return i + 1;
}

// Splits at the commas that do not belong to an expression. RE2 checks later
// whether an expression is well-formed.
std::vector<absl::string_view> SplitRegexes(absl::string_view text) {
  std::vector<absl::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size();) {
    switch (text[i]) {
      case '\\':
        i += 2;
        continue;
      case '[':
        i = EndOfClass(text, i);
        continue;
      case '(':
      case '{':
        ++depth;
        break;
      case ')':
      case '}':
        if (depth > 0) --depth;
        break;
      case ',':
        if (depth > 0) break;
        parts.push_back(text.substr(begin, i - begin));
        begin = i + 1;
        break;
    }
    ++i;
  }
  parts.push_back(text.substr(begin));
  for (absl::string_view& part : parts) part = absl::StripAsciiWhitespace(part);
  return parts;
}

// The only name that the regex matches, if no character of it is special.
std::optional<std::string> OnlyMatch(absl::string_view regex) {
  std::string name;
  for (size_t i = 0; i < regex.size(); ++i) {
    if (regex[i] == '\\') {
      if (++i == regex.size() || !absl::ascii_ispunct(regex[i])) {
        return std::nullopt;
      }
    } else if (absl::StrContains(".*+?()[]{}|^$", regex[i])) {
      return std::nullopt;
    }
    name.push_back(regex[i]);
  }
  return name;
}

RE2::Options RegexOptions() {
  RE2::Options options;
  options.set_log_errors(false);  // the status has them
  return options;
}

}  // namespace

struct StreamFile::Rule {
  Rule(int line, int group, absl::string_view regex)
      : line(line), group(group), regex(regex, RegexOptions()) {}

  const int line;
  const int group;
  const RE2 regex;
  std::atomic<int64_t> nodes{0};
};

StreamFile::StreamFile(std::string path) : path_(std::move(path)) {}
StreamFile::~StreamFile() = default;

std::optional<int> StreamFile::GroupOf(absl::string_view node_name) const {
  const auto name = names_.find(node_name);
  size_t first = name == names_.end() ? rules_.size() : name->second;
  for (const size_t i : patterns_) {
    if (i >= first) break;
    if (RE2::FullMatch(node_name, rules_[i]->regex)) first = i;
  }
  if (first == rules_.size()) return std::nullopt;
  rules_[first]->nodes.fetch_add(1, std::memory_order_relaxed);
  return rules_[first]->group;
}

std::string StreamFile::Summary() const {
  std::string summary;
  auto add = [&](const Rule& rule, const std::string& what, int64_t nodes) {
    absl::StrAppend(&summary, path_, ":", rule.line, " group ", rule.group, " ",
                    what, ": ", nodes, nodes == 1 ? " node\n" : " nodes\n");
  };
  for (size_t begin = 0, end; begin < rules_.size(); begin = end) {
    int64_t nodes = 0;
    for (end = begin;
         end < rules_.size() && rules_[end]->line == rules_[begin]->line;
         ++end) {
      nodes += rules_[end]->nodes.load(std::memory_order_relaxed);
    }
    if (end - begin > kMostListed) {
      add(*rules_[begin], absl::StrCat(end - begin, " regexes"), nodes);
      continue;
    }
    for (size_t i = begin; i < end; ++i) {
      add(*rules_[i], absl::StrCat("regex '", rules_[i]->regex.pattern(), "'"),
          rules_[i]->nodes.load(std::memory_order_relaxed));
    }
  }
  return summary;
}

void StreamFile::Add(std::unique_ptr<Rule> rule) {
  const size_t i = rules_.size();
  if (std::optional<std::string> name = OnlyMatch(rule->regex.pattern())) {
    names_.try_emplace(*name, i);
  } else {
    patterns_.push_back(i);
  }
  rules_.push_back(std::move(rule));
}

absl::StatusOr<std::unique_ptr<StreamFile>> ParseStreamFile(
    absl::string_view contents, const std::string& path, int group_count) {
  std::unique_ptr<StreamFile> file(new StreamFile(path));
  int number = 0;
  for (absl::string_view line : absl::StrSplit(contents, '\n')) {
    ++number;
    auto bad = [&](const auto&... reason) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number, ": ", reason...));
    };
    line = absl::StripAsciiWhitespace(WithoutComment(line));
    if (line.empty()) continue;
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) {
      return bad("\"", line, "\" has no colon: ", kForm);
    }
    const absl::string_view group_text =
        absl::StripAsciiWhitespace(line.substr(0, colon));
    int group;
    if (!absl::SimpleAtoi(group_text, &group) || group < 0 ||
        group >= group_count) {
      return bad(
          "group \"", group_text, "\" is not valid: it takes ",
          group_count == 1
              ? std::string("0, as there is one stream group")
              : absl::StrCat("a whole number from 0 to ", group_count - 1));
    }
    for (absl::string_view regex : SplitRegexes(line.substr(colon + 1))) {
      if (regex.empty()) {
        return bad("\"", line, "\" has an empty regex: ", kForm);
      }
      auto rule = std::make_unique<StreamFile::Rule>(number, group, regex);
      if (!rule->regex.ok()) {
        return bad("regex \"", regex, "\" is not valid: ", rule->regex.error(),
                   "; it takes RE2's syntax, and commas between regexes");
      }
      file->Add(std::move(rule));
    }
  }
  return file;
}

absl::StatusOr<std::unique_ptr<StreamFile>> LoadStreamFile(
    const std::string& path, int group_count) {
  std::string contents;
  const absl::Status status = ReadFileToString(Env::Default(), path, &contents);
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat("TF_STREAM_FROM_FILE=\"", path,
                                     "\" cannot be read: ", status.message(),
                                     "; it takes the path of a text file"));
  }
  return ParseStreamFile(contents, path, group_count);
}

absl::StatusOr<std::unique_ptr<StreamFile>> LoadProcessStreamFile(
    const Options& options) {
  if (!options.any_node_level || options.stream_file.empty()) return nullptr;
  int most = 1;
  for (int count : options.group_counts) most = std::max(most, count);
  return LoadStreamFile(options.stream_file, most);
}

absl::StatusOr<const StreamFile*> ProcessStreamFile(const Options& options) {
  static absl::Mutex mu(absl::kConstInit);
  static const StreamFile* file = nullptr;
  absl::MutexLock lock(&mu);
  if (file == nullptr) {
    TF_ASSIGN_OR_RETURN(std::unique_ptr<StreamFile> loaded,
                        LoadProcessStreamFile(options));
    file = loaded.release();
  }
  return file;
}

}  // namespace tensorflow::multistream
