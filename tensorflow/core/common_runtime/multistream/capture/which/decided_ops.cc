// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/decided_ops.h"

#include <numeric>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/base/host_kernels.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {

REGISTER_OP(kCopyOfDecided)
    .Input("value: T")
    .Output("copy: T")
    .Attr("T: type")
    .SetShapeFn(shape_inference::UnchangedShape);
REGISTER_OP(kKeptDecided)
    .Input("value: T")
    .Output("kept: T")
    .Attr("T: type")
    .SetShapeFn(shape_inference::UnchangedShape);

namespace {

std::vector<int> UpTo(int count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

// Not ops that make large tensors of small ones, as Fill does: the recording
// would copy these to the GPU in each step.
bool MayRunOnHost(const Node& node) {
  static const auto* ops = new absl::flat_hash_set<absl::string_view>{
      "Add",       "AddV2",      "All",        "Any",          "Cast",
      "ConcatV2",  "Equal",      "ExpandDims", "FloorDiv",     "FloorMod",
      "GatherV2",  "Greater",    "Less",       "GreaterEqual", "Identity",
      "LessEqual", "LogicalAnd", "LogicalNot", "LogicalOr",    "Max",
      "Maximum",   "Min",        "Minimum",    "Mul",          "Neg",
      "NotEqual",  "Pack",       "Prod",       "Reshape",      "SelectV2",
      "Slice",     "Squeeze",    "Split",      "StridedSlice", "Sub",
      "Sum",       "Unpack"};
  const auto is_exact = [](DataType type) {
    return DataTypeIsInteger(type) || type == DT_BOOL;
  };
  return ops->contains(node.type_string()) &&
         absl::c_all_of(node.input_types(), is_exact) &&
         absl::c_all_of(node.output_types(), is_exact);
}

NodeDef CopyDecided(DataType type) {
  NodeDef def;
  def.set_op(kCopyOfDecided);
  AddNodeAttr("T", type, &def);
  return def;
}

NodeDef KeepDecided(DataType type) {
  NodeDef def = CopyDecided(type);
  def.set_op(kKeptDecided);
  return def;
}

NodeDef OnHost(const Node& node, const std::string& name) {
  NodeDef def = node.def();
  def.set_name(name);
  AddNodeAttr(kRunsOnHostAttr, true, &def);
  // MemoryTypesForNode reads these.
  AddNodeAttr("_input_hostmem", UpTo(node.num_inputs()), &def);
  AddNodeAttr("_output_hostmem", UpTo(node.num_outputs()), &def);
  return def;
}

}  // namespace tensorflow::multistream
