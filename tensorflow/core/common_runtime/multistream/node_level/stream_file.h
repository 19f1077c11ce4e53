// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which stream group does the file of TF_STREAM_FROM_FILE give a node?
// The first executor reads the file for the process; attach and the programs'
// interface check it before. The node plan asks for each node.
//
//   # comment                   blank lines and comments say nothing
//   1: user/.*, clicks/.*       nodes whose whole name matches one of the
//   2: tower_[0-9]{1,2}/.*      regular expressions (RE2) go to that group
//
// The first line that matches a node decides. A comment starts at a `#` at the
// start of the line or after white space. A comma separates two expressions
// unless it is inside (), [] or {}, or escaped as `\,`. White space around an
// expression is not part of it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_STREAM_FILE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_STREAM_FILE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"

namespace tensorflow::multistream {

// Thread-safe.
class StreamFile {
 public:
  ~StreamFile();

  // The node's group, if the file gives one. Each call counts as a node.
  std::optional<int> GroupOf(absl::string_view node_name) const;

  // A line per expression: "streams.txt:3 group 1 regex 'user/.*': 12 nodes". A
  // file line with many expressions gets one for all. A node counts for the
  // expression that decided.
  std::string Summary() const;

 private:
  friend absl::StatusOr<std::unique_ptr<StreamFile>> ParseStreamFile(
      absl::string_view contents, const std::string& path, int group_count);

  struct Rule;

  explicit StreamFile(std::string path);

  void Add(std::unique_ptr<Rule> rule);

  std::string path_;
  std::vector<std::unique_ptr<Rule>> rules_;
  // Indexes of rules: for each literal name the first rule that has it, and all
  // rules that are patterns.
  absl::flat_hash_map<std::string, size_t> names_;
  std::vector<size_t> patterns_;
};

// InvalidArgument, "PATH:LINE: reason", if a line is not as above or names a
// group that does not exist.
absl::StatusOr<std::unique_ptr<StreamFile>> ParseStreamFile(
    absl::string_view contents, const std::string& path, int group_count);

// The same for the contents of the file at `path`.
absl::StatusOr<std::unique_ptr<StreamFile>> LoadStreamFile(
    const std::string& path, int group_count);

// The file that TF_STREAM_FROM_FILE names; nullptr if there is none or node
// level is off. An error names the file and the line.
absl::StatusOr<std::unique_ptr<StreamFile>> LoadProcessStreamFile(
    const Options& options);
// The same, but read once and shared, as the file counts the nodes of all
// executors. The first executor reads it: all groups exist by then.
absl::StatusOr<const StreamFile*> ProcessStreamFile(const Options& options);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_STREAM_FILE_H_
