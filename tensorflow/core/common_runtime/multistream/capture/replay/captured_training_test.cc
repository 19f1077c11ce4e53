// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Recorded steps that change variables: after each step, results and variables
// have the same bits as without recording.

#include <gtest/gtest.h>

#include <atomic>
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
#include "tensorflow/core/framework/tensor_util.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr char kGpu[] = "/device:GPU:0";
constexpr int kWidth = 8;

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
  Scope gpu = root.WithDevice(kGpu);

  Output Variable(const std::string& name, const Tensor& value) {
    auto handle =
        ops::VarHandleOp(gpu.WithOpName(name), value.dtype(), value.shape(),
                         ops::VarHandleOp::SharedName(absl::StrCat(
                             name, captured_ ? "_captured" : "_expected")));
    auto fed = ops::Placeholder(root.WithOpName(name + "/fed"), value.dtype());
    ops::AssignVariableOp(gpu.WithOpName(name + "/assign"), handle, fed);
    ops::ReadVariableOp(gpu.WithOpName(name + "/read"), handle, value.dtype());
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
  // Adds a target `name` that runs after the ops in `after`.
  void Target(const std::string& name, const std::vector<Operation>& after) {
    ops::NoOp(gpu.WithOpName(name).WithControlDependencies(after));
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
      const std::vector<std::string>& fetches,
      const std::vector<std::string>& targets) {
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
  // Make and Step do the same with both graphs, captured and not.
  template <class Build>
  void Make(Build build) {
    for (Graph* graph : {&captured_, &expected_}) {
      build(graph);
      graph->Start();
    }
  }
  void Step(int seed, const std::vector<std::string>& fetches,
            const std::vector<std::string>& targets) {
    const std::vector<std::pair<std::string, Tensor>> feeds = {
        {"x", Numbers({5, kWidth}, seed)}};
    const auto a = captured_.Run(feeds, fetches, targets);
    const auto b = expected_.Run(feeds, fetches, targets);
    for (size_t i = 0; i < fetches.size(); ++i) {
      ExpectSame(a[i], b[i], absl::StrCat(fetches[i], ", step ", seed));
    }
  }
  void CheckVariables(const std::vector<std::string>& names,
                      const std::string& when) {
    for (const std::string& name : names) {
      ExpectSame(captured_.Value(name), expected_.Value(name), name + when);
    }
  }

  // For a failure message: why the other steps were not replayed.
  static std::string Why() { return CaptureReport::Lines(); }

  int64_t replayed() {
    return Total(&StreamGroupStats::steps_replayed) - replayed_;
  }

  Graph captured_{true};
  Graph expected_{false};
  const int64_t replayed_ = Total(&StreamGroupStats::steps_replayed);
};

// y = tanh(x w) v, trained to be 0, with momentum for w.
void Train(Graph* graph) {
  const TensorShape square({kWidth, kWidth});
  Output w = graph->Variable("w", Numbers(square, 3));
  Output m = graph->Variable("m", Numbers(square, 0));
  Output v = graph->Variable("v", Numbers({kWidth, 2}, 4));
  Output steps = graph->Variable("steps", Numbers({}, 0));
  const Scope& gpu = graph->gpu;
  Output x = graph->Feed("x");
  Output read_w = graph->Read(w), read_v = graph->Read(v);
  Output h = ops::Tanh(gpu, ops::MatMul(gpu, x, read_w));
  Output y = ops::MatMul(gpu, h, read_v);
  ops::L2Loss(gpu.WithOpName("loss"), y);
  Output of_v = ops::MatMul(gpu, h, y, ops::MatMul::TransposeA(true));
  Output of_h = ops::MatMul(gpu, y, read_v, ops::MatMul::TransposeB(true));
  Output slope = ops::Sub(gpu, ops::Const(gpu, 1.0f), ops::Square(gpu, h));
  Output of_w = ops::MatMul(gpu, x, ops::Mul(gpu, slope, of_h),
                            ops::MatMul::TransposeA(true));
  auto rate = ops::Const(gpu, 0.01f);
  auto new_w =
      ops::ResourceApplyMomentum(gpu, w, m, rate, of_w, ops::Const(gpu, 0.9f));
  auto new_v = ops::ResourceApplyGradientDescent(gpu, v, rate, of_v);
  auto counted = ops::AssignAddVariableOp(gpu, steps, ops::Const(gpu, 1.0f));
  graph->Target("train", {new_w, new_v, counted});
}
const std::vector<std::string>& TrainedVariables() {
  static const auto* names =
      new std::vector<std::string>{"w", "m", "v", "steps"};
  return *names;
}

TEST_F(CapturedTrainingTest, EachStepGivesWhatItGivesWithout) {
  Make(Train);
  for (int i = 0; i < 50; ++i) {
    Step(i, {"loss"}, {"train"});
    CheckVariables(TrainedVariables(), absl::StrCat(" after step ", i));
  }
  EXPECT_GT(replayed(), 40) << Why();
}

// On an emulated GPU variables may be in host memory, and later ones where
// earlier ones were.
TEST_F(CapturedTrainingTest, VariablesInTheHostsMemory) {
  constexpr int kCount = 3 * kWidth;
  alignas(64) static float memory[2 * kCount];
  Make([](Graph* graph) {
    const Output sum = ops::Sum(graph->gpu, graph->Feed("x"), {0});
    const Output by =
        ops::Concat(graph->gpu, std::vector<Output>{sum, sum, sum}, 0);
    for (const char* name : {"a", "b"}) {
      Output v = graph->Variable(name, Numbers({kCount}, 1));
      graph->Target(absl::StrCat("train_", name),
                    {ops::AssignAddVariableOp(graph->gpu, v, by)});
    }
  });
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
    const int64_t replayed_before = replayed();
    for (int i = 0; i < 20; ++i) Step(i, {}, {absl::StrCat("train_", name)});
    EXPECT_GT(replayed() - replayed_before, 10) << Why();
    CheckVariables({name}, " in the host's memory");
    for (Graph* graph : {&captured_, &expected_}) {
      graph->Assign(name, Numbers({kCount}, 2));
    }
  }
}

TEST_F(CapturedTrainingTest, AStepWithoutResults) {
  Make(Train);
  for (int i = 0; i < 50; ++i) Step(i, {}, {"train"});
  CheckVariables(TrainedVariables(), "");
  EXPECT_GT(replayed(), 40) << Why();
}

TEST_F(CapturedTrainingTest, OthersAssignBetween) {
  Make(Train);
  for (int i = 0; i < 80; ++i) {
    Step(i, {"loss"}, {"train"});
    if (i % 10 != 6) continue;
    for (Graph* graph : {&captured_, &expected_}) {
      graph->Assign("w", Numbers({kWidth, kWidth}, i));
    }
  }
  CheckVariables(TrainedVariables(), "");
  EXPECT_GT(replayed(), 40) << Why();
}

// A fetched value on an emulated GPU shares the variable's memory.
TEST_F(CapturedTrainingTest, OthersKeepWhatTheyHaveRead) {
  Make(Train);
  std::vector<std::pair<Tensor, Tensor>> kept;
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (int i = 0; i < 60; ++i) {
    Step(i, {"loss"}, {"train"});
    if (i % 7 != 3) continue;
    kept.emplace_back(captured_.Value("w"), expected_.Value("w"));
    copies.emplace_back(tensor::DeepCopy(kept.back().first),
                        tensor::DeepCopy(kept.back().second));
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    ExpectSame(kept[i].first, kept[i].second, "kept");
    ExpectSame(kept[i].first, copies[i].first, "copied");
  }
  CheckVariables(TrainedVariables(), "");
  EXPECT_GT(replayed(), 5) << Why();
}

// A read before a change and a read after it give different values.
TEST_F(CapturedTrainingTest, ReadsBeforeAndAfterAChange) {
  Make([](Graph* graph) {
    Output w = graph->Variable("w", Numbers({5, kWidth}, 3));
    const Scope& gpu = graph->gpu;
    Output x = graph->Feed("x");
    auto before = ops::ReadVariableOp(gpu.WithOpName("before"), w, DT_FLOAT);
    auto change = ops::AssignAddVariableOp(
        gpu.WithControlDependencies(before.value), w, x);
    const Scope later = gpu.WithControlDependencies({change.operation});
    auto after = ops::ReadVariableOp(later.WithOpName("after"), w, DT_FLOAT);
    auto again = ops::AssignSubVariableOp(
        gpu.WithControlDependencies(after.value), w, ops::Square(gpu, x));
    graph->Target("step", {again});
  });
  for (int i = 0; i < 40; ++i) Step(i, {"before", "after"}, {"step"});
  CheckVariables({"w"}, "");
  EXPECT_GT(replayed(), 30) << Why();
}

// The variables swap values, and one is then changed in place.
TEST_F(CapturedTrainingTest, VariablesThatTakeEachOthersValues) {
  Make([](Graph* graph) {
    Output a = graph->Variable("a", Numbers({5, kWidth}, 1));
    Output b = graph->Variable("b", Numbers({5, kWidth}, 2));
    const Scope& gpu = graph->gpu;
    Output x = graph->Feed("x");
    Output old_a = graph->Read(a), old_b = graph->Read(b);
    const Scope read = gpu.WithControlDependencies(
        std::vector<Operation>{old_a.op(), old_b.op()});
    auto to_a = ops::AssignVariableOp(read, a, old_b);
    auto to_b = ops::AssignVariableOp(read, b, old_a);
    auto more = ops::AssignAddVariableOp(
        gpu.WithControlDependencies(
            std::vector<Operation>{to_a.operation, to_b.operation}),
        a, x);
    ops::Sum(gpu.WithOpName("sum"), old_a, {0, 1});
    graph->Target("step", {more});
  });
  for (int i = 0; i < 40; ++i) {
    Step(i, {"sum"}, {"step"});
    CheckVariables({"a", "b"}, absl::StrCat(" after step ", i));
  }
  EXPECT_GT(replayed(), 30) << Why();
}

// The variable is assigned the fed tensor, which the session owns.
TEST_F(CapturedTrainingTest, AnInputThatBecomesTheValue) {
  Make([](Graph* graph) {
    Output w = graph->Variable("w", Numbers({5, kWidth}, 3));
    Output x = graph->Feed("x");
    Output sum = ops::Sum(graph->gpu.WithOpName("sum"), graph->Read(w), {1});
    auto set =
        ops::AssignVariableOp(graph->gpu.WithControlDependencies(sum), w, x);
    graph->Target("step", {set});
  });
  for (int i = 0; i < 40; ++i) Step(i, {"sum"}, {"step"});
  CheckVariables({"w"}, "");
  EXPECT_GT(replayed(), 30) << Why();
}

TEST_F(CapturedTrainingTest, RowsOfATable) {
  Make([](Graph* graph) {
    Output table = graph->Variable("table", Numbers({100, kWidth}, 3));
    const Scope& gpu = graph->gpu;
    Output x = graph->Feed("x");
    Tensor numbers(DT_INT64, {5});
    for (int i = 0; i < 5; ++i) numbers.flat<int64_t>()(i) = i * i * 39 % 78;
    auto ids = ops::Const(gpu, Input::Initializer(numbers));
    auto rows =
        ops::ResourceGather(gpu.WithOpName("rows"), table, ids, DT_FLOAT);
    auto change =
        ops::ResourceScatterAdd(gpu.WithControlDependencies(rows.output), table,
                                ids, ops::Mul(gpu, x, rows));
    graph->Target("step", {change});
  });
  for (int i = 0; i < 40; ++i) Step(i, {"rows"}, {"step"});
  CheckVariables({"table"}, "");
  EXPECT_GT(replayed(), 30) << Why();
}

// Readers on all groups see the complete value of one step.
TEST_F(CapturedTrainingTest, ReadersOnOtherGroups) {
  Graph& graph = captured_;
  Output w = graph.Variable("w", Tensor(DT_FLOAT, {4096}));
  auto one = ops::Const(graph.gpu, 1.0f, {4096});
  graph.Target("step", {ops::AssignAddVariableOp(graph.gpu, w, one)});
  Output value = graph.Read(w);
  ops::Min(graph.gpu.WithOpName("min"), value, {0});
  ops::Max(graph.gpu.WithOpName("max"), value, {0});
  graph.Start();
  Tensor zeros(DT_FLOAT, {4096});
  zeros.flat<float>().setZero();
  graph.Assign("w", zeros);
  std::atomic<bool> stop{false};
  std::atomic<int> reads{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 4; ++t) {
    readers.emplace_back([&] {
      float last = 0;
      while (!stop) {
        const auto found = graph.Run({}, {"min", "max"}, {});
        const float min = found[0].scalar<float>()();
        EXPECT_EQ(min, found[1].scalar<float>()());
        EXPECT_GE(min, last);
        last = min;
        ++reads;
      }
    });
  }
  for (int i = 0; i < 3000; ++i) graph.Run({}, {}, {"step"});
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(graph.Value("w").flat<float>()(17), 3000);
  EXPECT_GT(reads, 100);
  EXPECT_GT(replayed(), 1000) << Why();
}

// Steps of several clients, some of which change variables that others read.
TEST_F(CapturedTrainingTest, ManyClientsTrain) {
  Graph& graph = captured_;
  Output a = graph.Variable("a", Numbers({64}, 0));
  Output b = graph.Variable("b", Numbers({64}, 0));
  auto one = ops::Const(graph.gpu, 1.0f, {64});
  auto nothing = ops::Const(graph.gpu, 0.0f, {64});
  // a += 1 + 0 * b: reads b, but the result does not depend on its value.
  // Likewise b.
  graph.Target("of_a",
               {ops::AssignAddVariableOp(
                   graph.gpu, a,
                   ops::Add(graph.gpu, one,
                            ops::Mul(graph.gpu, nothing, graph.Read(b))))});
  graph.Target("of_b",
               {ops::AssignAddVariableOp(
                   graph.gpu, b,
                   ops::Add(graph.gpu, one,
                            ops::Mul(graph.gpu, nothing, graph.Read(a))))});
  graph.Start();
  Tensor zeros(DT_FLOAT, {64});
  zeros.flat<float>().setZero();
  graph.Assign("a", zeros);
  graph.Assign("b", zeros);
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
  EXPECT_GT(replayed(), 1000) << Why();
}

TEST_F(CapturedTrainingTest, AnotherShapeRunsAsAlways) {
  Scope root = Scope::NewRootScope();
  Scope gpu = root.WithDevice(kGpu);
  auto w =
      ops::VarHandleOp(gpu.WithOpName("w"), DT_FLOAT, PartialTensorShape({-1}),
                       ops::VarHandleOp::SharedName("grows"));
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  auto old = ops::ReadVariableOp(gpu, w, DT_FLOAT);
  ops::AssignVariableOp(gpu.WithOpName("start"), w, x);
  ops::AssignVariableOp(
      gpu.WithOpName("grow"), w,
      ops::Concat(gpu, std::vector<Output>{old, Output(x)}, 0));
  ops::Sum(root.WithDevice(kGpu).WithOpName("sum"), old, {0});
  const std::unique_ptr<Session> session = SessionOf(root);
  Tensor one(DT_FLOAT, {1});
  one.flat<float>()(0) = 1;
  ASSERT_TRUE(session->Run({{"x", one}}, {}, {"start"}, nullptr).ok());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(session->Run({{"x", one}}, {}, {"grow"}, nullptr).ok());
    std::vector<Tensor> results;
    ASSERT_TRUE(session->Run({}, {"sum"}, {}, &results).ok());
    EXPECT_EQ(results[0].scalar<float>()(), i + 2);
  }
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
