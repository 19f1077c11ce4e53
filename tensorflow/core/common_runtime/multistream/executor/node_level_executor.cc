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

#include "tensorflow/core/common_runtime/multistream/executor/node_level_executor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/executor/expensive_kernel.h"
#include "tensorflow/core/common_runtime/multistream/plan/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/plan/node_plan.h"
#include "tensorflow/core/common_runtime/multistream/plan/plan_capture.h"
#include "tensorflow/core/common_runtime/multistream/plan/plan_tuner.h"
#include "tensorflow/core/common_runtime/multistream/plan/process_stream_file.h"
#include "tensorflow/core/common_runtime/multistream/step/group_rendezvous.h"
#include "tensorflow/core/common_runtime/multistream/step/group_run.h"
#include "tensorflow/core/common_runtime/multistream/step/pinned_group.h"
#include "tensorflow/core/common_runtime/multistream/step/shared_kernels.h"
#include "tensorflow/core/common_runtime/multistream/step/step.h"
#include "tensorflow/core/common_runtime/multistream/step/step_profile.h"
#include "tensorflow/core/common_runtime/multistream/step/step_threads.h"
#include "tensorflow/core/common_runtime/multistream/stream/fork_state.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_order.h"
#include "tensorflow/core/common_runtime/multistream/util/compat.h"
#include "tensorflow/core/lib/core/refcount.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace multistream {
namespace {

StreamOrder* OrderOf(GpuGroups* gpu, bool reduce) {
  static absl::Mutex mu(absl::kConstInit);
  static auto* orders = new std::map<GpuGroups*, std::unique_ptr<StreamOrder>>;
  absl::MutexLock lock(&mu);
  std::unique_ptr<StreamOrder>& order = (*orders)[gpu];
  if (order == nullptr) order = std::make_unique<StreamOrder>(gpu, reduce);
  return order.get();
}

double NowUs() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// What a wait costs depends on the machine: less with threads that are awake,
// more with those that have to be woken.
constexpr double kWaitWithThreadUs = 15;
constexpr double kSlowWaitUs = 45;

class NodeLevelExecutor : public Executor {
 public:
  NodeLevelExecutor(const LocalExecutorParams& params, GroupMember* leader,
                    const Options& options, const StreamFile* file,
                    GraphTraits traits)
      : leader_(leader),
        gpu_(leader->gpu_groups()),
        groups_(leader->session_streams().groups),
        is_emulated_(params.device->device_type() != DEVICE_GPU),
        options_(options),
        file_(file),
        library_(
            params.function_library == nullptr
                ? nullptr
                : params.function_library->GetFunctionLibraryDefinition()) {
    auto shared = std::make_shared<RunShared>();
    shared->gpu = gpu_;
    shared->order = OrderOf(gpu_, options.reduce_stream_wait);
    shared->kernels =
        SharedKernels::Create(gpu_->leader()->gpu(), params, traits);
    for (int i = 0; i < groups_; ++i) {
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
    make_stock_ = make_stock;
    SharedKernels::Wrap(shared_->kernels, 0, &params_);
    // The plan needs kernels, and the executor looks at once which of them are
    // expensive. It is then given the same ones.
    auto release = absl::MakeCleanup([this] {
      for (const auto& [name, kernel] : kernels_) {
        params_.delete_kernel(kernel);
      }
    });
    for (const Node* node : graph.op_nodes()) {
      OpKernel* kernel = nullptr;
      // The executor says it in its own words.
      if (!params_.create_kernel(node->properties(), &kernel).ok()) break;
      kernels_[node->name()] = kernel;
    }
    // Plans for other homes than the leader are made when they are needed.
    graph_ = std::make_unique<Graph>(graph.flib_def());
    graph_->Copy(graph);
    absl::StatusOr<bool> tuned = HasNodesToTune();
    if (!tuned.ok()) return tuned.status();
    auto variant = NewVariant({/*split=*/!*tuned});
    if (!variant.ok()) return variant.status();
    absl::MutexLock lock(&mu_);
    variants_.push_back(*std::move(variant));
    if (*tuned) {
      tuner_ = std::make_shared<PlanTuner>([this] { return MakeVariants(); });
    }
    return absl::OkStatus();
  }

 private:
  // What a plan is made of.
  struct Guess {
    bool split = true;  // as the policies say
    Policy cost_policy = Policy::kCost;
    double wait_us = PolicyOptions().wait_us;
  };
  // A plan of the graph, and what runs it.
  struct Variant {
    Guess guess;
    std::vector<std::shared_ptr<const Launches>> launches;  // by home; see mu_
    std::unique_ptr<Executor> executor;
  };

  // Whether to find out which plan is the fastest.
  absl::StatusOr<bool> HasNodesToTune() const {
    for (const Node* node : graph_->op_nodes()) {
      absl::StatusOr<NodePolicy> policy = PolicyOf(*node, PlanOptions(0));
      if (!policy.ok()) return policy.status();
      if (policy->policy != Policy::kNone && policy->measured) return true;
    }
    return false;
  }

  NodePlanOptions PlanOptions(int home) const {
    NodePlanOptions options;
    options.group_count = groups_;
    options.home = home;
    options.reduce = options_.reduce_stream_wait;
    options.propagate = options_.forward_propagation;
    options.file = file_;
    options.policy = leader_->session_streams().policy;
    options.measure = options_.measure;
    return options;
  }

  // By one thread at a time: it changes the kernels for the executor.
  absl::StatusOr<std::unique_ptr<Variant>> NewVariant(const Guess& guess) const
      ABSL_LOCKS_EXCLUDED(mu_) {
    auto variant = std::make_unique<Variant>();
    variant->guess = guess;
    variant->launches.resize(groups_);
    auto launches = Plan(0, guess);
    if (!launches.ok()) return launches.status();
    variant->launches[0] = *std::move(launches);
    TF_RETURN_IF_ERROR(make_stock_(params_, *graph_, &variant->executor));
    return variant;
  }

  // Plans to try beside that of one stream. Returns how many there are with it.
  int MakeVariants() ABSL_LOCKS_EXCLUDED(mu_) {
    for (const Guess& guess :
         {Guess{}, Guess{true, Policy::kCost, kWaitWithThreadUs},
          Guess{true, Policy::kCost, kSlowWaitUs},
          Guess{true, Policy::kFullGraph}, Guess{true, Policy::kEmbedding}}) {
      absl::StatusOr<std::unique_ptr<Variant>> variant = NewVariant(guess);
      if (!variant.ok()) {
        LOG(WARNING) << "A plan cannot be tried: " << variant.status();
        continue;
      }
      absl::MutexLock lock(&mu_);
      const bool known =
          std::any_of(variants_.begin(), variants_.end(), [&](const auto& v) {
            return SameGroups(*v->launches[0], *(*variant)->launches[0]);
          });
      if (!known) variants_.push_back(*std::move(variant));
    }
    absl::MutexLock lock(&mu_);
    return static_cast<int>(variants_.size());
  }

  static bool SameGroups(const Launches& a, const Launches& b) {
    for (const auto& [kernel, launch] : a.by_kernel) {
      auto other = b.by_kernel.find(kernel);
      if (other == b.by_kernel.end() || other->second.group != launch.group) {
        return false;
      }
    }
    return true;
  }

  // The plan `number` with `home`. Makes it without the lock, as no step shall
  // wait for a plan that is not its own. Two threads that do so at once have
  // the same plan, of which the first one stays. nullptr: it has to be made,
  // and this thread may not.
  absl::StatusOr<std::shared_ptr<const Launches>> LaunchesOf(int number,
                                                             int home,
                                                             bool may_plan,
                                                             Executor** runs)
      ABSL_LOCKS_EXCLUDED(mu_) {
    if (number == PlanTuner::kMustPlan) return nullptr;
    Guess guess;
    {
      absl::MutexLock lock(&mu_);
      const Variant& variant = *variants_[number];
      *runs = variant.executor.get();
      if (variant.launches[home] != nullptr) return variant.launches[home];
      if (!may_plan) return nullptr;
      guess = variant.guess;
    }
    auto made = Plan(home, guess);
    if (!made.ok()) return made.status();
    absl::MutexLock lock(&mu_);
    auto& launches = variants_[number]->launches[home];
    if (launches == nullptr) launches = *std::move(made);
    return launches;
  }

  absl::StatusOr<std::shared_ptr<const Launches>> Plan(int home,
                                                       const Guess& guess) const
      ABSL_LOCKS_EXCLUDED(mu_) {
    NodePlanOptions options = PlanOptions(home);
    options.split = guess.split;
    options.cost_policy = guess.cost_policy;
    options.wait_us = guess.wait_us;
    options.cost_us = [this](const Node& node) -> std::optional<double> {
      auto kernel = kernels_.find(node.name());
      if (kernel == kernels_.end()) return std::nullopt;
      return profile_.CostOf(kernel->second);
    };
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
      // The executor that is made next looks at it.
      if (home == 0) {
        SetExpensive(kernel->second, planned.starts || MayBlock(*node));
      }
      launch.slot = slot_of[node->id()];
      launch.records = planned.records;
    }
    for (int i = 0; i < groups_; ++i) {
      if (!plan->groups_used[i]) continue;
      launches->groups.push_back(i);
    }
    VLOG(1) << "Node level: " << plan->waits << " waits, "
            << plan->waits_left_out << " left out, " << launches->groups.size()
            << " groups";
    return launches;
  }

  void CapturePlan(const Launches& launches) const {
    for (const auto& [name, kernel] : kernels_) {
      auto launch = launches.by_kernel.find(kernel);
      if (launch != launches.by_kernel.end()) {
        PlanCapture::Add(name, launch->second.group);
      }
    }
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
    // TensorFlow guesses where a call's results are. What an emulated GPU has
    // in host memory, by its kernel, it was given from a group's.
    if (IsCall(node.def(), library_) || is_emulated_) return facts;
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

  // This may be the thread that runs all streams' callbacks: it plans nothing.
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
    if (const int pinned = PinnedGroup(args); pinned != kAnyGroup && !nested) {
      done(absl::InvalidArgumentError(absl::StrCat(
          "A call was to run on stream group ", pinned,
          ", and its nodes have groups of their own: "
          "TF_NODE_LEVEL_MULTISTREAM=true, or the session's configuration "
          "asks for streams. Use tf.cuda.stream_scope, where the graph is "
          "built")));
      return;
    }
    StreamGroup* home = nested ? outer->group : gpu_->leader();
    // What runs within a step is not worth a search.
    PlanTuner::Run turn;
    if (tuner_ != nullptr && !nested) turn = tuner_->Begin(NowUs(), may_plan);
    Executor* executor = nullptr;
    auto launches = LaunchesOf(turn.plan, home->index(), may_plan, &executor);
    if (launches.ok() && *launches == nullptr) {
      // No turn has begun: without one, only a nested step may lack its plan.
      params_.device->env()->SchedClosure([this, args, done = std::move(done)] {
        RunStep(args, done, /*may_plan=*/true);
      });
      return;
    }
    if (!launches.ok()) {
      if (turn.watched) tuner_->Done(turn);
      done(launches.status());
      return;
    }
    if (PlanCapture::IsOn()) CapturePlan(**launches);
    for (int i : (*launches)->groups) used_[i].store(true);
    auto step =
        nested ? outer->step
               : std::make_shared<Step>(gpu_, home,
                                        /*changes_state=*/true, shared_->order);
    if (shared_->kernels->traits().has_references) step->NoteReferences();
    auto run = std::make_shared<GroupRun>(
        shared_, *launches, home, step,
        nested
            ? outer->run
            : StepThreads::RunnerFor(args, home, groups_,
                                     leader_->session_threads(home->index())),
        turn.profiled ? &profile_ : nullptr);
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
    executor->RunAsync(
        ours, [this, turn, nested, step, run, rendezvous, gpu = gpu_,
               groups = groups_, home, failures = gpu_->memory_failures(),
               done = std::move(done)](const absl::Status& result) {
          const absl::Status status =
              nested ? result : gpu->WithMemoryOfGroups(result, failures);
          run->Join();
          if (!nested) {
            step->Finish();
            for (int i = 0; i < groups; ++i) {
              step->ReleaseWhenPassed(gpu->group(i));
            }
            gpu->NoteLeaderWork();
            gpu->EndStep(home, status.ok());
          }
          if (turn.watched) {
            tuner_->Done(turn);
            home->WhenPassed([tuner = tuner_, turn, ok = status.ok()] {
              tuner->Passed(turn, NowUs(), ok);
            });
          }
          done(status);
        });
  }

  GroupMember* const leader_;
  GpuGroups* const gpu_;
  const int groups_;  // that the session has
  const bool is_emulated_;
  const Options options_;
  const StreamFile* const file_;
  const FunctionLibraryDefinition* const library_;
  std::shared_ptr<const RunShared> shared_;
  LocalExecutorParams params_;
  MakeStockExecutor make_stock_;
  absl::flat_hash_map<std::string, OpKernel*> kernels_;  // by node
  std::unique_ptr<Graph> graph_;
  std::atomic<bool> used_[kMaxGroupCount] = {};
  StepProfile profile_;
  std::shared_ptr<PlanTuner> tuner_;  // or nullptr

  // Never held while a plan is made: steps begin and end meanwhile.
  absl::Mutex mu_;
  // The first one splits nothing, if the fastest is to be found.
  std::vector<std::unique_ptr<Variant>> variants_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::Status NewNodeLevelExecutor(const LocalExecutorParams& params,
                                  const Graph& graph, GroupMember* leader,
                                  const MakeStockExecutor& make_stock,
                                  std::unique_ptr<Executor>* out) {
  if (GroupsAreOfParent()) return GroupsAreOfParentError();
  const absl::StatusOr<const StreamFile*> file = ProcessStreamFile();
  if (!file.ok()) return file.status();
  const FunctionLibraryDefinition* library =
      params.function_library == nullptr
          ? nullptr
          : params.function_library->GetFunctionLibraryDefinition();
  auto executor = std::make_unique<NodeLevelExecutor>(
      params, leader, *ProcessOptions(), *file, ClassifyGraph(graph, library));
  TF_RETURN_IF_ERROR(executor->Initialize(params, graph, make_stock));
  *out = std::move(executor);
  return absl::OkStatus();
}

}  // namespace multistream
}  // namespace tensorflow
