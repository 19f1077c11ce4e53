// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How often were the steps of a graph replayed, and why were the others not?
// tf.cuda.capture_report() in Python. Counted all the time where steps may be
// captured, for a program that is slow now.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURE_REPORT_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURE_REPORT_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

// Of the process: graphs that look the same are counted together. Thread-safe.
class CaptureReport {
 public:
  // Graphs, and ends that steps have, are counted one by one up to so many
  // pairs, and all further ones together.
  static constexpr int kMostCounts = 4096;
  // The end of a replayed step; any other one says why a step ran as always.
  static constexpr absl::string_view kReplayed = "replayed";

  // Counts steps of `graph` that end so. Lives as long as the process.
  using Counter = std::atomic<int64_t>;
  static Counter* CounterOf(absl::string_view graph, absl::string_view end);

  // A line "steps TAB graph TAB end" for each counter that is not 0, in the
  // order of graphs and ends.
  static std::string Lines();

  // What people know a graph by: how many ops it has, and what it gives.
  static std::string NameOf(const Graph& graph);
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURE_REPORT_H_
