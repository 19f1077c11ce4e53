// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/ops/op_scope.h"

#include <memory>
#include <utility>

namespace tensorflow::multistream {

OpScope::OpScope(GpuGroups* gpu, StreamGroup* group, OpKernel* kernel,
                 OpKernelContext* context, const OpTraits* traits)
    : on_thread_(group),
      op_(gpu, group, kernel, context, traits),
      holds_(op_),
      state_(op_) {
  if (state_.reads()) holds_.HoldHandles();
  if (group->sanitizer() != nullptr) {
    log_.emplace(group, kernel, context, op_.kernels(), state_.writes());
  }
}

OpScope::~OpScope() {
  copies_.Restore(op_.context);
  state_.End();
  holds_.Enqueued();
}

absl::Status OpScope::CopyForeignInputs(Allocator* allocator,
                                        const CopyOnStream& copy) {
  return copies_.Copy(
      op_, state_.keeps_inputs() ? holds_.foreign() : holds_.taken_over(),
      allocator, copy);
}

void OpScope::Enter() {
  state_.Begin();
  if (state_.writes() && op_.traits != nullptr) holds_.DropVariables();
}

void OpScope::Launched() {
  holds_.HoldForLaterOps(state_.reads());
  if (log_) log_->Launched();
}

std::function<void()> OpScope::TakeEnd() {
  struct End {
    std::shared_ptr<Step> step;  // of the holds
    OpState state;
    Holds holds;
  };
  auto end = std::make_shared<End>(
      End{op_.runner == nullptr ? nullptr : op_.runner->step, state_.Take(),
          holds_.Take()});
  return [end = std::move(end)] {
    end->state.End();
    end->holds.Enqueued();
  };
}

}  // namespace tensorflow::multistream
