// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/node_policy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_policy_fixture.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace multistream {
namespace {

// Which nodes get a group.

TEST_F(NodePolicyTest, BranchesGoApart) {
  Node* join = Fork("", Op("x"));
  Place();
  ExpectForked("");
  EXPECT_EQ(Of("x"), 0);
  EXPECT_EQ(Of(join), 0);
}

TEST_F(NodePolicyTest, WithoutAPolicyAllStayInTheCallersGroup) {
  options_.policy = Policy::kNone;
  options_.caller_group = 2;
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

TEST_F(GroupsOfPolicyTest, ItUsesThoseUpToTheCallersGroupToo) {
  options_.groups = 2;
  options_.caller_group = 3;
  AddBranches(6);
  Place();
  EXPECT_EQ(GroupsUsed(), (std::set<int>{0, 1, 2, 3}));
  // x is on the longest path.
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

TEST_F(GroupsOfPolicyTest,
       TheCallersGroupGetsTheLongestPathAndWhatHasNoPolicy) {
  options_.caller_group = 2;
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

// Nodes that get a neighbour's group.

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

// A node after a control edge does not use the variable's value.
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

//   a (0) --> b (3) --> host         a wait for host covers both
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

// The policy sees through pass-through ops: b comes after a.
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

// A pass-through op with more inputs gets its group by the policy.
TEST_F(NodePolicyTest, UpToSixtyFourNodesAreHandedOn) {
  options_.policy =
      Policy::kEmbedding;  // all others stay in the caller's group
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

TEST_F(CostsTest, TheLongestBranchStaysAloneInTheCallersGroup) {
  options_.groups = 2;
  AddThreeBranches();
  SetCosts({{"a", 100}, {"b", 10}, {"c", 10}});
  EXPECT_EQ(Groups(), "0 1 1");
  SetCosts({{"a", 10}, {"b", 100}, {"c", 10}});
  EXPECT_EQ(Groups(), "1 0 1");
  // An op without a measured time counts as small.
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
