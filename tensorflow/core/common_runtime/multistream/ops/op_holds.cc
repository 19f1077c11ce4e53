// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/ops/op_holds.h"

#include <cstdint>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_state.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
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

}  // namespace

OpHolds::OpHolds(const OpLaunch& op)
    : op_(op),
      // At graph level, other groups' memory is that of arguments and
      // variables, which outlives the holds: dropping them frees nothing.
      holds_(op.group, op.step, /*counts=*/op.traits != nullptr) {
  FindForeignInputs();
}

void OpHolds::HoldHandles() {
  // Not through Hold(): its test fault is for other groups' memory.
  for (int i = 0; i < op_.context->num_inputs(); ++i) {
    if (op_.context->has_input(i) &&
        op_.context->input_dtype(i) == DT_RESOURCE) {
      holds_.Add(op_.context->input(i));
    }
  }
}

void OpHolds::DropVariables() {
  for (int i = 0; i < op_.context->num_inputs(); ++i) {
    if (op_.context->has_input(i) && IsRefType(op_.context->input_dtype(i))) {
      op_.step->holds().Release(
          OpParams(op_.context)->inputs[i].tensor->data());
    }
  }
  ForEachVariable(op_.context, [this](const ResourceHandle&, Var* var) {
    const void* data;
    {
      tf_shared_lock lock(*var->mu());
      data = var->tensor()->data();
    }
    op_.step->holds().Release(data);
  });
}

void OpHolds::Hold(const Tensor& tensor) {
  if (!TakeTestFault(TestFault::kDropHold)) holds_.Add(tensor);
}

void OpHolds::HoldForLaterOps(bool reads) {
  if (op_.step == nullptr) return;
  if (reads || op_.kernel->type_string_view() == "_Arg") {
    for (int i = 0; i < op_.context->num_outputs(); ++i) {
      if (op_.context->expected_output_dtype(i) == DT_VARIANT &&
          op_.context->mutable_output(i) != nullptr) {
        HoldToEnd(*op_.context->mutable_output(i));
      }
    }
  }
  if (reads && PassesVariablesOn(op_.kernel->type_string_view())) {
    ForEachVariable(op_.context, [this](const ResourceHandle&, Var* var) {
      tf_shared_lock lock(*var->mu());
      HoldToEnd(*var->tensor());
    });
  }
}

void OpHolds::HoldToEnd(const Tensor& tensor) {
  if (!TakeTestFault(TestFault::kDropHold)) {
    op_.step->holds().HoldToEnd(op_.group, tensor);
  }
}

void OpHolds::FindForeignInputs() {
  const KernelTraits* kernels = op_.kernels();
  // With two summands the order makes no difference.
  const bool adds =
      op_.context->num_inputs() > 2 && op_.kernel->type_string_view() == "AddN";
  for (int i = 0; i < op_.context->num_inputs(); ++i) {
    const TensorValue& value = OpParams(op_.context)->inputs[i];
    // Dead inputs have no tensor. References' buffers may change meanwhile, but
    // belong to the leader and are read under BeginRead.
    if (value.tensor == nullptr || value.is_ref()) continue;
    const Tensor& tensor = *value.tensor;
    if (tensor.dtype() == DT_VARIANT &&
        (op_.step == nullptr ||
         (op_.traits != nullptr && op_.traits->takes_lists))) {
      // Keeps the elements of a list, as HoldForLaterOps does for a step.
      Hold(tensor);
      continue;
    }
    const bool is_foreign = IsForeign(op_.group, tensor);
    if (adds) {
      const int holds =
          op_.step == nullptr ? 0 : op_.step->holds().HoldsOf(tensor.data());
      if (ReferencesTo(tensor) <= 1 + holds && (is_foreign || holds > 0)) {
        taken_over_.push_back(i);
      }
    }
    if (!is_foreign) continue;
    if (kernels != nullptr && kernels->constants.contains(tensor.data())) {
      continue;
    }
    foreign_.push_back(i);
    Hold(tensor);
  }
}

void HoldIfForeign(StreamGroup* group, const Tensor& tensor, Holds* holds) {
  if (!IsForeign(group, tensor)) return;
  holds->Add(tensor);
}

}  // namespace tensorflow::multistream
