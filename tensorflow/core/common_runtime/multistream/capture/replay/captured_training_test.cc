// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Recorded steps that change variables: after each step, results and variables
// have the same bits as without recording. Training as Python programs do it is
// in tensorflow/python/multistream/capture/captured_training_test.py.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capture_report.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/common_runtime/multistream/testing/variables.h"

namespace tensorflow::multistream {
namespace {

constexpr int kWidth = 8;

using Names = std::vector<std::string>;

Tensor Numbers(const TensorShape& shape, int seed) {
  Tensor tensor(DT_FLOAT, shape);
  for (int i = 0; i < tensor.NumElements(); ++i) {
    tensor.flat<float>()(i) =
        static_cast<float>((i * 31 + seed * 17) % 101) / 50 - 1;
  }
  return tensor;
}

// A graph with variables and named targets, with a session.
class Graph {
 public:
  // Unless `captured`, each step contains an op that prevents capture.
  explicit Graph(bool captured) : captured_(captured) {}

  Scope root = Scope::NewRootScope();
  Scope gpu = root.WithDevice("/device:GPU:0");

  Output Variable(const std::string& name, const Tensor& value) {
    auto handle =
        ops::VarHandleOp(gpu.WithOpName(name), DT_FLOAT, value.shape(),
                         ops::VarHandleOp::SharedName(absl::StrCat(
                             name, captured_ ? "_captured" : "_expected")));
    auto fed = ops::Placeholder(root.WithOpName(name + "/fed"), DT_FLOAT);
    ops::AssignVariableOp(gpu.WithOpName(name + "/assign"), handle, fed);
    ops::ReadVariableOp(gpu.WithOpName(name + "/read"), handle, DT_FLOAT);
    values_.push_back({name, value});
    return handle;
  }
  Output Feed(const std::string& name) {
    auto x = ops::Placeholder(root.WithOpName(name), DT_FLOAT);
    return captured_ ? Output(x) : ops::CheckNumerics(gpu, x, name);
  }
  Output Read(Output handle) {
    return ops::ReadVariableOp(gpu, handle, DT_FLOAT);
  }
  // The scope of ops that run after the ops in `before`.
  Scope After(const std::vector<Operation>& before) {
    return gpu.WithControlDependencies(before);
  }
  void Target(const std::string& name, const Operation& op) {
    ops::NoOp(After({op}).WithOpName(name));
  }

  void Start() {
    session = SessionOf(root);
    for (const auto& [name, value] : values_) Assign(name, value);
  }
  void Assign(const std::string& name, const Tensor& value) {
    Run({{name + "/fed", value}}, {}, {name + "/assign"});
  }
  Tensor Value(const std::string& name) {
    return Run({}, {name + "/read"}, {})[0];
  }
  std::vector<Tensor> Run(
      const std::vector<std::pair<std::string, Tensor>>& feeds,
      const Names& fetches, const Names& targets) {
    std::vector<Tensor> results;
    const absl::Status status = session->Run(feeds, fetches, targets, &results);
    EXPECT_TRUE(status.ok()) << status;
    results.resize(fetches.size());
    return results;
  }

  std::unique_ptr<Session> session;

 private:
  const bool captured_;
  std::vector<std::pair<std::string, Tensor>> values_;
};

void ExpectSame(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.TotalBytes()), 0) << what;
}

class CapturedTrainingTest : public ::testing::Test {
 protected:
  // Runs `steps` steps with both graphs, captured and not. Expects equal
  // results, and equal variables after each step, and replays.
  void Train(int steps, const Names& fetches, const std::string& target,
             const Names& variables) {
    const int64_t before = Total(&StreamGroupStats::steps_replayed);
    for (int i = 0; i < steps; ++i) {
      std::vector<Tensor> results[2];
      for (const bool is_captured : {true, false}) {
        Graph& graph = is_captured ? captured_ : expected_;
        results[is_captured] =
            graph.Run({{"x", Numbers({5, kWidth}, i)}}, fetches, {target});
      }
      for (size_t k = 0; k < fetches.size(); ++k) {
        ExpectSame(results[1][k], results[0][k],
                   absl::StrCat(fetches[k], ", step ", i));
      }
      for (const std::string& name : variables) {
        ExpectSame(captured_.Value(name), expected_.Value(name),
                   absl::StrCat(name, " after step ", i));
      }
    }
    EXPECT_GT(Total(&StreamGroupStats::steps_replayed) - before, steps / 2)
        << CaptureReport::Lines();
  }

  Graph captured_{true};
  Graph expected_{false};
};

TEST_F(CapturedTrainingTest, EachStepGivesWhatItGivesWithout) {
  for (Graph* graph : {&captured_, &expected_}) {
    const Scope& gpu = graph->gpu;
    Output x = graph->Feed("x");
    const auto variable = [graph](const char* name, int seed) {
      return graph->Variable(name, Numbers({5, kWidth}, seed));
    };

    // A read before a change and a read after it give different values.
    Output read = variable("read", 3);
    auto before = ops::ReadVariableOp(gpu.WithOpName("before"), read, DT_FLOAT);
    auto change =
        ops::AssignAddVariableOp(graph->After({before.value.op()}), read, x);
    auto after = ops::ReadVariableOp(
        graph->After({change.operation}).WithOpName("after"), read, DT_FLOAT);
    graph->Target("reads",
                  ops::AssignSubVariableOp(graph->After({after.value.op()}),
                                           read, ops::Square(gpu, x))
                      .operation);

    // Two variables swap values, and one is then changed in place.
    Output a = variable("a", 1), b = variable("b", 2);
    Output old_a = graph->Read(a), old_b = graph->Read(b);
    const Scope swap = graph->After({old_a.op(), old_b.op()});
    auto to_a = ops::AssignVariableOp(swap, a, old_b);
    auto to_b = ops::AssignVariableOp(swap, b, old_a);
    ops::Sum(gpu.WithOpName("sum_a"), old_a, {0, 1});
    graph->Target("swaps",
                  ops::AssignAddVariableOp(
                      graph->After({to_a.operation, to_b.operation}), a, x)
                      .operation);

    // The variable is assigned the fed tensor, which the session owns.
    Output fed = variable("fed", 3);
    Output sum = ops::Sum(gpu.WithOpName("sum"), graph->Read(fed), {1});
    graph->Target(
        "takes",
        ops::AssignVariableOp(graph->After({sum.op()}), fed, x).operation);
    graph->Start();
  }
  Train(40, {"before", "after"}, "reads", {"read"});
  Train(40, {"sum_a"}, "swaps", {"a", "b"});
  Train(40, {}, "swaps", {"a", "b"});
  Train(40, {"sum"}, "takes", {"fed"});
}

// On an emulated GPU variables may be in host memory, and later ones where
// earlier ones were.
TEST_F(CapturedTrainingTest, VariablesInTheHostsMemory) {
  constexpr int kCount = 3 * kWidth;
  alignas(64) static float memory[2 * kCount];
  for (Graph* graph : {&captured_, &expected_}) {
    const Output sum = ops::Sum(graph->gpu, graph->Feed("x"), {0});
    const Output by =
        ops::Concat(graph->gpu, std::vector<Output>{sum, sum, sum}, 0);
    for (const char* name : {"a", "b"}) {
      Output v = graph->Variable(name, Numbers({kCount}, 1));
      graph->Target(absl::StrCat("train_", name),
                    ops::AssignAddVariableOp(graph->gpu, v, by).operation);
    }
    graph->Start();
  }
  // The two places overlap: 64 bytes apart, 96 bytes each.
  for (const auto& [name, at] : {std::pair("a", 0), std::pair("b", 16)}) {
    {
      const auto variable = FindVariable(captured_.session.get(),
                                         absl::StrCat(name, "_captured"));
      ASSERT_NE(variable, nullptr);
      mutex_lock lock(*variable->mu());
      const Tensor before = *variable->tensor();
      Tensor on_host = HostTensor(memory + at, kCount);
      std::memcpy(on_host.data(), before.data(), before.TotalBytes());
      *variable->tensor() = on_host;
    }
    Train(20, {}, absl::StrCat("train_", name), {});
    ExpectSame(captured_.Value(name), expected_.Value(name), name);
    for (Graph* graph : {&captured_, &expected_}) {
      graph->Assign(name, Numbers({kCount}, 2));
    }
  }
}

// Steps of several clients, each of which changes a variable that others read.
TEST_F(CapturedTrainingTest, ManyClientsTrain) {
  Graph& graph = captured_;
  Tensor zeros(DT_FLOAT, {64});
  zeros.flat<float>().setZero();
  Output a = graph.Variable("a", zeros), b = graph.Variable("b", zeros);
  auto one = ops::Const(graph.gpu, 1.0f, {64});
  auto nothing = ops::Const(graph.gpu, 0.0f, {64});
  // Adds 1 + 0 * `read`: reads the variable, but the result does not depend on
  // its value.
  const auto add = [&](const char* name, Output changed, Output read) {
    Output by = ops::Add(graph.gpu, one,
                         ops::Mul(graph.gpu, nothing, graph.Read(read)));
    graph.Target(name,
                 ops::AssignAddVariableOp(graph.gpu, changed, by).operation);
  };
  add("of_a", a, b);
  add("of_b", b, a);
  graph.Start();
  const int64_t before = Total(&StreamGroupStats::steps_replayed);
  std::vector<std::thread> clients;
  for (int t = 0; t < 6; ++t) {
    clients.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        graph.Run({}, {}, {t % 2 == 0 ? "of_a" : "of_b"});
      }
    });
  }
  for (std::thread& client : clients) client.join();
  for (const char* name : {"a", "b"}) {
    const Tensor value = graph.Value(name);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(value.flat<float>()(i), 1500);
  }
  EXPECT_GT(Total(&StreamGroupStats::steps_replayed) - before, 1000)
      << CaptureReport::Lines();
}

TEST_F(CapturedTrainingTest, AnotherShapeRunsAsAlways) {
  const Scope& gpu = captured_.gpu;
  auto w = ops::VarHandleOp(gpu, DT_FLOAT, PartialTensorShape({-1}),
                            ops::VarHandleOp::SharedName("grows"));
  Output x = captured_.Feed("x"), old = captured_.Read(w);
  ops::AssignVariableOp(gpu.WithOpName("start"), w, x);
  ops::AssignVariableOp(gpu.WithOpName("grow"), w,
                        ops::Concat(gpu, std::vector<Output>{old, x}, 0));
  ops::Sum(gpu.WithOpName("sum"), old, {0});
  captured_.Start();
  Tensor one(DT_FLOAT, {1});
  one.flat<float>()(0) = 1;
  captured_.Run({{"x", one}}, {}, {"start"});
  for (int i = 0; i < 20; ++i) {
    captured_.Run({{"x", one}}, {}, {"grow"});
    EXPECT_EQ(captured_.Run({}, {"sum"}, {})[0].scalar<float>()(), i + 2);
  }
}

}  // namespace
}  // namespace tensorflow::multistream
