// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Does the pass work at the point where TensorFlow runs it?

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups_fixture.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow::multistream {
namespace {

class FunctionGroupsPassTest
    : public FunctionGroupsTest,
      public ::testing::WithParamInterface<std::tuple<bool, bool>> {
 protected:
  // A function whose node `s` follows its call, and `own` is on group 3.
  void DefineSum(const std::string& name) {
    Define(FDH::Create(
        name, {"x: float"}, {"y: float"}, {},
        {Square("s"),
         Square("own", 3),
         {{"sum"}, "AddN", {"s:y:0", "own:y:0"}, {{"T", DT_FLOAT}, {"N", 2}}}},
        {{"y", "sum:sum:0"}}));
  }
};

// The pass runs before TensorFlow's inlining pass. The graph's own library and
// the session's have the same copies of functions, and executors find them in
// each run.
TEST_P(FunctionGroupsPassTest, ASessionRunsTheCopies) {
  const auto [lowered, pruned_first] = GetParam();
  DefineSum("inner");
  Define(FDH::Create("outer", {"x: float"}, {"y: float"}, {},
                     {Call("call", "inner")}, {{"y", "call:output:0"}}));
  DefineSum("branch");
  for (int group : {1, 2}) {
    Node* call = AddCall(absl::StrCat("call", group), "outer", group);
    Node* by_name = Add(NodeBuilder(absl::StrCat("by_name", group), "inner",
                                    graph_->op_registry())
                            .Input(call),
                        group);
    Node* condition = Add(NodeBuilder(absl::StrCat("true", group), "Const")
                              .Attr("dtype", DT_BOOL)
                              .Attr("value", Tensor(true)),
                          {});
    Node* branches =
        Add(NodeBuilder(absl::StrCat("if", group), "StatelessIf")
                .Input(condition)
                .Input(std::vector<NodeBuilder::NodeOut>{by_name})
                .Attr("Tout", DataTypeVector({DT_FLOAT}))
                .Attr("then_branch", FDH::FunctionRef("branch").proto)
                .Attr("else_branch", FDH::FunctionRef("inner").proto),
            group);
    if (lowered) {
      call->AddAttr("_lower_as_multi_device_function", true);
      branches->AddAttr("_lower_using_switch_merge", true);
    }
  }
  GraphDef def;
  graph_->ToGraphDef(&def);
  SessionOptions options;
  options.config.mutable_graph_options()->set_place_pruned_graph(pruned_first);
  std::unique_ptr<Session> session(NewSession(options));
  ASSERT_TRUE(session->Create(def).ok());
  for (int run = 0; run < 2; ++run) {
    for (int group : {1, 2}) {
      RunOptions run_options;
      run_options.set_output_partition_graphs(true);
      RunMetadata metadata;
      std::vector<Tensor> outputs;
      // Feeds, because constants would be folded away.
      const absl::Status status = session->Run(
          run_options,
          {{absl::StrCat("call", group, "_x:0"), Tensor(1.0f)},
           {absl::StrCat("true", group, ":0"), Tensor(true)}},
          {absl::StrCat("if", group, ":0")}, {}, &outputs, &metadata);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(outputs[0].scalar<float>()(), 128.0f);  // 2 * (2 * 2^2)^2
      if (run > 0) continue;
      // Inlined nodes carry the group; calls that remain call the group's copy.
      int inlined = 0;
      int called = 0;
      auto check_callee = [&called, group](const std::string& name) {
        for (const char* function : {"inner", "outer", "branch"}) {
          if (!absl::StartsWith(name, function)) continue;
          ++called;
          EXPECT_EQ(name, absl::StrCat(function, "__stream_group_", group));
        }
      };
      for (const GraphDef& part : metadata.partition_graphs()) {
        for (const NodeDef& node : part.node()) {
          check_callee(node.op());
          for (const auto& [name, value] : node.attr()) {
            if (value.has_func()) check_callee(value.func().name());
          }
          if (absl::EndsWith(node.name(), "/own")) {
            EXPECT_EQ(node.attr().at(kStreamGroupAttr).i(), 3);
          }
          if (!absl::EndsWith(node.name(), "/s")) continue;
          ++inlined;
          EXPECT_EQ(node.attr().at(kStreamGroupAttr).i(), group);
        }
      }
      EXPECT_GE(inlined, lowered ? 2 : 0);
      EXPECT_GE(called, lowered ? 0 : 2);
      EXPECT_GE(inlined + called, 3);
    }
  }
  EXPECT_TRUE(session->Close().ok());
}

INSTANTIATE_TEST_SUITE_P(LoweredOrNot, FunctionGroupsPassTest,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Bool()));

}  // namespace
}  // namespace tensorflow::multistream
