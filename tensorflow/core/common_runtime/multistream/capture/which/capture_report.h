// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How often were the steps of a graph replayed, and why were the other steps
// not? tf.cuda.capture_report() in Python. Counters are always on where steps
// may be captured, so that a program that is slow now can be examined.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURE_REPORT_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURE_REPORT_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// One report per process: graphs with the same NameOf share a counter.
// Thread-safe.
class CaptureReport {
 public:
  // The most pairs of graph and end that are counted separately. Further pairs
  // are counted together.
  static constexpr int kMostCounts = 4096;
  // The end of a replayed step. Any other end says why a step was not replayed.
  static constexpr absl::string_view kReplayed = "replayed";

  // Lives as long as the process.
  using Counter = std::atomic<int64_t>;

  // What is known of `graph` beside its counters: how many kernels each step
  // launches, without those of pieces in loops, and what it is.
  enum class Is {
    kGraph,
    kPiece,        // of another graph, whose launches include this one's
    kPieceOfLoop,  // which has steps of its own
  };
  static void Describe(absl::string_view graph, int launches, Is is);

  // The counter of steps of `graph` with this `end`.
  static Counter* CounterOf(absl::string_view graph, absl::string_view end);

  // A line "steps TAB launches of a step TAB Is TAB graph TAB end"
  // for each counter that is not 0, in the order of graphs and ends.
  static std::string Lines();

  // A readable name of a graph: its number of ops and its results.
  static std::string NameOf(const Graph& graph);
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURE_REPORT_H_
