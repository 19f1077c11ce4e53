// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/wider_ops.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {

Wider WiderOf(absl::string_view op) {
  static const auto* ops = [] {
    auto* all = new absl::flat_hash_map<std::string, Wider>;
    for (const auto& [wider, names] :
         std::vector<std::pair<Wider, const char*>>{
             {Wider::kAsItIs,
              "BroadcastTo Concat ConcatV2 Enter Equal Exit ExpandDims Fill "
              "Greater GreaterEqual Identity Less LessEqual Maximum Merge "
              "Minimum NextIteration NotEqual OnesLike Pack Pad PadV2 Rank "
              "Reshape ReverseV2 Shape ShapeN "
              "Sign Size Slice Snapshot Split SplitV Squeeze StopGradient "
              "StridedSlice Switch Tile Transpose Unpack ZerosLike"},
             {Wider::kExceeds,
              "Abs Add AddN AddV2 Cumsum Mul Neg Prod Square SquaredDifference "
              "Sub Sum"},
             {Wider::kDivides, "FloorDiv FloorMod"}}) {
      for (absl::string_view name : absl::StrSplit(names, ' ')) {
        (*all)[name] = wider;
      }
    }
    return all;
  }();
  const auto found = ops->find(op);
  return found == ops->end() ? Wider::kNot : found->second;
}

namespace {

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

}  // namespace

absl::Status CheckDivisor(const Node& node) {
  const Node* divisor;
  TF_RETURN_IF_ERROR(node.input_node(1, &divisor));
  if (NeverFailsToDivide(*divisor)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      node.type_string(), " '", node.name(),
      "' divides by a value, which is an error on the host if it is 0"));
}

Tensor AsInt64(const Tensor& value) {
  Tensor wide(DT_INT64, value.shape());
  std::copy_n(value.flat<int32_t>().data(), value.NumElements(),
              wide.flat<int64_t>().data());
  return wide;
}

}  // namespace tensorflow::multistream
