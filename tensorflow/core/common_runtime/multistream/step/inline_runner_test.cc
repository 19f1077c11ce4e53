// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// A session whose steps run in the thread of the caller gives no ops to the
// thread that runs a stream's callbacks.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/executor_factory.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow::multistream {
namespace {

std::thread::id callback_thread;
std::thread::id thread_of_next_op;

REGISTER_OP("MultiStreamCallbackOp").Output("y: float").SetIsStateful();
REGISTER_OP("MultiStreamNextOp").Input("x: float").SetIsStateful();

// Ends in a stream callback, as kernels do that need a number from the GPU
// before they can launch the rest.
class CallbackOp : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;
  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    context->set_output(0, Tensor(1.0f));
    FindGpuGroups(0)->leader()->WhenCompleted([done = std::move(done)] {
      callback_thread = std::this_thread::get_id();
      done();
    });
  }
};

class NextOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext*) override {
    thread_of_next_op = std::this_thread::get_id();
  }
};

REGISTER_KERNEL_BUILDER(Name("MultiStreamCallbackOp").Device(DEVICE_CPU),
                        CallbackOp);
REGISTER_KERNEL_BUILDER(Name("MultiStreamNextOp").Device(DEVICE_CPU), NextOp);

TEST(InlineRunnerTest, NoOpRunsWhereCallbacksOfStreamsRun) {
  ASSERT_TRUE(MultiStreamIsEnabled()) << CheckEnvironment();
  GraphDef graph;
  ASSERT_TRUE(NodeDefBuilder("callback", "MultiStreamCallbackOp")
                  .Device("/device:GPU:0")
                  .Finalize(graph.add_node())
                  .ok());
  ASSERT_TRUE(NodeDefBuilder("next", "MultiStreamNextOp")
                  .Input("callback", 0, DT_FLOAT)
                  .Device("/device:GPU:0")
                  .Finalize(graph.add_node())
                  .ok());
  std::unique_ptr<Session> session(NewSession(PlainOptions()));
  ASSERT_TRUE(session->Create(graph).ok());
  RunOptions in_this_thread;
  in_this_thread.set_inter_op_thread_pool(-1);
  RunMetadata metadata;
  std::vector<Tensor> none;
  const absl::Status status =
      session->Run(in_this_thread, {}, {}, {"next"}, &none, &metadata);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_NE(callback_thread, std::thread::id());
  EXPECT_NE(thread_of_next_op, std::thread::id());
  EXPECT_NE(thread_of_next_op, callback_thread);
}

// Runs a step on the host of a constant followed by `op`; returns how often the
// step asked for a thread.
int ThreadsOfStep(const std::string& op) {
  const std::unique_ptr<Device> device =
      DeviceFactory::NewDevice("CPU", {}, "/job:a/replica:0/task:0");
  Graph graph(OpRegistry::Global());
  GraphDef def;
  EXPECT_TRUE(NodeDefBuilder("c", "Const")
                  .Attr("dtype", DT_FLOAT)
                  .Attr("value", Tensor(1.0f))
                  .Finalize(def.add_node())
                  .ok());
  EXPECT_TRUE(NodeDefBuilder("o", op)
                  .Input("c", 0, DT_FLOAT)
                  .Finalize(def.add_node())
                  .ok());
  EXPECT_TRUE(ConvertGraphDefToGraph({}, def, &graph).ok());
  LocalExecutorParams params;
  params.device = device.get();
  params.create_kernel =
      [&device](const std::shared_ptr<const NodeProperties>& properties,
                OpKernel** kernel) {
        return CreateNonCachedKernel(device.get(), nullptr, properties,
                                     TF_GRAPH_DEF_VERSION, kernel);
      };
  params.delete_kernel = DeleteNonCachedKernel;
  std::unique_ptr<Executor> executor;
  EXPECT_TRUE(NewExecutor("", params, graph, &executor).ok());
  int threads = 0;
  Executor::Args args;
  args.runner = [&](Executor::Args::Closure closure) {
    ++threads;
    closure();
  };
  bool is_over = false;
  executor->RunAsync(
      args, [&](const absl::Status& status) { is_over = status.ok(); });
  EXPECT_TRUE(is_over);
  return threads;
}

// Host steps that only pass tensors on run in their caller's thread; other
// steps use the caller's runner.
TEST(InlineRunnerTest, OnlyHostStepsThatComputeAskForThreads) {
  // Makes the GPUs.
  const std::unique_ptr<Session> session(NewSession(PlainOptions()));
  EXPECT_EQ(ThreadsOfStep("Identity"), 0);
  EXPECT_GT(ThreadsOfStep("Neg"), 0);
}

}  // namespace
}  // namespace tensorflow::multistream
