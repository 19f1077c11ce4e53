// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// On an emulated GPU, sessions give the same results with and without capture,
// for all shapes, threads and limits.

#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_steps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/common_runtime/multistream/trace/trace.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr char kGpu[] = "/device:GPU:0";
constexpr int kWidth = 8;

// A model of a feed `x` with any number of rows, in which the GPU needs shapes
// computed on the host. Unless `captured`, an op prevents capture.
Scope Model(bool captured) {
  Scope root = Scope::NewRootScope();
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Scope scope = root.WithDevice(kGpu);
  Tensor weights(DT_FLOAT, {kWidth, kWidth});
  for (int i = 0; i < kWidth * kWidth; ++i) {
    weights.flat<float>()(i) = static_cast<float>((i * 7) % 13) / 13 - 0.4f;
  }
  Output y = x;
  for (int layer = 0; layer < 3; ++layer) {
    y = ops::Tanh(scope, ops::MatMul(scope, y, ops::Const(scope, weights)));
  }
  if (!captured) y = ops::CheckNumerics(scope, y, "y");
  auto rows = ops::Mul(scope, ops::Shape(scope, x), {2, 1});
  auto twice = ops::Concat(scope.WithOpName("twice"),
                           std::vector<Output>{y, Output(x)}, 0);
  ops::Reshape(scope.WithOpName("y"), twice, rows);
  ops::Shape(scope.WithOpName("rows"), twice);
  ops::Sum(scope.WithOpName("sum"), y, {1});
  return root;
}

Tensor Input(int rows, int seed) {
  Tensor x(DT_FLOAT, {rows, kWidth});
  for (int i = 0; i < x.NumElements(); ++i) {
    x.flat<float>()(i) =
        static_cast<float>((i * 31 + seed * 17) % 101) / 50 - 1;
  }
  return x;
}

std::vector<Tensor> Results(Session* session, int rows, int seed) {
  std::vector<Tensor> results;
  absl::Status status = session->Run({{"x", Input(rows, seed)}},
                                     {"y", "sum", "rows"}, {}, &results);
  EXPECT_TRUE(status.ok()) << status;
  return results;
}

bool Equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].shape() != b[i].shape() ||
        std::memcmp(a[i].data(), b[i].data(), a[i].TotalBytes()) != 0) {
      return false;
    }
  }
  return true;
}

// An op that counts its runs, and its runs without a group on the thread.
std::atomic<int> looks{0};
std::atomic<int> looks_without_group{0};

class LooksAtGroup : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    ++looks;
    if (GroupOnThread::Get() == nullptr) ++looks_without_group;
    context->set_output(0, context->input(0));
  }
};
REGISTER_KERNEL_BUILDER(Name("Tanh")
                            .Device(DEVICE_CPU)
                            .TypeConstraint<float>("T")
                            .Label("looks_at_group"),
                        LooksAtGroup);

// TensorFlow finds its per-group state by the thread's group.
TEST(CapturedOpsTest, KnowTheirGroupWhileTheyAreRecorded) {
  Scope root = Scope::NewRootScope();
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  auto y = ops::Tanh(root.WithOpName("y").WithDevice(kGpu), x);
  y.node()->AddAttr("_kernel", "looks_at_group");
  const std::unique_ptr<Session> session = SessionOf(root);
  const int64_t made = Total(&StreamGroupStats::recordings_made);
  for (int i = 0; i < 20; ++i) {
    std::vector<Tensor> results;
    const absl::Status status =
        session->Run({{"x", Input(2, i)}}, {"y"}, {}, &results);
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_GT(Total(&StreamGroupStats::recordings_made), made);
  EXPECT_GE(looks, 20);
  EXPECT_EQ(looks_without_group, 0);
}

class CapturedStepsTest : public ::testing::Test {
 protected:
  const std::unique_ptr<Session> session_ = SessionOf(Model(true));
  const std::unique_ptr<Session> expected_ = SessionOf(Model(false));

  void Check(int rows, int seed) {
    EXPECT_TRUE(Equal(Results(session_.get(), rows, seed),
                      Results(expected_.get(), rows, seed)))
        << rows << " rows, seed " << seed;
  }

  const int64_t replayed_ = Total(&StreamGroupStats::steps_replayed);
  const int64_t made_ = Total(&StreamGroupStats::recordings_made);
  int64_t replayed() {
    return Total(&StreamGroupStats::steps_replayed) - replayed_;
  }
  int64_t made() { return Total(&StreamGroupStats::recordings_made) - made_; }
};

TEST_F(CapturedStepsTest, ReplaysGiveWhatStepsGive) {
  for (int i = 0; i < 100; ++i) Check(5, i);
  EXPECT_EQ(made(), StreamGroupCount());
  // All steps but the first ones on each group are replayed.
  EXPECT_EQ(replayed(), 100 - CapturedSteps::kRunsBefore * StreamGroupCount());
}

TEST_F(CapturedStepsTest, EachShapeHasItsOwnRecording) {
  for (int i = 0; i < 60; ++i) {
    for (int rows : {1, 3, 4}) Check(rows, i);
  }
  EXPECT_EQ(made(), 3 * StreamGroupCount());
  EXPECT_GT(replayed(), 100);
}

// A model with `branches` independent branches.
Scope Branchy(int branches) {
  Scope root = Scope::NewRootScope();
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Scope scope = root.WithDevice(kGpu);
  std::vector<Output> ends;
  for (int b = 0; b < branches; ++b) {
    Output y = ops::Mul(scope, x, 0.5f * b);
    for (int i = 0; i < 16; ++i) y = ops::Tanh(scope, y);
    ends.push_back(y);
  }
  ops::AddN(scope.WithOpName("y"), ends);
  return root;
}

TEST(CapturedBranchesTest, ManyStepsAtOnceHaveNone) {
  const std::unique_ptr<Session> session = SessionOf(Branchy(4));
  // How many of the next `steps` replays run with branches.
  const auto with_branches = [&session](int steps) {
    const int64_t before = Total(&StreamGroupStats::replays_with_branches);
    for (int i = 0; i < steps; ++i) {
      std::vector<Tensor> results;
      const absl::Status status =
          session->Run({{"x", Input(3, i)}}, {"y"}, {}, &results);
      EXPECT_TRUE(status.ok()) << status;
    }
    return Total(&StreamGroupStats::replays_with_branches) - before;
  };
  EXPECT_GT(with_branches(40), 0);
  EXPECT_EQ(with_branches(20), 20);
  // Pretend that more steps run on the GPU.
  GpuGroups* gpu = FindGpuGroups(0);
  ASSERT_NE(gpu, nullptr);
  for (int i = 0; i < 7; ++i) gpu->StartStepOn(gpu->leader());
  EXPECT_EQ(with_branches(20), 20);
  gpu->StartStepOn(gpu->leader());
  EXPECT_EQ(with_branches(20), 0);
  for (int i = 0; i < 8; ++i) gpu->EndStep(gpu->leader(), /*ok=*/true);
  // Branches do not return at once, as the number of running steps goes up and
  // down.
  EXPECT_EQ(with_branches(20), 0);
  with_branches(2 * GpuGroups::kRecentSteps);
  EXPECT_EQ(with_branches(20), 20);
}

// Inputs of several types and sizes, whose results are distinguishable.
TEST(CapturedInputsTest, OneCopyTakesAllThatComesFromTheHost) {
  constexpr int kFloats = 5;
  Scope root = Scope::NewRootScope();
  Scope scope = root.WithDevice(kGpu);
  std::vector<Output> parts;
  for (int i = 0; i < kFloats; ++i) {
    auto x = ops::Placeholder(root.WithOpName(absl::StrCat("x", i)), DT_FLOAT);
    parts.push_back(ops::Tanh(scope, x));
  }
  auto odd = ops::Placeholder(root.WithOpName("odd"), DT_INT8);
  parts.push_back(ops::Cast(scope, ops::Neg(scope, odd), DT_FLOAT));
  ops::Concat(scope.WithOpName("y"), parts, 0);
  const std::unique_ptr<Session> session = SessionOf(root);
  // Expects exact values: the ops are exact for these inputs.
  const auto run = [&](int seed) {
    std::vector<std::pair<std::string, Tensor>> feeds;
    std::vector<float> expected;
    for (int i = 0; i < kFloats; ++i) {
      Tensor x(DT_FLOAT, {3 + i});
      for (int j = 0; j < x.NumElements(); ++j) {
        x.flat<float>()(j) = static_cast<float>((seed + i) % 2 * 1000 - 500);
        expected.push_back((seed + i) % 2 == 0 ? -1.0f : 1.0f);
      }
      feeds.emplace_back(absl::StrCat("x", i), x);
    }
    Tensor odd(DT_INT8, {7});
    for (int j = 0; j < 7; ++j) {
      odd.flat<int8_t>()(j) = static_cast<int8_t>(seed % 50 + j);
      expected.push_back(static_cast<float>(-(seed % 50 + j)));
    }
    feeds.emplace_back("odd", odd);
    std::vector<Tensor> results;
    const absl::Status status = session->Run(feeds, {"y"}, {}, &results);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(results[0].NumElements(), static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(results[0].flat<float>()(i), expected[i]) << seed << ", " << i;
    }
  };
  for (int i = 0; i < 40; ++i) run(i);
  constexpr int kSteps = 20;
  const int64_t replayed = Total(&StreamGroupStats::steps_replayed);
  ASSERT_TRUE(Trace::Get()->Start(10000));
  for (int i = 0; i < kSteps; ++i) run(i);
  int copies = 0;
  for (const TraceEvent& event : Trace::Get()->Stop().events) {
    copies += event.kind == TraceKind::kCopy && event.name == "host to GPU";
  }
  EXPECT_EQ(Total(&StreamGroupStats::steps_replayed) - replayed, kSteps);
  EXPECT_EQ(copies, kSteps);
}

TEST_F(CapturedStepsTest, NoRows) {
  for (int i = 0; i < 30; ++i) Check(0, i);
  EXPECT_GT(replayed(), 0);
}

TEST_F(CapturedStepsTest, ManyThreadsAndShapes) {
  std::vector<std::thread> threads;
  std::vector<std::vector<Tensor>> expected;
  for (int i = 0; i < 24; ++i) {
    expected.push_back(Results(expected_.get(), 300 + i % 3, i));
  }
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) {
        const int seed = (i * 5 + t) % 24;
        if (!Equal(Results(session_.get(), 300 + seed % 3, seed),
                   expected[seed])) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(replayed(), 7000);
}

TEST_F(CapturedStepsTest, ResultsAreTheCallersOwn) {
  for (int i = 0; i < 30; ++i) Check(2, i);
  const std::vector<Tensor> first = Results(session_.get(), 2, 1);
  std::vector<Tensor> spoiled = Results(session_.get(), 2, 1);
  const std::vector<Tensor> expected = Results(expected_.get(), 2, 1);
  for (Tensor& tensor : spoiled) {
    std::memset(tensor.data(), 0xff, tensor.TotalBytes());
  }
  for (int i = 0; i < 30; ++i) Check(2, i);
  EXPECT_TRUE(Equal(first, expected));
}

TEST_F(CapturedStepsTest, ASessionThatEndsGivesItsMemoryBack) {
  const int64_t before = Total(&StreamGroupStats::recording_bytes);
  {
    const std::unique_ptr<Session> other = SessionOf(Model(true));
    for (int i = 0; i < 30; ++i) Results(other.get(), 7, i);
    EXPECT_GT(Total(&StreamGroupStats::recording_bytes), before);
    EXPECT_EQ(Total(&StreamGroupStats::recordings), StreamGroupCount());
  }
  EXPECT_EQ(Total(&StreamGroupStats::recording_bytes), before);
  EXPECT_EQ(Total(&StreamGroupStats::recordings), 0);
}

// Recordings fill the limit of 1 MiB that this test sets.
TEST_F(CapturedStepsTest, RecordingsLongNotUsedAreDropped) {
  for (int rows : {600, 700, 800, 900, 600}) {
    for (int i = 0; i < 16; ++i) Check(rows, i);
    EXPECT_LE(Total(&StreamGroupStats::recording_bytes), 1 << 20);
  }
  EXPECT_GE(made(), 3 * StreamGroupCount());
  EXPECT_LT(Total(&StreamGroupStats::recordings), made());
}

TEST_F(CapturedStepsTest, WhatDoesNotFitRunsAsAlways) {
  for (int i = 0; i < 16; ++i) Check(2, i);
  const int64_t small = Total(&StreamGroupStats::recordings);
  for (int i = 0; i < 12; ++i) Check(20'000, i);
  EXPECT_EQ(made(), small);
  EXPECT_EQ(Total(&StreamGroupStats::recordings), small);
}

// The first op's result comes back from the host as an input of the second.
TEST_F(CapturedStepsTest, AGraphThatWaitsForItsOwnResultsRunsAsAlways) {
  Scope root = Scope::NewRootScope();
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  auto on_gpu = ops::Tanh(root.WithDevice(kGpu), x);
  auto on_host = ops::Square(root.WithDevice("/device:CPU:0"), on_gpu);
  ops::Exp(root.WithOpName("y").WithDevice(kGpu), on_host);
  const std::unique_ptr<Session> session = SessionOf(root);
  for (int i = 0; i < 20; ++i) {
    std::vector<Tensor> results;
    ASSERT_TRUE(session->Run({{"x", Tensor(0.0f)}}, {"y"}, {}, &results).ok());
    EXPECT_EQ(results[0].scalar<float>()(), 1);
  }
  EXPECT_EQ(made(), 0);
}

TEST_F(CapturedStepsTest, APartialRunRunsAsAlways) {
  Scope root = Scope::NewRootScope();
  Scope gpu = root.WithDevice(kGpu);
  auto a = ops::Placeholder(root.WithOpName("a"), DT_FLOAT);
  auto b = ops::Placeholder(root.WithOpName("b"), DT_FLOAT);
  auto first = ops::Tanh(gpu.WithOpName("first"), a);
  ops::Add(gpu.WithOpName("second"), first, b);
  const std::unique_ptr<Session> session = SessionOf(root);
  for (int i = 0; i < 12; ++i) {
    std::string handle;
    ASSERT_TRUE(
        session->PRunSetup({"a", "b"}, {"first", "second"}, {}, &handle).ok());
    std::vector<Tensor> results;
    ASSERT_TRUE(
        session->PRun(handle, {{"a", Tensor(0.0f)}}, {"first"}, &results).ok());
    EXPECT_EQ(results[0].scalar<float>()(), 0);
    ASSERT_TRUE(
        session->PRun(handle, {{"b", Tensor(2.0f)}}, {"second"}, &results)
            .ok());
    EXPECT_EQ(results[0].scalar<float>()(), 2);
  }
  EXPECT_EQ(made(), 0);
}

TEST_F(CapturedStepsTest, AResultThatAnotherOpMayOverwrite) {
  Scope root = Scope::NewRootScope();
  Scope gpu = root.WithDevice(kGpu);
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  auto a = ops::Add(gpu.WithOpName("a"), x, x);
  auto b = ops::Neg(gpu.WithOpName("b"), a);
  ops::Square(gpu.WithOpName("c"), b);
  const std::unique_ptr<Session> session = SessionOf(root);
  for (int i = 0; i < 40; ++i) {
    Tensor fed(DT_FLOAT, {100});
    fed.flat<float>().setConstant(static_cast<float>(i));
    std::vector<Tensor> results;
    const absl::Status status =
        session->Run({{"x", fed}}, {"a", "b", "c"}, {}, &results);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(results[0].flat<float>()(99), 2 * i);
    EXPECT_EQ(results[1].flat<float>()(99), -2 * i);
    EXPECT_EQ(results[2].flat<float>()(99), 4 * i * i);
  }
  EXPECT_GT(replayed(), 20);
}

TEST_F(CapturedStepsTest, ManyDimensionsAreNotRecorded) {
  Scope root = Scope::NewRootScope();
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  ops::Neg(root.WithOpName("y").WithDevice(kGpu), x);
  const std::unique_ptr<Session> session = SessionOf(root);
  for (const TensorShape& shape :
       {TensorShape({1, 1, 1, 1, 1, 1, 1}), {1, 1, 1, 1, 1, 1, 1, 2}}) {
    const int64_t before = made();
    for (int i = 0; i < 20; ++i) {
      std::vector<Tensor> results;
      ASSERT_TRUE(
          session->Run({{"x", Tensor(DT_FLOAT, shape)}}, {"y"}, {}, &results)
              .ok());
      EXPECT_EQ(results[0].shape(), shape);
    }
    EXPECT_EQ(made() > before, shape.dims() == 7);
  }
}

// All sessions record at the same time, on the same streams.
TEST_F(CapturedStepsTest, SessionsAndFetchesRecordSideBySide) {
  const std::vector<Tensor> expected = Results(expected_.get(), 5, 1);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 4; ++round) {
        const std::unique_ptr<Session> own = SessionOf(Model(true));
        Session* session = t % 2 == 0 ? session_.get() : own.get();
        for (int i = 0; i < 60; ++i) {
          std::vector<Tensor> results;
          const bool sum = (t + i) % 3 == 0;
          const absl::Status status = session->Run(
              {{"x", Input(5, 1)}}, {sum ? "sum" : "y"}, {}, &results);
          if (!status.ok() || !Equal(results, {expected[sum ? 1 : 0]})) {
            ++wrong;
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(replayed(), 500);
}

TEST_F(CapturedStepsTest, ATracedStepRunsItsOps) {
  for (int i = 0; i < 30; ++i) Check(2, i);
  const int64_t replayed_before = replayed();
  RunOptions options;
  options.set_trace_level(RunOptions::FULL_TRACE);
  RunMetadata metadata;
  std::vector<Tensor> results;
  absl::Status status =
      session_->Run(options, {{"x", Input(2, 1)}}, {"y", "sum", "rows"}, {},
                    &results, &metadata);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(Equal(results, Results(expected_.get(), 2, 1)));
  EXPECT_EQ(replayed(), replayed_before);
  EXPECT_GT(metadata.step_stats().dev_stats_size(), 0);
}

TEST_F(CapturedStepsTest, AnErrorOfAStepIsTheStepsError) {
  Scope root = Scope::NewRootScope();
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  ops::MatMul(root.WithOpName("y").WithDevice(kGpu), x,
              ops::Const(root.WithDevice(kGpu), 1.0f, {3, 3}));
  const std::unique_ptr<Session> session = SessionOf(root);
  for (int i = 0; i < 40; ++i) {
    std::vector<Tensor> results;
    const absl::Status status =
        session->Run({{"x", Tensor(DT_FLOAT, {2, 2})}}, {"y"}, {}, &results);
    EXPECT_TRUE(absl::StrContains(status.message(), "Matrix size")) << status;
  }
  EXPECT_EQ(made(), 0);
}

TEST_F(CapturedStepsTest, RandomOpsAreNotRecorded) {
  Scope root = Scope::NewRootScope();
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Scope gpu = root.WithDevice(kGpu);
  ops::Add(gpu.WithOpName("y"), x, ops::RandomUniform(gpu, {4}, DT_FLOAT));
  const std::unique_ptr<Session> session = SessionOf(root);
  std::vector<Tensor> first, second;
  for (int i = 0; i < 20; ++i) {
    first = second;
    ASSERT_TRUE(
        session->Run({{"x", Tensor(DT_FLOAT, {4})}}, {"y"}, {}, &second).ok());
    EXPECT_FALSE(Equal(first, second));
  }
  EXPECT_EQ(made(), 0);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
