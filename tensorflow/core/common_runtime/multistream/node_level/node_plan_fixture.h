// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Graphs drawn as text (drawing.h) and what is planned for them, for tests of
// node plans:
//
//   x -> a@1 b@2 -> join       x goes to a (group 1) and b (group 2), and these
//                              to join
//   a:1 ^b -> c(Cast,host)     c, a Cast with its output on the host, takes a's
//                              output 1, and b by a control edge (Create)
//
// An edge to a node that is there already replaces its input 1, as the back
// edge of a loop does. `name=value` sets an option of the plan (SetOption).

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_PLAN_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_PLAN_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan.h"
#include "tensorflow/core/common_runtime/multistream/node_level/stream_file.h"
#include "tensorflow/core/common_runtime/multistream/testing/drawing.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow::multistream {

// Takes and returns anything: a node's facts come from the test.
REGISTER_OP("NodePlanTestOp")
    .Input("inputs: Tin")
    .Output("outputs: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0");

inline constexpr int kGroups = 4;

// A drawn graph and what is expected of its plan.
struct PlanCase {
  const char* name;
  std::string graph;
  std::string expected;
};

inline std::string CaseName(const ::testing::TestParamInfo<PlanCase>& info) {
  return info.param.name;
}

class NodePlanTest : public ::testing::Test,
                     public ::testing::WithParamInterface<PlanCase> {
 protected:
  NodePlanTest() : graph_(OpRegistry::Global()) {
    options_.group_count = kGroups;
    options_.cost_us = [this](const Node& node) -> std::optional<double> {
      auto known = cost_us_.find(node.name());
      if (known == cost_us_.end()) return std::nullopt;
      return known->second;
    };
  }

  // Returns the last node.
  Node* Draw(const std::string& text) {
    Node* last = nullptr;
    ForEachToken(text, [&](const DrawnToken& token,
                           const std::vector<DrawnToken>& from) {
      if (token.is_option) {
        SetOption(token.name, token.value);
      } else {
        last = NodeOf(token, from);
      }
    });
    return last;
  }

  absl::Status TryPlan() {
    // As in every graph that an executor gets.
    FixupSourceAndSinkEdges(&graph_);
    absl::StatusOr<NodePlan> plan =
        MakeNodePlan(graph_, options_,
                     [this](const Node& node) { return facts_[node.name()]; });
    if (plan.ok()) plan_ = *std::move(plan);
    return plan.status();
  }
  void Plan() {
    const absl::Status status = TryPlan();
    ASSERT_TRUE(status.ok()) << status;
  }
  void DrawAndPlan(const std::string& text) {
    Draw(text);
    Plan();
  }

  const NodePlan::Node& Of(const Node* node) const {
    return plan_.nodes[node->id()];
  }
  // "0 default: a b; 2 scope: c": the nodes of each group, and why.
  std::string Places() const {
    std::map<std::string, std::vector<std::string>> places;
    for (const Node* node : drawn_) {
      places[absl::StrCat(Of(node).group, " ", NameOf(Of(node).why))].push_back(
          node->name());
    }
    return absl::StrJoin(places, "; ", [](std::string* out, const auto& place) {
      absl::StrAppend(out, place.first, ": ", absl::StrJoin(place.second, " "));
    });
  }
  // "d: a, [b c], all": d waits for the event of a, the tail of b's and c's
  // group, and the ends of all groups. In the order of the groups.
  std::string Waits() const {
    std::vector<std::string> lines;
    for (const Node* node : drawn_) {
      std::vector<std::string> waits;
      for (const NodePlan::Wait& wait : Of(node).waits) {
        std::vector<std::string> names;
        for (int id : wait.nodes) {
          names.push_back(graph_.FindNodeId(id)->name());
        }
        const std::string all = absl::StrJoin(names, " ");
        waits.push_back(wait.by_event ? all : absl::StrCat("[", all, "]"));
      }
      if (Of(node).after_all) waits.push_back("all");
      if (waits.empty()) continue;
      lines.push_back(
          absl::StrCat(node->name(), ": ", absl::StrJoin(waits, ", ")));
    }
    return absl::StrJoin(lines, "; ");
  }
  // The nodes that start a branch, by name.
  std::string Starts() const {
    std::set<std::string> names;
    for (const Node* node : drawn_) {
      if (Of(node).starts) names.insert(node->name());
    }
    return absl::StrJoin(names, " ");
  }

  Graph graph_;
  NodePlanOptions options_;
  std::map<std::string, NodeFacts> facts_;  // by node
  NodePlan plan_;

 private:
  void SetOption(const std::string& name, const std::string& value) {
    const int number = std::atoi(value.c_str());
    if (name == "groups") {
      options_.group_count = number;
    } else if (name == "caller") {
      options_.caller_group = number;
    } else if (name == "wait") {
      options_.guess.wait_us = number;
    } else if (name == "reduce") {
      options_.reduce = number != 0;
    } else if (name == "propagate") {
      options_.propagate = number != 0;
    } else if (name == "policy") {
      options_.policy = *PolicyOfName(value);
    } else if (name == "attr") {  // of all nodes that are drawn from here on
      policy_attr_ = value;
    } else {
      ASSERT_EQ(name, "file");
      file_ = *ParseStreamFile(value, "file", kGroups);
      options_.file = file_.get();
    }
  }

  // The node of that name, made if there is none.
  Node* NodeOf(const DrawnToken& token, const std::vector<DrawnToken>& from) {
    std::vector<NodeBuilder::NodeOut> inputs;
    std::vector<Node*> controls;
    for (const DrawnToken& input : from) {
      Node* node = nodes_.at(input.name);
      if (input.control) {
        controls.push_back(node);
      } else {
        inputs.emplace_back(node, std::atoi(input.output.c_str()));
      }
    }
    Node*& node = nodes_[token.name];
    if (node == nullptr) {
      node = Create(token, inputs, controls);
      drawn_.push_back(node);
    } else {
      for (const NodeBuilder::NodeOut& input : inputs) {
        EXPECT_TRUE(graph_.UpdateEdge(input.node, input.index, node, 1).ok());
      }
      for (Node* control : controls) graph_.AddControlEdge(control, node);
    }
    return node;
  }

  // The words of a node are its facts, its cost, the type of its outputs, and
  // its op. Attributes that the op needs get some value.
  Node* Create(const DrawnToken& token,
               const std::vector<NodeBuilder::NodeOut>& inputs,
               const std::vector<Node*>& controls) {
    NodeFacts& facts = facts_[token.name];
    std::string op = "NodePlanTestOp";
    DataType type = DT_FLOAT;
    int outputs = 0;
    for (const std::string& word : token.words) {
      if (word == "leader") {
        facts.needs_leader = true;
      } else if (word == "scratch") {
        facts.keeps_scratch = true;
      } else if (word == "changes") {
        facts.changes_state = true;
      } else if (word == "host" || word == "device") {  // an output there
        facts.on_host.push_back(word == "host");
        ++outputs;
      } else if (word == "unknown") {  // an output somewhere
        ++outputs;
      } else if (word == "idle") {
        facts.launched = false;
      } else if (double us; absl::SimpleAtod(word, &us)) {
        cost_us_[token.name] = us;
      } else if (!DataTypeFromString(word, &type)) {
        op = word;
        facts.launched &= op != "NoOp" && op != "Const";
      }
    }
    const OpDef* def = nullptr;
    EXPECT_TRUE(OpRegistry::Global()->LookUpOpDef(op, &def).ok()) << op;
    NodeBuilder builder(token.name, def);
    std::set<std::string> known;  // from the inputs
    bool takes_list = false;
    for (const OpDef::ArgDef& arg : def->input_arg()) {
      known.insert({arg.type_attr(), arg.number_attr(), arg.type_list_attr()});
      takes_list |= !arg.number_attr().empty() || !arg.type_list_attr().empty();
    }
    if (takes_list) {
      builder.Input(inputs);
    } else {
      for (const NodeBuilder::NodeOut& input : inputs) builder.Input(input);
    }
    for (const OpDef::AttrDef& attr : def->attr()) {
      if (attr.has_default_value() || known.count(attr.name()) > 0) continue;
      if (attr.type() == "type") {
        builder.Attr(attr.name(), type);
      } else if (attr.type() == "list(type)") {
        builder.Attr(attr.name(), DataTypeVector(std::max(outputs, 1), type));
      } else if (attr.type() == "list(int)") {
        builder.Attr(attr.name(),
                     std::vector<int>(std::max<int>(attr.minimum(), 4), 1));
      } else if (attr.type() == "int") {
        builder.Attr(attr.name(), 0);
      } else if (attr.type() == "shape") {
        builder.Attr(attr.name(), TensorShape({}));
      } else if (attr.type() == "tensor") {
        builder.Attr(attr.name(), Tensor(type, TensorShape({})));
      } else {
        builder.Attr(attr.name(), "SAME");  // a padding, or any string
      }
    }
    if (!token.value.empty()) {
      builder.Attr(kStreamGroupAttr, std::stoi(token.value));
    }
    if (!policy_attr_.empty()) builder.Attr(kStreamPolicyAttr, policy_attr_);
    Node* node = nullptr;
    const absl::Status status =
        builder.ControlInputs(controls).Finalize(&graph_, &node);
    EXPECT_TRUE(status.ok()) << status;
    return node;
  }

  std::map<std::string, double> cost_us_;  // by node
  std::map<std::string, Node*> nodes_;
  std::vector<Node*> drawn_;  // in the order of the text
  std::string policy_attr_;
  std::unique_ptr<StreamFile> file_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_PLAN_FIXTURE_H_
