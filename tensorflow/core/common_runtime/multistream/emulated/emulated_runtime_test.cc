// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/data_flow_ops.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_runtime_fixture.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow::multistream {
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

TEST_F(EmulatedRuntimeTest, ConcurrentStepsReturnWhatTensorFlowReturns) {
  constexpr int kThreads = 8, kSteps = 50;
  const Scope graph = DenseLayers(6);
  SessionOptions no_gpu = PlainOptions();
  (*no_gpu.config.mutable_device_count())["GPU"] = 0;
  const std::unique_ptr<Session> stock = SessionOf(graph, no_gpu);
  const std::unique_ptr<Session> session = SessionOf(graph);
  const int64_t failed = Total(&StreamGroupStats::steps_failed);
  std::atomic<int> wrong{0};
  const std::vector<int64_t> started = Started([&] {
    OnThreads(kThreads, [&](int t) {
      const Tensor expected = Layers(stock.get(), Input(t));
      for (int i = 0; i < kSteps; ++i) {
        wrong += !SameBits(Layers(session.get(), Input(t)), expected);
      }
    });
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Total(&StreamGroupStats::steps_failed), failed);
  // The numbers of each group depend on the machine's timing.
  for (int64_t of_group : started) EXPECT_GT(of_group, 0);
  EXPECT_EQ(std::accumulate(started.begin(), started.end(), int64_t{0}),
            kThreads * kSteps);
}

TEST_F(EmulatedRuntimeTest, AReadReturnsTheLastValueThatTheLeaderWrote) {
  const std::unique_ptr<Session> session = SessionOf(AVariable());
  std::vector<int64_t> reads(kGroups);
  for (int i = 1; i <= 8; ++i) {
    EXPECT_EQ(Started([&] { Set(session.get(), i); }),
              std::vector<int64_t>({1, 0, 0, 0}));
    const std::vector<int64_t> started = Started([&] {
      for (int r = 0; r < kGroups; ++r) {
        EXPECT_EQ(Sum(session.get()), i * (1 << 18));
      }
    });
    for (int g = 0; g < kGroups; ++g) reads[g] += started[g];
  }
  for (int64_t of_group : reads) EXPECT_GT(of_group, 0);
}

// A row so long that two steps which add to it at once overlap.
TEST_F(EmulatedRuntimeTest, NoStepLosesWhatAnotherAddsToARow) {
  constexpr int kThreads = 4, kSteps = 2000, kLength = 1 << 16;
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  auto table =
      ops::VarHandleOp(root, DT_FLOAT, {2, kLength},
                       ops::VarHandleOp::Attrs().SharedName("a_table"));
  ops::AssignVariableOp(root.WithOpName("set"), table,
                        ops::Fill(root, {2, kLength}, 0.0f));
  ops::ResourceScatterAdd(root.WithOpName("add"), table, ops::Const(root, {1}),
                          ops::Fill(root, {1, kLength}, 1.0f));
  auto read = ops::ReadVariableOp(root, table, DT_FLOAT);
  ops::Min(root.WithOpName("min"), read, {1});
  const std::unique_ptr<Session> session = SessionOf(root);
  RunStep(session.get(), {}, {}, {"set"});
  OnThreads(kThreads, [&](int) {
    for (int i = 0; i < kSteps; ++i) RunStep(session.get(), {}, {}, {"add"});
  });
  const Tensor min = RunStep(session.get(), {}, {"min:0"})[0];
  EXPECT_EQ(min.flat<float>()(0), 0);
  EXPECT_EQ(min.flat<float>()(1), kThreads * kSteps);
}

TEST_F(EmulatedRuntimeTest, StepsOfAThreadRunOnTheGroupsThatItNames) {
  const std::unique_ptr<Session> session = SessionOf(AVariable());
  Set(session.get(), 1);
  const auto run = [&] {
    for (int i = 0; i < 6; ++i) Sum(session.get());
  };
  {
    const ScopedStreamGroup two(1, 2);
    EXPECT_EQ(Started(run), std::vector<int64_t>({0, 3, 3, 0}));
    const ScopedStreamGroup one(3);
    EXPECT_EQ(Started(run), std::vector<int64_t>({0, 0, 0, 6}));
    const ScopedStreamGroup any(-1);
    for (int64_t of_group : Started(run)) EXPECT_GT(of_group, 0);
  }
  for (const auto& [first, last] :
       {std::pair(2, 4), std::pair(3, 2), std::pair(-2, 1)}) {
    const ScopedStreamGroup wrong(first, last);
    std::vector<Tensor> outputs;
    EXPECT_TRUE(
        absl::IsInvalidArgument(session->Run({}, {"sum:0"}, {}, &outputs)))
        << first << " to " << last;
  }
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
  auto thread_of = [](const std::unique_ptr<Session>& session, int group) {
    const ScopedStreamGroup pinned(group);
    const std::vector<Tensor> id =
        RunStep(session.get(), {{"x", Tensor(1.0f)}}, {"id:0"});
    return id.empty() ? int64_t{-1} : id[0].scalar<int64_t>()();
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
  const int64_t even = thread_of(own, 0);
  const int64_t odd = thread_of(own, 1);
  EXPECT_NE(even, odd);
  for (int i = 0; i < 3 * kGroups; ++i) {
    EXPECT_EQ(thread_of(own, i % kGroups), i % 2 == 0 ? even : odd) << i;
  }
  // Pools with a name are the same in all sessions.
  const std::unique_ptr<Session> named = session_with({"a", "b", ""});
  EXPECT_EQ(thread_of(named, 0), thread_of(named, 3));
  EXPECT_NE(thread_of(named, 0), even);
  const int64_t b = thread_of(named, 1);
  const std::unique_ptr<Session> other = session_with({"b", ""});
  EXPECT_EQ(thread_of(other, 0), b);
  EXPECT_EQ(thread_of(other, 2), b);
  EXPECT_NE(thread_of(other, 1), thread_of(named, 2));
}

// Steps that wait for an element of a queue before their part on the GPU end
// by a timeout, or because the session is closed.
TEST_F(EmulatedRuntimeTest, AStepThatIsEndedReleasesItsGroup) {
  constexpr int kSteps = 6;
  Scope root = Scope::NewRootScope();
  Scope cpu = root.WithDevice("/device:CPU:0");
  auto queue = ops::FIFOQueue(cpu, DataTypeVector{DT_FLOAT});
  auto element = ops::QueueDequeue(cpu, queue, DataTypeVector{DT_FLOAT});
  ops::Square(root.WithDevice("/device:GPU:0").WithOpName("y"), element[0]);
  auto three = ops::Const(cpu, 3.0f);
  ops::QueueEnqueue(cpu.WithOpName("enqueue"), queue,
                    std::vector<Output>{three});
  std::unique_ptr<Session> session = SessionOf(root);
  const int64_t failed_before = Total(&StreamGroupStats::steps_failed);
  const auto failed = [failed_before] {
    return Total(&StreamGroupStats::steps_failed) - failed_before;
  };
  RunOptions options;
  options.set_timeout_in_ms(100);
  std::vector<Tensor> outputs;
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      session->Run(options, {}, {"y:0"}, {}, &outputs, nullptr)));
  EXPECT_TRUE(AllStepsEnd());
  EXPECT_EQ(failed(), 1);
  // The session still serves.
  RunStep(session.get(), {}, {}, {"enqueue"});
  EXPECT_EQ(RunStep(session.get(), {}, {"y:0"}).at(0).scalar<float>()(), 9.0f);

  std::atomic<int> cancelled{0};
  OnThreads(kSteps + 1, [&](int t) {
    if (t == kSteps) {
      EXPECT_TRUE(Eventually(
          [] { return Total(&StreamGroupStats::steps_running) == kSteps; }));
      EXPECT_TRUE(session->Close().ok());
      return;
    }
    std::vector<Tensor> none;
    cancelled += !session->Run({}, {"y:0"}, {}, &none).ok();
  });
  session.reset();
  EXPECT_EQ(cancelled, kSteps);
  EXPECT_TRUE(AllStepsEnd());
  EXPECT_EQ(failed(), 1 + kSteps);
}

}  // namespace
}  // namespace tensorflow::multistream
