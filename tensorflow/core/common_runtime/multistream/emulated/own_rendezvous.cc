// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What if a graph that sends tensors to itself is run without a rendezvous?
//
// The function of a data set is called without one if its ops are all on the
// data set's device and that device is a CPU: on a CPU no op sends to another
// op of the same device. An emulated GPU is a CPU to TensorFlow, and yet the
// partitioner adds such sends there, between ops on host memory and on the
// GPU's. (On a machine with a GPU, data sets stay on the CPU: no GPU kernel
// makes one.) An executor of such a graph then makes a rendezvous for each run.

#include <algorithm>
#include <memory>
#include <utility>

#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_gpu.h"
#include "tensorflow/core/common_runtime/rendezvous_mgr.h"
#include "tensorflow/core/framework/function.h"

namespace tensorflow::multistream {
namespace {

class OwnRendezvousExecutor : public Executor {
 public:
  OwnRendezvousExecutor(std::unique_ptr<Executor> wrapped,
                        const DeviceMgr* devices)
      : wrapped_(std::move(wrapped)), devices_(devices) {}

 private:
  void TFMS_RUN_ASYNC(const Args& args, DoneCallback done) override {
    if (args.rendezvous != nullptr) {
      wrapped_->RunAsync(args, std::move(done));
      return;
    }
    auto rendezvous = std::make_shared<PrivateIntraProcessRendezvous>(devices_);
    Args ours = args;
    ours.rendezvous = rendezvous.get();
    wrapped_->RunAsync(ours, [rendezvous, done = std::move(done)](
                                 const absl::Status& status) { done(status); });
  }

  const std::unique_ptr<Executor> wrapped_;
  const DeviceMgr* const devices_;
};

}  // namespace

void GiveOwnRendezvous(const LocalExecutorParams& params, const Graph& graph,
                       std::unique_ptr<Executor>* executor) {
  const auto nodes = graph.op_nodes();
  if (params.function_library != nullptr &&
      std::any_of(nodes.begin(), nodes.end(),
                  [](const Node* node) { return node->IsRecv(); })) {
    *executor = std::make_unique<OwnRendezvousExecutor>(
        std::move(*executor), params.function_library->device_mgr());
  }
}

}  // namespace tensorflow::multistream
