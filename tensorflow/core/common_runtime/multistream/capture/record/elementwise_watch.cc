// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/record/elementwise_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_state.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow::multistream {
namespace {

struct Known {
  absl::string_view type;
  Arithmetic arithmetic;
  int operands = 2;
  bool changes_variable = false;  // the variable is the first operand
};
constexpr Known kKnown[] = {
    {"Add", Arithmetic::kAdd},
    {"AddN", Arithmetic::kAdd},
    {"AddV2", Arithmetic::kAdd},
    {"AssignAddVariableOp", Arithmetic::kAdd, 2, true},
    {"AssignSubVariableOp", Arithmetic::kSubtract, 2, true},
    {"Mul", Arithmetic::kMultiply},
    {"Neg", Arithmetic::kNegate, 1},
    {"RealDiv", Arithmetic::kDivide},
    {"Sqrt", Arithmetic::kSquareRoot, 1},
    {"Square", Arithmetic::kSquare, 1},
    {"Sub", Arithmetic::kSubtract},
};

uint64_t AddressOf(const Tensor& tensor) {
  return reinterpret_cast<uint64_t>(tensor.data());
}

// The value of the op's only variable.
Tensor ValueOfVariable(OpKernelContext* context) {
  Tensor value;
  ForEachVariable(context, [&value](const ResourceHandle&, Var* variable) {
    tf_shared_lock lock(*variable->mu());
    value = *variable->tensor();
  });
  return value;
}

}  // namespace

std::vector<MemoryUse> UsesOf(const ElementwiseOp& op) {
  const auto use = [](uint64_t address, int64_t elements, bool writes) {
    return MemoryUse{address, address + elements * sizeof(float), writes};
  };
  std::vector<MemoryUse> uses;
  for (const auto& [address, is_scalar] : op.operands) {
    uses.push_back(use(address, is_scalar ? 1 : op.elements, false));
  }
  uses.push_back(use(op.result, op.elements, true));
  return uses;
}

ElementwiseWatch::ElementwiseWatch(const OpKernel& kernel,
                                   OpKernelContext* context) {
  const Known* known = nullptr;
  for (const Known& it : kKnown) {
    if (it.type == kernel.type_string()) known = &it;
  }
  if (known == nullptr || context->num_inputs() != known->operands) return;
  changes_variable_ = known->changes_variable;
  ElementwiseOp op{known->arithmetic};
  std::vector<int64_t> sizes;
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (!context->has_input(i)) return;
    const bool is_variable = changes_variable_ && i == 0;
    // Gone before the op runs, which would copy a value with a reference more.
    const Tensor value =
        is_variable ? ValueOfVariable(context) : context->input(i);
    if (value.dtype() != DT_FLOAT || value.NumElements() == 0) return;
    if (!is_variable && context->input_memory_type(i) == HOST_MEMORY) return;
    op.operands.push_back({AddressOf(value), false});
    sizes.push_back(value.NumElements());
    op.elements = std::max(op.elements, sizes.back());
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == op.elements) continue;
    if (sizes[i] != 1) return;  // repeated along some dimensions
    op.operands[i].is_scalar = true;
  }
  // A variable keeps its shape.
  if (changes_variable_ && op.operands[0].is_scalar) return;
  op_ = std::move(op);
}

std::optional<ElementwiseOp> ElementwiseWatch::After(
    OpKernelContext* context) && {
  if (!op_ || !context->status().ok()) return std::nullopt;
  if (changes_variable_) {
    op_->result = AddressOf(ValueOfVariable(context));
    if (op_->result != op_->operands[0].address) return std::nullopt;
    return std::move(op_);
  }
  const Tensor* output =
      context->num_outputs() == 1 ? context->mutable_output(0) : nullptr;
  // Each of two operands may be repeated along other dimensions: [3, 1] + [3].
  if (output == nullptr || output->NumElements() != op_->elements) {
    return std::nullopt;
  }
  op_->result = AddressOf(*output);
  return std::move(op_);
}

}  // namespace tensorflow::multistream
