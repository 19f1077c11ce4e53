// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which chains keep all of a graph's concurrency with the fewest waits?
//
// As in Nimble (Kwon et al., "Nimble: Lightweight and Parallel GPU Task
// Scheduling for Deep Learning", NeurIPS 2020): leave out implied edges
// (transitive reduction), and match each node with at most one consumer and
// each consumer with at most one node, as many as possible. Matched edges make
// chains, which need no wait inside. Nodes that no path connects are never in
// one chain. Of all covers that keep them apart, this one needs the fewest
// waits between chains: one for each unmatched edge.
//
//        b ---> d           6 edges, of which at most 4 can be matched:
//      /          \         chains a b d f and c e,
//    a             f        2 waits: c for a, f for e
//      \          /
//        c ---> e

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_CHAIN_COVER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_CHAIN_COVER_H_

#include <cstdint>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"

namespace tensorflow::multistream {

// The transitive reduction: the unique smallest graph with the same paths.
class ReducedGraph {
 public:
  // Reachability takes a bit for each pair of nodes: 25 MB for this many. A
  // larger graph keeps all edges.
  static constexpr int kMostNodes = 20000;

  explicit ReducedGraph(const NodeLists& inputs);

  const NodeLists& inputs() const { return inputs_; }

  // Whether a path leads from one node to the other. False also if the graph is
  // too large to know.
  bool Reaches(int from, int to) const;

 private:
  using Word = uint64_t;

  // Bits of the nodes that `node` reaches, from the word with its own bit on.
  Word* Row(int node) { return &reach_[row_[node]]; }
  bool Bit(int from, int to) const {
    return reach_[row_[from] + to / 64 - from / 64] >> (to % 64) & 1;
  }

  NodeLists inputs_;
  std::vector<size_t> row_;
  std::vector<Word> reach_;
};

using Chain = std::vector<int>;

// Each node is in one chain, and is followed there by one of its consumers.
// There are as few chains as possible. Where there is a choice, nodes of
// greater `weight` follow each other. Chains are in the order of their first
// nodes.
std::vector<Chain> CoverWithChains(const NodeLists& inputs,
                                   const std::vector<double>& weight);

// A group for each node, also if there are more chains than groups. Chains are
// placed in the order in which they would start if each had a group of its own.
// A chain goes to the group that is free first, if possible to an empty one or
// one whose nodes all come before the chain.
//
//        b       e             chain   a c d f g    b    e
//      /   \   /   \           group   0            1    1
//    a       d       g
//      \   /   \   /           e never runs beside b.
//        c       f
//
// The chain with the most of the longest path stays in the caller's group. A
// chain goes where its fixed nodes are, and is cut between fixed nodes of
// different groups.
std::vector<int> SpreadChains(const PolicyGraph& graph,
                              const PolicyOptions& options);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_CHAIN_COVER_H_
