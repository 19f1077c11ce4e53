// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/step_estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph_fixture.h"

namespace tensorflow {
namespace multistream {
namespace {

PolicyOptions Options(int group_count, double wait_us, int caller_group = 0) {
  PolicyOptions options;
  options.group_count = group_count;
  options.caller_group = caller_group;
  options.wait_us = wait_us;
  return options;
}

//        b (6)           in lane:   0   0   1   0       wait_us 1
//       /     \                     a   b   c   d
//   a (4)      d (4)
//       \     /          lane 0:  aaaabbbbbbwdddd
//        c (5)           lane 1:      wccccc
TEST(StepEstimateTest, AStepTakesItsLongestLaneWithItsWaits) {
  PolicyGraph graph;
  const int a = Add(&graph, {}, 4);
  const int b = Add(&graph, {a}, 6);
  const int c = Add(&graph, {a}, 5);
  Add(&graph, {b, c}, 4);
  const StepEstimate split =
      EstimateStep(graph, {0, 0, 1, 0}, Options(2, /*wait_us=*/1));
  EXPECT_DOUBLE_EQ(split.step_us, 15);
  EXPECT_DOUBLE_EQ(split.one_stream_us, 19);
  EXPECT_EQ(split.waits, 2);
  EXPECT_EQ(split.groups_used, 2);
  const StepEstimate together =
      EstimateStep(graph, {0, 0, 0, 0}, Options(2, /*wait_us=*/1));
  EXPECT_DOUBLE_EQ(together.step_us, 19);
  EXPECT_EQ(together.waits, 0);
  EXPECT_EQ(together.groups_used, 1);
}

//   a (3), b (5)         lane 0:  aaa  w      the end waits for lane 1
//                        lane 1:  wbbbbb      b comes after the start
TEST(StepEstimateTest, OtherGroupsStartAndEndWithTheCallersGroup) {
  PolicyGraph graph;
  Add(&graph, {}, 3);
  Add(&graph, {}, 5);
  for (int caller_group : {0, 1}) {
    const int other = 1 - caller_group;
    const StepEstimate estimate = EstimateStep(
        graph, {caller_group, other}, Options(2, /*wait_us=*/1, caller_group));
    EXPECT_DOUBLE_EQ(estimate.step_us, 7);
    EXPECT_EQ(estimate.waits, 2);
  }
}

//   lane 0:  a --> c ---------> e        e needs d and b: c has waited for b.
//                 w            w
//   lane 1:   wb /  d --------/
TEST(StepEstimateTest, WaitsThatOthersImplyAreNotMade) {
  PolicyGraph graph;
  const int a = Add(&graph);
  const int b = Add(&graph);
  const int c = Add(&graph, {a, b});
  const int d = Add(&graph);
  const std::vector<int> groups = {0, 1, 0, 1, 0};
  Add(&graph, {b, c, d});
  EXPECT_EQ(EstimateStep(graph, groups, Options(2, 1)).waits, 3);
  graph.back().inputs = {b, c};
  // Without a wait for d, but with one at the end.
  EXPECT_EQ(EstimateStep(graph, groups, Options(2, 1)).waits, 3);
}

//   lane 0:  a -----------.           c waits for b alone, which comes after a.
//   lane 1:   'w-> b --.   |
//   lane 2:             'w-'-> c
TEST(StepEstimateTest, AWaitTellsWhatTheOtherGroupKnew) {
  PolicyGraph graph;
  const int a = Add(&graph);
  const int b = Add(&graph, {a});
  Add(&graph, {a, b});
  // Two in the drawing, and one at the end, for c.
  EXPECT_EQ(EstimateStep(graph, {0, 1, 2}, Options(3, 1)).waits, 3);
}

//   lane 1:  a, b, c -->       One wait for the last of them.
//   lane 0:             d
TEST(StepEstimateTest, OneWaitIsEnoughForAllNodesOfAGroup) {
  PolicyGraph graph;
  const int a = Add(&graph);
  const int b = Add(&graph);
  const int c = Add(&graph);
  Add(&graph, {a, b, c, c});
  const StepEstimate estimate =
      EstimateStep(graph, {1, 1, 1, 0}, Options(2, 1));
  EXPECT_EQ(estimate.waits, 2);
  EXPECT_DOUBLE_EQ(estimate.step_us, 6);
}

//   lane 1:  aaaaa                    c is ready before b: b's number is lower,
//   lane 0:  ddccb                    but the lane does not stand still for it.
TEST(StepEstimateTest, ALaneRunsWhatHasBeenReadyLongest) {
  PolicyGraph graph;
  const int a = Add(&graph, {}, 5);
  Add(&graph, {a}, 1);
  const int d = Add(&graph, {}, 2);
  Add(&graph, {d}, 3);
  EXPECT_DOUBLE_EQ(EstimateStep(graph, {1, 0, 0, 0}, Options(2, 0)).step_us, 6);
}

TEST(StepEstimateTest, AGraphWithoutNodesTakesNoTime) {
  const StepEstimate estimate = EstimateStep({}, {}, Options(3, 1));
  EXPECT_EQ(estimate.step_us, 0);
  EXPECT_EQ(estimate.waits, 0);
  EXPECT_EQ(estimate.groups_used, 0);
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
    drawn.nodes = 1 + i % 12;
    const PolicyGraph graph = RandomGraph(drawn, &random);
    const PolicyOptions options =
        Options(1 + i % 4, i % 3, (i / 4) % (1 + i % 4));
    std::vector<int> groups;
    for (int j = 0; j < drawn.nodes; ++j) {
      groups.push_back(random() % options.group_count);
    }
    const StepEstimate estimate = EstimateStep(graph, groups, options);
    const StepEstimate reference = Reference(graph, groups, options).Estimate();
    ASSERT_DOUBLE_EQ(estimate.step_us, reference.step_us) << i;
    ASSERT_EQ(estimate.waits, reference.waits) << i;
    ASSERT_EQ(estimate.groups_used,
              std::set<int>(groups.begin(), groups.end()).size())
        << i;
  }
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
