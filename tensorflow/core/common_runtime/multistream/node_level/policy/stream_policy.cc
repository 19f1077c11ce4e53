// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/stream_policy.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/chain_cover.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/embedding_clusters.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/list_schedule.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/step_estimate.h"

namespace tensorflow::multistream {
namespace {

// Estimates are not exact: a step longer by this factor is as good.
constexpr double kNearlyAsShort = 1.02;
// A split must make the step shorter than this share of the unsplit step.
constexpr double kClearlyShorter = 0.95;
// How much a wait counts in list schedules: each value suits some graphs.
constexpr double kWaitWeights[] = {1, 3};
// So many of the shortest splits are worth the time to save waits.
constexpr size_t kMostTidied = 3;

std::vector<int> AllInCallerGroup(const PolicyGraph& graph,
                                  const PolicyOptions& options) {
  std::vector<int> groups;
  groups.reserve(graph.size());
  for (const PolicyNode& node : graph) {
    groups.push_back(node.group.value_or(options.caller_group));
  }
  return groups;
}

// The caller's group, then groups that have work anyway, then the others.
std::vector<int> GroupsByUse(const PolicyGraph& graph,
                             const PolicyOptions& options) {
  std::vector<bool> used(options.group_count);
  for (const PolicyNode& node : graph) {
    if (node.group.has_value()) used[*node.group] = true;
  }
  std::vector<int> groups(options.group_count);
  std::iota(groups.begin(), groups.end(), 0);
  std::stable_sort(groups.begin(), groups.end(), [&](int a, int b) {
    return std::make_pair(a != options.caller_group, !used[a]) <
           std::make_pair(b != options.caller_group, !used[b]);
  });
  return groups;
}

std::vector<int> SpreadEmbeddings(const PolicyGraph& graph,
                                  const PolicyOptions& options) {
  const EmbeddingClusters found = FindEmbeddingClusters(graph);
  struct Cluster {
    double cost_us = 0;
    std::optional<int> group;
  };
  std::vector<Cluster> clusters(found.count);
  // Nodes beside the lookups count as load, such as the dense part's first
  // layers. Nodes after the lookups do not: they leave the group free.
  std::vector<double> load(options.group_count);
  for (size_t i = 0; i < graph.size(); ++i) {
    const PolicyNode& node = graph[i];
    if (found.cluster_of[i] < 0) {
      if (found.after_lookup[i]) continue;
      load[node.group.value_or(options.caller_group)] += node.cost_us;
      continue;
    }
    Cluster& cluster = clusters[found.cluster_of[i]];
    cluster.cost_us += node.cost_us;
    if (node.lookup) cluster.group = node.group;
  }
  for (const Cluster& cluster : clusters) {
    if (cluster.group.has_value()) load[*cluster.group] += cluster.cost_us;
  }
  std::vector<int> order(clusters.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return clusters[a].cost_us > clusters[b].cost_us;
  });
  // The caller's group needs no wait at the start.
  std::vector<int> candidates(options.group_count);
  std::iota(candidates.begin(), candidates.end(), 0);
  std::rotate(candidates.begin(), candidates.begin() + options.caller_group,
              candidates.begin() + options.caller_group + 1);
  for (int i : order) {
    if (clusters[i].group.has_value()) continue;
    const int least =
        *std::min_element(candidates.begin(), candidates.end(),
                          [&](int a, int b) { return load[a] < load[b]; });
    clusters[i].group = least;
    load[least] += clusters[i].cost_us;
  }
  std::vector<int> groups = AllInCallerGroup(graph, options);
  for (size_t i = 0; i < graph.size(); ++i) {
    if (found.cluster_of[i] < 0) continue;
    groups[i] = *clusters[found.cluster_of[i]].group;
  }
  return groups;
}

class CheapestSplit {
 public:
  CheapestSplit(const PolicyGraph& graph, const PolicyOptions& options)
      : graph_(graph), options_(options), model_(graph, options) {}

  std::vector<int> Find() {
    std::vector<int> in_caller_group = AllInCallerGroup(graph_, options_);
    const double in_caller_group_us = model_.Estimate(in_caller_group).step_us;
    Consider(SpreadChains(graph_, options_));
    Consider(SpreadEmbeddings(graph_, options_));
    const std::vector<int> by_use = GroupsByUse(graph_, options_);
    for (int count = 2;; count = std::min(Next(count), options_.group_count)) {
      for (double weight : kWaitWeights) {
        Consider(ListSchedule(graph_, options_,
                              {by_use.begin(), by_use.begin() + count},
                              weight));
      }
      if (count == options_.group_count) break;
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.estimate.step_us < b.estimate.step_us;
                     });
    const size_t tidied = std::min(kMostTidied, candidates_.size());
    for (size_t i = 0; i < tidied; ++i) {
      Consider(SaveWaits(graph_, options_, candidates_[i].groups));
    }
    const Candidate& best = Best();
    if (best.estimate.step_us >= kClearlyShorter * in_caller_group_us)
      return in_caller_group;
    return best.groups;
  }

 private:
  struct Candidate {
    std::vector<int> groups;
    StepEstimate estimate;
  };

  // 2, 3, 4, 6, 8, 12 and so on: one group more makes little difference if
  // there are many.
  static int Next(int count) {
    int power = 1;
    while (2 * power <= count) power *= 2;
    return count + std::max(1, power / 2);
  }

  void Consider(std::vector<int> groups) {
    for (const Candidate& candidate : candidates_) {
      if (candidate.groups == groups) return;
    }
    const StepEstimate estimate = model_.Estimate(groups);
    candidates_.push_back({std::move(groups), estimate});
  }

  const Candidate& Best() const {
    double shortest_us = candidates_[0].estimate.step_us;
    for (const Candidate& candidate : candidates_) {
      shortest_us = std::min(shortest_us, candidate.estimate.step_us);
    }
    auto rank = [&](const Candidate& candidate) {
      const StepEstimate& estimate = candidate.estimate;
      return std::make_tuple(estimate.step_us > kNearlyAsShort * shortest_us,
                             estimate.groups_used, estimate.step_us,
                             estimate.waits);
    };
    return *std::min_element(candidates_.begin(), candidates_.end(),
                             [&](const Candidate& a, const Candidate& b) {
                               return rank(a) < rank(b);
                             });
  }

  const PolicyGraph& graph_;
  const PolicyOptions& options_;
  const StepModel model_;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::vector<int> AssignGroups(Policy policy, const PolicyGraph& graph,
                              const PolicyOptions& options) {
  if (policy == Policy::kNone || options.group_count == 1) {
    return AllInCallerGroup(graph, options);
  }
  switch (policy) {
    case Policy::kEmbedding:
      return SpreadEmbeddings(graph, options);
    case Policy::kFullGraph:
      return SpreadChains(graph, options);
    default:
      return CheapestSplit(graph, options).Find();
  }
}

}  // namespace tensorflow::multistream
