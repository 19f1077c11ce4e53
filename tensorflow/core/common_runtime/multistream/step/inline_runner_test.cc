// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// A session whose steps run in the thread of the caller gives no ops to the
// thread that runs a stream's callbacks.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {
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

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
