// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/embedding_clusters.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace tensorflow {
namespace multistream {
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
    words_ = (found_.count + 63) / 64;
    lookups_before_.resize(n_ * words_);
    found_.after_lookup.resize(n_);
    for (int i = 0; i < n_; ++i) {
      uint64_t* ours = lookups_before_.data() + i * words_;
      for (int input : inputs_[i]) {
        const uint64_t* theirs = lookups_before_.data() + input * words_;
        for (size_t w = 0; w < words_; ++w) ours[w] |= theirs[w];
        if (found_.after_lookup[input]) found_.after_lookup[i] = true;
      }
      if (!graph_[i].lookup) continue;
      const int cluster = found_.cluster_of[i];
      ours[cluster / 64] |= uint64_t{1} << (cluster % 64);
      found_.after_lookup[i] = true;
    }
  }

  bool IsAfterLookupOf(int cluster, int node) const {
    return lookups_before_[node * words_ + cluster / 64] >> (cluster % 64) & 1;
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
      if (found_.cluster_of[consumer] == kNone &&
          !IsAfterLookupOf(cluster, consumer)) {
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
  size_t words_ = 0;
  std::vector<uint64_t> lookups_before_;  // by node: a bit for each lookup
  std::vector<bool> in_dense_part_;
};

}  // namespace

EmbeddingClusters FindEmbeddingClusters(const PolicyGraph& graph) {
  return Finder(graph).Find();
}

}  // namespace multistream
}  // namespace tensorflow
