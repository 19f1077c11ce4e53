// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/host_values.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capturable.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_fixture.h"

namespace tensorflow::multistream {
namespace {

TEST(EarlyValuesTest, WaitForNothingOfTheStep) {
  struct Case {
    std::string host;  // sends `value` to the GPU
    bool is_early;
  };
  const std::string batches =
      " output_types=[DT_FLOAT] output_shapes='[{dim {size: 1}}]'";
  for (const auto& [text, is_early] : std::vector<Case>{
           {"value = send(Exp(Neg(arg())))", true},
           {"back = receive(); value = send(Exp(back))", false},
           {"back = receive(); value = send(arg(), ^back)", false},
           // A variable of the host, and the next batch of a data set.
           {absl::StrCat(
                "all = IteratorV2() shared_name=a container=b", batches,
                "; batch = IteratorGetNext(all)", batches,
                "; steps = handle(); add = AssignAddVariableOp(steps, arg(), ",
                "^batch); value = send(read(steps, ^add))"),
            true},
           // A table of strings.
           {"table = HashTableV2() key_dtype=string value_dtype=int64; found = "
            "LookupTableFindV2(table, arg() T=string, arg() T=int64) "
            "Tin=string Tout=int64; value = send(found)",
            true},
           {"scatter = ResourceScatterAdd(handle(), arg() T=int64, arg()); "
            "value = send(RandomShuffle(arg(), ^scatter))",
            true},
           // The step itself may fill a queue, or change such a variable.
           {"v = VariableV2() dtype=float shape=[]; value = send(Identity(v))",
            false},
           // What is sent elsewhere, or under another name.
           {"value = send(arg()) "
            "recv_device=/job:a/replica:0/task:0/device:GPU:1;"
            "other = send(arg())",
            false}}) {
    PartGraph host(kHost, kGpu), gpu(kGpu, kHost);
    gpu.Add("value = receive(); back = send(Neg(value))");
    host.Add(text);
    EXPECT_FALSE(IsEarlyValue(*gpu["value"]));
    MarkEarlyValues({&gpu.graph, &host.graph});
    EXPECT_EQ(IsEarlyValue(*gpu["value"]), is_early) << text;
    for (const Node* node : host.graph.op_nodes()) {
      EXPECT_FALSE(IsEarlyValue(*node)) << text;
    }
  }
}

// An argument of the GPU that only the host needs is there before the step.
TEST(EarlyValuesTest, MayDependOnArgumentsOfTheGpu) {
  struct Case {
    std::string gpu;  // sends `passed` to the host
    std::string host;
    bool is_after;
  };
  const std::string sends = "x = arg(); passed = send(x); y = Exp(x);";
  const std::string table = "value = send(Neg(receive() tensor_name=passed))";
  for (const auto& [gpu_text, host_text, is_after] : std::vector<Case>{
           {sends, table, true},
           {"x = arg(); passed = send(Neg(x));", table, false},
           {"x = arg(); y = Exp(x); passed = send(x, ^y);", table, false},
           {sends + "other = send(y);",
            "value = send(Add(receive() tensor_name=passed, "
            "receive() tensor_name=other))",
            false}}) {
    PartGraph host(kHost, kGpu), gpu(kGpu, kHost);
    gpu.Add(gpu_text + "value = receive(); result(Neg(value))");
    host.Add(host_text);
    for (Node* node : gpu.graph.op_nodes()) {
      node->set_assigned_device_name(kGpu);
    }
    MarkEarlyValues({&gpu.graph, &host.graph});
    EXPECT_FALSE(IsEarlyValue(*gpu["value"])) << gpu_text;
    EXPECT_EQ(ComesAfterArguments(*gpu["value"]), is_after) << gpu_text;
    EXPECT_EQ(PassesArgumentOn(*gpu["passed"]), gpu_text.find(sends) == 0);
    if (!is_after) continue;
    const Capturable found = ClassifyForCapture(gpu.graph, nullptr);
    EXPECT_EQ(found.obstacle, "");
    EXPECT_TRUE(found.sends.empty());
    ASSERT_EQ(found.passed.size(), 1);
    EXPECT_EQ(found.passed[0].index, 0);
  }
}

// Each iteration sends values of its own, so a value does not wait for what the
// next iteration sends; but what comes after a loop waits for its iterations.
TEST(ValueWaitsTest, AnIterationDoesNotWaitForTheNextOne) {
  PartGraph gpu(kGpu, kHost), host(kHost, kGpu);
  host.Add(
      "first = enter(arg()); x = Merge(first, first); back = receive(^x);"
      "there = send(x, ^x); condition = LoopCond(Less(x, x));"
      "turn = Switch(back, condition); next = NextIteration(turn:1);"
      "after = send(Exit(turn))");
  host.Close("next", "x");
  gpu.Add(
      "first = enter(arg()); x = Merge(first, first); there = receive(^x);"
      "back = send(Neg(there)); condition = LoopCond(Less(x, x));"
      "turn = Switch(x, condition); next = NextIteration(turn:1);"
      "after = receive()");
  gpu.Close("next", "x");
  std::vector<Graph*> parts = {&gpu.graph, &host.graph};
  MarkEarlyValues(parts);
  EXPECT_TRUE(WaitsOf(*gpu["there"]).known);
  EXPECT_EQ(WaitsOf(*gpu["there"]).sends, std::vector<std::string>{});
  EXPECT_EQ(WaitsOf(*gpu["after"]).sends, std::vector<std::string>{"back"});
}

// A loop that counts on `counts_on`, and carries a value of the host.
class LoopValuesTest : public ::testing::Test {
 protected:
  void Make(const std::string& counts_on) {
    part_.device = counts_on;
    part_.Add(
        "first = enter(0); count = Merge(first, first);"
        "condition = LoopCond(Less(count, enter(10) is_constant=true));"
        "turn = Switch(count, condition);"
        "next = NextIteration(AddV2(turn:1, enter(1) is_constant=true))");
    part_.Close("next", "count");
    part_.device = kHost;
    part_.Add(
        "x = arg(); x_enter = enter(x); x_merge = Merge(x_enter, x_enter);"
        "x_turn = Switch(x_merge, condition); x_body = Identity(x_turn:1);"
        "x_exit = Exit(x_turn); x_next = NextIteration(x_body)");
    part_.Close("x_next", "x_merge");
  }
  // Whether all nodes that the value passes through are on `device`.
  void ExpectOn(const std::string& device) {
    for (const char* name :
         {"x_enter", "x_merge", "x_turn", "x_body", "x_exit", "x_next"}) {
      EXPECT_EQ(part_[name]->assigned_device_name(), device) << name;
    }
    EXPECT_EQ(part_["x"]->assigned_device_name(), kHost);
  }

  PartGraph part_{kGpu, kHost};
};

TEST_F(LoopValuesTest, WhatComesFromTheHostGoesRoundOnTheGpu) {
  Make(kGpu);
  MoveLoopValues(&part_.graph);
  ExpectOn(kGpu);
}

TEST_F(LoopValuesTest, ALoopThatComputesOnTheHostStaysAsItIs) {
  Make(kGpu);
  part_.Add("Tanh(x_body)");
  MoveLoopValues(&part_.graph);
  ExpectOn(kHost);
}

TEST_F(LoopValuesTest, ALoopOfTheHostStaysThere) {
  Make(kHost);
  part_["x_enter"]->set_assigned_device_name(kGpu);
  MoveLoopValues(&part_.graph);
  EXPECT_EQ(part_["condition"]->assigned_device_name(), kHost);
  EXPECT_EQ(part_["x_enter"]->assigned_device_name(), kGpu);
}

TEST_F(LoopValuesTest, AGraphWithoutLoopsIsNotTouched) {
  part_.device = kHost;
  part_.Add("x = arg(); Identity(x)");
  const int edges = part_.graph.num_edges();
  MoveLoopValues(&part_.graph);
  EXPECT_EQ(part_.graph.num_edges(), edges);
  EXPECT_EQ(part_["x"]->assigned_device_name(), kHost);
}

// Assigns these nodes to the GPU, and all others to the host.
void Place(PartGraph* graph, const std::vector<std::string>& on_gpu) {
  for (Node* node : graph->graph.op_nodes()) {
    node->set_assigned_device_name(kHost);
  }
  for (const std::string& name : on_gpu) {
    (*graph)[name]->set_assigned_device_name(kGpu);
  }
}

TEST(ShapesTest, AreOnTheGpuThatHasTheTensorToo) {
  PartGraph graph(kGpu, kHost);
  graph.Add(
      "x = arg(); y = arg(); z = arg(); n = Shape(x); m = Shape(y);"
      "k = Size(z); asked = Rank(x); rows = Reshape(x, n); more = Fill(m, 1);"
      "less = Neg(z); both = Fill(k, 2); other = Neg(k); AddV2(asked, 1)");
  Place(&graph, {"rows", "more", "less", "both"});
  graph["asked"]->set_requested_device(kHost);
  MoveShapes(&graph.graph);
  EXPECT_EQ(graph["n"]->assigned_device_name(), kGpu);
  // The tensor stays on the host; the host takes the shape; as was asked.
  for (const std::string name : {"m", "k", "asked"}) {
    EXPECT_EQ(graph[name]->assigned_device_name(), kHost) << name;
  }
}

TEST(ShapesTest, OfIntegersThatAreOnTheGpuAreTakenThere) {
  PartGraph graph(kGpu, kHost);
  graph.Add(
      "x = arg() T=int32; u = Unique(x); n = Shape(u); m = Size(u:1);"
      "s = Shape(StridedSlice(x, {0}, {1}, {1})); k = Rank(Unique(arg()))");
  for (Node* node : graph.graph.op_nodes()) {
    node->set_assigned_device_name(kGpu);
  }
  graph["m"]->set_assigned_device_name(kHost);
  TF_CHECK_OK(TakeIntegersOnDevice(&graph.graph));
  const auto takes = [&graph](const std::string& name) {
    const Node* node;
    TF_CHECK_OK(graph[name]->input_node(0, &node));
    return node->type_string();
  };
  EXPECT_EQ(takes("n"), "Bitcast");
  EXPECT_EQ(graph["n"]->input_type(0), DT_FLOAT);
  EXPECT_EQ(takes("m"), "Unique");
  EXPECT_EQ(takes("s"), "StridedSlice");  // which is on the host
  EXPECT_EQ(takes("k"), "Unique");
}

// As of a loop over a sequence, whose condition asks for its length.
TEST(ShapesTest, AreOnTheGpuIfALoopOnTheHostHandsTheTensorToIt) {
  PartGraph graph(kGpu, kHost);
  graph.Add(
      "x = arg(); before = Shape(x); e = Enter(x) frame_name=l;"
      "m = Merge(e, e); inside = Shape(m); row = Exp(Identity(m));"
      "zeros = Fill(before, 1); length = Fill(inside, 2)");
  Place(&graph, {"row", "zeros", "length"});
  MoveShapes(&graph.graph);
  EXPECT_EQ(graph["before"]->assigned_device_name(), kGpu);
  EXPECT_EQ(graph["inside"]->assigned_device_name(), kGpu);
}

TEST(ConstantsTest, AreOnEachDeviceThatTakesThem) {
  PartGraph graph(kGpu, kHost);
  graph.Add(
      "n = 2; m = 3; x = arg(); a = Neg(n); b = Neg(n); c = AddV2(n, n);"
      "d = Neg(m)");
  graph.graph.AddControlEdge(graph["x"], graph["m"]);
  Node* large = graph.Const(Tensor(DT_INT32, TensorShape({1 << 17}))).node;
  const Node* taker = graph.Op("Neg", {large}, [](NodeBuilder*) {}).node;
  Place(&graph, {"n", "m", "a"});
  large->set_assigned_device_name(kGpu);
  CopyConstants(&graph.graph);
  const auto taken = [&graph](const std::string& name, int input) {
    const Node* node;
    TF_CHECK_OK(graph[name]->input_node(input, &node));
    return node;
  };
  EXPECT_EQ(taken("a", 0), graph["n"]);
  const Node* copy = taken("b", 0);
  EXPECT_EQ(copy->assigned_device_name(), kHost);
  EXPECT_EQ(copy->attrs().Find("value")->tensor().int_val(0), 2);
  EXPECT_EQ(taken("c", 0), copy);
  EXPECT_EQ(taken("c", 1), copy);
  const Node* same = nullptr;
  TF_CHECK_OK(taker->input_node(0, &same));
  EXPECT_EQ(same, large);
  // A branch may leave this one out.
  EXPECT_EQ(taken("d", 0), graph["m"]);
}

// Only what no device was asked for, and what one GPU gives alone.
TEST(ResultsTest, AreOnTheGpuThatComputesThem) {
  PartGraph graph(kGpu, kHost);
  graph.Add(
      "x = Exp(arg()); order = NoOp(^x); moved = Identity(x, ^order);"
      "asked = Identity(x); both = Identity(x, ^asked); computed = Neg(x)");
  Place(&graph, {"x"});
  graph["asked"]->set_requested_device(kHost);
  MoveResults(&graph.graph);
  for (const std::string name : {"x", "order", "moved"}) {
    EXPECT_EQ(graph[name]->assigned_device_name(), kGpu) << name;
  }
  for (const std::string name : {"asked", "both", "computed"}) {
    EXPECT_EQ(graph[name]->assigned_device_name(), kHost) << name;
  }
}

}  // namespace
}  // namespace tensorflow::multistream
