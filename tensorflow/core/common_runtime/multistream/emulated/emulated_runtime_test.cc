/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/data_flow_ops.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/cc/ops/nn_ops.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_gpu.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr int kGroups = 4;  // TF_GPU_STREAM_GROUP_COUNT of this target

// How many kernels of CountedIdentity there are, and which ones have run.
struct CountedKernels {
  absl::Mutex mu;
  int made ABSL_GUARDED_BY(mu) = 0;
  int alive ABSL_GUARDED_BY(mu) = 0;
  bool ran_twice_at_once ABSL_GUARDED_BY(mu) = false;

  static CountedKernels* Get() {
    static auto* kernels = new CountedKernels;
    return kernels;
  }
};

REGISTER_OP("CountedIdentity")
    .Input("x: float")
    .Output("y: float")
    .SetShapeFn(shape_inference::UnchangedShape);

class CountedIdentity : public OpKernel {
 public:
  explicit CountedIdentity(OpKernelConstruction* context) : OpKernel(context) {
    absl::MutexLock lock(&CountedKernels::Get()->mu);
    ++CountedKernels::Get()->made;
    ++CountedKernels::Get()->alive;
  }
  ~CountedIdentity() override {
    absl::MutexLock lock(&CountedKernels::Get()->mu);
    --CountedKernels::Get()->alive;
  }
  void Compute(OpKernelContext* context) override {
    context->set_output(0, context->input(0));
  }
};
REGISTER_KERNEL_BUILDER(Name("CountedIdentity").Device(DEVICE_CPU),
                        CountedIdentity);

// The id of the thread that launches it.
REGISTER_OP("LaunchingThread")
    .Input("x: float")
    .Output("id: int64")
    .SetShapeFn(shape_inference::ScalarShape);

class LaunchingThread : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* id = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &id));
    id->scalar<int64_t>()() = syscall(SYS_gettid);
  }
};
REGISTER_KERNEL_BUILDER(Name("LaunchingThread").Device(DEVICE_CPU),
                        LaunchingThread);

// x [8, 64] through dense layers; "y:0" is [8, 64].
Scope DenseLayers(int layers) {
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

Tensor Input(int seed) {
  Tensor x(DT_FLOAT, TensorShape({8, 64}));
  auto flat = x.flat<float>();
  for (int j = 0; j < flat.size(); ++j) {
    flat(j) = std::cos(static_cast<float>(seed * 512 + j));
  }
  return x;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), a.TotalBytes()) == 0;
}

class EmulatedRuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MultiStreamIsEnabled()) << CheckEnvironment();
    // The first session makes the devices.
    std::vector<Tensor> outputs;
    ASSERT_TRUE(SessionOf(DenseLayers(1))
                    ->Run({{"x", Input(0)}}, {"y:0"}, {}, &outputs)
                    .ok());
    ASSERT_EQ(StreamStats().size(), kGroups);
    violations_before_ = EmulatedMemoryViolations();
  }

  // Whatever a test does, every step ends, and no memory was reused early.
  void TearDown() override {
    EXPECT_TRUE(Eventually(
        [] { return Total(&StreamGroupStats::steps_running) == 0; }));
    EXPECT_EQ(EmulatedMemoryViolations(), violations_before_);
  }

  static EmulatedStreamGroup* Group(int i) {
    return static_cast<EmulatedStreamGroup*>(FindGpuGroups(0)->group(i));
  }

 private:
  int64_t violations_before_ = 0;
};

TEST_F(EmulatedRuntimeTest, ThereIsOneVisibleGpu) {
  const std::unique_ptr<Session> session = SessionOf(DenseLayers(1));
  std::vector<DeviceAttributes> devices;
  ASSERT_TRUE(session->ListDevices(&devices).ok());
  int gpus = 0;
  for (const DeviceAttributes& device : devices) {
    gpus += device.name().find("GPU") != std::string::npos;
  }
  EXPECT_EQ(gpus, 1);
  EXPECT_EQ(StreamGroupCount(), kGroups);
}

TEST_F(EmulatedRuntimeTest, ConcurrentStepsReturnWhatTensorFlowReturns) {
  constexpr int kThreads = 8, kSteps = 50;
  const Scope graph = DenseLayers(6);
  SessionOptions no_gpu = PlainOptions();
  (*no_gpu.config.mutable_device_count())["GPU"] = 0;
  const std::unique_ptr<Session> stock = SessionOf(graph, no_gpu);
  const std::unique_ptr<Session> session = SessionOf(graph);
  const std::vector<StreamGroupStats> before = StreamStats();

  std::atomic<int> wrong{0}, failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    std::vector<Tensor> expected;
    ASSERT_TRUE(stock->Run({{"x", Input(t)}}, {"y:0"}, {}, &expected).ok());
    threads.emplace_back([&, t, expected] {
      for (int i = 0; i < kSteps; ++i) {
        std::vector<Tensor> outputs;
        if (!session->Run({{"x", Input(t)}}, {"y:0"}, {}, &outputs).ok()) {
          ++failed;
        } else if (!SameBits(outputs[0], expected[0])) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(wrong, 0);

  const std::vector<StreamGroupStats> after = StreamStats();
  int64_t steps = 0;
  for (int i = 0; i < kGroups; ++i) {
    const int64_t of_group = after[i].steps_started - before[i].steps_started;
    EXPECT_GE(of_group, kThreads * kSteps / kGroups / 4) << "group " << i;
    EXPECT_EQ(after[i].steps_failed, before[i].steps_failed);
    steps += of_group;
  }
  EXPECT_EQ(steps, kThreads * kSteps);
}

TEST_F(EmulatedRuntimeTest, AResultFedToTheNextStepIsUsedSafely) {
  const std::unique_ptr<Session> session = SessionOf(DenseLayers(3));
  std::vector<Tensor> expected(1, Input(0));
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(
        session->Run({{"x", expected[0]}}, {"y:0"}, {}, &expected).ok());
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int repeat = 0; repeat < 10; ++repeat) {
        std::vector<Tensor> x(1, Input(0));
        for (int i = 0; i < 8; ++i) {
          if (!session->Run({{"x", x[0]}}, {"y:0"}, {}, &x).ok()) {
            ++wrong;
            return;
          }
        }
        if (!SameBits(x[0], expected[0])) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(EmulatedRuntimeTest, AFailedStepReleasesItsGroupAndOthersGoOn) {
  constexpr int kThreads = 8, kSteps = 25;
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  auto checked = ops::CheckNumerics(root, x, "the message");
  ops::Square(root.WithOpName("y"), checked);
  const std::unique_ptr<Session> session = SessionOf(root);
  const int64_t failed_before = Total(&StreamGroupStats::steps_failed);

  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const bool bad = t % 2 == 1;
      Tensor x(bad ? std::numeric_limits<float>::quiet_NaN() : 3.0f + t);
      for (int i = 0; i < kSteps; ++i) {
        std::vector<Tensor> outputs;
        const absl::Status status =
            session->Run({{"x", x}}, {"y:0"}, {}, &outputs);
        if (bad) {
          if (status.code() != absl::StatusCode::kInvalidArgument ||
              status.message().find("the message") == std::string::npos) {
            ++wrong;
          }
        } else if (!status.ok() ||
                   outputs[0].scalar<float>()() != (3.0f + t) * (3.0f + t)) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(
      Eventually([] { return Total(&StreamGroupStats::steps_running) == 0; }));
  EXPECT_EQ(Total(&StreamGroupStats::steps_failed) - failed_before,
            kThreads / 2 * kSteps);
}

// A step that waits for an element of a queue before its part on the GPU.
Scope WaitsForAQueue() {
  Scope root = Scope::NewRootScope();
  Scope cpu = root.WithDevice("/device:CPU:0");
  Scope gpu = root.WithDevice("/device:GPU:0");
  auto queue = ops::FIFOQueue(cpu, DataTypeVector{DT_FLOAT});
  auto element = ops::QueueDequeue(cpu, queue, DataTypeVector{DT_FLOAT});
  ops::Square(gpu.WithOpName("y"), element[0]);
  auto one = ops::Const(cpu, 3.0f);
  ops::QueueEnqueue(cpu.WithOpName("enqueue"), queue, std::vector<Output>{one});
  return root;
}

TEST_F(EmulatedRuntimeTest, ASessionClosedInMidStepReleasesEveryGroup) {
  constexpr int kSteps = 6;
  std::unique_ptr<Session> session = SessionOf(WaitsForAQueue());
  const int64_t failed_before = Total(&StreamGroupStats::steps_failed);
  std::atomic<int> cancelled{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kSteps; ++t) {
    threads.emplace_back([&] {
      std::vector<Tensor> outputs;
      if (!session->Run({}, {"y:0"}, {}, &outputs).ok()) ++cancelled;
    });
  }
  EXPECT_TRUE(Eventually(
      [] { return Total(&StreamGroupStats::steps_running) == kSteps; }));
  EXPECT_TRUE(session->Close().ok());
  for (std::thread& thread : threads) thread.join();
  session.reset();
  EXPECT_EQ(cancelled, kSteps);
  EXPECT_TRUE(
      Eventually([] { return Total(&StreamGroupStats::steps_running) == 0; }));
  EXPECT_EQ(Total(&StreamGroupStats::steps_failed) - failed_before, kSteps);
}

TEST_F(EmulatedRuntimeTest, AStepThatTimesOutReleasesItsGroup) {
  const std::unique_ptr<Session> session = SessionOf(WaitsForAQueue());
  const int64_t failed_before = Total(&StreamGroupStats::steps_failed);
  RunOptions options;
  options.set_timeout_in_ms(100);
  std::vector<Tensor> outputs;
  EXPECT_EQ(session->Run(options, {}, {"y:0"}, {}, &outputs, nullptr).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(
      Eventually([] { return Total(&StreamGroupStats::steps_running) == 0; }));
  EXPECT_EQ(Total(&StreamGroupStats::steps_failed) - failed_before, 1);
  // The session still serves.
  ASSERT_TRUE(session->Run({}, {}, {"enqueue"}, nullptr).ok());
  ASSERT_TRUE(session->Run({}, {"y:0"}, {}, &outputs).ok());
  EXPECT_EQ(outputs[0].scalar<float>()(), 9.0f);
}

TEST_F(EmulatedRuntimeTest, ASessionClosedWhileThreadsRunStepsEndsCleanly) {
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::unique_ptr<Session> session = SessionOf(DenseLayers(4));
    std::atomic<bool> stop{false};
    std::atomic<int> ran{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        while (!stop) {
          std::vector<Tensor> outputs;
          if (!session->Run({{"x", Input(1)}}, {"y:0"}, {}, &outputs).ok()) {
            return;
          }
          ++ran;
        }
      });
    }
    EXPECT_TRUE(Eventually([&] { return ran > 20; }));
    EXPECT_TRUE(session->Close().ok());
    stop = true;
    for (std::thread& thread : threads) thread.join();
  }
}

// "v" holds a float [1 << 18], 1 MiB. "set" gives it `value:0`, "sum:0" reads
// it.
constexpr int64_t kVariableBytes = 1 << 20;

Scope AVariable() {
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  auto handle =
      ops::VarHandleOp(root, DT_FLOAT, {1 << 18},
                       ops::VarHandleOp::Attrs().SharedName("the_variable"));
  auto value = ops::Placeholder(root.WithOpName("value"), DT_FLOAT);
  // A tensor of the GPU's, as an update computes it.
  ops::AssignVariableOp(root.WithOpName("set"), handle,
                        ops::AddV2(root, ops::Fill(root, {1 << 18}, value),
                                   ops::Const(root, 0.0f)));
  auto read = ops::ReadVariableOp(root, handle, DT_FLOAT);
  ops::Sum(root.WithOpName("sum"), read, {0});
  return root;
}

TEST_F(EmulatedRuntimeTest, MemoryOfAnotherGroupIsHeldUntilTheStreamPassed) {
  const std::unique_ptr<Session> session = SessionOf(AVariable());
  const int64_t before = BytesInUse(0);
  ASSERT_TRUE(
      session->Run({{"value", Tensor(1.0f)}}, {}, {"set"}, nullptr).ok());
  ASSERT_TRUE(Eventually([&] {
    return BytesInUse(0) >= before + kVariableBytes &&
           BytesInUse(0) < before + 2 * kVariableBytes;
  })) << BytesInUse(0) - before;

  // A read on every group; the streams of all but the leader are slow.
  for (int i = 1; i < kGroups; ++i) Group(i)->Pause();
  for (int i = 0; i < kGroups; ++i) {
    std::vector<Tensor> outputs;
    ASSERT_TRUE(session->Run({}, {"sum:0"}, {}, &outputs).ok());
    EXPECT_EQ(outputs[0].scalar<float>()(), 1 << 18);
  }
  ASSERT_TRUE(
      session->Run({{"value", Tensor(2.0f)}}, {}, {"set"}, nullptr).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  // The old value, which those streams have yet to read, and the new one.
  EXPECT_GE(BytesInUse(0), before + 2 * kVariableBytes);

  // One group's passing is not enough.
  Group(1)->Resume();
  EXPECT_TRUE(Group(1)->Synchronize().ok());
  EXPECT_GE(BytesInUse(0), before + 2 * kVariableBytes);

  for (int i = 2; i < kGroups; ++i) Group(i)->Resume();
  EXPECT_TRUE(Eventually([&] {
    return BytesInUse(0) < before + 2 * kVariableBytes;
  })) << BytesInUse(0) - before;
}

TEST_F(EmulatedRuntimeTest, AListGivenToAnEagerOpIsHeldUntilTheStreamPassed) {
  std::vector<std::unique_ptr<Device>> devices;
  ASSERT_TRUE(DeviceFactory::GetFactory("GPU")
                  ->CreateDevices(PlainOptions(),
                                  "/job:localhost/replica:0/task:0", &devices)
                  .ok());
  Device* leader = devices.at(0).get();
  NodeDef node;
  ASSERT_TRUE(NodeDefBuilder("identity", "Identity")
                  .Input("list", 0, DT_VARIANT)
                  .Finalize(&node)
                  .ok());
  absl::Status status;
  const std::unique_ptr<OpKernel> kernel =
      CreateOpKernel(DEVICE_CPU, leader, leader->GetAllocator({}), node,
                     TF_GRAPH_DEF_VERSION, &status);
  ASSERT_TRUE(status.ok()) << status;

  const int64_t before = BytesInUse(1);
  constexpr int64_t kBytes = 1 << 18;
  Group(0)->Pause();
  {
    Tensor list(DT_VARIANT, TensorShape({}));
    list.scalar<Variant>()() =
        Tensor(Group(1)->allocator(), DT_FLOAT,
               TensorShape({kBytes / static_cast<int64_t>(sizeof(float))}));
    TensorValue input(&list);
    AllocatorAttributes attributes;
    OpKernelContext::Params params;
    params.device = leader;
    params.op_kernel = kernel.get();
    params.inputs = absl::MakeConstSpan(&input, 1);
    params.output_attr_array = &attributes;
    OpKernelContext context(&params);
    leader->Compute(kernel.get(), &context);
    EXPECT_TRUE(context.status().ok()) << context.status();
    delete context.release_output(0).tensor;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_GE(BytesInUse(1), before + kBytes);
  Group(0)->Resume();
  EXPECT_TRUE(Eventually([&] { return BytesInUse(1) == before; }));
}

TEST_F(EmulatedRuntimeTest, AReadReturnsTheLastValueWritten) {
  const std::unique_ptr<Session> session = SessionOf(AVariable());
  const std::vector<StreamGroupStats> before = StreamStats();
  for (int i = 1; i <= 8; ++i) {
    const Tensor value(static_cast<float>(i));
    ASSERT_TRUE(session->Run({{"value", value}}, {}, {"set"}, nullptr).ok());
    for (int r = 0; r < kGroups; ++r) {
      std::vector<Tensor> outputs;
      ASSERT_TRUE(session->Run({}, {"sum:0"}, {}, &outputs).ok());
      EXPECT_EQ(outputs[0].scalar<float>()(), i * (1 << 18));
    }
  }
  const std::vector<StreamGroupStats> after = StreamStats();
  for (int i = 0; i < kGroups; ++i) {
    EXPECT_GT(after[i].steps_started, before[i].steps_started) << i;
  }
}

TEST_F(EmulatedRuntimeTest, AReadWhileOthersWriteSeesOneValueWhole) {
  const std::unique_ptr<Session> session = SessionOf(AVariable());
  ASSERT_TRUE(
      session->Run({{"value", Tensor(1.0f)}}, {}, {"set"}, nullptr).ok());
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 4; ++t) {
    readers.emplace_back([&] {
      while (!stop) {
        std::vector<Tensor> outputs;
        if (!session->Run({}, {"sum:0"}, {}, &outputs).ok()) {
          ++wrong;
          return;
        }
        const float mean = outputs[0].scalar<float>()() / (1 << 18);
        if (mean != 1 && mean != 2 && mean != 4) ++wrong;
      }
    });
  }
  for (int i = 0; i < 60; ++i) {
    const Tensor value(static_cast<float>(1 << (i % 3)));
    EXPECT_TRUE(session->Run({{"value", value}}, {}, {"set"}, nullptr).ok());
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(EmulatedRuntimeTest, StepsThatChangeStateRunOnTheLeader) {
  const std::unique_ptr<Session> session = SessionOf(AVariable());
  const std::vector<StreamGroupStats> before = StreamStats();
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(
        session->Run({{"value", Tensor(1.0f)}}, {}, {"set"}, nullptr).ok());
  }
  const std::vector<StreamGroupStats> after = StreamStats();
  EXPECT_EQ(after[0].steps_started - before[0].steps_started, 8);
  for (int i = 1; i < kGroups; ++i) {
    EXPECT_EQ(after[i].steps_started, before[i].steps_started) << i;
  }
}

TEST_F(EmulatedRuntimeTest, StepsOfAPinnedThreadRunOnItsGroup) {
  constexpr int kSteps = 6;
  const std::unique_ptr<Session> session = SessionOf(DenseLayers(2));
  auto run = [&session] {
    std::vector<Tensor> outputs;
    return session->Run({{"x", Input(0)}}, {"y:0"}, {}, &outputs);
  };
  // Steps of each group that `steps` are.
  auto started = [](const std::function<void()>& steps) {
    std::vector<int64_t> counts;
    for (const auto& group : StreamStats()) {
      counts.push_back(-group.steps_started);
    }
    steps();
    const std::vector<StreamGroupStats> after = StreamStats();
    for (int i = 0; i < kGroups; ++i) counts[i] += after[i].steps_started;
    return counts;
  };
  for (int group = 0; group < kGroups; ++group) {
    const std::vector<int64_t> counts = started([&] {
      const ScopedStreamGroup other((group + 1) % kGroups);
      const ScopedStreamGroup pinned(group);
      for (int i = 0; i < kSteps; ++i) EXPECT_TRUE(run().ok());
    });
    for (int i = 0; i < kGroups; ++i) {
      EXPECT_EQ(counts[i], i == group ? kSteps : 0) << i << " of " << group;
    }
  }
  const std::vector<int64_t> counts = started([&] {
    for (int i = 0; i < kGroups; ++i) EXPECT_TRUE(run().ok());
  });
  EXPECT_EQ(counts, std::vector<int64_t>(kGroups, 1));

  for (int group : {-2, kGroups, 1000}) {
    const ScopedStreamGroup pinned(group);
    const absl::Status status = run();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat(group)))
        << status;
  }
  EXPECT_TRUE(run().ok());
}

// Group i launches on pool i mod n of the session's.
TEST_F(EmulatedRuntimeTest, GroupsHaveThreadsOfTheirSessionsPools) {
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Node* node = nullptr;
  ASSERT_TRUE(NodeBuilder("id", "LaunchingThread")
                  .Input(x.node())
                  .Device("/device:GPU:0")
                  .Finalize(root.graph(), &node)
                  .ok());
  auto thread_of = [](Session* session, int group) -> int64_t {
    const ScopedStreamGroup pinned(group);
    std::vector<Tensor> outputs;
    const absl::Status status =
        session->Run({{"x", Tensor(1.0f)}}, {"id:0"}, {}, &outputs);
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? outputs[0].scalar<int64_t>()() : -1;
  };
  auto session_with = [&root](const std::vector<std::string>& names) {
    SessionOptions options = PlainOptions();
    for (const std::string& name : names) {
      auto* pool = options.config.add_session_inter_op_thread_pool();
      pool->set_num_threads(1);
      pool->set_global_name(name);
    }
    return SessionOf(root, options);
  };
  const std::unique_ptr<Session> own = session_with({"", ""});
  const int64_t even = thread_of(own.get(), 0);
  const int64_t odd = thread_of(own.get(), 1);
  EXPECT_NE(even, odd);
  for (int i = 0; i < 3 * kGroups; ++i) {
    EXPECT_EQ(thread_of(own.get(), i % kGroups), i % 2 == 0 ? even : odd) << i;
  }
  // Pools with a name are the same in all sessions.
  const std::unique_ptr<Session> named = session_with({"a", "b", ""});
  EXPECT_EQ(thread_of(named.get(), 0), thread_of(named.get(), 3));
  EXPECT_NE(thread_of(named.get(), 0), thread_of(own.get(), 0));
  const int64_t b = thread_of(named.get(), 1);
  const std::unique_ptr<Session> other = session_with({"b", ""});
  EXPECT_EQ(thread_of(other.get(), 0), b);
  EXPECT_EQ(thread_of(other.get(), 2), b);
  EXPECT_NE(thread_of(other.get(), 1), thread_of(named.get(), 2));
}

TEST_F(EmulatedRuntimeTest, ConstantsExistOnceWithTheLeader) {
  constexpr int64_t kBytes = 4 << 20;
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Tensor large(DT_FLOAT, TensorShape({1 << 20}));
  large.flat<float>().setConstant(1.0f);
  ops::Sum(root.WithOpName("y"), ops::Mul(root, ops::Const(root, large), x),
           {0});
  std::vector<int64_t> before;
  for (int i = 0; i < kGroups; ++i) {
    ASSERT_TRUE(Group(i)->Synchronize().ok());
    before.push_back(BytesInUse(i));
  }
  for (int i = 1; i < kGroups; ++i) EXPECT_EQ(before[i], 0) << i;
  {
    const std::unique_ptr<Session> session = SessionOf(root);
    const std::vector<StreamGroupStats> stats = StreamStats();
    for (int i = 0; i < 3 * kGroups; ++i) {
      std::vector<Tensor> outputs;
      ASSERT_TRUE(
          session->Run({{"x", Tensor(2.0f)}}, {"y:0"}, {}, &outputs).ok());
      EXPECT_EQ(outputs[0].scalar<float>()(), 2 << 20);
    }
    for (int i = 0; i < kGroups; ++i) {
      EXPECT_EQ(StreamStats()[i].steps_started - stats[i].steps_started, 3);
    }
    EXPECT_TRUE(Eventually([&] {
      for (int i = 1; i < kGroups; ++i) {
        if (BytesInUse(i) != 0) return false;
      }
      return BytesInUse(0) < before[0] + 2 * kBytes;
    })) << BytesInUse(0) - before[0]
        << " " << BytesInUse(1) << " " << BytesInUse(2) << " " << BytesInUse(3);
    EXPECT_GE(BytesInUse(0), before[0] + kBytes);
  }
  EXPECT_TRUE(Eventually([&] { return BytesInUse(0) <= before[0]; }))
      << BytesInUse(0) - before[0];
}

TEST_F(EmulatedRuntimeTest, KernelsOfOtherLibrariesExistOnceForEachGroup) {
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Node* node = nullptr;
  ASSERT_TRUE(NodeBuilder("y", "CountedIdentity")
                  .Input(x.node())
                  .Device("/device:GPU:0")
                  .Finalize(root.graph(), &node)
                  .ok());
  CountedKernels* kernels = CountedKernels::Get();
  {
    const std::unique_ptr<Session> session = SessionOf(root);
    for (int i = 0; i < 3 * kGroups; ++i) {
      std::vector<Tensor> outputs;
      const absl::Status status =
          session->Run({{"x", Tensor(2.0f)}}, {"y:0"}, {}, &outputs);
      ASSERT_TRUE(status.ok()) << status;
    }
    absl::MutexLock lock(&kernels->mu);
    EXPECT_EQ(kernels->made, kGroups);
    EXPECT_EQ(kernels->alive, kGroups);
  }
  absl::MutexLock lock(&kernels->mu);
  EXPECT_EQ(kernels->alive, 0);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
