// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/hooks/executor_choice.h"

#include <utility>

#include "tensorflow/core/common_runtime/executor_factory.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/base/process_options.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capture_mark.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_gpu.h"
#include "tensorflow/core/common_runtime/multistream/emulated/two_memories.h"
#include "tensorflow/core/common_runtime/multistream/graph_level/graph_level_executor.h"
#include "tensorflow/core/common_runtime/multistream/hooks/group_requests.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_level_executor.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/common_runtime/multistream/step/pass_through_graph.h"
#include "tensorflow/core/common_runtime/multistream/step/pinned_group.h"
#include "tensorflow/core/common_runtime/multistream/step/renamed_leader.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {

namespace {

// True while this thread makes a stock executor: that calls NewLocalExecutor,
// which must then return the stock one.
thread_local bool makes_stock = false;

// If `params.device` has groups, makes an executor that wraps the executors of
// `make_stock`; otherwise calls `make_stock`.
absl::Status ChooseExecutor(const LocalExecutorParams& params,
                            const Graph& graph, MakeStockExecutor make_stock,
                            std::unique_ptr<Executor>* out_executor) {
  if (!GroupsAreRegistered()) return make_stock(params, graph, out_executor);
  GroupLeader* leader = LeaderOf(params.device);
  const int groups = leader == nullptr ? 0 : leader->session_streams().groups;
  const bool captures = groups == 1 && leader->recorder(0) != nullptr;
  if (groups <= 1 && !captures) {
    TF_RETURN_IF_ERROR(make_stock(params, graph, out_executor));
    const bool on_host = params.device->device_type() == DEVICE_CPU;
    *out_executor = on_host && FirstComputingOp(graph) == nullptr
                        ? RunWhereTensorsAre(std::move(*out_executor))
                        : KeepPinnedGroups(std::move(*out_executor));
    return absl::OkStatus();
  }
  const Options& options = *ProcessOptions();
  if (captures || !leader->session_streams().node_level) {
    return NewGraphLevelExecutor(params, graph, leader, options, make_stock,
                                 out_executor);
  }
  if (CaptureMarkOf(graph) == CaptureMode::kRequire) {
    return absl::FailedPreconditionError(
        "tf.cuda.captured(mode=\"require\"), and steps whose nodes have stream "
        "groups are not captured");
  }
  return NewNodeLevelExecutor(params, graph, leader, options, make_stock,
                              out_executor);
}

absl::Status MakeExecutor(const LocalExecutorParams& params, const Graph& graph,
                          MakeStockExecutor make_stock,
                          std::unique_ptr<Executor>* out_executor) {
  if (!IsEmulatedGpu(*params.device)) {
    return ChooseExecutor(params, graph, make_stock, out_executor);
  }
  LocalExecutorParams ours = params;
  ours.create_kernel = MakeKernelWithMemoryTypes(params);
  std::unique_ptr<Graph> own;
  TF_RETURN_IF_ERROR(SendBetweenMemories(params, graph, &own));
  const Graph& runs = own == nullptr ? graph : *own;
  TF_RETURN_IF_ERROR(ChooseExecutor(ours, runs, make_stock, out_executor));
  GiveOwnRendezvous(params, runs, out_executor);
  return absl::OkStatus();
}

}  // namespace

absl::Status NewExecutorOnGroups(const std::string& executor_type,
                                 const LocalExecutorParams& params,
                                 const Graph& graph,
                                 std::unique_ptr<Executor>* out_executor) {
  ExecutorFactory* factory = nullptr;
  TF_RETURN_IF_ERROR(ExecutorFactory::GetFactory(executor_type, &factory));
  return MakeExecutor(
      params, graph,
      [factory](const LocalExecutorParams& p, const Graph& g,
                std::unique_ptr<Executor>* out) {
        const bool before = std::exchange(makes_stock, true);
        absl::Status status = factory->NewExecutor(p, g, out);
        makes_stock = before;
        return status;
      },
      out_executor);
}

absl::Status NewLocalExecutorOnGroups(
    const LocalExecutorParams& params, const Graph& graph,
    Executor** out_executor,
    absl::FunctionRef<absl::Status(const LocalExecutorParams&, const Graph&,
                                   Executor**)>
        stock) {
  if (makes_stock) return stock(params, graph, out_executor);
  std::unique_ptr<Executor> executor;
  TF_RETURN_IF_ERROR(MakeExecutor(
      params, graph,
      [stock](const LocalExecutorParams& p, const Graph& g,
              std::unique_ptr<Executor>* out) {
        Executor* made = nullptr;
        absl::Status status = stock(p, g, &made);
        out->reset(made);
        return status;
      },
      &executor));
  *out_executor = executor.release();
  return absl::OkStatus();
}

}  // namespace tensorflow::multistream
