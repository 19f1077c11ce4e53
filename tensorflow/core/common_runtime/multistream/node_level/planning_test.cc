// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// While plans of a graph are made, which may take long, its steps and the
// streams' callbacks go on: no thread that begins a step makes plans.

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/executor_factory.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {
namespace {

constexpr char kExecutorType[] = "STANDS_STILL_WHEN_TOLD";
// Some of these are measured; the next step begins with planning.
constexpr int kStepsBeforePlans = 8;

// Planning makes an executor for each plan; `stands_still` blocks the next.
struct Planner {
  std::atomic<bool> stands_still{false};
  std::thread::id thread;  // of the last executor
  absl::Notification has_begun;
  absl::Notification may_end;
};
Planner* planner = nullptr;

class Factory : public ExecutorFactory {
 public:
  absl::Status NewExecutor(const LocalExecutorParams& params,
                           const Graph& graph,
                           std::unique_ptr<Executor>* out) override {
    planner->thread = std::this_thread::get_id();
    if (planner->stands_still.exchange(false)) {
      planner->has_begun.Notify();
      planner->may_end.WaitForNotification();
    }
    ExecutorFactory* stock = nullptr;
    absl::Status status = GetFactory("DEFAULT", &stock);
    return status.ok() ? stock->NewExecutor(params, graph, out) : status;
  }
};

// Branches that a policy can spread.
std::unique_ptr<Session> NewSessionOfBranches() {
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  std::vector<Output> ends;
  for (int branch = 0; branch < 4; ++branch) {
    Output y = x;
    for (int i = 0; i < 6; ++i) {
      Tensor w(DT_FLOAT, TensorShape({32, 32}));
      w.flat<float>().setConstant(0.01f * static_cast<float>(branch + i + 1));
      y = ops::Tanh(root, ops::MatMul(root, y, ops::Const(root, w)));
    }
    ends.push_back(y);
  }
  ops::AddN(root.WithOpName("sum"), ends);
  SessionOptions options = PlainOptions();
  options.config.mutable_experimental()->set_executor_type(kExecutorType);
  return SessionOf(root, options);
}

float RunOnce(Session* session) {
  Tensor x(DT_FLOAT, TensorShape({8, 32}));
  x.flat<float>().setConstant(1);
  std::vector<Tensor> sum;
  const absl::Status status = session->Run({{"x:0", x}}, {"sum:0"}, {}, &sum);
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? sum[0].flat<float>()(0) : 0;
}

class PlanningTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ExecutorFactory::Register(kExecutorType, new Factory);
  }
  void SetUp() override {
    ASSERT_TRUE(MultiStreamIsEnabled()) << CheckEnvironment();
    planner = new Planner;  // never deleted: its session may outlive the test
  }
};

std::thread::id thread_of_op;

REGISTER_OP("MultiStreamPlanningOp").Output("y: float").SetIsStateful();
class ThreadNotingOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    thread_of_op = std::this_thread::get_id();
    context->set_output(0, Tensor(1.0f));
  }
};
REGISTER_KERNEL_BUILDER(Name("MultiStreamPlanningOp").Device(DEVICE_CPU),
                        ThreadNotingOp);

// The caller's group of a function is the group of the op that calls it.
TEST_F(PlanningTest, OfAFunctionIsNotDoneByTheThreadThatCallsIt) {
  FunctionDef function = FunctionDefHelper::Create(
      "noting", {}, {"y: float"}, {},
      {{{"op"}, "MultiStreamPlanningOp", {}, {}}}, {{"y", "op:y:0"}});
  (*function.mutable_attr())["_noinline"].set_b(true);
  GraphDef graph;
  *graph.mutable_library()->add_function() = function;
  NodeDef* call = graph.add_node();
  NameAttrList f;
  f.set_name("noting");
  ASSERT_TRUE(NodeDefBuilder("call", "StatefulPartitionedCall")
                  .Input(std::vector<NodeDefBuilder::NodeOut>())
                  .Attr("Tout", DataTypeVector({DT_FLOAT}))
                  .Attr("f", f)
                  .Attr(kStreamGroupAttr, 2)
                  .Device("/device:GPU:0")
                  .Finalize(call)
                  .ok());
  std::unique_ptr<Session> session(NewSession(PlainOptions()));
  ASSERT_TRUE(session->Create(graph).ok());
  const auto run = [&] {
    RunOptions in_this_thread;
    in_this_thread.set_inter_op_thread_pool(-1);
    RunMetadata metadata;
    std::vector<Tensor> none;
    const absl::Status status =
        session->Run(in_this_thread, {}, {}, {"call"}, &none, &metadata);
    EXPECT_TRUE(status.ok()) << status;
  };
  run();
  EXPECT_NE(thread_of_op, std::this_thread::get_id());
  run();
  EXPECT_EQ(thread_of_op, std::this_thread::get_id()) << "there is a plan";
}

TEST_F(PlanningTest, StepsAndCallbacksGoOnMeanwhile) {
  auto session = NewSessionOfBranches();
  ASSERT_NE(session, nullptr);
  const float expected = RunOnce(session.get());
  for (int i = 1; i < kStepsBeforePlans; ++i) RunOnce(session.get());
  EXPECT_EQ(planner->thread, std::this_thread::get_id())
      << "the first plan is made with the session";

  planner->stands_still = true;
  std::thread plans([&] {
    EXPECT_EQ(RunOnce(session.get()), expected);
    EXPECT_NE(planner->thread, std::this_thread::get_id())
        << "plans are made by the thread that begins a step";
  });
  EXPECT_TRUE(
      planner->has_begun.WaitForNotificationWithTimeout(absl::Seconds(60)))
      << "no plans are made";
  absl::Notification went_on;
  std::thread beside([&] {
    for (int i = 0; i < 5; ++i) EXPECT_EQ(RunOnce(session.get()), expected);
    // All callbacks of all streams have run, those of these steps among them.
    for (GpuGroups* gpu : AllGpuGroups()) {
      for (int i = 0; i < gpu->size(); ++i) {
        EXPECT_TRUE(gpu->group(i)->Block().ok());
      }
    }
    went_on.Notify();
  });
  EXPECT_TRUE(went_on.WaitForNotificationWithTimeout(absl::Seconds(60)))
      << "steps or callbacks wait for the planner";
  planner->may_end.Notify();
  plans.join();
  beside.join();
  // The search goes on.
  for (int i = 0; i < 100; ++i) EXPECT_EQ(RunOnce(session.get()), expected);
}

}  // namespace
}  // namespace tensorflow::multistream
