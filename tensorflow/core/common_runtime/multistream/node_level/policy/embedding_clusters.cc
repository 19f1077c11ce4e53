// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/embedding_clusters.h"

#include <algorithm>
#include <utility>

namespace tensorflow::multistream {
namespace {

constexpr int kNone = -1;
constexpr int kSeveral = -2;

class Finder {
 public:
  explicit Finder(const PolicyGraph& graph)
      : graph_(graph),
        n_(static_cast<int>(graph.size())),
        inputs_(InputsOf(graph)),
        consumers_(Reversed(inputs_)) {
    found_.cluster_of.assign(n_, kNone);
    for (int i = 0; i < n_; ++i) {
      if (graph_[i].lookup) found_.cluster_of[i] = found_.count++;
    }
    FindWhatComesAfter();
    FindDensePart();
  }

  EmbeddingClusters Find() {
    for (int i = n_ - 1; i >= 0; --i) {
      if (!found_.after_lookup[i]) JoinIfItPreparesIds(i);
    }
    for (int i = 0; i < n_; ++i) {
      Join(i, OnlyCluster(inputs_[i], /*others_too=*/true));
    }
    for (int i = n_ - 1; i >= 0; --i) {
      Join(i, OnlyCluster(consumers_[i], /*others_too=*/false));
    }
    return std::move(found_);
  }

 private:
  void FindWhatComesAfter() {
    after_.assign(n_, std::vector<bool>(found_.count));
    found_.after_lookup.resize(n_);
    for (int i = 0; i < n_; ++i) {
      if (graph_[i].lookup) after_[i][found_.cluster_of[i]] = true;
      for (int input : inputs_[i]) {
        for (int cluster = 0; cluster < found_.count; ++cluster) {
          if (after_[input][cluster]) after_[i][cluster] = true;
        }
      }
      found_.after_lookup[i] =
          std::count(after_[i].begin(), after_[i].end(), true) > 0;
    }
  }

  void FindDensePart() {
    std::vector<bool> after(n_);  // or a dense node itself
    std::vector<bool> before(n_);
    for (int i = 0; i < n_; ++i) {
      after[i] = graph_[i].dense ||
                 std::any_of(inputs_[i].begin(), inputs_[i].end(),
                             [&](int input) { return after[input]; });
    }
    in_dense_part_.resize(n_);
    for (int i = n_ - 1; i >= 0; --i) {
      before[i] = graph_[i].dense ||
                  std::any_of(consumers_[i].begin(), consumers_[i].end(),
                              [&](int consumer) { return before[consumer]; });
      in_dense_part_[i] = after[i] && before[i];
    }
  }

  void Join(int node, int cluster) {
    if (cluster < 0 || found_.cluster_of[node] != kNone ||
        in_dense_part_[node] || graph_[node].group.has_value()) {
      return;
    }
    found_.cluster_of[node] = cluster;
  }

  // The only cluster among `nodes`. Less than 0 if there is none or several, or
  // if a node is in no cluster, unless `others_too`.
  int OnlyCluster(const std::vector<int>& nodes, bool others_too) const {
    int only = kNone;
    for (int node : nodes) {
      const int cluster = found_.cluster_of[node];
      if (cluster == kNone && others_too) continue;
      if (cluster == kNone || (only != kNone && only != cluster)) {
        return kSeveral;
      }
      only = cluster;
    }
    return only;
  }

  void JoinIfItPreparesIds(int node) {
    const int cluster = OnlyCluster(consumers_[node], /*others_too=*/true);
    if (cluster < 0) return;
    for (int consumer : consumers_[node]) {
      if (found_.cluster_of[consumer] == kNone && !after_[consumer][cluster]) {
        return;
      }
    }
    Join(node, cluster);
  }

  const PolicyGraph& graph_;
  const int n_;
  const NodeLists inputs_;
  const NodeLists consumers_;
  EmbeddingClusters found_;
  // By node and lookup: whether the node is, or comes after, the lookup.
  std::vector<std::vector<bool>> after_;
  std::vector<bool> in_dense_part_;
};

}  // namespace

EmbeddingClusters FindEmbeddingClusters(const PolicyGraph& graph) {
  return Finder(graph).Find();
}

}  // namespace tensorflow::multistream
