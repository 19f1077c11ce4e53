// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which elementwise arithmetic (elementwise.h) is an op that is being recorded,
// and on which memory?

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_ELEMENTWISE_WATCH_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_ELEMENTWISE_WATCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/elementwise.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow::multistream {

// The memory that the op reads and writes.
std::vector<MemoryUse> UsesOf(const ElementwiseOp& op);

// Looks at an op before and after it is launched.
class ElementwiseWatch {
 public:
  // Call before the launch.
  ElementwiseWatch(const OpKernel& kernel, OpKernelContext* context);

  // The op as far as it is known before the launch: without its result.
  const std::optional<ElementwiseOp>& before() const { return op_; }

  // Call after the launch. Nullopt if the op is not elementwise arithmetic on
  // the device, or has moved its variable's value.
  std::optional<ElementwiseOp> After(OpKernelContext* context) &&;

 private:
  // Sets the result's shape to `shape` repeated `multiples` times. Returns
  // false if a dimension is repeated that has more than one element.
  bool SetTiled(const Tensor& multiples, const TensorShape& shape);

  bool changes_variable_ = false;
  bool is_sum_ = false;                    // AddN
  absl::InlinedVector<int64_t, 4> shape_;  // of the result
  std::optional<ElementwiseOp> op_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_ELEMENTWISE_WATCH_H_
