// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which op is launched, on which group, and as part of which step? The parts of
// an OpScope (op_scope.h) share an OpLaunch.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_LAUNCH_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_LAUNCH_H_

#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {
namespace multistream {

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

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_LAUNCH_H_
