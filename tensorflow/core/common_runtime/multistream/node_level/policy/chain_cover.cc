// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/chain_cover.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
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

class ChainSpread {
 public:
  ChainSpread(const PolicyGraph& graph, const PolicyOptions& options)
      : graph_(graph),
        options_(options),
        inputs_(InputsOf(graph)),
        reduced_(inputs_),
        longest_us_(LongestPaths(graph, Reversed(inputs_), /*edge_us=*/0)),
        start_us_(graph.size()),
        state_(options.group_count) {}

  std::vector<int> Assign() {
    for (size_t i = 0; i < graph_.size(); ++i) {
      for (int input : inputs_[i]) {
        start_us_[i] =
            std::max(start_us_[i], start_us_[input] + graph_[input].cost_us);
      }
    }
    FindChains();
    groups_.assign(graph_.size(), kNone);
    for (const Piece& piece : pieces_) {
      if (piece.group.has_value()) ++state_[*piece.group].to_come;
    }
    for (const Piece& piece : pieces_) {
      int group = 0;
      if (piece.group.has_value()) {
        group = *piece.group;
        --state_[group].to_come;
      } else {
        for (int i = 1; i < options_.group_count; ++i) {
          if (Rank(piece, i) < Rank(piece, group)) group = i;
        }
      }
      Put(piece, group);
    }
    return std::move(groups_);
  }

 private:
  // A chain, or a part of one that goes to one group.
  struct Piece {
    Chain nodes;
    std::optional<int> group;
    double start_us = 0;
    double cost_us = 0;
  };

  struct GroupState {
    double free_us = 0;
    double load_us = 0;
    int to_come = 0;  // pieces that go here in any case
    bool used = false;
    // The last node, as long as each piece comes after the one before it.
    std::optional<int> last;
  };

  void FindChains() {
    NodeLists edges = reduced_.inputs();
    // Leave out edges between different fixed groups: chains are cut there.
    for (size_t i = 0; i < graph_.size(); ++i) {
      const std::optional<int>& group = graph_[i].group;
      if (!group.has_value()) continue;
      edges[i].erase(std::remove_if(edges[i].begin(), edges[i].end(),
                                    [&](int input) {
                                      return graph_[input].group.has_value() &&
                                             graph_[input].group != group;
                                    }),
                     edges[i].end());
    }
    std::vector<double> path_us;  // the longest through each node
    for (size_t i = 0; i < graph_.size(); ++i) {
      path_us.push_back(start_us_[i] + longest_us_[i]);
    }
    for (const Chain& chain : CoverWithChains(edges, path_us)) {
      Piece piece;
      for (int node : chain) {
        const std::optional<int>& group = graph_[node].group;
        if (group.has_value()) {
          if (piece.group.has_value() && piece.group != group) {
            pieces_.push_back(std::move(piece));
            piece = Piece();
          }
          piece.group = group;
        }
        piece.nodes.push_back(node);
      }
      pieces_.push_back(std::move(piece));
    }
    Measure();
    std::stable_sort(pieces_.begin(), pieces_.end(),
                     [](const Piece& a, const Piece& b) {
                       return std::make_pair(a.start_us, -a.cost_us) <
                              std::make_pair(b.start_us, -b.cost_us);
                     });
  }

  void Measure() {
    const std::vector<bool> is_critical = LongestPath();
    auto most_critical = pieces_.end();
    double most_us = -1;
    for (auto piece = pieces_.begin(); piece != pieces_.end(); ++piece) {
      piece->start_us = start_us_[piece->nodes[0]];
      double critical_us = 0;
      for (int node : piece->nodes) {
        piece->cost_us += graph_[node].cost_us;
        if (is_critical[node]) critical_us += graph_[node].cost_us;
      }
      if (critical_us <= most_us) continue;
      most_us = critical_us;
      most_critical = piece;
    }
    if (most_critical != pieces_.end() && !most_critical->group.has_value()) {
      most_critical->group = options_.caller_group;
    }
  }

  // Whether each node is on the longest path (on one, if there are several).
  std::vector<bool> LongestPath() const {
    const NodeLists consumers = Reversed(inputs_);
    std::vector<bool> is_on_it(graph_.size());
    std::vector<int> next(graph_.size());
    std::iota(next.begin(), next.end(), 0);
    while (!next.empty()) {
      const int node = *std::max_element(
          next.begin(), next.end(),
          [&](int a, int b) { return longest_us_[a] < longest_us_[b]; });
      is_on_it[node] = true;
      next = consumers[node];
    }
    return is_on_it;
  }

  // The group with the lowest rank is the best for the piece.
  std::tuple<bool, double, bool, bool, double, int> Rank(const Piece& piece,
                                                         int group) const {
    const GroupState& state = state_[group];
    const int first = piece.nodes[0];
    // The piece may run beside nodes that are, or will be, in the group.
    const bool concurrent =
        state.to_come > 0 ||
        (state.used &&
         !(state.last.has_value() && reduced_.Reaches(*state.last, first)));
    const bool waits =
        std::none_of(inputs_[first].begin(), inputs_[first].end(),
                     [&](int input) { return groups_[input] == group; });
    return {concurrent,    std::max(state.free_us, piece.start_us),
            waits,         !state.used,
            state.load_us, group};
  }

  void Put(const Piece& piece, int group) {
    GroupState& state = state_[group];
    const bool in_turn =
        !state.used || (state.last.has_value() &&
                        reduced_.Reaches(*state.last, piece.nodes[0]));
    state.last =
        in_turn ? std::optional<int>(piece.nodes.back()) : std::nullopt;
    state.used = true;
    state.free_us = std::max(state.free_us, piece.start_us) + piece.cost_us;
    state.load_us += piece.cost_us;
    for (int node : piece.nodes) groups_[node] = group;
  }

  const PolicyGraph& graph_;
  const PolicyOptions& options_;
  const NodeLists inputs_;
  const ReducedGraph reduced_;
  const std::vector<double> longest_us_;  // from each node to the end
  std::vector<double> start_us_;  // if every chain had a group of its own
  std::vector<Piece> pieces_;
  std::vector<GroupState> state_;
  std::vector<int> groups_;
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

std::vector<int> SpreadChains(const PolicyGraph& graph,
                              const PolicyOptions& options) {
  return ChainSpread(graph, options).Assign();
}

}  // namespace tensorflow::multistream
