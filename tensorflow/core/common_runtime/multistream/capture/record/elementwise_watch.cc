// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/record/elementwise_watch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_state.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow::multistream {
namespace {

constexpr int kAnyNumber = -1;
struct Known {
  absl::string_view type;
  Arithmetic arithmetic;
  int operands = 2;
  bool changes_variable = false;  // the variable is the first operand
};
constexpr Known kKnown[] = {
    {"Add", Arithmetic::kAdd},
    {"AddN", Arithmetic::kAdd, kAnyNumber},
    {"AddV2", Arithmetic::kAdd},
    {"AssignAddVariableOp", Arithmetic::kAdd, 2, true},
    {"AssignSubVariableOp", Arithmetic::kSubtract, 2, true},
    {"BiasAdd", Arithmetic::kAdd},
    {"GreaterEqual", Arithmetic::kGreaterEqual},
    {"Mul", Arithmetic::kMultiply},
    {"Neg", Arithmetic::kNegate, 1},
    {"RealDiv", Arithmetic::kDivide},
    {"SelectV2", Arithmetic::kSelect, 3},
    {"Sqrt", Arithmetic::kSquareRoot, 1},
    {"Square", Arithmetic::kSquare, 1},
    {"SquaredDifference", Arithmetic::kSquaredDifference},
    {"Sub", Arithmetic::kSubtract},
    {"Tile", Arithmetic::kCopy, 1},
};

// Up to so many tensors, the order in which AddN adds was compared.
constexpr int kMostAdded = 4;
// A program counts elements in 32 bits.
constexpr int64_t kMostElements = int64_t{1} << 30;

using Dimensions = absl::InlinedVector<int64_t, 4>;

// Aligned at the last dimension.
int64_t DimensionOf(const TensorShape& shape, int rank, int i) {
  const int at = i - (rank - shape.dims());
  return at < 0 ? 1 : shape.dim_size(at);
}

// The shape that the shapes are broadcast to.
Dimensions BroadcastOf(const std::vector<Tensor>& values) {
  int rank = 0;
  for (const Tensor& value : values) rank = std::max(rank, value.dims());
  Dimensions shape(rank, 1);
  for (int i = 0; i < rank; ++i) {
    for (const Tensor& value : values) {
      shape[i] = std::max(shape[i], DimensionOf(value.shape(), rank, i));
    }
  }
  return shape;
}

// Sets how the operand is broadcast to `result`. Returns false if no Broadcast
// can say that.
bool SetBroadcast(const TensorShape& shape, const Dimensions& result,
                  ElementwiseOp::Operand* operand) {
  struct Run {  // of dimensions that are repeated, or are not
    bool is_kept;
    uint32_t size;
  };
  const int rank = static_cast<int>(result.size());
  absl::InlinedVector<Run, 8> runs;  // the last dimensions first
  for (int i = rank - 1; i >= 0; --i) {
    if (result[i] == 1) continue;
    const int64_t size = DimensionOf(shape, rank, i);
    if (size != result[i] && size != 1) return false;
    const bool is_kept = size == result[i];
    if (runs.empty() || runs.back().is_kept != is_kept) {
      runs.push_back({is_kept, 1});
    }
    runs.back().size *= static_cast<uint32_t>(result[i]);
  }
  if (runs.empty() || (runs.size() == 1 && runs[0].is_kept)) return true;
  if (runs.size() == 1) {
    operand->is_scalar = true;
    return true;
  }
  Broadcast broadcast;
  broadcast.elements = shape.num_elements();
  const size_t first = runs[0].is_kept ? 0 : 1;  // that is kept
  if (first == 1) broadcast.inner = runs[0].size;
  if (runs.size() > first + 1) broadcast.kept = runs[first].size;
  if (runs.size() > first + 2) broadcast.times = runs[first + 1].size;
  operand->broadcast = broadcast;
  return runs.size() <= first + 3;
}

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
  std::vector<MemoryUse> uses;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const auto& [address, is_scalar, broadcast] = op.operands[i];
    const int64_t elements =
        is_scalar ? 1 : (broadcast ? broadcast->elements : op.elements);
    const size_t bytes = BytesOfElement(TakesBools(op.arithmetic, i));
    uses.push_back({address, address + elements * bytes, false});
  }
  const size_t bytes = BytesOfElement(GivesBools(op.arithmetic));
  uses.push_back({op.result, op.result + op.elements * bytes, true});
  return uses;
}

ElementwiseWatch::ElementwiseWatch(const OpKernel& kernel,
                                   OpKernelContext* context) {
  const Known* known = nullptr;
  for (const Known& it : kKnown) {
    if (it.type == kernel.type_string()) known = &it;
  }
  if (known == nullptr) return;
  changes_variable_ = known->changes_variable;
  is_sum_ = known->operands == kAnyNumber;
  const bool is_tile = known->type == "Tile";
  const int operands = is_sum_ ? context->num_inputs() : known->operands;
  if (context->num_inputs() != operands + (is_tile ? 1 : 0) ||
      operands > kMostAdded) {
    return;
  }
  std::vector<Tensor> values;
  for (int i = 0; i < operands; ++i) {
    if (!context->has_input(i)) return;
    const bool is_variable = changes_variable_ && i == 0;
    if (!is_variable && context->input_memory_type(i) == HOST_MEMORY) return;
    // The tensors are gone before the op runs, which would copy a value with a
    // reference more.
    const Tensor& value = values.emplace_back(
        is_variable ? ValueOfVariable(context) : context->input(i));
    const DataType type = TakesBools(known->arithmetic, i) ? DT_BOOL : DT_FLOAT;
    if (value.dtype() != type || value.NumElements() == 0) return;
  }
  if (is_tile) {
    if (!context->has_input(1) ||
        context->input_memory_type(1) != HOST_MEMORY ||
        !SetTiled(context->input(1), values[0].shape())) {
      return;
    }
  } else {
    shape_ = BroadcastOf(values);
  }
  if (known->type == "BiasAdd") {
    // Else the bias belongs to another dimension than the last.
    std::string format;
    if (!GetNodeAttr(kernel.def(), "data_format", &format).ok() ||
        format != "NHWC") {
      return;
    }
  }
  ElementwiseOp op{known->arithmetic, /*elements=*/1};
  for (const int64_t size : shape_) {
    if (size > kMostElements / op.elements) return;
    op.elements *= size;
  }
  for (const Tensor& value : values) {
    ElementwiseOp::Operand& operand = op.operands.emplace_back();
    operand.address = AddressOf(value);
    if (!SetBroadcast(value.shape(), shape_, &operand)) return;
  }
  // A variable keeps its shape.
  if (changes_variable_ && !op.operands[0].IsWhole()) return;
  op_ = std::move(op);
}

bool ElementwiseWatch::SetTiled(const Tensor& multiples,
                                const TensorShape& shape) {
  if (multiples.dtype() != DT_INT32 ||
      multiples.NumElements() != shape.dims()) {
    return false;
  }
  const auto times = multiples.flat<int32_t>();
  for (int i = 0; i < shape.dims(); ++i) {
    if (times(i) < 1 || (times(i) > 1 && shape.dim_size(i) > 1)) return false;
    shape_.push_back(shape.dim_size(i) * times(i));
  }
  return true;
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
  if (output == nullptr ||
      output->dtype() != (GivesBools(op_->arithmetic) ? DT_BOOL : DT_FLOAT) ||
      output->shape().dim_sizes() != shape_) {
    return std::nullopt;
  }
  op_->result = AddressOf(*output);
  // AddN begins with the operand whose memory it takes for the sum.
  if (is_sum_) {
    for (ElementwiseOp::Operand& operand : op_->operands) {
      if (operand.address != op_->result) continue;
      std::swap(operand, op_->operands[0]);
      break;
    }
  }
  return std::move(op_);
}

}  // namespace tensorflow::multistream
