// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does a step on a stream group cost, compared with a step on TensorFlow's
// CPU? The GPU is emulated, so the kernels are the CPU's. Step is at graph
// level (replayed with TF_MULTI_STREAM_CAPTURE=auto), or at node level with
// TF_NODE_LEVEL_MULTISTREAM=true, which the other benchmarks need.
// docs/measurements.md has the commands.

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr char kGpu[] = "/device:GPU:0";
// The second CPU, so that the input comes from the first one, as with a GPU: a
// graph with a receive takes the executor longer.
constexpr char kStock[] = "/device:CPU:1";

// A chain of small ops, which run in the caller's thread.
class Chain {
 public:
  // Op i is in group groups[i % groups.size()], if there are any.
  Chain(const std::string& device, int ops, const std::vector<int>& groups) {
    Scope root = Scope::NewRootScope().WithDevice(device);
    Output y = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
    for (int i = 0; i < ops; ++i) {
      y = ops::Neg(root.WithOpName("op_" + std::to_string(i)), y);
    }
    GraphDef graph;
    TF_CHECK_OK(root.ToGraphDef(&graph));
    int i = 0;
    for (NodeDef& node : *graph.mutable_node()) {
      if (node.op() != "Neg" || groups.empty()) continue;
      (*node.mutable_attr())[kStreamGroupAttr].set_i(
          groups[i++ % groups.size()]);
    }
    SessionOptions options;
    (*options.config.mutable_device_count())["CPU"] = 2;
    GraphOptions* how = options.config.mutable_graph_options();
    how->mutable_optimizer_options()->set_opt_level(OptimizerOptions::L0);
    how->mutable_rewrite_options()->set_disable_meta_optimizer(true);
    Session* session = nullptr;
    TF_CHECK_OK(NewSession(options, &session));
    session_.reset(session);
    TF_CHECK_OK(session_->Create(graph));
    CallableOptions callable;
    callable.add_feed("x:0");
    callable.add_target("op_" + std::to_string(ops - 1));
    callable.mutable_run_options()->set_inter_op_thread_pool(-1);
    TF_CHECK_OK(session_->MakeCallable(callable, &handle_));
    for (int round = 0; round < 5; ++round) Run();  // warm up, and record
  }

  void Run() {
    TF_CHECK_OK(session_->RunCallable(handle_, {x_}, nullptr, nullptr));
  }

 private:
  Tensor x_{1.0f};
  std::unique_ptr<Session> session_;
  Session::CallableHandle handle_;
};

// Steps of one chain of state.range(0) ops, which all threads share.
void RunSteps(benchmark::State& state, const std::string& device,
              const std::vector<int>& groups) {
  static std::unique_ptr<Chain>* const chain = new std::unique_ptr<Chain>;
  if (state.thread_index() == 0) {
    *chain = std::make_unique<Chain>(device, state.range(0), groups);
  }
  for (auto _ : state) (*chain)->Run();
}

void Step(benchmark::State& state) { RunSteps(state, kGpu, {}); }
void StepStock(benchmark::State& state) { RunSteps(state, kStock, {}); }
void StepInScope(benchmark::State& state) { RunSteps(state, kGpu, {2}); }
void StepOfTwoGroups(benchmark::State& state) { RunSteps(state, kGpu, {1, 2}); }

#define FOR_CHAINS(name) \
  BENCHMARK(name)->Arg(1)->Arg(300)->Threads(1)->Threads(4)->UseRealTime()

FOR_CHAINS(StepStock);
FOR_CHAINS(Step);
FOR_CHAINS(StepInScope);
FOR_CHAINS(StepOfTwoGroups);

}  // namespace
}  // namespace multistream
}  // namespace tensorflow

int main(int argc, char** argv) {
  if (tensorflow::multistream::StreamGroupCount() < 3) {
    fprintf(stderr,
            "Set TF_MULTI_STREAM_EMULATED_GPUS=1 and "
            "TF_GPU_STREAM_GROUP_COUNT=4.\n");
    return 1;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
