// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/capture_report.h"

#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow::multistream {
namespace {

struct Counters {
  absl::Mutex mu;
  // A std::map, as its values have stable addresses.
  std::map<std::pair<std::string, std::string>, CaptureReport::Counter> all
      ABSL_GUARDED_BY(mu);
  struct Graph {
    int launches = 0;
    CaptureReport::Is is = CaptureReport::Is::kGraph;
  };
  std::map<std::string, Graph> graphs ABSL_GUARDED_BY(mu);
};

Counters& AllCounters() {
  static auto* counters = new Counters;
  return *counters;
}

std::string OnOneLine(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\t", " "}, {"\n", " "}});
}

}  // namespace

CaptureReport::Counter* CaptureReport::CounterOf(absl::string_view graph,
                                                 absl::string_view end) {
  std::pair<std::string, std::string> key(OnOneLine(graph), OnOneLine(end));
  Counters& counters = AllCounters();
  absl::MutexLock lock(&counters.mu);
  if (counters.all.size() >= kMostCounts && counters.all.count(key) == 0) {
    key = {"other graphs", end == kReplayed ? key.second : "other reasons"};
  }
  return &counters.all[key];
}

void CaptureReport::Describe(absl::string_view graph, int launches, Is is) {
  Counters& counters = AllCounters();
  absl::MutexLock lock(&counters.mu);
  if (counters.graphs.size() >= kMostCounts) return;
  counters.graphs[OnOneLine(graph)] = {launches, is};
}

std::string CaptureReport::Lines() {
  std::string lines;
  Counters& counters = AllCounters();
  absl::MutexLock lock(&counters.mu);
  for (const auto& [key, counter] : counters.all) {
    const int64_t steps = counter.load(std::memory_order_relaxed);
    if (steps == 0) continue;
    const auto [launches, is] = counters.graphs[key.first];
    absl::StrAppend(&lines, steps, "\t", launches, "\t", static_cast<int>(is),
                    "\t", key.first, "\t", key.second, "\n");
  }
  return lines;
}

std::string CaptureReport::NameOf(const Graph& graph) {
  // Nodes come in no particular order.
  std::string first;
  int results = 0;
  for (const Node* node : graph.op_nodes()) {
    std::string name;
    if (node->IsRetval()) {
      const Edge* edge = nullptr;
      if (node->input_edge(0, &edge).ok()) name = edge->src()->name();
    } else if (node->IsSend()) {
      GetNodeAttr(node->attrs(), "tensor_name", &name).IgnoreError();
    }
    if (name.empty()) continue;
    ++results;
    if (first.empty() || name < first) first = name;
  }
  std::string text = absl::StrCat(graph.num_op_nodes(), " ops");
  if (results > 0) absl::StrAppend(&text, " that give '", first, "'");
  if (results > 1) absl::StrAppend(&text, " and ", results - 1, " more");
  return text;
}

}  // namespace tensorflow::multistream
