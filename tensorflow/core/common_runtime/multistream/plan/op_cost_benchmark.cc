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

// What do stream groups cost an op? On an emulated GPU, whose device is the
// CPU's with stream groups added, a chain of small ops runs in one thread: on
// the CPU, on the GPU outside every scope, in one group's scope, and going back
// and forth between two groups. Prints nanoseconds an op.
//
//   TF_MULTI_STREAM_EMULATED_GPUS=1 TF_GPU_STREAM_GROUP_COUNT=4 \
//     TF_NODE_LEVEL_MULTISTREAM=true op_cost_benchmark

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/plan/function_groups.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr int kOps = 2000;
constexpr int kRounds = 201;

class Chain {
 public:
  // Op i is in group groups[i % groups.size()], if there are any.
  Chain(const std::string& device, const std::vector<int>& groups) {
    Scope root = Scope::NewRootScope().WithDevice(device);
    Output y = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
    for (int i = 0; i < kOps; ++i) {
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
    // The second CPU gets its input from the first, as a GPU does: a graph that
    // receives takes the executor longer.
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
    callable.add_target("op_" + std::to_string(kOps - 1));
    callable.mutable_run_options()->set_inter_op_thread_pool(-1);
    TF_CHECK_OK(session_->MakeCallable(callable, &handle_));
  }

  double NanosecondsPerOp() {
    Tensor x(DT_FLOAT, TensorShape({1}));
    x.flat<float>()(0) = 1;
    const auto start = std::chrono::steady_clock::now();
    TF_CHECK_OK(session_->RunCallable(handle_, {x}, nullptr, nullptr));
    return std::chrono::duration<double, std::nano>(
               std::chrono::steady_clock::now() - start)
               .count() /
           kOps;
  }

 private:
  std::unique_ptr<Session> session_;
  Session::CallableHandle handle_;
};

int Main() {
  if (StreamGroupCount() < 3) {
    std::fprintf(stderr,
                 "Set TF_MULTI_STREAM_EMULATED_GPUS=1 and "
                 "TF_GPU_STREAM_GROUP_COUNT=4.\n");
    return 1;
  }
  const std::string gpu = "/device:GPU:0";
  struct Case {
    const char* name;
    Chain chain;
    std::vector<double> rounds;
  };
  std::vector<Case> cases;
  cases.push_back({"stock (CPU device)", Chain("/device:CPU:1", {}), {}});
  cases.push_back({"no scope", Chain(gpu, {}), {}});
  cases.push_back({"scope of group 2", Chain(gpu, {2}), {}});
  cases.push_back({"groups 1 and 2 in turn", Chain(gpu, {1, 2}), {}});
  for (int round = 0; round < kRounds; ++round) {
    for (Case& c : cases) c.rounds.push_back(c.chain.NanosecondsPerOp());
  }
  double stock = 0;
  for (Case& c : cases) {
    std::nth_element(c.rounds.begin(), c.rounds.begin() + kRounds / 2,
                     c.rounds.end());
    const double median = c.rounds[kRounds / 2];
    if (stock == 0) stock = median;
    std::printf("%-24s %7.0f ns/op  %+7.0f\n", c.name, median, median - stock);
  }
  return 0;
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow

int main() { return tensorflow::multistream::Main(); }
