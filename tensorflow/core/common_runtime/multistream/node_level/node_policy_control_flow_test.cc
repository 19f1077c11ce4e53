// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "tensorflow/core/common_runtime/multistream/node_level/node_policy.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_policy_fixture.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace multistream {
namespace {

// Control flow: nodes that may be dead or run many times stay with the caller.

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
  // A fork beside the loop gets groups, too.
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

TEST_F(NodePolicyTest, AVariableThatALoopUsesIsReadInTheCallersGroup) {
  options_.caller_group = 1;
  Node* read = Read("read");
  const Loop loop = Open("loop", Op("x"));
  Node* weights = Enter("weights", read);
  Close("loop", loop, Op("use", {loop.body, weights}));
  Fork("after_", loop.exit);
  Place();
  EXPECT_EQ(Of(read), 1);
  ExpectForked("after_");
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
