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

#include "tensorflow/core/common_runtime/multistream/plan/capturable.h"

#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow {
namespace multistream {
namespace {

// GPU kernels whose launches depend on types and shapes, and on host values
// that other ops of this list compute from types, shapes and constants. An op
// that is not here is not recorded.
const absl::flat_hash_set<absl::string_view>& CapturableOps() {
  static const auto* ops = new absl::flat_hash_set<absl::string_view>{
      // Elementwise, one input.
      "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cast", "Ceil",
      "Cos", "Cosh", "Digamma", "Elu", "Erf", "Erfc", "Exp", "Expm1", "Floor",
      "Inv", "Invert", "IsFinite", "IsInf", "IsNan", "LeakyRelu", "Lgamma",
      "Log", "Log1p", "LogicalNot", "Neg", "OnesLike", "Reciprocal", "Relu",
      "Relu6", "Rint", "Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin",
      "Sinh", "Softplus", "Softsign", "Sqrt", "Square", "Tan", "Tanh",
      "ZerosLike",
      // Elementwise, more inputs.
      "Add", "AddN", "AddV2", "Atan2", "BiasAdd", "BiasAddV1", "ClipByValue",
      "Div", "DivNoNan", "Equal", "FloorDiv", "FloorMod", "Greater",
      "GreaterEqual", "Less", "LessEqual", "LogicalAnd", "LogicalOr", "Maximum",
      "Minimum", "Mod", "Mul", "MulNoNan", "NotEqual", "Pow", "RealDiv",
      "Select", "SelectV2", "SquaredDifference", "Sub", "TruncateDiv", "Xdivy",
      "Xlogy",
      // Products.
      "BatchMatMul", "BatchMatMulV2", "MatMul", "_FusedMatMul",
      // Reductions and scans.
      "All", "Any", "ArgMax", "ArgMin", "Cumprod", "Cumsum", "LogSoftmax",
      "Max", "Mean", "Min", "Prod", "Softmax", "Sum",
      // What moves and shapes.
      "BroadcastTo", "Concat", "ConcatV2", "ExpandDims", "Fill", "Gather",
      "GatherV2", "Identity", "IdentityN", "InvertPermutation", "OneHot",
      "Pack", "Pad", "PadV2", "PreventGradient", "Reshape", "ReverseV2",
      "Slice", "Snapshot", "Split", "SplitV", "Squeeze", "StopGradient",
      "StridedSlice", "Tile", "Transpose", "Unpack",
      // Of shapes, on the host.
      "BroadcastArgs", "ConcatOffset", "Range", "Rank", "Shape", "ShapeN",
      "Size",
      // Constants and order.
      "Const", "NoOp"};
  return *ops;
}

bool IsOnHost(absl::string_view device) {
  DeviceNameUtils::ParsedName name;
  return DeviceNameUtils::ParseFullName(device, &name) && name.has_type &&
         name.type == DEVICE_CPU;
}

// Whether a tensor of this name is a value that the session is fed: the edge of
// an argument's node, whose name no node of a program can have. Anything else
// may come from an op on the host that waits for a result of this graph.
bool IsFed(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "edge_")) return false;
  const size_t end = name.find_first_not_of("0123456789");
  return end != 0 && end != name.npos &&
         absl::StartsWith(name.substr(end), "__arg_");
}

// The key of what a node sends or receives outside all loops.
absl::Status KeyOf(const Node& node, std::string* key) {
  std::string name, from, to;
  int64_t incarnation;
  TF_RETURN_IF_ERROR(GetNodeAttr(node.attrs(), "tensor_name", &name));
  TF_RETURN_IF_ERROR(GetNodeAttr(node.attrs(), "send_device", &from));
  TF_RETURN_IF_ERROR(GetNodeAttr(node.attrs(), "recv_device", &to));
  TF_RETURN_IF_ERROR(
      GetNodeAttr(node.attrs(), "send_device_incarnation", &incarnation));
  if (!IsOnHost(node.IsRecv() ? from : to)) {
    return absl::InvalidArgumentError("has another device at its other end");
  }
  if (node.IsRecv() && !IsFed(name)) {
    return absl::InvalidArgumentError(
        "receives what an op on the host computes");
  }
  *key = Rendezvous::CreateKey(from, static_cast<uint64_t>(incarnation), to,
                               name, FrameAndIter(0, 0));
  return absl::OkStatus();
}

// Why `node` must not be recorded, or nothing. Adds its key, if it has one.
std::string ObstacleAt(const Node& node, Capturable* found) {
  for (const DataTypeVector& types :
       {node.input_types(), node.output_types()}) {
    for (DataType type : types) {
      if (!DataTypeCanUseMemcpy(BaseType(type)) || IsRefType(type)) {
        return absl::StrCat("has a ", DataTypeString(type));
      }
    }
  }
  if (node.IsSend() || node.IsRecv()) {
    // A value that kernels read on the host may decide what they launch.
    if (node.type_string() == "_HostRecv") {
      return "receives a value that its users read on the host";
    }
    std::vector<std::string>& keys =
        node.IsSend() ? found->sends : found->receives;
    const absl::Status status = KeyOf(node, &keys.emplace_back());
    return std::string(status.message());
  }
  if (CapturableOps().contains(node.type_string())) return "";
  return "is not known to launch the same kernels in each step";
}

}  // namespace

Capturable ClassifyForCapture(const Graph& graph) {
  Capturable found;
  for (const Node* node : graph.op_nodes()) {
    if (std::string obstacle = ObstacleAt(*node, &found); !obstacle.empty()) {
      found.obstacle =
          absl::StrCat(node->type_string(), " '", node->name(), "' ", obstacle);
      return found;
    }
  }
  if (found.sends.empty()) found.obstacle = "the graph sends no result";
  return found;
}

}  // namespace multistream
}  // namespace tensorflow
