// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/op_families.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_split.h"

namespace tensorflow::multistream {
namespace {

// A letter before a * stands for any number of inputs.
struct Line {
  const char* inputs;
  OpFamily family;
  const char* ops;
};

const absl::flat_hash_map<absl::string_view, const Line*>& Table() {
  static constexpr Line kLines[] = {
      // Elementwise.
      {"v", OpFamily::kElementwise,
       "Abs Acos Acosh Angle Asin Asinh Atan Atanh Cast Ceil ComplexAbs Conj "
       "Cos Cosh Digamma Elu Erf Erfc Erfinv Exp Expm1 FakeQuantWithMinMaxArgs "
       "Floor Imag Inv Invert IsFinite IsInf IsNan LeakyRelu Lgamma Log Log1p "
       "LogicalNot Ndtri Neg OnesLike Real Reciprocal Relu Relu6 Rint Round "
       "Rsqrt Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Square Tan "
       "Tanh ZerosLike Bitcast"},
      {"v*", OpFamily::kBroadcast,
       "Add AddN AddV2 Atan2 BitwiseAnd BitwiseOr BitwiseXor ClipByValue "
       "Complex Div DivNoNan Equal FloorDiv FloorMod Greater GreaterEqual "
       "Igamma Igammac LeftShift Less LessEqual LogicalAnd LogicalOr Maximum "
       "Minimum Mod Mul MulNoNan NextAfter NotEqual Polygamma Pow RealDiv "
       "RightShift SelectV2 SquaredDifference Sub TruncateDiv TruncateMod "
       "Xdivy Xlog1py Xlogy Zeta"},
      {"vvv", OpFamily::kSelect, "Select"},
      {"vw", OpFamily::kBiasAdd, "BiasAdd BiasAddV1"},
      {"v*", OpFamily::kEach,
       "EnsureShape Identity IdentityN PreventGradient Snapshot StopGradient "
       "_MultiStreamCopyOfDecided"},
      // Products.
      {"v*", OpFamily::kEinsum, "Einsum"},
      {"vv", OpFamily::kBatchMatMul, "BatchMatMul BatchMatMulV2 BatchMatMulV3"},
      {"vw*", OpFamily::kMatMul, "MatMul _FusedMatMul"},
      // Images.
      {"v", OpFamily::kImage,
       "AvgPool AvgPool3D DepthToSpace MaxPool MaxPool3D SpaceToDepth"},
      {"vpp", OpFamily::kPoolOfInputs, "MaxPoolV2"},
      {"vs", OpFamily::kImage, "ResizeBilinear"},
      {"vw", OpFamily::kImage, "Conv2D Conv3D DepthwiseConv2dNative"},
      {"swv", OpFamily::kImage, "Conv2DBackpropInput"},
      {"vw*", OpFamily::kFusedConvolution, "_FusedConv2D"},
      {"vwwww", OpFamily::kBatchNorm,
       "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3"},
      {"vwwwwv*", OpFamily::kBatchNorm, "_FusedBatchNormEx"},
      {"vp", OpFamily::kPad, "MirrorPad Pad"},
      {"vpw", OpFamily::kPad, "PadV2"},
      // Along an axis.
      {"vp", OpFamily::kReduce, "All Any EuclideanNorm Max Mean Min Prod Sum"},
      {"vp", OpFamily::kScan,
       "ArgMax ArgMin Cumprod Cumsum CumulativeLogsumexp ReverseV2"},
      {"v", OpFamily::kSoftmax, "LogSoftmax Softmax"},
      {"vp", OpFamily::kTopK, "TopKV2"},
      {"v", OpFamily::kNorm, "L2Loss"},
      {"pv*", OpFamily::kConcat, "Concat"},
      {"v*p", OpFamily::kConcat, "ConcatV2"},
      {"v*", OpFamily::kPack, "Pack"},
      {"v", OpFamily::kUnpack, "Unpack"},
      {"pv", OpFamily::kSplit, "Split"},
      {"vpp", OpFamily::kSplitV, "SplitV"},
      {"vpww", OpFamily::kOneHot, "OneHot"},
      {"vpp", OpFamily::kMatrices, "MatrixBandPart"},
      // Lookups.
      {"vv", OpFamily::kGather, "Gather"},
      {"vvp", OpFamily::kGather, "GatherV2"},
      {"wv", OpFamily::kGather, "ResourceGather"},
      {"wv", OpFamily::kGatherNd, "GatherNd ResourceGatherNd"},
      // Data movement and reshaping. If elements keep their order, only the
      // first dimension matters, which is checked for all ops.
      {"v", OpFamily::kSqueeze, "Squeeze"},
      {"vp", OpFamily::kExpandDims, "ExpandDims"},
      {"vs", OpFamily::kReshape, "Reshape"},
      {"vs", OpFamily::kCopies, "BroadcastTo Tile"},
      {"sv", OpFamily::kFill, "Fill"},
      {"vps", OpFamily::kSlice, "Slice"},
      {"vpsp", OpFamily::kStridedSlice, "StridedSlice"},
      {"vp", OpFamily::kTranspose, "ConjugateTranspose Transpose"},
      // Shape ops.
      {"v*", OpFamily::kShapeOf, "Rank Shape ShapeN Size"},
      {"p*", OpFamily::kShapeMath,
       "BroadcastArgs ConcatOffset InvertPermutation"},
      {"ppp", OpFamily::kRange, "Range"},
      // Constants and variables.
      {"w*", OpFamily::kFixed, "Const HostConst ReadVariableOp VarHandleOp"}};
  static const auto* table = [] {
    auto* table = new absl::flat_hash_map<absl::string_view, const Line*>;
    for (const Line& line : kLines) {
      for (absl::string_view op : absl::StrSplit(line.ops, ' ')) {
        table->insert({op, &line});
      }
    }
    return table;
  }();
  return *table;
}

}  // namespace

bool HasRule(absl::string_view op) { return Table().contains(op); }

std::optional<OpRule> RuleOf(const Node& node) {
  const auto found = Table().find(node.type_string());
  if (found == Table().end()) return std::nullopt;
  const absl::string_view inputs = found->second->inputs;
  const size_t star = inputs.find('*');
  std::string roles(inputs.substr(0, star));
  if (star != absl::string_view::npos) {
    const char any = roles.back();
    roles.pop_back();
    const absl::string_view last = inputs.substr(star + 1);
    const size_t all = node.num_inputs();
    while (roles.size() + last.size() < all) roles += any;
    roles.append(last.data(), last.size());
  }
  if (static_cast<int>(roles.size()) != node.num_inputs()) return std::nullopt;
  return OpRule{found->second->family, roles};
}

}  // namespace tensorflow::multistream
