// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Sessions that say how many streams they have, in a process whose environment
// does not. The tests run in this order: groups are made once. Errors are in
// the Python tests of sessions.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"

namespace tensorflow::multistream {
namespace {

SessionOptions WithStreams(int streams) {
  SessionOptions options = PlainOptions();
  SetMultiStream(streams, MultiStreamPartitionPolicy::kNoPartition,
                 &options.config);
  return options;
}

// Two branches, in groups 1 and 2 of GPU `gpu`, and their sum.
GraphDef Branches(int gpu) {
  Scope root =
      Scope::NewRootScope().WithDevice("/device:GPU:" + std::to_string(gpu));
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Output one = ops::Square(root.WithOpName("one"), x);
  Output two = ops::Exp(root.WithOpName("two"), x);
  ops::Add(root.WithOpName("sum"), one, two);
  GraphDef graph;
  EXPECT_TRUE(root.ToGraphDef(&graph).ok());
  for (NodeDef& node : *graph.mutable_node()) {
    if (node.name() == "one") (*node.mutable_attr())[kStreamGroupAttr].set_i(1);
    if (node.name() == "two") (*node.mutable_attr())[kStreamGroupAttr].set_i(2);
  }
  return graph;
}

absl::Status RunBranches(const SessionOptions& options, int gpu) {
  Session* made = nullptr;
  TF_RETURN_IF_ERROR(NewSession(options, &made));
  std::unique_ptr<Session> session(made);
  TF_RETURN_IF_ERROR(session->Create(Branches(gpu)));
  std::vector<Tensor> outputs;
  TF_RETURN_IF_ERROR(
      session->Run({{"x:0", Tensor(0.0f)}}, {"sum:0"}, {}, &outputs));
  EXPECT_EQ(outputs[0].scalar<float>()(), 1.0f);
  return absl::OkStatus();
}

// For each group of GPU `gpu`, how often it has waited.
std::vector<int64_t> Waits(int gpu) {
  std::vector<int64_t> waits;
  for (const StreamGroupStats& group : StreamStats()) {
    if (group.gpu == gpu) waits.push_back(group.waits);
  }
  return waits;
}

TEST(SessionStreamsTest, MakesTheGroupsThatTheFirstSessionAsksFor) {
  EXPECT_EQ(StreamGroupCount(0), 1);
  ASSERT_TRUE(RunBranches(WithStreams(3), 0).ok());
  EXPECT_EQ(StreamGroupCount(0), 3);
  ASSERT_EQ(Waits(0).size(), 3);
  // The branches were in their groups.
  EXPECT_GT(Waits(0)[1], 0);
  EXPECT_GT(Waits(0)[2], 0);
  // The session has streams on all of its GPUs.
  ASSERT_TRUE(RunBranches(WithStreams(3), 1).ok());
  EXPECT_GT(Waits(1)[2], 0);
}

TEST(SessionStreamsTest, ASessionWithoutAConfigHasOneStream) {
  const std::vector<int64_t> before = Waits(0);
  ASSERT_TRUE(RunBranches(PlainOptions(), 0).ok());
  EXPECT_EQ(Waits(0), before);
  SessionOptions off = PlainOptions();
  ASSERT_EQ(ParseConfigText(
                "allow_soft_placement: true "
                "graph_options { rewrite_options { use_multi_stream: OFF } }",
                &off.config),
            "");
  ASSERT_TRUE(RunBranches(off, 0).ok());
  EXPECT_EQ(Waits(0), before);
}

}  // namespace
}  // namespace tensorflow::multistream
