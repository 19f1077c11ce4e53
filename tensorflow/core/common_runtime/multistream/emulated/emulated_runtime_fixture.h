// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Graphs, set-up and tear-down for tests of the runtime on emulated GPUs.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_RUNTIME_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_RUNTIME_FIXTURE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_stream_group.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {

// The test targets' TF_GPU_STREAM_GROUP_COUNT.
inline constexpr int kGroups = 4;

// x [8, 64] through dense layers; "y:0" is [8, 64].
inline Scope DenseLayers(int layers) {
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  for (int i = 0; i < layers; ++i) {
    Tensor weights(DT_FLOAT, TensorShape({64, 64}));
    auto flat = weights.flat<float>();
    for (int j = 0; j < flat.size(); ++j) {
      flat(j) = std::sin(static_cast<float>(i * 4096 + j)) / 4;
    }
    x = ops::Tanh(root, ops::MatMul(root, x, ops::Const(root, weights)));
  }
  ops::Identity(root.WithOpName("y"), x);
  return root;
}

inline Tensor Input(int seed) {
  Tensor x(DT_FLOAT, TensorShape({8, 64}));
  auto flat = x.flat<float>();
  for (int j = 0; j < flat.size(); ++j) {
    flat(j) = std::cos(static_cast<float>(seed * 512 + j));
  }
  return x;
}

inline bool SameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), a.TotalBytes()) == 0;
}

// A variable of 1 MiB, a float [1 << 18]. "set" fills it with `value:0`,
// "sum:0" is its sum.
inline constexpr int64_t kVariableBytes = 1 << 20;

inline Scope AVariable() {
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  auto handle =
      ops::VarHandleOp(root, DT_FLOAT, {1 << 18},
                       ops::VarHandleOp::Attrs().SharedName("the_variable"));
  auto value = ops::Placeholder(root.WithOpName("value"), DT_FLOAT);
  // AddV2 makes a tensor in GPU memory, as an update does.
  ops::AssignVariableOp(root.WithOpName("set"), handle,
                        ops::AddV2(root, ops::Fill(root, {1 << 18}, value),
                                   ops::Const(root, 0.0f)));
  auto read = ops::ReadVariableOp(root, handle, DT_FLOAT);
  ops::Sum(root.WithOpName("sum"), read, {0});
  return root;
}

// Runs a step, and returns what it fetches: nothing if it fails.
inline std::vector<Tensor> RunStep(
    Session* session, const std::vector<std::pair<std::string, Tensor>>& feeds,
    const std::vector<std::string>& fetches,
    const std::vector<std::string>& targets = {}) {
  std::vector<Tensor> outputs;
  const absl::Status status = session->Run(feeds, fetches, targets, &outputs);
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? outputs : std::vector<Tensor>();
}
// Steps of DenseLayers and of AVariable.
inline Tensor Layers(Session* session, const Tensor& x) {
  const std::vector<Tensor> y = RunStep(session, {{"x", x}}, {"y:0"});
  return y.empty() ? Tensor() : y[0];
}
inline void Set(Session* session, float value) {
  RunStep(session, {{"value", Tensor(value)}}, {}, {"set"});
}
inline float Sum(Session* session) {
  const std::vector<Tensor> sum = RunStep(session, {}, {"sum:0"});
  return sum.empty() ? -1 : sum[0].scalar<float>()();
}

// Runs `f` on `count` threads, with their numbers, and waits for their ends.
template <class F>
void OnThreads(int count, F f) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back(f, t);
  for (std::thread& thread : threads) thread.join();
}

class EmulatedRuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MultiStreamIsEnabled()) << CheckEnvironment();
    // The first session makes the devices.
    Layers(SessionOf(DenseLayers(1)).get(), Input(0));
    ASSERT_EQ(StreamStats().size(), kGroups);
  }

  // Whatever a test does, every step ends.
  void TearDown() override { EXPECT_TRUE(AllStepsEnd()); }

  static bool AllStepsEnd() {
    return Eventually(
        [] { return Total(&StreamGroupStats::steps_running) == 0; });
  }
  static EmulatedStreamGroup* Group(int i) {
    return static_cast<EmulatedStreamGroup*>(FindGpuGroups(0)->group(i));
  }
  // How many steps each group starts while `f` runs.
  template <class F>
  static std::vector<int64_t> Started(F f) {
    std::vector<int64_t> counts;
    for (const auto& group : StreamStats()) {
      counts.push_back(-group.steps_started);
    }
    f();
    const std::vector<StreamGroupStats> after = StreamStats();
    for (int i = 0; i < kGroups; ++i) counts[i] += after[i].steps_started;
    return counts;
  }
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_RUNTIME_FIXTURE_H_
