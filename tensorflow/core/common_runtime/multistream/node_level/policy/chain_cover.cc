// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/chain_cover.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tensorflow::multistream {
namespace {

constexpr int kNone = -1;

// Hopcroft-Karp: about sqrt(nodes) rounds of shortest augmenting paths. Not
// recursive, since a path may be as long as the graph.
class Matching {
 public:
  // Tries nodes in `order`, and their consumers as they are listed.
  Matching(NodeLists consumers, std::vector<int> order)
      : consumers_(std::move(consumers)),
        order_(std::move(order)),
        next_(order_.size(), kNone),
        previous_(order_.size(), kNone),
        depth_(order_.size()),
        tried_(order_.size()) {}

  // The matched consumer of each node, or -1.
  std::vector<int> Find() {
    for (int i : order_) {
      for (int consumer : consumers_[i]) {
        if (previous_[consumer] != kNone) continue;
        Match(i, consumer);
        break;
      }
    }
    while (Layer()) {
      std::fill(tried_.begin(), tried_.end(), 0);
      for (int i : order_) {
        if (next_[i] == kNone) Augment(i);
      }
    }
    return std::move(next_);
  }

 private:
  void Match(int node, int consumer) {
    next_[node] = consumer;
    previous_[consumer] = node;
  }

  // Numbers nodes by their distance from an unmatched node. Returns whether
  // there is an augmenting path.
  bool Layer() {
    std::vector<int> queue;
    for (size_t i = 0; i < next_.size(); ++i) {
      depth_[i] = next_[i] == kNone ? 0 : kNone;
      if (depth_[i] == 0) queue.push_back(static_cast<int>(i));
    }
    bool found = false;
    for (size_t i = 0; i < queue.size(); ++i) {
      const int node = queue[i];
      for (int consumer : consumers_[node]) {
        const int rival = previous_[consumer];
        if (rival == kNone) {
          found = true;
        } else if (depth_[rival] == kNone) {
          depth_[rival] = depth_[node] + 1;
          queue.push_back(rival);
        }
      }
    }
    return found;
  }

  void Augment(int root) {
    std::vector<int> path = {root};
    while (!path.empty()) {
      const int node = path.back();
      if (tried_[node] == consumers_[node].size()) {
        path.pop_back();
        continue;
      }
      const int consumer = consumers_[node][tried_[node]++];
      const int rival = previous_[consumer];
      if (rival == kNone) {
        for (int i : path) Match(i, consumers_[i][tried_[i] - 1]);
        return;
      }
      if (depth_[rival] == depth_[node] + 1) path.push_back(rival);
    }
  }

  const NodeLists consumers_;
  const std::vector<int> order_;
  std::vector<int> next_;
  std::vector<int> previous_;
  std::vector<int> depth_;
  std::vector<size_t> tried_;  // by node: consumers tried this round
};

}  // namespace

ReducedGraph::ReducedGraph(const NodeLists& inputs) : inputs_(inputs) {
  const int n = static_cast<int>(inputs.size());
  if (n > kMostNodes) return;
  const size_t words = (n + 63) / 64;
  size_t size = 0;
  for (int i = 0; i < n; ++i) {
    row_.push_back(size);
    size += words - i / 64;
  }
  reach_.resize(size);
  NodeLists kept = Reversed(inputs);
  for (int i = n - 1; i >= 0; --i) {
    // Consumers are sorted, so an implied edge comes after those implying it.
    std::vector<int> needed;
    for (int consumer : kept[i]) {
      if (Bit(i, consumer)) continue;
      needed.push_back(consumer);
      Word* ours = Row(i) + consumer / 64 - i / 64;
      *ours |= Word{1} << (consumer % 64);
      const Word* theirs = Row(consumer);
      for (size_t w = consumer / 64; w < words; ++w) *ours++ |= *theirs++;
    }
    kept[i] = std::move(needed);
  }
  inputs_ = Reversed(kept);
}

bool ReducedGraph::Reaches(int from, int to) const {
  return from < to && !reach_.empty() && Bit(from, to);
}

std::vector<Chain> CoverWithChains(const NodeLists& inputs,
                                   const std::vector<double>& weight) {
  const int n = static_cast<int>(inputs.size());
  auto heavier = [&](int a, int b) { return weight[a] > weight[b]; };
  NodeLists consumers = Reversed(inputs);
  for (std::vector<int>& list : consumers) {
    std::stable_sort(list.begin(), list.end(), heavier);
  }
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), heavier);
  const std::vector<int> next =
      Matching(std::move(consumers), std::move(order)).Find();
  std::vector<bool> follows(n);
  for (int consumer : next) {
    if (consumer != kNone) follows[consumer] = true;
  }
  std::vector<Chain> chains;
  for (int i = 0; i < n; ++i) {
    if (follows[i]) continue;
    chains.emplace_back();
    for (int node = i; node != kNone; node = next[node]) {
      chains.back().push_back(node);
    }
  }
  return chains;
}

}  // namespace tensorflow::multistream
