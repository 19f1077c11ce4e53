/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include "tensorflow/core/common_runtime/multistream/node_policy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace multistream {
namespace {

// Takes and returns anything.
REGISTER_OP("NodePolicyTestOp")
    .Input("inputs: Tin")
    .Output("outputs: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0");

using Group = std::optional<int>;
using Nodes = std::vector<Node*>;
using Outputs = std::vector<NodeBuilder::NodeOut>;

class NodePolicyTest : public ::testing::Test {
 protected:
  NodePolicyTest() : graph_(OpRegistry::Global()) {
    options_.policy = Policy::kFullGraph;
    options_.groups = 4;
  }

  Node* Add(NodeBuilder builder, const Nodes& controls = {}) {
    Node* node = nullptr;
    const absl::Status status =
        builder.ControlInputs(controls).Finalize(&graph_, &node);
    EXPECT_TRUE(status.ok()) << status;
    return node;
  }
  Node* Op(const std::string& name, const Outputs& inputs = {},
           DataType type = DT_FLOAT) {
    return Add(NodeBuilder(name, "NodePolicyTestOp")
                   .Input(inputs)
                   .Attr("Tout", DataTypeVector({type})));
  }
  // `length` nodes: name1, name2 and so on. The last.
  Node* Chain(const std::string& name, Node* from, int length) {
    for (int i = 1; i <= length; ++i) from = Op(absl::StrCat(name, i), {from});
    return from;
  }
  Node* HostOp(const std::string& name, const Outputs& inputs = {},
               DataType type = DT_FLOAT) {
    on_host_.insert(name);
    return Op(name, inputs, type);
  }
  Node* FixedOp(const std::string& name, int group,
                const Outputs& inputs = {}) {
    fixed_[name] = group;
    return Op(name, inputs);
  }
  Node* Const(const std::string& name, const Tensor& value = Tensor(1.0f)) {
    not_launched_.insert(name);
    return Add(NodeBuilder(name, "Const")
                   .Attr("dtype", value.dtype())
                   .Attr("value", value));
  }
  Node* Identity(const std::string& name, NodeBuilder::NodeOut input) {
    return Add(NodeBuilder(name, "Identity").Input(input));
  }
  Node* Reshape(const std::string& name, Node* input) {
    return Add(NodeBuilder(name, "Reshape")
                   .Input(input)
                   .Input(Const(name + "_shape", Tensor(1))));
  }
  Node* Handle(const std::string& name) {
    return Add(NodeBuilder(name, "VarHandleOp")
                   .Attr("dtype", DT_FLOAT)
                   .Attr("shape", TensorShape({})));
  }
  Node* Read(const std::string& name) {
    return Add(NodeBuilder(name, "ReadVariableOp")
                   .Input(Handle(name + "_handle"))
                   .Attr("dtype", DT_FLOAT));
  }
  Node* Ids(const std::string& name, const Outputs& inputs = {}) {
    return Op(name, inputs, DT_INT32);
  }
  // Of a table of its own.
  Node* Lookup(const std::string& name, Node* ids) {
    return Add(NodeBuilder(name, "ResourceGather")
                   .Input(Handle(name + "_table"))
                   .Input(ids)
                   .Attr("dtype", DT_FLOAT));
  }
  Node* Gather(const std::string& name, Node* table, Node* ids) {
    return Add(NodeBuilder(name, "GatherV2")
                   .Input(table)
                   .Input(ids)
                   .Input(Const(name + "_axis", Tensor(0))));
  }
  Node* MatMul(const std::string& name, Node* a, Node* b) {
    return Add(NodeBuilder(name, "MatMul").Input(a).Input(b));
  }
  Node* Switch(const std::string& name, NodeBuilder::NodeOut input) {
    return Add(NodeBuilder(name, "Switch")
                   .Input(input)
                   .Input(HostOp(name + "_if", {}, DT_BOOL)));
  }
  Node* Merge(const std::string& name, Node* a, Node* b) {
    return Add(NodeBuilder(name, "Merge").Input(Outputs{a, b}));
  }
  Node* Enter(const std::string& name, Node* input) {
    return Add(
        NodeBuilder(name, "Enter").Input(input).Attr("frame_name", name));
  }

  //   from --> Enter --> Merge --> Switch --> Exit
  //                        ^          '--> body
  //                        '-- NextIteration <--'
  struct Loop {
    Node* exit;
    Node* body;   // its first node
    Node* merge;  // where Close takes the last to
  };
  Loop Open(const std::string& name, Node* from) {
    Node* enter = Enter(name + "_enter", from);
    Node* merge = Merge(name + "_merge", enter, enter);
    Node* condition = Add(NodeBuilder(name + "_condition", "LoopCond")
                              .Input(HostOp(name + "_if", {merge}, DT_BOOL)));
    Node* split = Add(
        NodeBuilder(name + "_switch", "Switch").Input(merge).Input(condition));
    Loop loop;
    loop.exit = Add(NodeBuilder(name + "_exit", "Exit").Input(split, 0));
    loop.body = Op(name + "_body", {{split, 1}});
    loop.merge = merge;
    return loop;
  }
  void Close(const std::string& name, const Loop& loop, Node* last) {
    Node* next = Add(NodeBuilder(name + "_next", "NextIteration").Input(last));
    ASSERT_TRUE(graph_.UpdateEdge(next, 0, loop.merge, 1).ok());
  }

  //   from --> NAMEa1 --> NAMEa2 --> NAMEjoin
  //       '--> NAMEb1 --> NAMEb2 ----'
  Node* Fork(const std::string& name, NodeBuilder::NodeOut from) {
    std::vector<Node*> ends;
    for (const char* branch : {"a", "b"}) {
      Node* first = Op(absl::StrCat(name, branch, "1"), {from});
      ends.push_back(Op(absl::StrCat(name, branch, "2"), {first}));
    }
    return Op(name + "join", {ends[0], ends[1]});
  }
  void ExpectForked(const std::string& name) {
    EXPECT_TRUE(Of(name + "a1").has_value()) << name;
    EXPECT_EQ(Of(name + "a1"), Of(name + "a2")) << name;
    EXPECT_EQ(Of(name + "b1"), Of(name + "b2")) << name;
    EXPECT_NE(Of(name + "a1"), Of(name + "b1")) << name;
  }
  void ExpectNone(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      EXPECT_EQ(Of(name), std::nullopt) << name;
    }
  }

  void Place() {
    FixupSourceAndSinkEdges(&graph_);
    std::vector<Node*> order;
    GetReversePostOrder(
        graph_, &order, NodeComparatorID(),
        [](const Edge& edge) { return !edge.src()->IsNextIteration(); });
    std::vector<NodeForPolicy> nodes(graph_.num_node_ids());
    for (const Node* node : order) {
      if (!node->IsOp()) continue;
      NodeForPolicy& ours = nodes[node->id()];
      ours.launched = not_launched_.count(node->name()) == 0;
      ours.on_host = on_host_.count(node->name()) > 0;
      auto fixed = fixed_.find(node->name());
      if (fixed != fixed_.end()) ours.group = fixed->second;
      for (const Edge* edge : node->in_edges()) {
        const Node* from = edge->src();
        if (!from->IsOp() || not_launched_.count(from->name()) > 0) continue;
        const bool waits =
            edge->IsControlEdge() ||
            (on_host_.count(from->name()) == 0 &&
             from->output_type(edge->src_output()) != DT_RESOURCE);
        if (waits) ours.before.push_back(from->id());
      }
    }
    groups_ = GroupsByPolicy(graph_, order, nodes, options_);
    ASSERT_EQ(groups_.size(), graph_.num_node_ids());
  }
  Group Of(const Node* node) const { return groups_[node->id()]; }
  Group Of(const std::string& name) const {
    for (const Node* node : graph_.op_nodes()) {
      if (node->name() == name) return Of(node);
    }
    ADD_FAILURE() << "no node " << name;
    return {};
  }
  // Of the nodes that have one.
  std::set<int> GroupsUsed() const {
    std::set<int> used;
    for (const Group& group : groups_) {
      if (group.has_value()) used.insert(*group);
    }
    return used;
  }

  Graph graph_;
  NodePolicyOptions options_;
  std::set<std::string> not_launched_, on_host_;
  std::map<std::string, int> fixed_;
  std::vector<Group> groups_;  // by id
};

// Who gets a group.

TEST_F(NodePolicyTest, BranchesGoApart) {
  Node* join = Fork("", Op("x"));
  Place();
  ExpectForked("");
  EXPECT_EQ(Of("x"), 0);
  EXPECT_EQ(Of(join), 0);
}

TEST_F(NodePolicyTest, WithoutAPolicyAllStayHome) {
  options_.policy = Policy::kNone;
  options_.home = 2;
  Fork("", Reshape("reshape", Op("x")));
  Place();
  EXPECT_EQ(GroupsUsed(), std::set<int>{2});
}

TEST_F(NodePolicyTest, WhatIsNotLaunchedGetsNoGroup) {
  Fork("", Const("constant"));
  Place();
  ExpectForked("");
  ExpectNone({"constant"});
}

//   x --> a1 (3) --> a2 --> join        a goes where a1 is, and b elsewhere.
//    '--> b1 ------> b2 ----'
TEST_F(NodePolicyTest, FixedGroupsCountAndAreNotGivenAgain) {
  fixed_ = {{"a1", 3}};
  Fork("", Op("x"));
  Place();
  ExpectNone({"a1"});
  EXPECT_EQ(Of("a2"), 3);
  EXPECT_NE(Of("b1"), 3);
  EXPECT_TRUE(Of("b1").has_value());
  EXPECT_EQ(Of("b1"), Of("b2"));
}

TEST_F(NodePolicyTest, FixedNodesThatHandOnAreNotGivenAgain) {
  fixed_ = {{"identity", 3}, {"host", 2}};
  Node* x = Op("x");
  Op("y", {HostOp("host", {Identity("identity", x)})});
  Place();
  ExpectNone({"identity", "host"});
  EXPECT_TRUE(Of("y").has_value());
}

// How many groups.

class GroupsOfPolicyTest : public NodePolicyTest {
 protected:
  void AddBranches(int count) {
    Node* x = Op("x");
    Outputs ends;
    for (int i = 0; i < count; ++i) {
      ends.push_back(Chain(absl::StrCat("branch", i, "_"), x, 2));
    }
    Op("join", ends);
  }
};

TEST_F(GroupsOfPolicyTest, ItUsesAsManyGroupsAsItMay) {
  AddBranches(6);
  for (int groups : {1, 2, 3, 6}) {
    options_.groups = groups;
    Place();
    std::set<int> expected;
    for (int i = 0; i < groups; ++i) expected.insert(i);
    EXPECT_EQ(GroupsUsed(), expected);
  }
}

TEST_F(GroupsOfPolicyTest, ItUsesThoseUpToHomeToo) {
  options_.groups = 2;
  options_.home = 3;
  AddBranches(6);
  Place();
  EXPECT_EQ(GroupsUsed(), (std::set<int>{0, 1, 2, 3}));
  // The longest path.
  EXPECT_EQ(Of("x"), 3);
}

TEST_F(GroupsOfPolicyTest, ItUsesThoseUpToTheLastFixedOneToo) {
  options_.groups = 2;
  AddBranches(6);
  fixed_ = {{"branch2_1", 4}};
  Place();
  EXPECT_EQ(Of("branch2_2"), 4);
  EXPECT_EQ(GroupsUsed(), (std::set<int>{0, 1, 2, 3, 4}));
}

TEST_F(GroupsOfPolicyTest, HomeIsWhereTheLongestPathAndWhatHasNoPolicyGo) {
  options_.home = 2;
  Node* x = Op("x");
  Node* split = Switch("switch", x);
  Node* merged =
      Merge("merge", Op("yes", {{split, 1}}), Op("no", {{split, 0}}));
  Node* longest = Chain("long", merged, 5);
  Node* shorter = Chain("short", merged, 2);
  Op("join", {longest, shorter});
  Place();
  EXPECT_EQ(Of("long1"), 2);
  EXPECT_EQ(Of("long5"), 2);
  EXPECT_EQ(Of("join"), 2);
  EXPECT_TRUE(Of("short1").has_value());
  EXPECT_NE(Of("short1"), 2);
  ExpectNone({"yes", "no"});
}

// What is beside the policy.

//   W0 --> ReadVariableOp --> a1 -->          each read is where it is used,
//   W1 --> ReadVariableOp --> b1 --> join     and its handle, too.
TEST_F(NodePolicyTest, AVariableIsReadWhereItIsUsed) {
  Node* x = Op("x");
  Node* read_a = Read("read_a");
  Node* read_b = Read("read_b");
  Node* a = Op("a", {x, read_a});
  Node* b = Op("b", {x, read_b});
  Op("join", {a, b});
  Place();
  EXPECT_TRUE(Of(a).has_value());
  EXPECT_TRUE(Of(b).has_value());
  EXPECT_NE(Of(a), Of(b));
  EXPECT_EQ(Of(read_a), Of(a));
  EXPECT_EQ(Of(read_b), Of(b));
  EXPECT_EQ(Of("read_a_handle"), Of(a));
  EXPECT_EQ(Of("read_b_handle"), Of(b));
}

TEST_F(NodePolicyTest, ASharedVariableIsReadWhereItIsUsedMost) {
  for (const char* most : {"a", "b"}) {
    const std::string name = absl::StrCat("most_in_", most, "/");
    Node* read = Read(name + "read");
    Node* x = Op(name + "x");
    std::map<std::string, Node*> ends;
    for (const char* branch : {"a", "b"}) {
      Node* end = x;
      for (int i = 0; i < 3; ++i) {
        Outputs inputs = {end};
        if (branch[0] == most[0] || i == 1) inputs.push_back(read);
        end = Op(absl::StrCat(name, branch, i), inputs);
      }
      ends[branch] = end;
    }
    Op(name + "join", {ends["a"], ends["b"]});
    Place();
    EXPECT_NE(Of(ends["a"]), Of(ends["b"]));
    EXPECT_EQ(Of(read), Of(ends[most])) << name;
  }
}

//   W --> ReadVariableOp --> Identity --> a
TEST_F(NodePolicyTest, AVariableIsReadForWhatItIsHandedOnTo) {
  Node* x = Op("x");
  Nodes reads, ends;
  for (const char* name : {"a", "b"}) {
    reads.push_back(Read(absl::StrCat(name, "_read")));
    Node* identity = Identity(absl::StrCat(name, "_identity"), reads.back());
    ends.push_back(Op(name, {x, identity}));
  }
  Op("join", {ends[0], ends[1]});
  Place();
  EXPECT_NE(Of(ends[0]), Of(ends[1]));
  for (int i : {0, 1}) EXPECT_EQ(Of(reads[i]), Of(ends[i]));
  EXPECT_EQ(Of("a_identity"), Of(ends[0]));
  EXPECT_EQ(Of("b_identity"), Of(ends[1]));
}

// What follows it by a control edge takes nothing of it.
TEST_F(NodePolicyTest, AVariableIsReadForWhatTakesItsValue) {
  Node* x = Op("x");
  Node* read = Read("read");
  fixed_ = {{"after1", 1}, {"after2", 1}, {"use", 2}};
  Op("use", {x, read});
  for (const char* name : {"after1", "after2"}) {
    graph_.AddControlEdge(read, Op(name, {x}));
  }
  Place();
  EXPECT_EQ(Of(read), 2);
}

TEST_F(NodePolicyTest, AVariableThatIsReadForNothingGetsNoGroup) {
  Read("read");
  Fork("", Op("x"));
  Place();
  ExpectNone({"read", "read_handle"});
}

//   x --> a --> Reshape ---> join
//    '--> b --> Identity --'
TEST_F(NodePolicyTest, WhatHandsOnGoesWithItsProducer) {
  Node* x = Op("x");
  Node* a = Op("a", {x});
  Node* b = Op("b", {x});
  Node* c = Op("c", {x});
  Node* reshape = Reshape("reshape", a);
  Node* identity = Identity("identity", Identity("first", b));
  Node* host = HostOp("host", {c});
  // With `host`, the order is the host's.
  Add(NodeBuilder("join", "NodePolicyTestOp")
          .Input(Outputs{reshape, identity, host})
          .Attr("Tout", DataTypeVector({DT_FLOAT})),
      {host});
  Place();
  EXPECT_EQ((std::set<Group>{Of(a), Of(b), Of(c)}).size(), 3);
  EXPECT_EQ(Of(reshape), Of(a));
  EXPECT_EQ(Of(identity), Of(b));
  EXPECT_EQ(Of("first"), Of(b));
  EXPECT_EQ(Of(host), Of(c));
}

//   a (0) --> b (3) --> host         a wait for it is one for both
//      '---------------'
TEST_F(NodePolicyTest, WhatHandsSeveralOnGoesWithTheLastOfThem) {
  fixed_ = {{"a", 0}, {"b", 3}};
  Node* a = Op("a");
  Node* b = Op("b", {a});
  HostOp("host", {b, a});
  HostOp("other_order", {a, b});
  Place();
  EXPECT_EQ(Of("host"), 3);
  EXPECT_EQ(Of("other_order"), 3);
}

//   x --> Identity --> Reshape ---> join      one chain: nothing to gain
//    '--> b ----------------------'
TEST_F(NodePolicyTest, WhatHandsOnIsNoBranch) {
  Node* x = Op("x");
  Node* reshape = Reshape("reshape", Identity("identity", x));
  Node* host = HostOp("host", {x});
  Add(NodeBuilder("join", "NodePolicyTestOp")
          .Input(Outputs{Op("b", {x}), reshape, host})
          .Attr("Tout", DataTypeVector({DT_FLOAT})),
      {host});
  Place();
  EXPECT_EQ(GroupsUsed(), std::set<int>{0});
}

// The policy sees through them: b comes after a.
//
//   a --> Identity --> host --> b
TEST_F(NodePolicyTest, OrderThroughWhatHandsOnCounts) {
  Node* a = Op("a");
  Node* host = HostOp("host", {Identity("identity", a)});
  Node* b = Add(NodeBuilder("b", "NodePolicyTestOp")
                    .Input(Outputs{})
                    .Attr("Tout", DataTypeVector({DT_FLOAT})),
                {host});
  Place();
  EXPECT_EQ(Of(a), 0);
  EXPECT_EQ(Of(b), 0);
}

TEST_F(NodePolicyTest, ARecvGoesWhereItIsUsedAndIsNoBranch) {
  Node* x = Op("x");
  Node* recv =
      Add(NodeBuilder("recv", "_Recv")
              .Attr("tensor_type", DT_FLOAT)
              .Attr("tensor_name", "t")
              .Attr("send_device", "/job:a/replica:0/task:0/device:CPU:0")
              .Attr("send_device_incarnation", int64_t{1})
              .Attr("recv_device", "/job:a/replica:0/task:0/device:GPU:0"));
  Node* join = Op("join", {Chain("a", x, 2), recv});
  Place();
  EXPECT_EQ(Of(recv), Of(join));
  EXPECT_EQ(GroupsUsed(), std::set<int>{0});
}

// The one with more is a node of the policy's own.
TEST_F(NodePolicyTest, UpToSixtyFourNodesAreHandedOn) {
  options_.policy = Policy::kEmbedding;  // all others stay home
  Nodes many;
  for (int i = 0; i < 63; ++i) {
    many.push_back(FixedOp(absl::StrCat("many", i), 3));
  }
  for (const char* name : {"64", "65"}) {
    many.push_back(FixedOp(absl::StrCat("many", name), 3));
    Add(NodeBuilder(name, "NoOp"), many);
  }
  on_host_ = {"64", "65"};
  Place();
  EXPECT_EQ(Of("64"), 3);
  EXPECT_EQ(Of("65"), 0);
}

// Control flow: who may be dead, or run many times, stays with the caller.

//   x --> Switch --> fork -----> Merge --> fork
//            '-----> no -------'
TEST_F(NodePolicyTest, NodesInABranchGetNoGroupAndThoseAfterItDo) {
  Node* before = Fork("before_", Op("x"));
  Node* split = Switch("switch", before);
  Node* yes = Fork("yes_", {split, 1});
  Node* merged = Merge("merge", yes, Op("no", {{split, 0}}));
  Fork("after_", merged);
  Place();
  ExpectForked("before_");
  ExpectForked("after_");
  ExpectNone({"switch", "merge", "no", "yes_a1", "yes_a2", "yes_b1", "yes_b2",
              "yes_join"});
}

//   x --> Switch --> y --> Switch --> fork --> Merge --> fork --> Merge -->
//   fork
TEST_F(NodePolicyTest, ABranchInABranchIsStillInOneAfterItsMerge) {
  Node* outer = Switch("outer", Op("x"));
  Node* inner = Switch("inner", Op("y", {{outer, 1}}));
  Node* deep = Fork("deep_", {inner, 1});
  Node* inner_merge = Merge("inner_merge", deep, Op("inner_no", {{inner, 0}}));
  Node* between = Fork("between_", inner_merge);
  Node* outer_merge =
      Merge("outer_merge", between, Op("outer_no", {{outer, 0}}));
  Fork("after_", outer_merge);
  Place();
  ExpectNone({"deep_a1", "deep_join", "between_a1", "between_b1",
              "between_join", "outer_no"});
  ExpectForked("after_");
}

// Constants and reads of a branch hang on its pivot by a control edge only.
TEST_F(NodePolicyTest, ControlEdgesLeadIntoABranchToo) {
  Node* split = Switch("switch", Op("x"));
  Node* pivot = Identity("pivot", {split, 1});
  Node* read = Add(NodeBuilder("read", "ReadVariableOp")
                       .Input(Handle("handle"))
                       .Attr("dtype", DT_FLOAT),
                   {pivot});
  Node* merged = Merge("merge", Op("yes", {read}), Op("no", {{split, 0}}));
  Fork("after_", merged);
  Place();
  ExpectNone({"pivot", "read", "yes"});
  ExpectForked("after_");
}

//   x --> Enter --> Merge --> Switch --> Exit --> fork
//                     ^          '--> body --> fork --> NextIteration
//                     '----------------------------------'
TEST_F(NodePolicyTest, NodesInALoopGetNoGroupAndThoseAfterItDo) {
  Node* x = Op("x");
  const Loop loop = Open("loop", x);
  Close("loop", loop, Fork("in_", loop.body));
  Node* after = Fork("after_", loop.exit);
  // Beside it, too.
  Op("end", {after, Fork("beside_", x)});
  Place();
  ExpectNone({"loop_enter", "loop_merge", "loop_if", "loop_switch", "loop_next",
              "loop_exit", "loop_body", "in_a1", "in_a2", "in_b1", "in_b2",
              "in_join"});
  ExpectForked("after_");
  ExpectForked("beside_");
}

//   while { body; while { inner }; fork }
TEST_F(NodePolicyTest, ALoopInALoopIsStillInOneAfterItsExit) {
  const Loop outer = Open("outer", Op("x"));
  const Loop inner = Open("inner", outer.body);
  Close("inner", inner, Fork("deep_", inner.body));
  Close("outer", outer, Fork("between_", inner.exit));
  Fork("after_", outer.exit);
  Place();
  ExpectNone(
      {"deep_a1", "deep_join", "between_a1", "between_b1", "between_join"});
  ExpectForked("after_");
}

//   while { if { yes } else { no }; fork }
TEST_F(NodePolicyTest, ABranchInALoopEndsWithTheLoop) {
  const Loop loop = Open("loop", Op("x"));
  Node* split = Switch("switch", loop.body);
  Node* merged =
      Merge("merge", Op("yes", {{split, 1}}), Op("no", {{split, 0}}));
  Close("loop", loop, Fork("in_", merged));
  Fork("after_", loop.exit);
  Place();
  ExpectNone({"yes", "no", "in_a1", "in_join"});
  ExpectForked("after_");
}

//   if { while { fork }; fork } else { no }; fork
TEST_F(NodePolicyTest, ALoopInABranchEndsInTheBranch) {
  Node* split = Switch("switch", Op("x"));
  const Loop loop = Open("loop", Op("yes", {{split, 1}}));
  Close("loop", loop, Fork("in_", loop.body));
  Node* still = Fork("still_", loop.exit);
  Fork("after_", Merge("merge", still, Op("no", {{split, 0}})));
  Place();
  ExpectNone({"in_a1", "still_a1", "still_b1", "still_join", "no"});
  ExpectForked("after_");
}

TEST_F(NodePolicyTest, AFixedGroupInALoopIsKept) {
  fixed_ = {{"in_a1", 3}, {"after_b1", 3}};
  const Loop loop = Open("loop", Op("x"));
  Close("loop", loop, Fork("in_", loop.body));
  Fork("after_", loop.exit);
  Place();
  ExpectNone({"in_a1", "in_a2", "after_b1"});
  EXPECT_EQ(Of("after_b2"), 3);
}

TEST_F(NodePolicyTest, AVariableThatALoopUsesIsReadAtHome) {
  options_.home = 1;
  Node* read = Read("read");
  const Loop loop = Open("loop", Op("x"));
  Node* weights = Enter("weights", read);
  Close("loop", loop, Op("use", {loop.body, weights}));
  Fork("after_", loop.exit);
  Place();
  EXPECT_EQ(Of(read), 1);
  ExpectForked("after_");
}

// Times.

class CostsTest : public NodePolicyTest {
 protected:
  void SetCosts(std::map<std::string, double> costs_us) {
    options_.cost_us = [costs_us = std::move(costs_us)](
                           const Node& node) -> std::optional<double> {
      auto known = costs_us.find(node.name());
      if (known == costs_us.end()) return std::nullopt;
      return known->second;
    };
  }
  // The groups of a, b and c.
  std::string Groups() {
    Place();
    std::vector<int> groups;
    for (const char* name : {"a", "b", "c"}) {
      groups.push_back(Of(name).value_or(-1));
    }
    return absl::StrJoin(groups, " ");
  }
  //   x --> a --> join
  //    '--> b ----'
  //    '--> c ----'
  void AddThreeBranches() {
    Node* x = Op("x");
    Op("join", {Op("a", {x}), Op("b", {x}), Op("c", {x})});
  }
};

TEST_F(CostsTest, TheLongestBranchStaysAloneAtHome) {
  options_.groups = 2;
  AddThreeBranches();
  SetCosts({{"a", 100}, {"b", 10}, {"c", 10}});
  EXPECT_EQ(Groups(), "0 1 1");
  SetCosts({{"a", 10}, {"b", 100}, {"c", 10}});
  EXPECT_EQ(Groups(), "1 0 1");
  // An op of which nothing is known is a small one.
  SetCosts({{"c", 100}});
  EXPECT_EQ(Groups(), "1 1 0");
}

TEST_F(CostsTest, TheCostPolicySplitsWhatGainsByIt) {
  options_.policy = Policy::kCost;
  options_.groups = 3;
  AddThreeBranches();
  SetCosts({{"a", 100}, {"b", 100}, {"c", 100}});
  const std::string groups = Groups();
  EXPECT_EQ(GroupsUsed(), (std::set<int>{0, 1, 2})) << groups;
  SetCosts({{"a", 1}, {"b", 1}, {"c", 1}});
  EXPECT_EQ(Groups(), "0 0 0");
}

TEST_F(CostsTest, WhatAWaitCostsCounts) {
  options_.policy = Policy::kCost;
  AddThreeBranches();
  SetCosts({{"a", 100}, {"b", 100}, {"c", 100}});
  options_.wait_us = 1000;
  EXPECT_EQ(Groups(), "0 0 0");
}

// Embeddings.

//   ids0 --> ResourceGather --> pool0 --> concat --> MatMul
//   ids1 --> ResourceGather --> pool1 ----'
TEST_F(NodePolicyTest, LookupsGoApartWithWhatPreparesAndPoolsThem) {
  options_.policy = Policy::kEmbedding;
  options_.groups = 2;
  Nodes lookups, pools;
  for (const char* i : {"0", "1"}) {
    Node* ids = Ids(absl::StrCat("ids", i));
    lookups.push_back(Lookup(absl::StrCat("lookup", i), ids));
    pools.push_back(Op(absl::StrCat("pool", i), {lookups.back()}));
  }
  Node* concat = Op("concat", {pools[0], pools[1]});
  Node* product = MatMul("product", concat, Read("weights"));
  Place();
  EXPECT_EQ((std::set<Group>{Of(lookups[0]), Of(lookups[1])}),
            (std::set<Group>{0, 1}));
  for (int i : {0, 1}) {
    EXPECT_EQ(Of(pools[i]), Of(lookups[i]));
    EXPECT_EQ(Of(absl::StrCat("ids", i)), Of(lookups[i]));
    EXPECT_EQ(Of(absl::StrCat("lookup", i, "_table")), Of(lookups[i]));
  }
  EXPECT_EQ(Of(concat), 0);
  EXPECT_EQ(Of(product), 0);
}

// The table is read where its rows are looked up.
TEST_F(NodePolicyTest, LookupsInValuesOfVariablesGoApartToo) {
  options_.policy = Policy::kEmbedding;
  options_.groups = 2;
  Node* bottom = Op("bottom");
  Node* table = Read("table");
  Node* lookup = Gather("lookup", Identity("identity", table), Ids("ids"));
  MatMul("product", lookup, bottom);
  Place();
  EXPECT_EQ(Of(bottom), 0);
  EXPECT_EQ(Of(lookup), 1);
  EXPECT_EQ(Of(table), 1);
  EXPECT_EQ(Of("product"), 0);
}

// What takes the lookup's output and nothing of another one goes with it,
// unless the model's dense part starts there.
//
//   lookup --> next
//   bottom ----'
//         '--> other
class AfterALookupTest : public NodePolicyTest,
                         public ::testing::WithParamInterface<const char*> {
 protected:
  // The group of a node of the type.
  Group GroupOfNext(const std::string& type) {
    options_.policy = Policy::kEmbedding;
    options_.groups = 2;
    Node* bottom = Chain("bottom", Op("x"), 30);  // home is busy
    Op("other", {bottom});  // else it would be for the lookup's only
    Node* lookup = Lookup("lookup", Ids("ids"));
    NodeBuilder next("next", type);
    if (type == "Einsum") {
      next.Input(Outputs{lookup, bottom}).Attr("equation", "ij,jk->ik");
    } else {
      next.Input(lookup).Input(bottom);
    }
    if (absl::StrContains(type, "Conv")) {
      next.Attr("padding", "SAME")
          .Attr("strides", std::vector<int>(type == "Conv3D" ? 5 : 4, 1));
    }
    Add(std::move(next));
    Place();
    EXPECT_EQ(Of(lookup), 1);
    return Of("next");
  }
};

class DenseTest : public AfterALookupTest {};
TEST_P(DenseTest, StaysHome) { EXPECT_EQ(GroupOfNext(GetParam()), 0); }
INSTANTIATE_TEST_SUITE_P(Types, DenseTest,
                         ::testing::Values("MatMul", "BatchMatMulV2", "Einsum",
                                           "Conv2D", "Conv3D",
                                           "DepthwiseConv2dNative"));

class NotDenseTest : public AfterALookupTest {};
TEST_P(NotDenseTest, GoesWithTheLookup) {
  EXPECT_EQ(GroupOfNext(GetParam()), 1);
}
INSTANTIATE_TEST_SUITE_P(Types, NotDenseTest,
                         ::testing::Values("AddV2", "Mul", "BiasAdd"));

class IsEmbeddingLookupTest : public NodePolicyTest {
 protected:
  Node* Cast(const std::string& name, Node* input) {
    return Add(NodeBuilder(name, "Cast").Input(input).Attr("DstT", DT_HALF));
  }
  Node* Variable(const std::string& name) {
    return Add(NodeBuilder(name, "VariableV2")
                   .Attr("dtype", DT_FLOAT)
                   .Attr("shape", TensorShape({})));
  }
  // Whether it is one of GatherV2.
  bool IsTable(Node* table) {
    return IsEmbeddingLookup(
        *Gather(table->name() + "_gather", table, Ids(table->name() + "_ids")));
  }
};

TEST_F(IsEmbeddingLookupTest, GathersOfResourcesAre) {
  EXPECT_TRUE(IsEmbeddingLookup(*Lookup("a", Ids("a_ids"))));
  EXPECT_TRUE(IsEmbeddingLookup(*Add(NodeBuilder("b", "ResourceGatherNd")
                                         .Input(Handle("b_table"))
                                         .Input(Ids("b_ids"))
                                         .Attr("dtype", DT_FLOAT))));
}

TEST_F(IsEmbeddingLookupTest, OtherGathersAreIfTheyTakeAVariablesValue) {
  EXPECT_TRUE(IsTable(Read("read")));
  EXPECT_TRUE(IsTable(Variable("variable")));
  EXPECT_TRUE(IsTable(Const("constant")));
  EXPECT_TRUE(IsTable(Identity("of_read", Read("read1"))));
  EXPECT_TRUE(IsTable(Identity("of_variable", Variable("variable1"))));
  EXPECT_TRUE(IsTable(Cast("cast", Identity("of_read2", Read("read2")))));

  EXPECT_FALSE(IsTable(Op("computed")));
  EXPECT_FALSE(IsTable(Identity("of_computed", Op("computed1"))));
  EXPECT_FALSE(IsTable(Op("of_read3", {Read("read3")})));
  EXPECT_FALSE(IsTable(Reshape("reshape", Read("read4"))));
}

TEST_F(IsEmbeddingLookupTest, TheTableIsTheFirstInput) {
  Node* table = Read("table");
  for (const char* type : {"Gather", "GatherNd"}) {
    Node* ids = Ids(absl::StrCat(type, "_ids"));
    EXPECT_TRUE(IsEmbeddingLookup(*Add(
        NodeBuilder(absl::StrCat(type, "_a"), type).Input(table).Input(ids))))
        << type;
    Node* fixed_ids = Const(absl::StrCat(type, "_const"), Tensor(1));
    EXPECT_FALSE(
        IsEmbeddingLookup(*Add(NodeBuilder(absl::StrCat(type, "_b"), type)
                                   .Input(Op(absl::StrCat(type, "_computed")))
                                   .Input(fixed_ids))))
        << type;
  }
}

TEST_F(IsEmbeddingLookupTest, SegmentsOfRowsAreAndTheirGradientsAreNot) {
  Node* table = Read("table");
  Node* ids = Ids("ids");
  Node* computed = Op("computed");
  auto is_lookup = [&](const std::string& name, const std::string& type,
                       Node* from, bool last) {
    NodeBuilder builder(name, type);
    builder.Input(from).Input(ids).Input(ids);
    if (last) builder.Input(ids);
    return IsEmbeddingLookup(*Add(std::move(builder)));
  };
  for (const char* type :
       {"SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"}) {
    const std::string name = type;
    EXPECT_TRUE(is_lookup(name, name, table, false));
    EXPECT_TRUE(
        is_lookup(name + "_more", name + "WithNumSegments", table, true));
    EXPECT_FALSE(is_lookup(name + "_of_computed", name, computed, false));
    EXPECT_FALSE(is_lookup(name + "_gradient", name + "Grad", table, true));
    EXPECT_FALSE(is_lookup(name + "_gradient2", name + "GradV2", table, true));
  }
}

TEST_F(IsEmbeddingLookupTest, NothingElseIs) {
  Node* table = Read("table");
  EXPECT_FALSE(IsEmbeddingLookup(*table));
  EXPECT_FALSE(IsEmbeddingLookup(*MatMul("product", table, table)));
  EXPECT_FALSE(IsEmbeddingLookup(*Add(NodeBuilder("sum", "UnsortedSegmentSum")
                                          .Input(table)
                                          .Input(Ids("ids"))
                                          .Input(Ids("count")))));
  EXPECT_FALSE(
      IsEmbeddingLookup(*Add(NodeBuilder("gradient", "ResourceScatterAdd")
                                 .Input(Handle("handle"))
                                 .Input(Ids("rows"))
                                 .Input(Op("by")))));
}

TEST_F(NodePolicyTest, TheSameGraphGetsTheSameGroups) {
  for (Policy policy :
       {Policy::kEmbedding, Policy::kFullGraph, Policy::kCost}) {
    options_.policy = policy;
    Fork(absl::StrCat("fork", static_cast<int>(policy), "_"),
         Lookup(absl::StrCat("lookup", static_cast<int>(policy)),
                Ids(absl::StrCat("ids", static_cast<int>(policy)))));
    Place();
    const std::vector<Group> before = groups_;
    Place();
    EXPECT_EQ(groups_, before);
  }
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
