// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan_fixture.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {
namespace {

constexpr int kSeeds = 400;

// Nodes by number, which is not their id; edges go to higher numbers only.
struct RandomGraph {
  explicit RandomGraph(uint32_t seed) : graph(OpRegistry::Global()) {
    std::mt19937 random(seed);
    auto below = [&](int n) { return static_cast<int>(random() % n); };
    auto percent = [&](int chance) { return below(100) < chance; };
    const int count = 10 + below(51);
    options.group_count = 2 + below(4);
    options.caller_group = below(options.group_count);
    const int reach = 2 + below(count);  // how far back inputs are
    const int unlaunched = below(40);
    auto earlier = [&](int i) { return i - 1 - below(std::min(i, reach)); };

    std::vector<NodeDef> defs(count);
    struct Input {
      int from, output, to, input;
    };
    std::vector<Input> inputs;
    std::vector<DataTypeVector> types(count);
    facts.resize(count);
    groups.resize(count);
    for (int i = 0; i < count; ++i) {
      for (int k = 1 + below(3); k > 0; --k) {
        static constexpr DataType kTypes[] = {DT_FLOAT, DT_FLOAT, DT_FLOAT,
                                              DT_RESOURCE, DT_VARIANT};
        types[i].push_back(kTypes[below(5)]);
      }
      facts[i].launched = !percent(unlaunched);
      for (int k = below(types[i].size() + 1); k > 0; --k) {
        facts[i].on_host.push_back(percent(40));
      }
      DataTypeVector taken;
      if (i > 0) {
        for (int k = below(4); k > 0; --k) {
          const int from = earlier(i);
          const int output = below(types[from].size());
          inputs.push_back({from, output, i, static_cast<int>(taken.size())});
          taken.push_back(types[from][output]);
        }
        for (int k = below(3); k > 0; --k) {
          inputs.push_back(
              {earlier(i), Graph::kControlSlot, i, Graph::kControlSlot});
        }
      }
      defs[i].set_name(absl::StrCat("n", i));
      defs[i].set_op("NodePlanTestOp");
      AddNodeAttr("Tin", taken, &defs[i]);
      AddNodeAttr("Tout", types[i], &defs[i]);
      groups[i] = options.caller_group;
      if (percent(75)) {
        groups[i] = below(options.group_count);
        AddNodeAttr(kStreamGroupAttr, groups[i], &defs[i]);
      }
      if (percent(5)) {
        facts[i].needs_leader = true;
        groups[i] = 0;
      }
    }
    // Shuffle the ids, so that they do not follow the order.
    std::vector<int> turns(count);
    for (int i = 0; i < count; ++i) turns[i] = i;
    for (int i = count; i > 1; --i) std::swap(turns[i - 1], turns[below(i)]);
    nodes.resize(count);
    for (int i : turns) {
      absl::Status status;
      nodes[i] = graph.AddNode(defs[i], &status);
      if (!status.ok()) ADD_FAILURE() << status;
    }
    for (const Input& edge : inputs) {
      graph.AddEdge(nodes[edge.from], edge.output, nodes[edge.to], edge.input);
    }
    FixupSourceAndSinkEdges(&graph);
    numbers.assign(graph.num_node_ids(), -1);
    for (int i = 0; i < count; ++i) numbers[nodes[i]->id()] = i;
    for (NodeFacts& fact : facts) fact.changes_state = percent(10);
    FindNeeds();
  }

  // Whether the edge itself needs an order.
  bool IsOrdered(const Edge& edge) const {
    if (edge.IsControlEdge()) return true;
    const NodeFacts& from = facts[numbers[edge.src()->id()]];
    switch (edge.src()->output_type(edge.src_output())) {
      case DT_VARIANT:
        return true;
      case DT_RESOURCE:
        return false;
      default:
        return edge.src_output() >= static_cast<int>(from.on_host.size()) ||
               !from.on_host[edge.src_output()];
    }
  }

  // The launched nodes that must come after launched node `from`, by a walk
  // through `at` and other nodes that are not launched.
  void Follow(int from, int at) {
    for (const Edge* edge : nodes[at]->out_edges()) {
      const int to = numbers[edge->dst()->id()];
      if (to < 0) continue;  // the sink
      const bool direct = at == from && facts[to].launched;
      if (direct && groups[from] == groups[to]) streams.insert({from, to});
      if (!IsOrdered(*edge)) continue;
      if (!facts[to].launched) {
        Follow(from, to);
      } else if (groups[from] == groups[to]) {
        streams.insert({from, to});
      } else {
        needs.insert({from, to});
      }
    }
  }
  void FindNeeds() {
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (facts[i].launched) Follow(i, i);
    }
  }

  NodePlan Plan(bool reduce) {
    options.reduce = reduce;
    absl::StatusOr<NodePlan> plan = MakeNodePlan(
        graph, options,
        [this](const Node& node) { return facts[numbers[node.id()]]; });
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : NodePlan();
  }

  using Pairs = std::set<std::pair<int, int>>;

  // The earlier and the later node of each wait of the plan, tails by each of
  // their nodes.
  Pairs WaitsOf(const NodePlan& plan) const {
    Pairs waits;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const NodePlan::Node& planned = plan.nodes[nodes[i]->id()];
      for (const NodePlan::Wait& wait : planned.waits) {
        for (int id : wait.nodes) waits.insert({numbers[id], i});
      }
    }
    return waits;
  }

  // Needed orders that streams and waits do not give, as text; "" if none.
  std::string Unmet(const Pairs& waits) const {
    std::vector<std::vector<int>> next(nodes.size());
    for (const auto& [from, to] : streams) next[from].push_back(to);
    for (const auto& [from, to] : waits) next[from].push_back(to);
    std::string unmet;
    for (size_t from = 0; from < nodes.size(); ++from) {
      std::vector<bool> seen(nodes.size());
      std::vector<int> left = {static_cast<int>(from)};
      while (!left.empty()) {
        const int at = left.back();
        left.pop_back();
        for (int to : next[at]) {
          if (!seen[to]) left.push_back(to);
          seen[to] = true;
        }
      }
      for (auto need = needs.lower_bound({from, 0});
           need != needs.end() && need->first == static_cast<int>(from);
           ++need) {
        if (seen[need->second]) continue;
        absl::StrAppend(&unmet, " n", from, "->n", need->second);
      }
    }
    return unmet;
  }

  Graph graph;
  NodePlanOptions options;
  std::vector<Node*> nodes;
  std::vector<int> numbers;  // by id; -1 if not an op
  std::vector<NodeFacts> facts;
  std::vector<int> groups;
  // Of launched nodes: pairs of different groups that must be ordered, and
  // pairs of one group that its stream orders.
  Pairs needs, streams;
};

// Calls `check` for a few hundred graphs, until one fails.
template <typename Check>
void ForEachGraph(Check check) {
  for (int seed = 0; seed < kSeeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomGraph random(seed);
    check(&random);
  }
}

TEST(RandomNodePlanTest, EveryNeedIsMetAndEveryWaitIsNeeded) {
  int waits = 0, left_out = 0, handed_on = 0;
  ForEachGraph([&](RandomGraph* random) {
    const NodePlan plan = random->Plan(/*reduce=*/true);
    const RandomGraph::Pairs all = random->WaitsOf(plan);
    EXPECT_EQ(random->Unmet(all), "");
    for (const auto& wait : all) {
      RandomGraph::Pairs rest = all;
      rest.erase(wait);
      EXPECT_NE(random->Unmet(rest), "")
          << "n" << wait.second << " waits for n" << wait.first;
    }
    waits += all.size();
    left_out += plan.waits_left_out;
    for (const auto& [from, to] : random->needs) {
      bool direct = false;
      for (const Node* in : random->nodes[to]->in_nodes()) {
        direct |= in == random->nodes[from];
      }
      handed_on += !direct;
    }
    // Without reduction, every need is a wait.
    EXPECT_EQ(random->WaitsOf(random->Plan(/*reduce=*/false)), random->needs);
  });
  // Else the graphs would show little.
  EXPECT_GT(waits, 10 * kSeeds);
  EXPECT_GT(left_out, 10 * kSeeds / 4);
  EXPECT_GT(handed_on, kSeeds);
}

TEST(RandomNodePlanTest, PlansAreConsistent) {
  using Record = NodePlan::Record;
  int tails = 0;
  ForEachGraph([&](RandomGraph* random) {
    for (bool reduce : {false, true}) {
      const NodePlan plan = random->Plan(reduce);
      std::map<int, Record> records;
      int waits = 0;
      for (size_t i = 0; i < random->nodes.size(); ++i) {
        const NodePlan::Node& planned = plan.nodes[random->nodes[i]->id()];
        EXPECT_EQ(planned.group, random->groups[i]) << "n" << i;
        EXPECT_FALSE(planned.after_all) << "n" << i;
        std::set<int> groups = {planned.group};
        for (const NodePlan::Wait& wait : planned.waits) {
          EXPECT_TRUE(groups.insert(wait.group).second) << "n" << i;
          EXPECT_EQ(wait.by_event,
                    wait.nodes.size() == 1 && !random->facts[i].changes_state)
              << "n" << i;
          for (int id : wait.nodes) {
            EXPECT_EQ(plan.nodes[id].group, wait.group) << "n" << i;
            records[id] =
                std::max(records[id],
                         wait.by_event ? Record::kEvent : Record::kPosition);
          }
          ++waits;
          tails += !wait.by_event;
        }
      }
      EXPECT_EQ(plan.waits, waits);
      for (const Node* node : random->nodes) {
        EXPECT_EQ(plan.nodes[node->id()].record, records[node->id()])
            << node->name();
      }
      EXPECT_EQ(plan.waits_left_out,
                random->needs.size() - random->WaitsOf(plan).size());
    }
  });
  EXPECT_GT(tails, kSeeds);
}

TEST(RandomNodePlanTest, EachGroupButTheCallersStartsSomewhere) {
  int starts = 0, goes_on = 0;
  ForEachGraph([&](RandomGraph* random) {
    const NodePlan plan = random->Plan(/*reduce=*/true);
    std::vector<bool> started(random->options.group_count);
    started[random->options.caller_group] = true;
    // Numbers are in the order of the edges.
    for (size_t i = 0; i < random->nodes.size(); ++i) {
      const int group = random->groups[i];
      const bool starts_here = plan.nodes[random->nodes[i]->id()].starts;
      if (starts_here) {
        started[group] = true;
        EXPECT_NE(group, random->options.caller_group) << "n" << i;
        EXPECT_TRUE(random->facts[i].launched) << "n" << i;
      }
      EXPECT_TRUE(started[group] || !random->facts[i].launched) << "n" << i;
      (starts_here ? starts : goes_on) += 1;
    }
  });
  // Else the graphs would show little.
  EXPECT_GT(starts, kSeeds);
  EXPECT_GT(goes_on, kSeeds);
}

}  // namespace
}  // namespace tensorflow::multistream
