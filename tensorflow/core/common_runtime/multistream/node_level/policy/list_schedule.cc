// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/list_schedule.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/step_estimate.h"

namespace tensorflow::multistream {
namespace {

// Nodes of one group with a path of edges between them.
constexpr size_t kMostInPiece = 8;
// Each move may make other moves worthwhile.
constexpr int kMostRounds = 4;
// Limits the nodes visited by all estimates: some tenths of a second.
constexpr size_t kMostWork = 400000;

struct Move {
  std::vector<int> nodes;
  int to;
};

class Mover {
 public:
  Mover(const PolicyGraph& graph, const PolicyOptions& options,
        std::vector<int> groups)
      : graph_(graph),
        options_(options),
        model_(graph, options),
        neighbours_(InputsOf(graph)),
        groups_(std::move(groups)),
        estimate_(model_.Estimate(groups_)) {
    const NodeLists consumers = Reversed(neighbours_);
    for (size_t i = 0; i < consumers.size(); ++i) {
      neighbours_[i].insert(neighbours_[i].end(), consumers[i].begin(),
                            consumers[i].end());
    }
  }

  std::vector<int> Run() {
    for (int round = 0; round < kMostRounds; ++round) {
      const StepEstimate before = estimate_;
      const std::vector<Move> moves = Moves();
      Try(moves, 0, moves.size());
      if (!IsBetter(estimate_, before)) break;
    }
    return std::move(groups_);
  }

 private:
  static bool IsBetter(const StepEstimate& a, const StepEstimate& b) {
    const double tolerance = 1e-9 * b.step_us;
    if (a.step_us < b.step_us - tolerance) return true;
    return a.step_us <= b.step_us + tolerance && a.waits < b.waits;
  }

  std::vector<Move> Moves() const {
    std::vector<Move> moves;
    std::vector<bool> seen(graph_.size());
    for (size_t i = 0; i < graph_.size(); ++i) {
      const int node = static_cast<int>(i);
      if (graph_[i].group.has_value()) continue;
      AddMove({node}, &moves);
      if (seen[i]) continue;
      std::vector<int> piece = PieceOf(node, &seen);
      if (piece.size() > 1 && piece.size() <= kMostInPiece) {
        AddMove(std::move(piece), &moves);
      }
    }
    return moves;
  }

  std::vector<int> PieceOf(int node, std::vector<bool>* seen) const {
    std::vector<int> piece = {node};
    (*seen)[node] = true;
    for (size_t i = 0; i < piece.size(); ++i) {
      for (int next : neighbours_[piece[i]]) {
        if ((*seen)[next] || groups_[next] != groups_[node] ||
            graph_[next].group.has_value()) {
          continue;
        }
        (*seen)[next] = true;
        piece.push_back(next);
      }
    }
    return piece;
  }

  // Moves nodes to the group with most neighbours, if not already theirs.
  void AddMove(std::vector<int> nodes, std::vector<Move>* moves) const {
    const int from = groups_[nodes[0]];
    std::vector<int> edges_to(options_.group_count);
    for (int node : nodes) {
      for (int next : neighbours_[node]) {
        if (std::find(nodes.begin(), nodes.end(), next) == nodes.end()) {
          ++edges_to[groups_[next]];
        }
      }
    }
    int to = from;
    for (int i = 0; i < options_.group_count; ++i) {
      if (edges_to[i] > edges_to[to]) to = i;
    }
    if (to != from) moves->push_back({std::move(nodes), to});
  }

  // Tries all moves at once or, if that is no better, each half alone.
  void Try(const std::vector<Move>& moves, size_t begin, size_t end) {
    if (begin == end || work_ > kMostWork) return;
    work_ += graph_.size();
    std::vector<int> moved = groups_;
    for (size_t i = begin; i < end; ++i) {
      for (int node : moves[i].nodes) moved[node] = moves[i].to;
    }
    const StepEstimate estimate = model_.Estimate(moved);
    if (IsBetter(estimate, estimate_)) {
      groups_ = std::move(moved);
      estimate_ = estimate;
      return;
    }
    if (end - begin == 1) return;
    const size_t middle = begin + (end - begin) / 2;
    Try(moves, begin, middle);
    Try(moves, middle, end);
  }

  const PolicyGraph& graph_;
  const PolicyOptions& options_;
  const StepModel model_;
  NodeLists neighbours_;
  std::vector<int> groups_;
  StepEstimate estimate_;
  size_t work_ = 0;
};

}  // namespace

std::vector<int> ListSchedule(const PolicyGraph& graph,
                              const PolicyOptions& options,
                              const std::vector<int>& groups,
                              double wait_weight) {
  const NodeLists inputs = InputsOf(graph);
  // Assumes that an edge leads to each of the groups with equal chance.
  const double count = static_cast<double>(groups.size());
  const std::vector<double> to_end_us = LongestPaths(
      graph, Reversed(inputs), options.wait_us * (count - 1) / count);
  // Topological: no node is farther from the end than its inputs.
  std::vector<int> order(graph.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return to_end_us[a] > to_end_us[b]; });

  GroupKnowledge knowledge(inputs, options);
  std::vector<int> group_of(graph.size());
  std::vector<double> done_us(graph.size());
  std::vector<double> free_us(options.group_count);
  for (int node : order) {
    double ready_us = 0;
    for (int input : inputs[node]) {
      ready_us = std::max(ready_us, done_us[input]);
    }
    // When the node's own work starts, after the waits.
    auto start_us = [&](int group, int waits, double weight) {
      return std::max(ready_us, free_us[group]) +
             waits * weight * options.wait_us;
    };
    // Of equally good groups, the one with fewer waits, then the first.
    auto rank = [&](int group) {
      const int waits = knowledge.WaitsOf(node, group);
      return std::make_pair(start_us(group, waits, wait_weight), waits);
    };
    int best = graph[node].group.value_or(groups[0]);
    if (!graph[node].group.has_value()) {
      std::pair<double, int> first = rank(best);
      for (int group : groups) {
        const std::pair<double, int> other = rank(group);
        if (other >= first) continue;
        first = other;
        best = group;
      }
    }
    done_us[node] =
        start_us(best, knowledge.Run(node, best), 1) + graph[node].cost_us;
    free_us[best] = done_us[node];
    group_of[node] = best;
  }
  return group_of;
}

std::vector<int> SaveWaits(const PolicyGraph& graph,
                           const PolicyOptions& options,
                           std::vector<int> groups) {
  return Mover(graph, options, std::move(groups)).Run();
}

}  // namespace tensorflow::multistream
