// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Host steps that only pass tensors on run in their caller's thread; other
// steps use the caller's runner.

#include <memory>
#include <string>

#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/executor_factory.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow {
namespace multistream {
namespace {

class PassThroughGraphChoiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MultiStreamIsEnabled()) << CheckEnvironment();
    // Makes the GPUs.
    session_.reset(NewSession(PlainOptions()));
    ASSERT_NE(session_, nullptr);
    device_ = DeviceFactory::NewDevice("CPU", {}, "/job:a/replica:0/task:0");
    ASSERT_NE(device_, nullptr);
  }

  // Runs a step of a constant followed by `op`; returns how often the step
  // asked for a thread.
  int ThreadsOfStep(const std::string& op) {
    auto graph = std::make_unique<Graph>(OpRegistry::Global());
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
    EXPECT_TRUE(ConvertGraphDefToGraph({}, def, graph.get()).ok());
    LocalExecutorParams params;
    params.device = device_.get();
    params.create_kernel =
        [this](const std::shared_ptr<const NodeProperties>& properties,
               OpKernel** kernel) {
          return CreateNonCachedKernel(device_.get(), nullptr, properties,
                                       TF_GRAPH_DEF_VERSION, kernel);
        };
    params.delete_kernel = [](OpKernel* kernel) {
      DeleteNonCachedKernel(kernel);
    };
    std::unique_ptr<Executor> executor;
    EXPECT_TRUE(NewExecutor("", params, *graph, &executor).ok());
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

 private:
  std::unique_ptr<Session> session_;
  std::unique_ptr<Device> device_;
};

TEST_F(PassThroughGraphChoiceTest, OnlyWhatComputesAsksForThreads) {
  EXPECT_EQ(ThreadsOfStep("Identity"), 0);
  EXPECT_GT(ThreadsOfStep("Neg"), 0);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
