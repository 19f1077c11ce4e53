// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/step_estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph_fixture.h"

namespace tensorflow::multistream {
namespace {

StepEstimate Estimate(const std::string& drawing,
                      const std::vector<int>& groups,
                      const PolicyOptions& options) {
  return StepModel(DrawnGraph(drawing).graph, options).Estimate(groups);
}

// The drawing in step_estimate.h.
TEST(StepEstimateTest, AStepTakesItsLongestLaneWithItsWaits) {
  const std::string graph = "a(4) -> b(6) c(5) -> d(4)";
  const StepEstimate split = Estimate(graph, {0, 0, 1, 0}, OptionsOf(2, 1));
  EXPECT_DOUBLE_EQ(split.step_us, 15);
  EXPECT_DOUBLE_EQ(split.one_stream_us, 19);
  EXPECT_EQ(split.waits, 2);
  EXPECT_EQ(split.groups_used, 2);
  const StepEstimate together = Estimate(graph, {0, 0, 0, 0}, OptionsOf(2, 1));
  EXPECT_DOUBLE_EQ(together.step_us, 19);
  EXPECT_EQ(together.waits, 0);
  EXPECT_EQ(together.groups_used, 1);
}

// The same model with sets of nodes instead of positions, and the fewest waits
// found by trying all sets of them.
class Reference {
 public:
  Reference(const PolicyGraph& graph, const std::vector<int>& groups,
            const PolicyOptions& options)
      : graph_(graph),
        groups_(groups),
        options_(options),
        start_(static_cast<int>(graph.size())),
        knows_(options.group_count),
        knew_(graph.size() + 1),
        free_us_(options.group_count),
        done_us_(graph.size(), -1) {
    knows_[options.caller_group] = knew_[start_] = {start_};
  }

  StepEstimate Estimate() {
    StepEstimate estimate;
    for (size_t i = 0; i < graph_.size(); ++i) estimate.waits += RunNext();
    std::set<int> needed;
    for (size_t i = 0; i < graph_.size(); ++i) needed.insert(i);
    const int waits = Wait(options_.caller_group, needed);
    estimate.waits += waits;
    estimate.step_us = *std::max_element(free_us_.begin(), free_us_.end()) +
                       waits * options_.wait_us;
    return estimate;
  }

 private:
  // When a node may start, its lane, since when it is ready, its number.
  using Next = std::tuple<double, int, double, int>;

  int RunNext() {
    std::set<Next> ready;
    for (int i = 0; i < start_; ++i) {
      double ready_us = 0;
      bool is_ready = done_us_[i] < 0;
      for (int input : graph_[i].inputs) {
        is_ready &= done_us_[input] >= 0;
        ready_us = std::max(ready_us, done_us_[input]);
      }
      if (!is_ready) continue;
      ready.emplace(std::max(ready_us, free_us_[groups_[i]]), groups_[i],
                    ready_us, i);
    }
    const auto [start_us, group, ready_us, node] = *ready.begin();
    std::set<int> needed(graph_[node].inputs.begin(),
                         graph_[node].inputs.end());
    needed.insert(start_);
    const int waits = Wait(group, needed);
    done_us_[node] = start_us + waits * options_.wait_us + graph_[node].cost_us;
    free_us_[group] = done_us_[node];
    knows_[group].insert(node);
    knew_[node] = knows_[group];
    return waits;
  }

  int Wait(int group, const std::set<int>& needed) {
    std::vector<int> missing;
    for (int node : needed) {
      if (knows_[group].count(node) == 0) missing.push_back(node);
    }
    if (missing.size() > 12) ADD_FAILURE() << "too many to try";
    std::set<int> best_known;
    int fewest = 1000;
    for (int chosen = 0; chosen < 1 << missing.size(); ++chosen) {
      int waits = 0;
      std::set<int> known = knows_[group];
      for (size_t i = 0; i < missing.size(); ++i) {
        if ((chosen >> i & 1) == 0) continue;
        ++waits;
        known.insert(knew_[missing[i]].begin(), knew_[missing[i]].end());
      }
      if (waits >= fewest || !std::includes(known.begin(), known.end(),
                                            missing.begin(), missing.end())) {
        continue;
      }
      fewest = waits;
      best_known = known;
    }
    knows_[group] = best_known;
    return fewest;
  }

  const PolicyGraph& graph_;
  const std::vector<int>& groups_;
  const PolicyOptions options_;
  const int start_;
  std::vector<std::set<int>> knows_;  // each group
  std::vector<std::set<int>> knew_;   // its group, when a node was done
  std::vector<double> free_us_;
  std::vector<double> done_us_;
};

TEST(StepEstimateTest, RandomGraphsTakeWhatTheModelSaysWithTheFewestWaits) {
  std::mt19937 random(1);
  RandomGraphOptions drawn;
  for (int i = 0; i < 3000; ++i) {
    drawn.nodes = i % 13;
    const PolicyGraph graph = RandomGraph(drawn, &random);
    const PolicyOptions options =
        OptionsOf(1 + i % 4, i % 3, (i / 4) % (1 + i % 4));
    std::vector<int> groups;
    for (int j = 0; j < drawn.nodes; ++j) {
      groups.push_back(random() % options.group_count);
    }
    const StepEstimate estimate = StepModel(graph, options).Estimate(groups);
    const StepEstimate reference = Reference(graph, groups, options).Estimate();
    ASSERT_DOUBLE_EQ(estimate.step_us, reference.step_us) << i;
    ASSERT_EQ(estimate.waits, reference.waits) << i;
    ASSERT_EQ(estimate.groups_used,
              std::set<int>(groups.begin(), groups.end()).size())
        << i;
  }
}

}  // namespace
}  // namespace tensorflow::multistream
