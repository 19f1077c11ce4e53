// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What belongs to one step on one stream group? The memory that the step holds,
// and the runner that tells ops and nested calls which step they are part of.
// Executors make a Step for each step; OpScopes and nested calls look it up.
// The parts of an OpScope (op_scope.h) share an OpLaunch: which op is launched,
// on which group, and as part of which step?

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_STEP_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_STEP_H_

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/common_runtime/multistream/ops/holds.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_order.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {

// Facts about the kernels of one executor.
struct KernelTraits {
  // Kernels that read variables or other state of the leader.
  absl::flat_hash_set<const OpKernel*> readers;
  // Data of constants that kernels own. Constants live as long as the executor,
  // which outlives its steps, so they need no holds.
  absl::flat_hash_set<const void*> constants;
  // Whether the kernels' graph has reference variables.
  bool has_references = false;
};

class Step {
 public:
  // `changes_state`: the step may change variables, and runs on the leader.
  // `order`: not null at node level only.
  Step(GpuGroups* gpu, StreamGroup* group, bool changes_state,
       StreamOrder* order = nullptr)
      : gpu_(gpu),
        group_(group),
        changes_state_(changes_state),
        holds_(gpu, order, &finished_) {}

  GpuGroups* gpu() const { return gpu_; }
  StreamGroup* group() const { return group_; }
  bool changes_state() const { return changes_state_; }

  // Call when a graph of the step has reference variables. From now on aliases
  // of their memory may be anywhere in the step, also in called functions.
  void NoteReferences() {
    has_references_.store(true, std::memory_order_release);
  }
  bool has_references() const {
    return has_references_.load(std::memory_order_acquire);
  }

  // Call when all ops of the step are done on the host. The step's runner may
  // live on, in an input pipeline that the step started.
  void Finish() { finished_.store(true, std::memory_order_release); }
  bool finished() const { return finished_.load(std::memory_order_acquire); }

  // The enqueued holds of the step's groups.
  StepHolds& holds() { return holds_; }

 private:
  GpuGroups* const gpu_;
  StreamGroup* const group_;
  const bool changes_state_;
  std::atomic<bool> has_references_{false};
  std::atomic<bool> finished_{false};
  StepHolds holds_;
};

class NodeRun;

// Runs closures in the way that the session chose, and carries the step. An op
// finds the StepRunner in OpKernelContext::runner(), a nested call in its Args.
struct StepRunner {
  std::shared_ptr<Step> step;
  const KernelTraits* traits;
  std::function<void(std::function<void()>)> run;  // null: run in place
  // At node level; otherwise null.
  std::shared_ptr<NodeRun> nodes;
  // Group of the op that has this runner, or of the step.
  StreamGroup* group = nullptr;

  void operator()(std::function<void()> closure) const {
    if (run) {
      run(std::move(closure));
    } else {
      closure();
    }
  }

  // The StepRunner inside `runner`, or nullptr.
  static const StepRunner* From(
      const std::function<void(std::function<void()>)>* runner) {
    return runner == nullptr ? nullptr : runner->target<StepRunner>();
  }
};

// What the plan knows of an op at node level.
struct OpTraits {
  bool changes_state = false;  // it may change a variable
  bool keeps_inputs = false;   // in a resource
  bool takes_lists = false;    // whose elements may be any group's
};

// One launch, while an OpScope lives.
struct OpLaunch {
  // `traits`: not null at node level only.
  OpLaunch(GpuGroups* gpu, StreamGroup* group, OpKernel* kernel,
           OpKernelContext* context, const OpTraits* traits)
      : gpu(gpu),
        group(group),
        kernel(kernel),
        context(context),
        traits(traits),
        runner(RunnerOf(group, traits, context)),
        step(runner == nullptr ? nullptr : runner->step.get()) {}

  // Facts about the kernels of the step's executor, or nullptr.
  const KernelTraits* kernels() const {
    return runner == nullptr ? nullptr : runner->traits;
  }

  // The functions that the op may call, or nullptr.
  const FunctionLibraryDefinition* functions() const {
    const FunctionLibraryRuntime* library = context->function_library();
    return library == nullptr ? nullptr
                              : library->GetFunctionLibraryDefinition();
  }

  GpuGroups* const gpu;
  StreamGroup* const group;
  OpKernel* const kernel;
  OpKernelContext* const context;
  const OpTraits* const traits;
  const StepRunner* const runner;  // of the op's step, or nullptr
  Step* const step;                // the runner's step, or nullptr

 private:
  // The runner with the step of an op on `group`, or nullptr.
  static const StepRunner* RunnerOf(StreamGroup* group, const OpTraits* traits,
                                    OpKernelContext* context) {
    const StepRunner* runner = StepRunner::From(context->runner());
    const bool is_ours = runner != nullptr &&
                         (traits != nullptr || runner->step->group() == group);
    return is_ours ? runner : nullptr;
  }
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_STEP_H_
