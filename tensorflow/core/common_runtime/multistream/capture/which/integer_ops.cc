// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/integer_ops.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/base/host_kernels.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/errors.h"

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

// What the op's results are with int64 in place of int32.
enum class Wider {
  kNot,      // other ones, or the op is not listed
  kAsItIs,   // the same numbers
  kExceeds,  // after a cast to int32: a result may need more than 32 bits
  kDivides,  // the same, if the divisor, its second input, is a constant
};

struct Op {
  // The type of 32 bits with which the op leaves the bits that it leaves with
  // int32: float if the op only moves numbers, uint32 for arithmetic modulo
  // 2^32, for which TensorFlow's kernels are those for int32.
  DataType same_bits = DT_INVALID;
  Wider wider = Wider::kNot;
};

Op OpOf(absl::string_view name) {
  struct Row {
    Op op;
    const char* names;
  };
  static const auto* ops = [] {
    auto* all = new absl::flat_hash_map<std::string, Op>;
    for (const Row& row : std::vector<Row>{
             {{DT_FLOAT, Wider::kAsItIs},
              "BroadcastTo Concat ConcatV2 ExpandDims Identity Pack Pad Rank "
              "Reshape ReverseV2 Shape ShapeN Size Slice Snapshot Split SplitV "
              "Squeeze StopGradient StridedSlice Tile Transpose Unpack "
              "ZerosLike"},
             {{DT_UINT32, Wider::kAsItIs}, "Equal NotEqual"},
             {{DT_UINT32, Wider::kExceeds}, "AddV2 Mul Sub"},
             {{DT_INVALID, Wider::kAsItIs},
              "Enter Exit Fill Greater GreaterEqual Less LessEqual Maximum "
              "Merge Minimum NextIteration OnesLike PadV2 Sign Switch"},
             {{DT_INVALID, Wider::kExceeds},
              "Abs Add AddN Cumsum Neg Prod Square SquaredDifference Sum"},
             {{DT_INVALID, Wider::kDivides}, "FloorDiv FloorMod"}}) {
      for (absl::string_view op : absl::StrSplit(row.names, ' ')) {
        (*all)[op] = row.op;
      }
    }
    return all;
  }();
  const auto found = ops->find(name);
  return found == ops->end() ? Op() : found->second;
}

// Whether `divisor` is a constant by which int32 ops on the host always divide:
// 0 is an error there, and -1 may overflow.
bool NeverFailsToDivide(const Node& divisor) {
  Tensor value;
  if (!divisor.IsConstant() ||
      !GetNodeAttr(divisor.attrs(), "value", &value).ok() ||
      value.dtype() != DT_INT32) {
    return false;
  }
  const auto numbers = value.flat<int32_t>();
  return std::none_of(
      numbers.data(), numbers.data() + numbers.size(),
      [](int32_t number) { return number == 0 || number == -1; });
}

absl::Status CheckDivisor(const Node& node) {
  const Node* divisor;
  TF_RETURN_IF_ERROR(node.input_node(1, &divisor));
  if (NeverFailsToDivide(*divisor)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      node.type_string(), " '", node.name(),
      "' divides by a value, which is an error on the host if it is 0"));
}

bool HasKernel(const Node& node, DataType type) {
  NodeDef def = node.def();
  (*def.mutable_attr())["T"].set_type(type);
  return FindKernelDef(DEVICE_GPU, def, nullptr, nullptr).ok();
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

absl::StatusOr<Counterpart> CounterpartOf(const Node& node, bool takes_int64) {
  DataType type;
  if (!TryGetNodeAttr(node.attrs(), "T", &type) || type != DT_INT32) {
    return Counterpart();
  }
  const auto [same_bits, wider] = OpOf(node.type_string());
  const bool fits = wider != Wider::kNot && HasKernel(node, DT_INT64);
  if (same_bits != DT_INVALID && HasKernel(node, same_bits) &&
      !(takes_int64 && fits)) {
    return Counterpart{same_bits, true};
  }
  if (wider == Wider::kDivides) TF_RETURN_IF_ERROR(CheckDivisor(node));
  if (!fits) return Counterpart();
  return Counterpart{DT_INT64, wider == Wider::kExceeds};
}

NodeDef Conversion(DataType from, DataType to) {
  NodeDef def;
  const bool is_cast = from == DT_INT64 || to == DT_INT64;
  def.set_op(is_cast ? "Cast" : "Bitcast");
  AddNodeAttr(is_cast ? "SrcT" : "T", from, &def);
  AddNodeAttr(is_cast ? "DstT" : "type", to, &def);
  return def;
}

NodeDef ConstantAs(DataType type, const Tensor& value) {
  Tensor other(type, value.shape());
  if (type == DT_INT64) {
    std::copy_n(value.flat<int32_t>().data(), value.NumElements(),
                other.flat<int64_t>().data());
  } else {
    std::memcpy(other.data(), value.data(), value.TotalBytes());
  }
  NodeDef def;
  def.set_op("Const");
  AddNodeAttr("dtype", type, &def);
  AddNodeAttr("value", other, &def);
  return def;
}

}  // namespace tensorflow::multistream
