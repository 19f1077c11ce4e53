// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/equal_ops.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_fixture.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/validate.h"

namespace tensorflow::multistream {
namespace {

class Training : public PartGraph {
 public:
  explicit Training(const std::string& text) : PartGraph(kGpu, kHost) {
    Define("variable", "_Arg T=resource");
    Define("add", "AssignAddVariableOp dtype=float");
    Add(text);
    FixupSourceAndSinkEdges(&graph);
    recorded = WithoutEqualOps(graph, nullptr);
    if (recorded == nullptr) return;
    TF_CHECK_OK(graph::ValidateGraphHasNoCycle(*recorded));
  }

  int Count(const std::string& op) const {
    return static_cast<int>(absl::c_count_if(
        (recorded == nullptr ? graph : *recorded).op_nodes(),
        [&](const Node* node) { return node->type_string() == op; }));
  }

  // Whether the recorded graph lets `second` follow `first`.
  bool Follows(const std::string& second, const std::string& first) const {
    for (const Node* from : recorded->op_nodes()) {
      if (from->name() != second) continue;
      return WalkFinds(*from, [&](const Node& node, auto go_to) {
        for (const Edge* edge : node.in_edges()) go_to(edge->src());
        return node.name() == first;
      });
    }
    return false;
  }

  std::unique_ptr<Graph> recorded;  // or nullptr: `graph`
};

TEST(EqualOpsTest, OneOfThoseThatComputeTheSameIsEnough) {
  const Training training(
      "v = variable() index=0; w = variable() index=1; a = read(v);"
      "b = read(v); x = Tanh(Mul(a, a)); y = Tanh(Mul(b, b));"
      "add(w, x); add(w, y); result(y); add(v, x, ^a, ^b)");
  EXPECT_EQ(training.Count("ReadVariableOp"), 1);
  EXPECT_EQ(training.Count("Mul"), 1);
  EXPECT_EQ(training.Count("Tanh"), 1);
  EXPECT_EQ(training.Count("AssignAddVariableOp"), 3);
}

TEST(EqualOpsTest, ReadsBeforeAndAfterAChangeAreApart) {
  for (const std::string& text : std::vector<std::string>{
           // After it.
           "a = read(v); c = add(v, a, ^a); b = read(v, ^c)",
           // One may come after it.
           "a = read(v); b = read(v); add(v, a, ^a)",
           // Both may.
           "a = read(v); b = read(v); add(v, w)",
           // Between them, and after both.
           "a = read(v); c = add(v, a, ^a); b = read(v, ^c); add(v, b, ^b)",
           // It may be a change.
           "a = read(v); b = read(v); add(Identity(v), w)"}) {
    const Training training(
        absl::StrCat("v = variable() index=0; w = arg() index=1;", text,
                     "; result(Tanh(a)); result(Tanh(b))"));
    EXPECT_EQ(training.Count("ReadVariableOp"), 2) << text;
    EXPECT_EQ(training.Count("Tanh"), 2) << text;
  }
}

TEST(EqualOpsTest, WhatFollowsOneOfThemStillFollowsWhatItFollowed) {
  const Training training(
      "v = variable() index=0; w = variable() index=1; x = arg() index=2;"
      "a = Tanh(x); c = add(w, a); b = Tanh(x, ^c); y = Exp(b);"
      "d = read(w, ^b); result(y); result(d)");
  EXPECT_EQ(training.Count("Tanh"), 1);
  EXPECT_TRUE(training.Follows("y", "c"));
  EXPECT_TRUE(training.Follows("d", "c"));
  EXPECT_FALSE(training.Follows("c", "d"));
  const Training control(
      "v = variable() index=0; x = arg() index=1; add(v, x); a = Tanh(x);"
      "b = Tanh(x); y = Exp(x, ^b); result(Mul(a, b)); result(y)");
  EXPECT_EQ(control.Count("Tanh"), 1);
  EXPECT_TRUE(control.Follows("y", "a"));
}

TEST(EqualOpsTest, WhatMayDifferStays) {
  const auto count = [](const std::string& op, const std::string& text) {
    return Training(absl::StrCat("v = variable() index=0; x = arg() index=1;"
                                 "add(v, x); y = arg() index=2;",
                                 text))
        .Count(op);
  };
  EXPECT_EQ(count("Mul", "result(Mul(x, y)); result(Mul(x, y))"), 1);
  EXPECT_EQ(count("Mul", "result(Mul(x, y)); result(Mul(x, x))"), 2);
  EXPECT_EQ(count("Split",
                  "a = Split(0, x) num_split=2; result(Mul(a, a:1));"
                  "b = Split(0, x) num_split=2; result(b:1)"),
            1);
  EXPECT_EQ(count("Tanh",
                  "a = Split(0, x) num_split=2;"
                  "result(Tanh(a)); result(Tanh(a:1))"),
            2);
  EXPECT_EQ(count("MatMul",
                  "result(MatMul(x, y) transpose_a=true);"
                  "result(MatMul(x, y))"),
            2);
  // Each draws its own numbers.
  EXPECT_EQ(count("RandomUniform",
                  "result(RandomUniform({2}) dtype=float);"
                  "result(RandomUniform({2}) dtype=float)"),
            2);
  EXPECT_EQ(count("AssignAddVariableOp", "add(v, x); result(x)"), 2);
}

TEST(EqualOpsTest, TrainingsWithoutBranchesOnly) {
  const std::string twice = "result(Tanh(x)); result(Tanh(x))";
  const std::string x = "v = variable() index=0; x = arg() index=1;";
  EXPECT_EQ(Training(x + "add(v, x);" + twice).Count("Tanh"), 1);
  EXPECT_EQ(Training(x + "result(read(v));" + twice).recorded, nullptr);
  EXPECT_EQ(Training(x +
                     "add(v, x); p = arg() index=2 T=bool;"
                     "result(Switch(x, p));" +
                     twice)
                .recorded,
            nullptr);
  EXPECT_EQ(Training(x + "add(v, x); result(Tanh(x))").recorded, nullptr);
}

TEST(EqualOpsTest, AGraphMadeBeforeIsTakenOn) {
  Training training(
      "v = variable() index=0; x = arg() index=1; add(v, x);"
      "result(Tanh(x))");
  auto other = std::make_unique<Graph>(training.graph.flib_def());
  other->Copy(training.graph);
  const Graph* const is = other.get();
  EXPECT_EQ(WithoutEqualOps(training.graph, std::move(other)).get(), is);
}

}  // namespace
}  // namespace tensorflow::multistream
