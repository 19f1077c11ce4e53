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

#include "tensorflow/core/common_runtime/multistream/step/op_scope.h"

#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/common_runtime/multistream/memory/fresh_memory.h"
#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"
#include "tensorflow/core/common_runtime/multistream/plan/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/util/test_faults.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/type_index.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow {
namespace multistream {
namespace {

bool IsForeign(StreamGroup* group, const Tensor& tensor) {
  const void* data = tensor.data();
  if (data == nullptr) return false;
  StreamGroup* owner = MemoryOwner::Get()->Find(data);
  return owner != nullptr && owner != group;
}

int64_t ReferencesTo(const Tensor& tensor) {
  const TensorBuffer* buffer = DMAHelper::buffer(&tensor);
  return buffer == nullptr ? 0 : buffer->RefCount();
}

absl::Span<const ResourceHandle> HandlesOf(const Tensor& tensor) {
  const auto handles = tensor.flat<ResourceHandle>();
  return absl::MakeConstSpan(handles.data(), handles.size());
}

// The key of all reference variables. They are changed in place whoever else
// has their buffers, and any input of any op of a step that has some may be
// such a buffer.
constexpr GpuGroups::StateKey kReferences = 0;

GpuGroups::StateKey KeyOf(const ResourceHandle& handle,
                          OpKernelContext* context) {
  if (handle.IsRefCounting()) return absl::HashOf(handle.resource().get());
  return absl::HashOf(context->resource_manager(), handle.container(),
                      handle.name());
}

// The runner that carries the step of an op on `group`, or nullptr.
const StepRunner* RunnerOf(StreamGroup* group, const OpTraits* traits,
                           OpKernelContext* context) {
  const StepRunner* runner = StepRunner::From(context->runner());
  const bool is_ours = runner != nullptr &&
                       (traits != nullptr || runner->step->group() == group);
  return is_ours ? runner : nullptr;
}

bool IsVariable(const ResourceHandle& handle) {
  static const uint64_t variable = TypeIndex::Make<Var>().hash_code();
  return handle.hash_code() == variable;
}

// No GPU has strings. A reference to some is most often a queue's handle.
bool TakesReferenceVariable(OpKernelContext* context, int input) {
  return context->params()->inputs[input].is_ref() &&
         context->op_kernel().input_type(input) != DT_STRING_REF;
}

// Whether the op is given a variable, and not some other resource.
bool TakesVariable(OpKernelContext* context) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    const TensorValue& value = context->params()->inputs[i];
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

}  // namespace

OpScope::OpScope(GpuGroups* gpu, StreamGroup* group, OpKernel* kernel,
                 OpKernelContext* context, const OpTraits* traits)
    : on_thread_(group),
      gpu_(gpu),
      group_(group),
      kernel_(kernel),
      context_(context),
      traits_(traits),
      runner_(RunnerOf(group, traits, context)),
      step_(runner_ == nullptr ? nullptr : runner_->step.get()),
      access_{gpu, group},
      // What a step that is all on one group uses of others are arguments and
      // variables, which live on.
      holds_(group, step_, /*counts=*/traits != nullptr) {
  const KernelTraits* kernels = runner_ == nullptr ? nullptr : runner_->traits;
  FindForeignInputs(kernels);
  if (group->is_leader() &&
      (step_ == nullptr || traits != nullptr || step_->changes_state())) {
    access_.is_leader_work = traits == nullptr;
    access_.writes = MayWrite();
    adopts_ = (access_.writes && MayKeepInputs(kernel->type_string_view())) ||
              (traits != nullptr && traits->keeps_inputs);
  } else if (!group->is_leader() && kernels != nullptr &&
             (kernels->readers.contains(kernel) || MayReadReferences())) {
    access_.reads = true;
    // The handle keeps a reference-counted variable alive. It is no memory of
    // another group, which is what tests drop holds of.
    for (int i = 0; i < context->num_inputs(); ++i) {
      if (context->has_input(i) && context->input_dtype(i) == DT_RESOURCE) {
        holds_.Add(context->input(i));
      }
    }
  }
  if (access_.reads || access_.writes) FindState();
  if (group->sanitizer() != nullptr) {
    log_.emplace(group, kernel, context, kernels, access_.writes);
  }
}

void OpScope::Enter() {
  access_.Begin();
  if (access_.writes && traits_ != nullptr) LetGoOfVariables();
}

void OpScope::Access::Begin() {
  has_begun = true;
  if (writes) {
    gpu->BeginWrite(state);
  } else if (reads) {
    gpu->BeginRead(group, state);
  }
}

void OpScope::Access::End() {
  if (!std::exchange(has_begun, false)) return;
  if (writes) {
    gpu->EndWrite(state);
  } else if (reads) {
    gpu->EndRead(group, state);
  } else if (is_leader_work) {
    gpu->NoteLeaderWork();
  }
}

void OpScope::FindState() {
  bool references =
      access_.reads && step_ != nullptr && step_->has_references();
  for (int i = 0; i < context_->num_inputs(); ++i) {
    const TensorValue& value = context_->params()->inputs[i];
    if (value.is_ref()) {
      references |= TakesReferenceVariable(context_, i);
      continue;
    }
    if (value.tensor == nullptr || value.tensor->dtype() != DT_RESOURCE) {
      continue;
    }
    for (const ResourceHandle& handle : HandlesOf(*value.tensor)) {
      access_.state.push_back(KeyOf(handle, context_));
    }
  }
  if (references) access_.state.push_back(kReferences);
}

const FunctionLibraryDefinition* OpScope::Library() const {
  const FunctionLibraryRuntime* library = context_->function_library();
  return library == nullptr ? nullptr : library->GetFunctionLibraryDefinition();
}

bool OpScope::MayReadReferences() const {
  return step_ != nullptr && step_->has_references() &&
         MayReadReference(kernel_->def(), Library());
}

bool OpScope::MayWrite() const {
  if (traits_ != nullptr) {
    return traits_->changes_state && TakesVariable(context_);
  }
  return MayChangeState(*kernel_, Library()) && TakesVariable(context_);
}

void OpScope::ForEachVariable(absl::FunctionRef<void(Var*)> f) {
  for (int i = 0; i < context_->num_inputs(); ++i) {
    if (!context_->has_input(i) || context_->input_dtype(i) != DT_RESOURCE) {
      continue;
    }
    for (const ResourceHandle& handle : HandlesOf(context_->input(i))) {
      core::RefCountPtr<Var> var;
      if (IsVariable(handle) && LookupResource(context_, handle, &var).ok()) {
        f(var.get());
      }
    }
  }
}

void OpScope::LetGoOfVariables() {
  for (int i = 0; i < context_->num_inputs(); ++i) {
    if (context_->has_input(i) && IsRefType(context_->input_dtype(i))) {
      step_->LetGo(context_->params()->inputs[i].tensor->data());
    }
  }
  ForEachVariable([this](Var* var) {
    const void* data;
    {
      tf_shared_lock lock(*var->mu());
      data = var->tensor()->data();
    }
    step_->LetGo(data);
  });
}

void OpScope::Hold(const Tensor& tensor) {
  if (!TakeTestFault(TestFault::kDropHold)) holds_.Add(tensor);
}

void OpScope::HoldForLaterOps() {
  if (step_ == nullptr) return;
  if (access_.reads || kernel_->type_string_view() == "_Arg") {
    for (int i = 0; i < context_->num_outputs(); ++i) {
      if (context_->expected_output_dtype(i) == DT_VARIANT &&
          context_->mutable_output(i) != nullptr) {
        HoldToEnd(*context_->mutable_output(i));
      }
    }
  }
  if (access_.reads && PassesVariablesOn(kernel_->type_string_view())) {
    ForEachVariable([this](Var* var) {
      tf_shared_lock lock(*var->mu());
      HoldToEnd(*var->tensor());
    });
  }
}

void OpScope::HoldToEnd(const Tensor& tensor) {
  if (!TakeTestFault(TestFault::kDropHold)) step_->HoldToEnd(group_, tensor);
}

std::function<void()> OpScope::TakeEnd() {
  struct End {
    std::shared_ptr<Step> step;  // of the holds
    Access access;
    Holds holds;
  };
  auto end =
      std::make_shared<End>(End{runner_ == nullptr ? nullptr : runner_->step,
                                access_, std::move(holds_)});
  access_.has_begun = false;
  return [end = std::move(end)] {
    end->access.End();
    end->holds.Enqueued();
  };
}

OpScope::~OpScope() {
  if (adopted_ != nullptr) context_->params()->inputs = original_inputs_;
  access_.End();
  holds_.Enqueued();
}

void OpScope::FindForeignInputs(const KernelTraits* traits) {
  // Of two summands the order changes nothing.
  const bool adds =
      context_->num_inputs() > 2 && kernel_->type_string_view() == "AddN";
  for (int i = 0; i < context_->num_inputs(); ++i) {
    const TensorValue& value = context_->params()->inputs[i];
    // A dead input has no tensor, a reference's buffer may change under us:
    // reference variables are the leader's, and read under BeginRead.
    if (value.tensor == nullptr || value.is_ref()) continue;
    const Tensor& tensor = *value.tensor;
    if (tensor.dtype() == DT_VARIANT &&
        (step_ == nullptr || (traits_ != nullptr && traits_->takes_lists))) {
      // What HoldForLaterOps does for a step.
      Hold(tensor);
      continue;
    }
    const bool is_foreign = IsForeign(group_, tensor);
    if (adds) {
      const int holds = step_ == nullptr ? 0 : step_->HoldsOf(tensor.data());
      if (ReferencesTo(tensor) <= 1 + holds && (is_foreign || holds > 0)) {
        taken_over_.push_back(i);
      }
    }
    if (!is_foreign) continue;
    if (traits != nullptr && traits->constants.contains(tensor.data())) {
      continue;
    }
    foreign_.push_back(i);
    group_->NoteForeignUse(tensor.data());
    Hold(tensor);
  }
}

absl::Status OpScope::MakeGathered(GpuGroups* gpu, StreamGroup* group,
                                   OpKernel* kernel, OpKernelContext* context,
                                   Allocator* allocator,
                                   const CopyOnStream& copy) {
  core::RefCountPtr<Var> var;
  // The kernel says what is wrong with its input.
  if (!context->has_input(0) ||
      !LookupResource(context, HandleFromInput(context, 0), &var).ok()) {
    return absl::OkStatus();
  }
  const auto must_move = [&var] {
    const Tensor& tensor = *var->tensor();
    return !var->copy_on_read_mode.load() && tensor.IsInitialized() &&
           !tensor.RefCountIsOne() && DataTypeCanUseMemcpy(tensor.dtype());
  };
  const GpuGroups::StateKey state[] = {
      KeyOf(HandleFromInput(context, 0), context)};
  Tensor moved;
  while (!var->copy_on_read_mode.load()) {
    // Without a lock: who waits for one may be who frees the memory.
    DataType type = DT_INVALID;
    TensorShape shape;
    {
      tf_shared_lock lock(*var->mu());
      if (must_move()) {
        type = var->tensor()->dtype();
        shape = var->tensor()->shape();
      }
    }
    if (type != DT_INVALID &&
        !(moved.dtype() == type && moved.shape() == shape)) {
      moved = Tensor(allocator, type, shape);
      if (!moved.IsInitialized()) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "Out of memory: stream group 0 of /device:GPU:", group->gpu(),
            " has no ", shape.num_elements() * DataTypeSize(type),
            " bytes for a copy of the variable that ", kernel->name(),
            " reads"));
      }
    }
    gpu->BeginWrite(state);
    bool is_done = true;
    absl::Status status = [&]() -> absl::Status {
      mutex_lock lock(*var->mu());
      Tensor* tensor = var->tensor();
      if (var->copy_on_read_mode.load() || !tensor->IsInitialized()) {
        return absl::OkStatus();
      }
      if (must_move()) {
        // Another value by now, or shared only now.
        is_done = moved.dtype() == tensor->dtype() &&
                  moved.shape() == tensor->shape() && moved.IsInitialized();
        if (!is_done) return absl::OkStatus();
        absl::Status copied = copy(*tensor, &moved);
        if (!copied.ok()) return copied;
        *tensor = std::move(moved);
      }
      var->copy_on_read_mode.store(true);
      return absl::OkStatus();
    }();
    gpu->EndWrite(state);
    if (!status.ok() || is_done) return status;
  }
  return absl::OkStatus();
}

absl::Status OpScope::AdoptForeignInputs(Allocator* allocator,
                                         const CopyOnStream& copy) {
  original_inputs_ = context_->params()->inputs;
  adopted_inputs_.assign(original_inputs_.begin(), original_inputs_.end());
  adopted_ = std::make_unique<std::vector<Tensor>>();
  const std::vector<int>& inputs = adopts_ ? foreign_ : taken_over_;
  adopted_->reserve(inputs.size());
  for (int i : inputs) {
    const Tensor& from = *original_inputs_[i].tensor;
    if (!DataTypeCanUseMemcpy(from.dtype())) continue;
    Tensor to(allocator, from.dtype(), from.shape());
    if (!to.IsInitialized()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("Out of memory: stream group ", group_->index(),
                       " of /device:GPU:", group_->gpu(), " has no ",
                       from.TotalBytes(), " bytes for a copy of input ", i,
                       " of ", context_->op_kernel().name()));
    }
    absl::Status status = copy(from, &to);
    if (!status.ok()) return status;
    adopted_->push_back(std::move(to));
    adopted_inputs_[i] = TensorValue(&adopted_->back());
  }
  context_->params()->inputs = adopted_inputs_;
  return absl::OkStatus();
}

void HoldIfForeign(StreamGroup* group, const Tensor& tensor, Holds* holds) {
  if (!IsForeign(group, tensor)) return;
  group->NoteForeignUse(tensor.data());
  holds->Add(tensor);
}

}  // namespace multistream
}  // namespace tensorflow
