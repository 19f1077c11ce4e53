// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Trains a model of equal branches twice, with all of it on one stream and with
// each branch on a stream group of its own, and compares loss and step time.
//
//            +-- dense -- tanh -- ... -- dense -- tanh --+   group 0
//   x -------+-- dense -- tanh -- ... -- dense -- tanh --+-- sum -- loss
//            +-- ...                                     +   group i

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/cc/ops/nn_ops.h"
#include "tensorflow/cc/ops/no_op.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/training_ops.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/util/command_line_flags.h"

namespace tensorflow::multistream {
namespace {

constexpr char kUsage[] =
    R"(multistream_training [--NAME=NUMBER ...], each from 1 on

With TF_GPU_STREAM_GROUP_COUNT=4 and TF_NODE_LEVEL_MULTISTREAM=true it trains
both ways; TF_MULTI_STREAM_EMULATED_GPUS=1 stands in for a GPU. Ends with 1 if
the two do not give the same losses, bit by bit.

)";

constexpr int kWarmUp = 10;  // steps that are not timed
constexpr int kBlocks = 6;   // parts that the steps are timed in, in turn
constexpr float kRate = 0.01;

struct Settings {
  int branches = 4;
  int layers = 12;
  int width = 64;
  int batch = 32;
  int steps = 300;
  int groups = 1;

  std::vector<Flag> flags() {
    return {Flag("branches", &branches, "of the model"),
            Flag("layers", &layers, "dense layers of each branch"),
            Flag("width", &width, "of each layer"),
            Flag("batch", &batch, "rows of a batch"),
            Flag("steps", &steps, "of training, of each of the two")};
  }
};

Tensor Random(int rows, int columns, float scale, int seed) {
  Tensor tensor(DT_FLOAT, TensorShape({rows, columns}));
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  auto flat = tensor.flat<float>();
  for (int64_t i = 0; i < flat.size(); ++i) flat(i) = normal(generator);
  return tensor;
}

// The group that nodes are given while it is alive: what tf.cuda.stream_scope
// does in Python.
class StreamScope {
 public:
  StreamScope(const Scope& scope, int group)
      : graph_(scope.graph()), first_(graph_->num_node_ids()), group_(group) {}
  ~StreamScope() {
    for (int id = first_; id < graph_->num_node_ids(); ++id) {
      Node* node = graph_->FindNodeId(id);
      if (node != nullptr) node->AddAttr("_stream_group", group_);
    }
  }

 private:
  Graph* const graph_;
  const int first_;
  const int group_;
};

// Gives nodes from `first` on, which come after their inputs, the group of the
// first input that has one: a gradient takes what its op computed.
void FollowInputs(Graph* graph, int first) {
  for (int id = first; id < graph->num_node_ids(); ++id) {
    Node* node = graph->FindNodeId(id);
    if (node == nullptr || !node->IsOp()) continue;
    for (int i = node->num_inputs() - 1; i >= 0; --i) {
      const Edge* edge;
      int group;
      if (node->input_edge(i, &edge).ok() &&
          TryGetNodeAttr(edge->src()->attrs(), "_stream_group", &group)) {
        node->AddAttr("_stream_group", group);
        break;
      }
    }
  }
}

// The model with its training step "train", "loss:0" and "init".
absl::Status BuildModel(const Settings& settings, bool scopes,
                        GraphDef* graph) {
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  auto target = ops::Placeholder(root.WithOpName("target"), DT_FLOAT);
  std::vector<Output> handles, weights, ends;
  std::vector<Operation> initial;
  for (int branch = 0; branch < settings.branches; ++branch) {
    std::unique_ptr<StreamScope> in_group;
    if (scopes) {
      in_group = std::make_unique<StreamScope>(root, branch % settings.groups);
    }
    Output y = x;
    for (int layer = 0; layer < settings.layers; ++layer) {
      const std::string name = absl::StrCat("w_", branch, "_", layer);
      Output handle =
          ops::VarHandleOp(root.WithOpName(name), DT_FLOAT,
                           TensorShape({settings.width, settings.width}),
                           ops::VarHandleOp::SharedName(name));
      initial.push_back(ops::AssignVariableOp(
          root, handle,
          ops::Const(root, Random(settings.width, settings.width,
                                  1.0f / std::sqrt(settings.width),
                                  branch * 1000 + layer))));
      Output w = ops::ReadVariableOp(root, handle, DT_FLOAT);
      y = ops::Tanh(root, ops::MatMul(root, y, w));
      handles.push_back(handle);
      weights.push_back(w);
    }
    ends.push_back(y);
  }
  // The mean of the squared errors, but for a factor: in this form no gradient
  // asks the host for a shape in mid-step.
  ends.push_back(ops::Neg(root, target));
  Output loss = ops::L2Loss(root.WithOpName("loss"), ops::AddN(root, ends));
  const int first_gradient = root.graph()->num_node_ids();
  std::vector<Output> gradients;
  TF_RETURN_IF_ERROR(AddSymbolicGradients(root, {loss}, weights, &gradients));
  if (scopes) FollowInputs(root.graph(), first_gradient);
  std::vector<Operation> updates;
  Output rate = ops::Const(root, kRate * 2 / (settings.batch * settings.width));
  for (size_t i = 0; i < handles.size(); ++i) {
    updates.push_back(ops::ResourceApplyGradientDescent(root, handles[i], rate,
                                                        gradients[i]));
  }
  ops::NoOp(root.WithOpName("train").WithControlDependencies(updates));
  ops::NoOp(root.WithOpName("init").WithControlDependencies(initial));
  return root.ToGraphDef(graph);
}

// One of the two trainings.
class Training {
 public:
  absl::Status Begin(const Settings& settings, bool scopes) {
    GraphDef graph;
    TF_RETURN_IF_ERROR(BuildModel(settings, scopes, &graph));
    SessionOptions options;
    // The same kernels for both, whatever the optimizer makes of attributes.
    options.config.mutable_graph_options()
        ->mutable_rewrite_options()
        ->set_disable_meta_optimizer(true);
    Session* session = nullptr;
    TF_RETURN_IF_ERROR(NewSession(options, &session));
    session_.reset(session);
    TF_RETURN_IF_ERROR(session_->Create(graph));
    TF_RETURN_IF_ERROR(session_->Run({}, {}, {"init"}, nullptr));
    CallableOptions step;
    step.add_feed("x:0");
    step.add_feed("target:0");
    step.add_fetch("loss:0");
    step.add_target("train");
    x_ = Random(settings.batch, settings.width, 1, 7);
    target_ = Random(settings.batch, settings.width, 1, 8);
    return session_->MakeCallable(step, &step_);
  }

  absl::Status Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      std::vector<Tensor> fetched;
      const auto start = std::chrono::steady_clock::now();
      TF_RETURN_IF_ERROR(
          session_->RunCallable(step_, {x_, target_}, &fetched, nullptr));
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      losses_.push_back(fetched[0].scalar<float>()() * 2 / x_.NumElements());
      milliseconds_.push_back(took.count());
    }
    return absl::OkStatus();
  }

  const std::vector<float>& losses() const { return losses_; }
  double MedianMilliseconds() const {
    std::vector<double> sorted(milliseconds_.begin() + kWarmUp,
                               milliseconds_.end());
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

 private:
  std::unique_ptr<Session> session_;
  Session::CallableHandle step_;
  Tensor x_, target_;
  std::vector<float> losses_;
  std::vector<double> milliseconds_;
};

void Print(const char* name, const Training& training) {
  std::printf("%s loss %.6f -> %.6f, median step %.3f ms\n", name,
              training.losses().front(), training.losses().back(),
              training.MedianMilliseconds());
}

// Whether both have the same losses, bit by bit.
bool SameLosses(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) {
      std::printf("the losses differ from step %zu on: %.9g and %.9g\n", i,
                  a[i], b[i]);
      return false;
    }
  }
  std::printf("the same losses in all %zu steps, bit by bit\n", a.size());
  return true;
}

// Sets `same` to whether both trainings give the same losses. Trains on one
// stream only if there is no other.
absl::Status Train(const Settings& settings, bool* same) {
  const bool both = settings.groups > 1;
  Training one, grouped;
  TF_RETURN_IF_ERROR(one.Begin(settings, /*scopes=*/false));
  if (both) TF_RETURN_IF_ERROR(grouped.Begin(settings, /*scopes=*/true));
  for (int block = -1; block < kBlocks; ++block) {
    const int steps = block < 0 ? kWarmUp
                                : settings.steps * (block + 1) / kBlocks -
                                      settings.steps * block / kBlocks;
    TF_RETURN_IF_ERROR(one.Run(steps));
    if (both) TF_RETURN_IF_ERROR(grouped.Run(steps));
  }
  std::printf(
      "%d branches of %d layers, width %d, batch %d, %d stream groups\n",
      settings.branches, settings.layers, settings.width, settings.batch,
      settings.groups);
  Print("one stream:   ", one);
  *same = true;
  if (!both) return absl::OkStatus();
  Print("stream groups:", grouped);
  const char* emulated = std::getenv("TF_MULTI_STREAM_EMULATED_GPUS");
  if (emulated != nullptr && std::atoi(emulated) > 0) {
    std::puts(
        "the GPU is emulated on the CPU: results count, times mean nothing");
  } else {
    std::printf("%.2f times as fast\n",
                one.MedianMilliseconds() / grouped.MedianMilliseconds());
  }
  for (const StreamGroupStats& group : StreamStats()) {
    std::printf("group %d: peak %.1f KiB\n", group.group,
                group.peak_bytes_in_use / 1024.0);
  }
  std::printf("sanitizer reports: %lld\n",
              static_cast<long long>(SanitizerReports()));
  *same = SameLosses(one.losses(), grouped.losses());
  return absl::OkStatus();
}

int Fail(const std::string& message) {
  std::fprintf(stderr, "multistream_training: %s\n", message.c_str());
  return 2;
}

int Main(int argc, char** argv) {
  Settings settings;
  const std::vector<Flag> flags = settings.flags();
  const std::string usage =
      absl::StrCat(kUsage, Flags::Usage("multistream_training", flags));
  if (argc > 1 && std::strcmp(argv[1], "--help") == 0) {
    std::fputs(usage.c_str(), stdout);
    return 0;
  }
  if (!Flags::Parse(&argc, argv, flags) || argc > 1 ||
      std::min({settings.branches, settings.layers, settings.width,
                settings.batch, settings.steps}) < 1) {
    return Fail(absl::StrCat("wrong arguments\n\n", usage));
  }
  if (std::string wrong = CheckEnvironment(); !wrong.empty()) {
    return Fail(wrong);
  }
  const char* node_level = std::getenv("TF_NODE_LEVEL_MULTISTREAM");
  if (MultiStreamIsEnabled() && node_level != nullptr && *node_level != 0) {
    settings.groups = StreamGroupCount();
  } else {
    std::printf(
        "There is one stream. For more: TF_GPU_STREAM_GROUP_COUNT=4 "
        "TF_NODE_LEVEL_MULTISTREAM=true\n");
  }
  bool same = false;
  absl::Status status = Train(settings, &same);
  if (!status.ok()) return Fail(status.ToString());
  return same ? 0 : 1;
}

}  // namespace
}  // namespace tensorflow::multistream

int main(int argc, char** argv) {
  return tensorflow::multistream::Main(argc, argv);
}
