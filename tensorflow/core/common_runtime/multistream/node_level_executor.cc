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

#include "tensorflow/core/common_runtime/multistream/node_level_executor.h"

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/compat.h"
#include "tensorflow/core/common_runtime/multistream/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/group_rendezvous.h"
#include "tensorflow/core/common_runtime/multistream/node_plan.h"
#include "tensorflow/core/common_runtime/multistream/raise_to.h"
#include "tensorflow/core/common_runtime/multistream/shared_kernels.h"
#include "tensorflow/core/common_runtime/multistream/step.h"
#include "tensorflow/core/common_runtime/multistream/step_threads.h"
#include "tensorflow/core/common_runtime/multistream/stream_order.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/lib/core/refcount.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace multistream {
namespace {

// The executor runs all inexpensive kernels that are ready in one thread, and
// takes every kernel of a GPU for inexpensive: so one thread would launch all
// branches. A kernel that is expensive gets another thread, which goes on with
// what it makes ready. OpKernel has no way to say so, but an explicit
// instantiation may name a private member.
template <bool OpKernel::*member>
struct ExpensiveMember {
  friend void SetExpensive(OpKernel* kernel, bool expensive) {
    kernel->*member = expensive;
  }
};
void SetExpensive(OpKernel* kernel, bool expensive);
template struct ExpensiveMember<&OpKernel::expensive_>;

StreamOrder* OrderOf(GpuGroups* gpu, bool reduce) {
  static absl::Mutex mu(absl::kConstInit);
  static auto* orders = new std::map<GpuGroups*, std::unique_ptr<StreamOrder>>;
  absl::MutexLock lock(&mu);
  std::unique_ptr<StreamOrder>& order = (*orders)[gpu];
  if (order == nullptr) order = std::make_unique<StreamOrder>(gpu, reduce);
  return order.get();
}

// What a run needs of a node: its part of the plan, with what tells it from
// others by its kernel.
struct Launch {
  int group = 0;
  OpTraits traits;
  // Slots of other nodes: see NodePlan::Node.
  std::vector<int> events;
  std::vector<int> tails;
  bool after_all = false;
  int slot = -1;  // its own, if others wait for it
  bool records = false;
};

struct Launches {
  absl::flat_hash_map<const OpKernel*, Launch> by_kernel;
  std::vector<int> slot_groups;  // the group of each slot's node
  std::vector<int> groups;       // that are used
};

// What runs of all homes share, and what must outlive them.
struct Shared {
  std::vector<GroupMember*> members;  // of the groups
  GpuGroups* gpu;
  StreamOrder* order;
  std::vector<core::RefCountPtr<DeviceContext>> contexts;  // of the groups
  std::shared_ptr<SharedKernels> kernels;
};

class GroupRun : public NodeRun, public std::enable_shared_from_this<GroupRun> {
 public:
  GroupRun(std::shared_ptr<const Shared> shared,
           std::shared_ptr<const Launches> launches, StreamGroup* home,
           std::shared_ptr<Step> step, Executor::Args::Runner run)
      : shared_(std::move(shared)),
        launches_(std::move(launches)),
        home_(home),
        step_(std::move(step)),
        run_(std::move(run)),
        slots_(launches_->slot_groups.size()),
        runners_(shared_->gpu->size()) {}

  ~GroupRun() override {
    for (Slot& slot : slots_) shared_->order->Recycle(std::move(slot.mark));
  }

  Executor::Args::Runner Runner(StreamGroup* group) {
    return StepRunner{step_, &shared_->kernels->traits(), run_,
                      shared_from_this(), group};
  }

  void Compute(OpKernel* kernel, OpKernelContext* context) override {
    const Launch& launch = LaunchOf(kernel);
    Order(launch);
    GroupMember* member = shared_->members[launch.group];
    OpKernelContext::Params* params = context->params();
    DeviceBase* const device = params->device;
    DeviceContext* const device_context = params->op_device_context;
    auto* const runner = params->runner;
    absl::Status status = Move(launch.group, context);
    if (!status.ok()) {
      context->SetStatus(status);
    } else {
      member->ComputeHere(kernel, context, &launch.traits);
    }
    params->device = device;
    params->op_device_context = device_context;
    params->runner = runner;
    Note(launch);
  }

  void ComputeAsync(AsyncOpKernel* kernel, OpKernelContext* context,
                    AsyncOpKernel::DoneCallback done) override {
    const Launch& launch = LaunchOf(kernel);
    Order(launch);
    GroupMember* member = shared_->members[launch.group];
    // These parameters are the op's own.
    absl::Status status = Move(launch.group, context);
    if (!status.ok()) {
      context->SetStatus(status);
      done();
      return;
    }
    member->ComputeAsyncHere(
        kernel, context, &launch.traits,
        [self = shared_from_this(), &launch, done = std::move(done)] {
          self->Note(launch);
          done();
        });
  }

  // What comes after the graph on its home's stream comes after all of it.
  void Join() {
    for (int group : launches_->groups) {
      shared_->order->WaitForAll(home_->index(), group);
    }
  }

 private:
  struct Slot {
    // Of the last launch: in a loop, a node is launched many times.
    std::atomic<int64_t> position{0};
    absl::Mutex mu;
    std::unique_ptr<StreamOrder::Mark> mark ABSL_GUARDED_BY(mu);
  };

  const Launch& LaunchOf(const OpKernel* kernel) const {
    static const auto* unknown = new std::vector<Launch>([] {
      std::vector<Launch> all(kMaxGroupCount);
      for (int i = 0; i < kMaxGroupCount; ++i) all[i].group = i;
      return all;
    }());
    auto found = launches_->by_kernel.find(kernel);
    return found == launches_->by_kernel.end() ? (*unknown)[home_->index()]
                                               : found->second;
  }

  // Makes the launch's stream wait for what the node needs.
  void Order(const Launch& launch) {
    if (launch.events.empty() && launch.tails.empty() && !launch.after_all) {
      return;
    }
    StreamOrder* order = shared_->order;
    bool all = launch.after_all;
    for (int i : launch.events) {
      Slot& slot = slots_[i];
      const int64_t position = slot.position.load(std::memory_order_acquire);
      // It was not launched, being dead: no order comes through it.
      if (position == 0) {
        all = true;
        continue;
      }
      absl::MutexLock lock(&slot.mu);
      order->WaitFor(launch.group, *slot.mark);
    }
    for (size_t i = 0; i < launch.tails.size();) {
      const int group = launches_->slot_groups[launch.tails[i]];
      int64_t last = 0;
      for (; i < launch.tails.size() &&
             launches_->slot_groups[launch.tails[i]] == group;
           ++i) {
        const int64_t position =
            slots_[launch.tails[i]].position.load(std::memory_order_acquire);
        if (position == 0) all = true;
        last = std::max(last, position);
      }
      if (last > 0) order->WaitForTail(launch.group, group, last);
    }
    if (!all) return;
    for (int group : launches_->groups) {
      order->WaitForAll(launch.group, group);
    }
  }

  // The op is the group's: its memory, its streams, its nested calls.
  absl::Status Move(int group, OpKernelContext* context) {
    OpKernelContext::Params* params = context->params();
    params->runner = RunnerOf(group);
    if (group == 0) return absl::OkStatus();
    Device* device = shared_->members[0]->group_device(group);
    params->device = device;
    params->op_device_context = shared_->contexts[group].get();
    if (params->eigen_gpu_device == nullptr) return absl::OkStatus();
    return device->ReinitializeGpuDevice(
        context, params->eigen_gpu_device, params->op_device_context,
        device->GetAllocator(AllocatorAttributes()));
  }

  Executor::Args::Runner* RunnerOf(int group) {
    RunnerSlot& slot = runners_[group];
    if (Executor::Args::Runner* made =
            slot.made.load(std::memory_order_acquire)) {
      return made;
    }
    absl::MutexLock lock(&runners_mu_);
    if (slot.runner == nullptr) {
      // Owned by the run: one that owned the run would never be deleted.
      slot.runner = std::make_unique<Executor::Args::Runner>(
          StepRunner{step_, &shared_->kernels->traits(), run_,
                     std::shared_ptr<NodeRun>(std::shared_ptr<NodeRun>(), this),
                     shared_->gpu->group(group)});
      slot.made.store(slot.runner.get(), std::memory_order_release);
    }
    return slot.runner.get();
  }

  // To be called when the op has been launched, or is done if asynchronous.
  void Note(const Launch& launch) {
    if (launch.slot < 0) return;
    Slot& slot = slots_[launch.slot];
    const int64_t position = shared_->order->Launched(launch.group);
    if (launch.records) {
      std::unique_ptr<StreamOrder::Mark> mark =
          shared_->order->Record(launch.group);
      absl::MutexLock lock(&slot.mu);
      if (slot.mark == nullptr || slot.mark->position < mark->position) {
        slot.mark.swap(mark);
      }
      shared_->order->Recycle(std::move(mark));
    }
    // A node of a loop may be launched by two threads at a time.
    RaiseTo(position, &slot.position);
  }

  struct RunnerSlot {
    std::atomic<Executor::Args::Runner*> made{nullptr};
    std::unique_ptr<Executor::Args::Runner> runner;
  };

  const std::shared_ptr<const Shared> shared_;
  const std::shared_ptr<const Launches> launches_;
  StreamGroup* const home_;
  const std::shared_ptr<Step> step_;
  const Executor::Args::Runner run_;
  std::vector<Slot> slots_;
  absl::Mutex runners_mu_;
  std::vector<RunnerSlot> runners_;
};

class NodeLevelExecutor : public Executor {
 public:
  NodeLevelExecutor(const LocalExecutorParams& params, GroupMember* leader,
                    const Options& options, const StreamFile* file,
                    GraphTraits traits)
      : leader_(leader),
        gpu_(leader->gpu_groups()),
        options_(options),
        file_(file),
        library_(params.function_library == nullptr
                     ? nullptr
                     : params.function_library->GetFunctionLibraryDefinition()),
        launches_(gpu_->size()) {
    auto shared = std::make_shared<Shared>();
    shared->gpu = gpu_;
    shared->order = OrderOf(gpu_, options.reduce_stream_wait);
    shared->kernels =
        SharedKernels::Create(gpu_->leader()->gpu(), params, traits);
    for (int i = 0; i < gpu_->size(); ++i) {
      shared->members.push_back(
          dynamic_cast<GroupMember*>(leader->group_device(i)));
      DeviceContext* context = nullptr;
      leader->group_device(i)->TryGetDeviceContext(&context).IgnoreError();
      shared->contexts.emplace_back(context);
    }
    shared_ = std::move(shared);
  }

  // A step that is done on the host may still run on its streams, with the
  // constants that the kernels own.
  ~NodeLevelExecutor() override {
    for (int i = 0; i < gpu_->size(); ++i) {
      if (used_[i].load(std::memory_order_acquire)) {
        gpu_->group(i)->Block().IgnoreError();
      }
    }
  }

  absl::Status Initialize(const LocalExecutorParams& params, const Graph& graph,
                          const MakeStockExecutor& make_stock) {
    LocalExecutorParams ours = params;
    SharedKernels::Wrap(shared_->kernels, 0, &ours);
    // The plan needs kernels, and the executor looks at once which of them are
    // expensive. It is then given the same ones.
    auto release = absl::MakeCleanup([this, &ours] {
      for (const auto& [name, kernel] : kernels_) ours.delete_kernel(kernel);
    });
    for (const Node* node : graph.op_nodes()) {
      OpKernel* kernel = nullptr;
      // The executor says it in its own words.
      if (!ours.create_kernel(node->properties(), &kernel).ok()) break;
      kernels_[node->name()] = kernel;
    }
    // Plans for other homes than the leader are made when they are needed.
    graph_ = std::make_unique<Graph>(graph.flib_def());
    graph_->Copy(graph);
    TF_RETURN_IF_ERROR(Plan(0).status());
    return make_stock(ours, graph, &executor_);
  }

 private:
  absl::StatusOr<std::shared_ptr<const Launches>> Plan(int home) {
    absl::MutexLock lock(&mu_);
    if (launches_[home] != nullptr) return launches_[home];
    NodePlanOptions options;
    options.group_count = gpu_->size();
    options.home = home;
    options.reduce = options_.reduce_stream_wait;
    options.propagate = options_.forward_propagation;
    options.file = file_;
    absl::StatusOr<NodePlan> plan = MakeNodePlan(
        *graph_, options, [this](const Node& node) { return FactsOf(node); });
    if (!plan.ok()) return plan.status();
    if (file_ != nullptr) LogFileOnce(*file_, *plan);
    auto launches = std::make_shared<Launches>();
    std::vector<int> slot_of(plan->nodes.size(), -1);
    for (const Node* node : graph_->op_nodes()) {
      if (!plan->nodes[node->id()].noted) continue;
      slot_of[node->id()] = static_cast<int>(launches->slot_groups.size());
      launches->slot_groups.push_back(plan->nodes[node->id()].group);
    }
    for (const Node* node : graph_->op_nodes()) {
      auto kernel = kernels_.find(node->name());
      if (kernel == kernels_.end()) continue;
      const NodePlan::Node& planned = plan->nodes[node->id()];
      Launch& launch = launches->by_kernel[kernel->second];
      launch.group = planned.group;
      launch.traits = TraitsOf(*node, *kernel->second, *plan);
      for (int id : planned.events) launch.events.push_back(slot_of[id]);
      for (int id : planned.tails) launch.tails.push_back(slot_of[id]);
      launch.after_all = planned.after_all;
      if (home == 0) {
        SetExpensive(kernel->second, planned.starts || MayBlock(*node));
      }
      launch.slot = slot_of[node->id()];
      launch.records = planned.records;
    }
    for (int i = 0; i < gpu_->size(); ++i) {
      if (!plan->groups_used[i]) continue;
      launches->groups.push_back(i);
    }
    VLOG(1) << "Node level: " << plan->waits << " waits, "
            << plan->waits_left_out << " left out, " << launches->groups.size()
            << " groups";
    launches_[home] = std::move(launches);
    return launches_[home];
  }

  static void LogFileOnce(const StreamFile& file, const NodePlan& plan) {
    static std::atomic<bool> logged{false};
    for (const NodePlan::Node& node : plan.nodes) {
      if (node.why != "file") continue;
      if (!logged.exchange(true)) {
        LOG(INFO) << "Stream groups from a file:\n" << file.Summary();
      }
      return;
    }
  }

  NodeFacts FactsOf(const Node& node) const {
    NodeFacts facts;
    facts.leader_reason = LeaderReason(node, library_);
    facts.keeps_scratch = KeepsScratch(node.type_string());
    auto kernel = kernels_.find(node.name());
    if (kernel == kernels_.end()) return facts;
    facts.changes_state = MayChangeState(*kernel->second, library_);
    facts.launched = node.type_string() != "NoOp" &&
                     kernel->second->const_tensor() == nullptr;
    // TensorFlow guesses where a call's results are; those of an emulated GPU
    // are never the host's.
    if (IsCall(node.def(), library_)) return facts;
    for (MemoryType type : kernel->second->output_memory_types()) {
      facts.on_host.push_back(type == HOST_MEMORY);
    }
    return facts;
  }

  // Whether the op may wait in its thread for what another op of the step does,
  // as taking from a staging area does.
  bool MayBlock(const Node& node) const {
    for (DataType type : node.input_types()) {
      if (type == DT_RESOURCE || IsRefType(type)) return false;
    }
    return !LeaderReason(node, library_).empty();
  }

  OpTraits TraitsOf(const Node& node, const OpKernel& kernel,
                    const NodePlan& plan) const {
    OpTraits traits;
    traits.changes_state = MayChangeState(kernel, library_);
    int groups = 0;
    for (bool used : plan.groups_used) groups += used;
    for (DataType type : kernel.input_types()) {
      traits.keeps_inputs |= type == DT_RESOURCE;
      traits.takes_lists |= type == DT_VARIANT && groups > 1;
    }
    traits.keeps_inputs &= !LeaderReason(node, library_).empty();
    return traits;
  }

  void TFMS_RUN_ASYNC(const Args& args, DoneCallback done) override {
    const StepRunner* outer = StepRunner::From(&args.runner);
    const bool nested = outer != nullptr && !outer->step->finished() &&
                        outer->step->gpu() == gpu_;
    StreamGroup* home = nested ? outer->group : gpu_->leader();
    absl::StatusOr<std::shared_ptr<const Launches>> launches =
        Plan(home->index());
    if (!launches.ok()) {
      done(launches.status());
      return;
    }
    for (int group : (*launches)->groups) {
      used_[group].store(true, std::memory_order_release);
    }
    auto step =
        nested ? outer->step
               : std::make_shared<Step>(gpu_, home,
                                        /*changes_state=*/true, shared_->order);
    auto run = std::make_shared<GroupRun>(
        shared_, *launches, home, step,
        nested
            ? outer->run
            : StepThreads::RunnerFor(args, home, gpu_->size(),
                                     leader_->session_threads(home->index())));
    std::shared_ptr<GroupRendezvous> rendezvous;
    if (args.rendezvous != nullptr) {
      rendezvous = std::make_shared<GroupRendezvous>(
          args.rendezvous, step.get(), home, leader_->group_device(0),
          leader_->group_device(home->index()));
    }
    Args ours = args;
    ours.runner = run->Runner(home);
    if (rendezvous != nullptr) ours.rendezvous = rendezvous.get();
    if (!nested) gpu_->StartStepOn(home);
    executor_->RunAsync(
        ours, [nested, step, run, rendezvous, gpu = gpu_, home,
               failures = gpu_->memory_failures(),
               done = std::move(done)](const absl::Status& result) {
          const absl::Status status =
              nested ? result : gpu->WithMemoryOfGroups(result, failures);
          run->Join();
          if (!nested) {
            step->Finish();
            for (int i = 0; i < gpu->size(); ++i) {
              Step::ReleaseWhenPassed(step, gpu->group(i));
            }
            gpu->NoteLeaderWork();
            gpu->EndStep(home, status.ok());
          }
          done(status);
        });
  }

  GroupMember* const leader_;
  GpuGroups* const gpu_;
  const Options options_;
  const StreamFile* const file_;
  const FunctionLibraryDefinition* const library_;
  std::shared_ptr<const Shared> shared_;
  absl::flat_hash_map<std::string, OpKernel*> kernels_;  // by node
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Graph> graph_;
  std::atomic<bool> used_[kMaxGroupCount] = {};

  absl::Mutex mu_;
  std::vector<std::shared_ptr<const Launches>> launches_
      ABSL_GUARDED_BY(mu_);  // by home
};

}  // namespace

absl::StatusOr<std::unique_ptr<StreamFile>> LoadEnvironmentStreamFile() {
  const absl::StatusOr<Options>& options = EnvironmentOptions();
  if (!options.ok() || !options->node_level || !options->Enabled() ||
      options->stream_file.empty()) {
    return nullptr;
  }
  int most = 1;
  for (int count : options->group_counts) most = std::max(most, count);
  absl::StatusOr<StreamFile> loaded =
      LoadStreamFile(options->stream_file, most);
  if (!loaded.ok()) return loaded.status();
  return std::make_unique<StreamFile>(*std::move(loaded));
}

const absl::StatusOr<std::unique_ptr<StreamFile>>& EnvironmentStreamFile() {
  static const auto* file = new absl::StatusOr<std::unique_ptr<StreamFile>>(
      LoadEnvironmentStreamFile());
  return *file;
}

absl::Status NewNodeLevelExecutor(const LocalExecutorParams& params,
                                  const Graph& graph, GroupMember* leader,
                                  const Options& options,
                                  const StreamFile* file,
                                  const MakeStockExecutor& make_stock,
                                  std::unique_ptr<Executor>* out) {
  const FunctionLibraryDefinition* library =
      params.function_library == nullptr
          ? nullptr
          : params.function_library->GetFunctionLibraryDefinition();
  auto executor = std::make_unique<NodeLevelExecutor>(
      params, leader, options, file, ClassifyGraph(graph, library));
  TF_RETURN_IF_ERROR(executor->Initialize(params, graph, make_stock));
  *out = std::move(executor);
  return absl::OkStatus();
}

}  // namespace multistream
}  // namespace tensorflow
