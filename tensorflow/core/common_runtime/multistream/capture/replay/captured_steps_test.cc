// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// On an emulated GPU, sessions give the same results with and without capture,
// for all shapes, threads and limits.

#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_steps.h"

#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/match.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/common_runtime/multistream/trace/trace.h"

namespace tensorflow::multistream {
namespace {

constexpr char kGpu[] = "/device:GPU:0";
constexpr int kWidth = 8;

using Feeds = std::vector<std::pair<std::string, Tensor>>;
using Names = std::vector<std::string>;

// A model of a feed `x` with any number of rows, in which the GPU needs shapes
// computed on the host, and ops may overwrite results. Unless `captured`, an op
// prevents capture.
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
  auto added = ops::Add(scope.WithOpName("added"), x, y);
  ops::Square(scope.WithOpName("square"),
              ops::Neg(scope.WithOpName("negative"), added));
  return root;
}
const Names& Outputs() {
  static const auto* names =
      new Names{"y", "sum", "rows", "added", "negative", "square"};
  return *names;
}

Tensor Input(int rows, int seed) {
  Tensor x(DT_FLOAT, {rows, kWidth});
  for (int i = 0; i < x.NumElements(); ++i) {
    x.flat<float>()(i) =
        static_cast<float>((i * 31 + seed * 17) % 101) / 50 - 1;
  }
  return x;
}

std::vector<Tensor> RunOn(const std::unique_ptr<Session>& session,
                          const Feeds& feeds, const Names& fetches) {
  std::vector<Tensor> results;
  const absl::Status status = session->Run(feeds, fetches, {}, &results);
  EXPECT_TRUE(status.ok()) << status;
  results.resize(fetches.size());
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

class CapturedStepsTest : public ::testing::Test {
 protected:
  std::vector<Tensor> Results(const std::unique_ptr<Session>& session, int rows,
                              int seed) {
    return RunOn(session, {{"x", Input(rows, seed)}}, Outputs());
  }
  void Check(int rows, int seed) {
    EXPECT_TRUE(
        Equal(Results(session_, rows, seed), Results(expected_, rows, seed)))
        << rows << " rows, seed " << seed;
  }
  int64_t replayed() {
    return Total(&StreamGroupStats::steps_replayed) - replayed_;
  }
  int64_t made() { return Total(&StreamGroupStats::recordings_made) - made_; }

  const std::unique_ptr<Session> session_ = SessionOf(Model(true));
  const std::unique_ptr<Session> expected_ = SessionOf(Model(false));

 private:
  const int64_t replayed_ = Total(&StreamGroupStats::steps_replayed);
  const int64_t made_ = Total(&StreamGroupStats::recordings_made);
};

TEST_F(CapturedStepsTest, EachShapeHasItsOwnRecordingThatGivesWhatStepsGive) {
  for (int rows : {5, 0, 1, 3}) {
    for (int i = 0; i < 50; ++i) Check(rows, i);
  }
  EXPECT_EQ(made(), 4 * StreamGroupCount());
  // All steps but the first ones of each shape on each group are replayed.
  EXPECT_EQ(replayed(),
            4 * (50 - CapturedSteps::kRunsBefore * StreamGroupCount()));
  // Results are the caller's own.
  const std::vector<Tensor> kept = Results(session_, 5, 1);
  for (Tensor& spoiled : Results(session_, 5, 1)) {
    std::memset(spoiled.data(), 0xff, spoiled.TotalBytes());
  }
  for (int i = 0; i < 30; ++i) Check(5, i);
  EXPECT_TRUE(Equal(kept, Results(expected_, 5, 1)));
}

TEST(CapturedBranchesTest, ManyStepsAtOnceHaveNone) {
  Scope root = Scope::NewRootScope();
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Scope scope = root.WithDevice(kGpu);
  std::vector<Output> ends;
  for (int branch = 0; branch < 4; ++branch) {
    Output y = ops::Mul(scope, x, 0.5f * branch);
    for (int i = 0; i < 16; ++i) y = ops::Tanh(scope, y);
    ends.push_back(y);
  }
  ops::AddN(scope.WithOpName("y"), ends);
  const std::unique_ptr<Session> session = SessionOf(root);
  // How many of the next `steps` replays run with branches.
  const auto with_branches = [&session](int steps) {
    const int64_t before = Total(&StreamGroupStats::replays_with_branches);
    for (int i = 0; i < steps; ++i) RunOn(session, {{"x", Input(3, i)}}, {"y"});
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

TEST_F(CapturedStepsTest, OneCopyTakesAllThatComesFromTheHost) {
  Scope root = Scope::NewRootScope();
  Scope scope = root.WithDevice(kGpu);
  std::vector<Output> parts;
  for (const char* name : {"a", "b", "c"}) {
    auto x = ops::Placeholder(root.WithOpName(name), DT_INT8);
    parts.push_back(ops::Neg(scope, x));
  }
  ops::Concat(scope.WithOpName("y"), parts, 0);
  const std::unique_ptr<Session> session = SessionOf(root);
  const auto run = [&](int step) {
    Feeds feeds = {{"a", Tensor(DT_INT8, {3})},
                   {"b", Tensor(DT_INT8, {7})},
                   {"c", Tensor(DT_INT8, {300})}};
    for (auto& [name, value] : feeds) {
      value.flat<int8_t>().setConstant(name[0] + step % 20);
    }
    const Tensor y = RunOn(session, feeds, {"y"})[0];
    for (int i = 0; i < 310; ++i) {
      const char name = i < 3 ? 'a' : i < 10 ? 'b' : 'c';
      ASSERT_EQ(y.flat<int8_t>()(i), -name - step % 20) << i;
    }
  };
  for (int i = 0; i < 40; ++i) run(i);
  constexpr int kSteps = 20;
  const int64_t before = replayed();
  ASSERT_TRUE(Trace::Get()->Start(10000));
  for (int i = 0; i < kSteps; ++i) run(i);
  int copies = 0;
  for (const TraceEvent& event : Trace::Get()->Stop().events) {
    copies += event.kind == TraceKind::kCopy && event.name == "host to GPU";
  }
  EXPECT_EQ(replayed() - before, kSteps);
  EXPECT_EQ(copies, kSteps);
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
    const auto run = [&](const char* feed, const char* fetch) {
      std::vector<Tensor> results;
      EXPECT_TRUE(
          session->PRun(handle, {{feed, Tensor(2.0f)}}, {fetch}, &results)
              .ok());
      return results.at(0).scalar<float>()();
    };
    const float tanh = run("a", "first");
    EXPECT_NEAR(tanh, 0.964, 1e-3);
    EXPECT_EQ(run("b", "second"), tanh + 2);
  }
  EXPECT_EQ(made(), 0);
}

TEST_F(CapturedStepsTest, AnErrorOfAStepIsTheStepsError) {
  for (int i = 0; i < 40; ++i) {
    std::vector<Tensor> results;
    const absl::Status status =
        session_->Run({{"x", Tensor(DT_FLOAT, {2, 2})}}, {"y"}, {}, &results);
    EXPECT_TRUE(absl::StrContains(status.message(), "Matrix size")) << status;
  }
  EXPECT_EQ(made(), 0);
}

}  // namespace
}  // namespace tensorflow::multistream
