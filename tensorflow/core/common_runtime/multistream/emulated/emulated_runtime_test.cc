// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_runtime_fixture.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace multistream {
namespace {

// An op that returns the id of the thread that launches it.
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
    // The number depends on the machine's timing.
    EXPECT_GT(of_group, 0) << "group " << i;
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
  // How many steps each group starts while `steps` runs.
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

// Group i launches on the session's pool i mod n.
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

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
