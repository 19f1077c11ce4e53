// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/decided_logic.h"

#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

namespace tensorflow::multistream {

REGISTER_OP(kAndOfDecided)
    .Input("x: bool")
    .Input("y: bool")
    .Output("z: bool")
    .SetShapeFn(shape_inference::BroadcastBinaryOpShapeFn);
REGISTER_OP(kOrOfDecided)
    .Input("x: bool")
    .Input("y: bool")
    .Output("z: bool")
    .SetShapeFn(shape_inference::BroadcastBinaryOpShapeFn);
REGISTER_OP(kNotOfDecided)
    .Input("x: bool")
    .Output("y: bool")
    .SetShapeFn(shape_inference::UnchangedShape);

const char* LogicOnHost(absl::string_view op) {
  if (op == "LogicalAnd") return kAndOfDecided;
  if (op == "LogicalOr") return kOrOfDecided;
  if (op == "LogicalNot") return kNotOfDecided;
  return nullptr;
}

}  // namespace tensorflow::multistream
