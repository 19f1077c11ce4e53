// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/ops/op_state.h"

#include <cstdint>
#include <utility>

#include "absl/hash/hash.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/type_index.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
namespace {

// One key for all reference variables. They are changed in place even if other
// tensors share their buffers, and in a step with reference variables any input
// of any op may be such a buffer.
constexpr GpuGroups::StateKey kReferences = 0;

bool MayReadReferences(const OpLaunch& op) {
  return op.step != nullptr && op.step->has_references() &&
         MayReadReference(op.kernel->def(), op.functions());
}

// Whether the op may wait for another op during its launch.
bool MayWait(OpKernel* kernel) {
  const OpDef* op;
  return kernel->AsAsync() != nullptr ||
         !OpRegistry::Global()->LookUpOpDef(kernel->type_string(), &op).ok() ||
         op->is_stateful();
}

// Whether an input is a reference to a variable. References to strings do not
// count: GPUs have no string variables, and such a reference is usually a
// queue's handle.
bool TakesReferenceVariable(OpKernelContext* context, int input) {
  return OpParams(context)->inputs[input].is_ref() &&
         context->op_kernel().input_type(input) != DT_STRING_REF;
}

// Whether any input is a variable.
bool TakesVariable(OpKernelContext* context) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    const TensorValue& value = OpParams(context)->inputs[i];
    if (value.is_ref()) {
      if (TakesReferenceVariable(context, i)) return true;
      continue;
    }
    if (value.tensor == nullptr || value.tensor->dtype() != DT_RESOURCE) {
      continue;
    }
    for (const ResourceHandle& handle : HandlesOf(*value.tensor)) {
      if (IsVariable(handle)) return true;
    }
  }
  return false;
}

bool MayWrite(const OpLaunch& op) {
  if (op.traits != nullptr) {
    return op.traits->changes_state && TakesVariable(op.context);
  }
  if (!TakesVariable(op.context)) return false;
  // To look at a compiled function in each launch would take long.
  return IsCompiledCall(op.kernel->def()) ||
         MayChangeState(*op.kernel, op.functions());
}

}  // namespace

absl::Span<const ResourceHandle> HandlesOf(const Tensor& tensor) {
  const auto handles = tensor.flat<ResourceHandle>();
  return absl::MakeConstSpan(handles.data(), handles.size());
}

bool IsVariable(const ResourceHandle& handle) {
  static const uint64_t variable = TypeIndex::Make<Var>().hash_code();
  return handle.hash_code() == variable;
}

core::RefCountPtr<Var> VariableOf(const ResourceHandle& handle,
                                  ResourceMgr* resources,
                                  const std::string& device) {
  Var* found = nullptr;
  if (!IsVariable(handle)) return nullptr;
  if (handle.IsRefCounting()) {
    const auto held = handle.GetResource<Var>();
    if (!held.ok()) return nullptr;
    found = *held;
    found->Ref();
  } else if (handle.device() == device) {
    resources->Lookup(handle.container(), handle.name(), &found).IgnoreError();
  }
  return core::RefCountPtr<Var>(found);
}

void ForEachVariable(OpKernelContext* context,
                     absl::FunctionRef<void(const ResourceHandle&, Var*)> f) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (!context->has_input(i) || context->input_dtype(i) != DT_RESOURCE) {
      continue;
    }
    for (const ResourceHandle& handle : HandlesOf(context->input(i))) {
      core::RefCountPtr<Var> var;
      if (IsVariable(handle) && LookupResource(context, handle, &var).ok()) {
        f(handle, var.get());
      }
    }
  }
}

GpuGroups::StateKey StateKeyOf(const ResourceHandle& handle,
                               ResourceMgr* resources) {
  if (handle.IsRefCounting()) return absl::HashOf(handle.resource().get());
  return StateKeyOf(resources, handle.container(), handle.name());
}

GpuGroups::StateKey StateKeyOf(ResourceMgr* resources,
                               const std::string& container,
                               const std::string& name) {
  return absl::HashOf(resources, container, name);
}

OpState::OpState(const OpLaunch& op) : gpu_(op.gpu), group_(op.group) {
  const KernelTraits* kernels = op.kernels();
  if (group_->is_leader() && (op.step == nullptr || op.traits != nullptr ||
                              op.step->changes_state())) {
    is_leader_work_ = op.traits == nullptr;
    writes_ = MayWrite(op);
    keeps_inputs_ = (writes_ && MayKeepInputs(op.kernel->type_string_view())) ||
                    (op.traits != nullptr && op.traits->keeps_inputs);
  } else if (!group_->is_leader() && kernels != nullptr &&
             (kernels->readers.contains(op.kernel) || MayReadReferences(op))) {
    reads_ = true;
  }
  bool references = reads_ && op.step != nullptr && op.step->has_references();
  if (group_->is_leader() && !writes_) {
    references =
        gpu_->ops_overlap() && MayReadReferences(op) && !MayWait(op.kernel);
    reads_on_leader_ =
        references || (gpu_->has_recorders() && TakesVariable(op.context) &&
                       !IsCall(op.kernel->def(), op.functions()));
  }
  if (reads_ || writes_ || reads_on_leader_) FindKeys(op, references);
}

void OpState::Begin() {
  has_begun_ = true;
  if (writes_) {
    gpu_->BeginWrite(keys_);
  } else if (reads_ || reads_on_leader_) {
    gpu_->BeginRead(group_, keys_);
  }
}

void OpState::End() {
  if (!std::exchange(has_begun_, false)) return;
  if (writes_) {
    gpu_->EndWrite(keys_);
  } else if (reads_ || reads_on_leader_) {
    gpu_->EndRead(group_, keys_);
  }
  if (!writes_ && is_leader_work_) gpu_->NoteLeaderWork();
}

OpState OpState::Take() {
  OpState taken = std::move(*this);
  has_begun_ = false;
  return taken;
}

void OpState::FindKeys(const OpLaunch& op, bool references) {
  for (int i = 0; i < op.context->num_inputs(); ++i) {
    const TensorValue& value = OpParams(op.context)->inputs[i];
    if (value.is_ref()) {
      references |= TakesReferenceVariable(op.context, i);
      continue;
    }
    if (value.tensor == nullptr || value.tensor->dtype() != DT_RESOURCE) {
      continue;
    }
    for (const ResourceHandle& handle : HandlesOf(*value.tensor)) {
      keys_.push_back(StateKeyOf(handle, op.context->resource_manager()));
    }
  }
  if (references) keys_.push_back(kReferences);
}

}  // namespace tensorflow::multistream
