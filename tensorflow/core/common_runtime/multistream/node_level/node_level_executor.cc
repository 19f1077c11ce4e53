// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/node_level_executor.h"

#include <atomic>
#include <map>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capture_report.h"
#include "tensorflow/core/common_runtime/multistream/node_level/launch_planner.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_level_run.h"
#include "tensorflow/core/common_runtime/multistream/node_level/plan_report.h"
#include "tensorflow/core/common_runtime/multistream/node_level/plan_tuner.h"
#include "tensorflow/core/common_runtime/multistream/node_level/stream_file.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/step/group_rendezvous.h"
#include "tensorflow/core/common_runtime/multistream/step/pinned_group.h"
#include "tensorflow/core/common_runtime/multistream/step/shared_kernels.h"
#include "tensorflow/core/common_runtime/multistream/step/step_threads.h"
#include "tensorflow/core/common_runtime/multistream/stream/forked_process.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_order.h"
#include "tensorflow/core/lib/core/refcount.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {
namespace {

StreamOrder* OrderOf(GpuGroups* gpu, bool reduce) {
  static absl::Mutex mu(absl::kConstInit);
  static auto* orders = new std::map<GpuGroups*, std::unique_ptr<StreamOrder>>;
  absl::MutexLock lock(&mu);
  std::unique_ptr<StreamOrder>& order = (*orders)[gpu];
  if (order == nullptr) order = std::make_unique<StreamOrder>(gpu, reduce);
  return order.get();
}

class NodeLevelExecutor : public Executor {
 public:
  NodeLevelExecutor(const LocalExecutorParams& params, GroupLeader* leader,
                    const Options& options, const StreamFile* file,
                    const FunctionLibraryDefinition* library,
                    const GraphTraits& traits, std::string name)
      : leader_(leader),
        options_(options),
        name_(std::move(name)),
        gpu_(leader->gpu_groups()),
        groups_(leader->session_streams().groups),
        planner_(options_, leader->session_streams(),
                 params.device->device_type() != DEVICE_GPU, file, library),
        variants_(&planner_, groups_) {
    auto shared = std::make_shared<RunShared>();
    shared->gpu = gpu_;
    shared->order = OrderOf(gpu_, options.reduce_stream_wait);
    shared->kernels = std::make_shared<SharedKernels>(
        gpu_->leader()->gpu(), params, traits, options.segment_own_const);
    for (int i = 0; i < groups_; ++i) {
      shared->members.push_back(leader->group_member(i));
      shared->devices.push_back(leader->group_device(i));
      DeviceContext* context = nullptr;
      shared->devices.back()->TryGetDeviceContext(&context).IgnoreError();
      shared->contexts.emplace_back(context);
    }
    shared_ = std::move(shared);
  }

  // A step that is done on the host may still run on its streams and use
  // constants that the kernels own.
  ~NodeLevelExecutor() override {
    if (GroupsAreOfParent()) return;
    for (int i = 0; i < groups_; ++i) {
      if (used_[i].load(std::memory_order_acquire)) {
        gpu_->group(i)->Block().IgnoreError();
      }
    }
  }

  absl::Status Initialize(const LocalExecutorParams& params, const Graph& graph,
                          const MakeStockExecutor& make_stock) {
    params_ = params;
    SharedKernels::Wrap(shared_->kernels, 0, &params_);
    // Make the kernels first: the plan needs them, and the executor, when made,
    // reads which are expensive. It then gets the same kernels.
    absl::flat_hash_map<std::string, OpKernel*> kernels;
    auto release = absl::MakeCleanup([&] {
      for (const auto& [name, kernel] : kernels) {
        params_.delete_kernel(kernel);
      }
    });
    for (const Node* node : graph.op_nodes()) {
      OpKernel* kernel = nullptr;
      // The executor reports the error in its own words.
      if (!params_.create_kernel(node->properties(), &kernel).ok()) break;
      kernels[node->name()] = kernel;
    }
    // Plans for callers' groups other than the leader are made when needed.
    planner_.SetGraph(graph, kernels);
    return variants_.Initialize(
        [this, make_stock](const Graph& of, std::unique_ptr<Executor>* out) {
          return make_stock(params_, of, out);
        });
  }

 private:
  // Plans nothing: this may be the thread that runs all streams' callbacks.
  void TFMS_RUN_ASYNC(const Args& args, DoneCallback done) override {
    RunStep(args, std::move(done), /*may_plan=*/false);
  }

  void RunStep(const Args& args, DoneCallback done, bool may_plan) {
    if (GroupsAreOfParent()) {
      done(GroupsAreOfParentError());
      return;
    }
    const StepRunner* outer = StepRunner::From(&args.runner);
    const bool nested = outer != nullptr && !outer->step->finished() &&
                        outer->step->gpu() == gpu_;
    const PinnedGroups pinned = PinnedGroupsOf(args);
    if (!pinned.is_any() && !nested) {
      done(absl::InvalidArgumentError(absl::StrCat(
          "A call was to run on ", TextOfGroups(pinned.first, pinned.last),
          ", and its nodes have groups of their own: "
          "TF_NODE_LEVEL_MULTISTREAM=true, or the session's configuration "
          "asks for streams. Use tf.cuda.stream_scope, where the graph is "
          "built")));
      return;
    }
    StreamGroup* caller_group = nested ? outer->group : gpu_->leader();
    const PlanTuner::Run turn = variants_.Begin(nested, may_plan);
    Executor* executor = nullptr;
    auto launches = variants_.LaunchesOf(turn.plan, caller_group->index(),
                                         may_plan, &executor);
    if (launches.ok() && *launches == nullptr) {
      // No turn to end: neither kMustPlan nor a nested step has begun one.
      params_.device->env()->SchedClosure([this, args, done = std::move(done)] {
        RunStep(args, done, /*may_plan=*/true);
      });
      return;
    }
    if (!launches.ok()) {
      variants_.Done(turn);
      done(launches.status());
      return;
    }
    if (SavedPlan::IsOn()) planner_.AddToSavedPlan(**launches);
    for (int i : (*launches)->groups) used_[i].store(true);
    auto step =
        nested ? outer->step
               : std::make_shared<Step>(gpu_, caller_group,
                                        /*changes_state=*/true, shared_->order);
    if (shared_->kernels->traits().has_references) step->NoteReferences();
    auto run = std::make_shared<NodeLevelRun>(
        shared_, *launches, caller_group, step,
        nested ? outer->run
               : StepThreads::RunnerFor(
                     options_, args, caller_group, groups_,
                     leader_->session_threads(caller_group->index())),
        turn.profiled ? planner_.profile() : nullptr);
    std::shared_ptr<GroupRendezvous> rendezvous;
    if (args.rendezvous != nullptr) {
      rendezvous = std::make_shared<GroupRendezvous>(
          args.rendezvous, step.get(), caller_group, leader_->group_device(0),
          leader_->group_device(caller_group->index()));
    }
    Args ours = args;
    ours.runner = run->Runner(caller_group);
    if (rendezvous != nullptr) ours.rendezvous = rendezvous.get();
    // The executor would wait only for one group, before the others join.
    ours.sync_on_finish = false;
    if (!nested) {
      gpu_->StartStepOn(caller_group);
      done = TracedStep(caller_group, name_, std::move(done));
    }
    executor->RunAsync(
        ours, [this, turn, nested, sync = args.sync_on_finish, step, run,
               rendezvous, gpu = gpu_, groups = groups_, caller_group,
               failures = gpu_->memory_failures(),
               done = std::move(done)](const absl::Status& result) {
          absl::Status status =
              nested ? result : gpu->WithMemoryOfGroups(result, failures);
          run->Join();
          if (!nested) {
            step->Finish();
            for (int i = 0; i < groups; ++i) {
              step->holds().ReleaseWhenCompleted(gpu->group(i));
            }
            gpu->NoteLeaderWork();
          }
          if (sync && status.ok()) status = caller_group->Block();
          if (!nested) gpu->EndStep(caller_group, status.ok());
          variants_.DoneAndCompletesOn(caller_group, turn, status.ok());
          done(status);
        });
  }

  GroupLeader* const leader_;
  const Options options_;
  const std::string name_;  // of the graph
  GpuGroups* const gpu_;
  const int groups_;  // of the session
  std::shared_ptr<const RunShared> shared_;
  LocalExecutorParams params_;
  LaunchPlanner planner_;
  PlanVariants variants_;
  std::atomic<bool> used_[kMaxGroupCount] = {};
};

}  // namespace

absl::Status NewNodeLevelExecutor(const LocalExecutorParams& params,
                                  const Graph& graph, GroupLeader* leader,
                                  const Options& options,
                                  const MakeStockExecutor& make_stock,
                                  std::unique_ptr<Executor>* out) {
  if (GroupsAreOfParent()) return GroupsAreOfParentError();
  TF_ASSIGN_OR_RETURN(const StreamFile* file, ProcessStreamFile(options));
  const FunctionLibraryDefinition* library =
      params.function_library == nullptr
          ? nullptr
          : params.function_library->GetFunctionLibraryDefinition();
  auto executor = std::make_unique<NodeLevelExecutor>(
      params, leader, options, file, library, ClassifyGraph(graph, library),
      CaptureReport::NameOf(graph));
  TF_RETURN_IF_ERROR(executor->Initialize(params, graph, make_stock));
  *out = std::move(executor);
  return absl::OkStatus();
}

}  // namespace tensorflow::multistream
