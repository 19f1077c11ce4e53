// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/batches/row_rules.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/op_families.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
namespace {

// Reasons for a refusal.
constexpr char kMixes[] = "mixes rows";
constexpr char kAlong[] = "is along the batch";
constexpr char kConstantBatch[] =
    "takes a constant with as many rows as the batch";
constexpr char kSomeRows[] = "takes some of the rows only";
constexpr char kSizeAsValue[] = "takes the number of rows for a value";
constexpr char kUnknownAxis[] = "has an axis that is not a constant";
constexpr char kUnknownBounds[] = "has bounds that are not constants";
constexpr char kLayout[] = "has a layout whose rows are not known";

bool IsOneOf(absl::string_view name,
             std::initializer_list<absl::string_view> names) {
  return absl::c_linear_search(names, name);
}

// Each method is a rule for ops with an input of kind kRows. A rule returns ""
// if all outputs are kRows, else a reason. A rule sees the shapes for one batch
// only; IndependentRows checks for every op that the shapes for more rows
// differ only in the first dimension.
class Rules {
 public:
  Rules(const RowOp& op, std::vector<RowKind>* kinds)
      : op_(op), kinds_(*kinds) {}

  std::string Find() {
    kinds_.assign(op_.node->num_outputs(), RowKind::kFixed);
    const std::optional<OpRule> rule = RuleOf(*op_.node);
    if (!rule) return "is not known to keep rows apart";
    const Method method = MethodOf(rule->family);
    if (HasInput(RowKind::kUnknown)) {
      return "takes a value of which nothing is known";
    }
    if (!HasInput(RowKind::kRows) && !HasInput(RowKind::kSizes)) return "";
    if (method == &Rules::Each || method == &Rules::Sizes) {
      return (this->*method)();
    }
    if (!HasInput(RowKind::kRows)) return WithoutRows();
    for (int i = 0; i < Inputs(); ++i) {
      if (std::string why = ObstacleAt(i, rule->roles[i]); !why.empty())
        return why;
    }
    absl::c_fill(kinds_, RowKind::kRows);
    return (this->*method)();
  }

 private:
  using Method = std::string (Rules::*)();
  static Method MethodOf(OpFamily family);

  std::string ObstacleAt(int input, char role) const {
    if (IsRows(input) && role != 'v') {
      return role == 'w' ? kMixes
                         : "takes a shape, an axis or an index from rows";
    }
    const bool is_sizes = op_.input_kinds[input] == RowKind::kSizes;
    return is_sizes && role != 's' ? kSizeAsValue : "";
  }

  // Queries for the rules.
  bool HasInput(RowKind kind) const {
    return absl::c_linear_search(op_.input_kinds, kind);
  }
  int Inputs() const { return op_.node->num_inputs(); }
  bool IsRows(int i) const { return op_.input_kinds[i] == RowKind::kRows; }
  int Rank(int i) const { return op_.input_shapes[i].dims(); }
  // The first dimension of an input, and of the output.
  int64_t First(int i) const { return op_.input_shapes[i].dim_size(0); }
  int OutputRank() const { return op_.output_shapes[0]->dims(); }
  int64_t OutputFirst() const { return op_.output_shapes[0]->dim_size(0); }
  // Whether an input has the output's first dimension (and, for IsAligned, its
  // rank).
  bool IsAlignedFirst(int i) const {
    return Rank(i) > 0 && OutputRank() > 0 && First(i) == OutputFirst();
  }
  bool IsAligned(int i) const {
    return IsAlignedFirst(i) && Rank(i) == OutputRank();
  }
  // Whether all rows of the output use an input in the same way (broadcasting).
  bool IsForAllRows(int i) const {
    return Rank(i) < OutputRank() ||
           (Rank(i) == OutputRank() && Rank(i) > 0 && First(i) == 1);
  }
  template <typename T>
  T Attr(const char* name, T otherwise) const {
    TryGetNodeAttr(op_.node->attrs(), name, &otherwise);
    return otherwise;
  }
  // Refuses if an axis that an input names is, or may be, the first dimension.
  std::string ObstacleInAxes(int input, int rank) const {
    const auto axes = op_.constant(input);
    if (!axes) return kUnknownAxis;
    for (int64_t axis : *axes) {
      if (IsFirst(axis, rank)) return kAlong;
    }
    return "";
  }
  static bool IsFirst(int64_t axis, int rank) {
    return axis + (axis < 0 ? rank : 0) <= 0;
  }
  std::string ObstacleInAxis(int rank) const {
    return IsFirst(Attr<int64_t>("axis", 0), rank) ? kAlong : "";
  }

  // Elementwise.
  std::string Rows() { return ""; }
  std::string Broadcast() {
    for (int i = 0; i < Inputs(); ++i) {
      if (IsRows(i) ? !IsAligned(i) : !IsForAllRows(i)) {
        return IsRows(i) ? kMixes : kConstantBatch;
      }
    }
    return "";
  }
  // The condition may be a vector with an element for each row of the other
  // inputs.
  std::string Select() {
    const bool same = op_.input_shapes[0] == op_.output_shapes[0];
    return same || Rank(0) == 0 ? Broadcast() : kMixes;
  }
  std::string BiasAdd() {
    // With NCHW, some kernels count the channel dimension from the end.
    const bool is_nchw = Attr<std::string>("data_format", "") == "NCHW";
    return Rank(0) < (is_nchw ? 4 : 2) ? kAlong : "";
  }

  // Output i has the kind of input i.
  std::string Each() {
    kinds_ = op_.input_kinds;
    return "";
  }
  std::string Sizes() {
    for (int i = 0; i < Inputs(); ++i) {
      if (op_.input_kinds[i] != RowKind::kFixed) kinds_[i] = RowKind::kSizes;
    }
    return "";
  }

  // For ops whose inputs are sizes and constants. If sizes say how often a
  // constant is repeated, the copies are rows, all equal. Other outputs must be
  // integers or booleans, for which the host and a GPU compute the same values.
  std::string WithoutRows() {
    const std::string& op = op_.node->type_string();
    const bool copies = op == "BroadcastTo" || op == "Tile";
    const bool is_for_all_rows =
        (op == "Fill" && op_.input_kinds[1] == RowKind::kFixed) ||
        (copies && op_.input_kinds[0] == RowKind::kFixed && IsForAllRows(0));
    if (is_for_all_rows && OutputRank() > 0 && OutputFirst() % op_.batch == 0) {
      kinds_[0] = RowKind::kRows;
      return "";
    }
    absl::c_fill(kinds_, RowKind::kSizes);
    for (DataType type : op_.node->output_types()) {
      if (!DataTypeIsInteger(type) && type != DT_BOOL) return kSizeAsValue;
    }
    return "";
  }

  // Products.
  std::string FusedObstacle() const {
    for (const std::string& fused :
         Attr<std::vector<std::string>>("fused_ops", {})) {
      if (!IsOneOf(fused, {"BiasAdd", "Elu", "FusedBatchNorm", "GeluExact",
                           "GeluApproximate", "LeakyRelu", "Relu", "Relu6",
                           "Sigmoid", "Tanh"})) {
        return kMixes;
      }
    }
    for (int i = 2; i < Inputs(); ++i) {
      if (Rank(i) > 1) return kMixes;
    }
    return "";
  }
  std::string MatMul() {
    if (Rank(0) != 2 || Attr("transpose_a", true)) return kMixes;
    return FusedObstacle();
  }
  std::string BatchMatMul() {
    if (OutputRank() == 2) {
      const bool rows_first = IsRows(0) && !IsRows(1) && Rank(0) == 2;
      return rows_first && !Attr("adj_x", true) ? "" : kMixes;
    }
    return Broadcast();
  }
  // The label of the batch must come first in each kRows input and in the
  // output, and must occur nowhere else.
  std::string Einsum() {
    const std::string equation = Attr<std::string>("equation", "");
    const std::vector<std::string> sides = absl::StrSplit(equation, "->");
    if (sides.size() != 2 || sides[1].empty()) return kMixes;
    const std::vector<std::string> inputs = absl::StrSplit(sides[0], ',');
    if (inputs.size() != Inputs()) return kMixes;
    const std::string& output = sides[1];
    const auto is_led = [&](const std::string& labels) {
      return !labels.empty() && labels[0] == output[0] &&
             absl::c_count(labels, output[0]) == 1;
    };
    const auto is_simple = [](const std::string& labels) {
      return absl::c_all_of(labels, absl::ascii_isalpha);
    };
    if (!is_simple(output) || !is_led(output)) return kMixes;
    for (int i = 0; i < Inputs(); ++i) {
      if (!is_simple(inputs[i])) return kMixes;
      if (IsRows(i)) {
        if (!is_led(inputs[i]) || !IsAlignedFirst(i)) return kMixes;
      } else if (absl::c_linear_search(inputs[i], output[0])) {
        return kConstantBatch;
      }
    }
    return "";
  }

  // Images.
  std::string Image() {
    if (!IsOneOf(Attr<std::string>("data_format", ""),
                 {"", "NHWC", "NCHW", "NDHWC", "NCDHW"})) {
      return kLayout;
    }
    for (const char* name : {"strides", "ksize", "dilations"}) {
      const auto sizes = Attr<std::vector<int64_t>>(name, {});
      if (!sizes.empty() && sizes[0] != 1) return kAlong;
    }
    const auto paddings = Attr<std::vector<int64_t>>("explicit_paddings", {});
    for (size_t i = 0; i < paddings.size() && i < 2; ++i) {
      if (paddings[i] != 0) return kAlong;
    }
    for (int i = 0; i < Inputs(); ++i) {
      if (IsRows(i) && !IsAlignedFirst(i)) return kMixes;
    }
    return "";
  }
  std::string FusedConvolution() {
    if (std::string why = FusedObstacle(); !why.empty()) return why;
    return Image();
  }
  std::string PoolOfInputs() {
    const auto size = op_.constant(1), strides = op_.constant(2);
    if (!size || !strides || size->empty() || strides->empty()) {
      return kUnknownBounds;
    }
    return size->front() != 1 || strides->front() != 1 ? kAlong : Image();
  }
  std::string BatchNorm() {
    if (Attr("is_training", true)) return kMixes;
    if (Rank(0) < 4) return kLayout;
    for (int i = 0; i < Inputs(); ++i) {
      if (i > 0 && i < 5) continue;
      if (!IsRows(i)) return kConstantBatch;
      if (op_.input_shapes[i] != op_.input_shapes[0]) return kMixes;
    }
    std::fill(kinds_.begin() + 1, kinds_.end(), RowKind::kUnknown);
    return Image();
  }
  std::string Pad() {
    const auto paddings = op_.constant(1);
    if (!paddings || paddings->size() < 2) return kUnknownBounds;
    return (*paddings)[0] != 0 || (*paddings)[1] != 0 ? kAlong : "";
  }

  // Along an axis.
  std::string LastAxis() { return Rank(0) < 2 ? kAlong : ""; }
  std::string AxisOfInput1() { return ObstacleInAxes(1, Rank(0)); }
  std::string None() { return kMixes; }
  std::string Concat() {
    const int axis = op_.node->type_string() == "Concat" ? 0 : Inputs() - 1;
    for (int i = 0; i < Inputs(); ++i) {
      if (i == axis) continue;
      if (!IsRows(i)) return kConstantBatch;
      if (!IsAlignedFirst(i)) return kAlong;
    }
    return ObstacleInAxes(axis, OutputRank());
  }
  std::string Pack() {
    for (int i = 0; i < Inputs(); ++i) {
      if (!IsRows(i)) return kConstantBatch;
    }
    return ObstacleInAxis(OutputRank());
  }
  std::string Unpack() { return ObstacleInAxis(Rank(0)); }
  std::string Split() { return ObstacleInAxes(0, Rank(1)); }
  std::string SplitV() { return ObstacleInAxes(2, Rank(0)); }
  std::string OneHot() { return ObstacleInAxis(OutputRank()); }
  std::string Matrices() { return Rank(0) < 3 ? kMixes : ""; }

  // Lookups.
  std::string Gather() {
    int64_t axis = 0;
    if (op_.node->type_string() == "GatherV2") {
      const auto found = op_.constant(2);
      if (!found || found->size() != 1) return kUnknownAxis;
      axis = found->front();
      if (axis < 0) axis += Rank(0);
    }
    int64_t batch_dims = Attr<int64_t>("batch_dims", 0);
    if (batch_dims < 0) batch_dims += Rank(1);
    if (IsRows(0) && IsRows(1)) {
      const bool in_rows = batch_dims >= 1 && axis >= batch_dims;
      return in_rows && First(0) == First(1) ? "" : kMixes;
    }
    if (batch_dims != 0) return kConstantBatch;
    if (IsRows(0)) return axis > 0 ? "" : kAlong;
    return axis == 0 ? "" : kMixes;
  }
  std::string GatherNd() { return Rank(1) < 2 ? kMixes : ""; }

  // Data movement and reshaping.
  std::string Transpose() {
    const auto order = op_.constant(1);
    if (!order || order->empty()) return kUnknownAxis;
    return order->front() == 0 ? "" : "moves the batch to another dimension";
  }
  std::string SameFirst() { return IsAligned(0) ? "" : kMixes; }
  std::string Slice() {
    const auto begin = op_.constant(1);
    if (!begin || begin->empty()) return kUnknownBounds;
    return begin->front() == 0 && IsAligned(0) ? "" : kSomeRows;
  }
  std::string StridedSlice() {
    const auto begin = op_.constant(1), strides = op_.constant(3);
    if (!begin || !strides || strides->size() != begin->size()) {
      return kUnknownBounds;
    }
    const auto mask = [&](const char* name) { return Attr<int64_t>(name, 0); };
    const int64_t ellipsis = mask("ellipsis_mask");
    const int64_t added = mask("new_axis_mask") & ~ellipsis;
    // Number of input dimensions outside the ellipsis.
    int64_t named = 0;
    for (size_t i = 0; i < begin->size(); ++i) {
      if (((ellipsis | added) >> i & 1) == 0) ++named;
    }
    const bool first_in_ellipsis = (ellipsis & 1) != 0 && named < Rank(0);
    const bool first_named =
        !begin->empty() && strides->front() == 1 &&
        ((ellipsis | added | mask("shrink_axis_mask")) & 1) == 0 &&
        (begin->front() == 0 || (mask("begin_mask") & 1) != 0);
    const bool from_start = first_in_ellipsis || first_named;
    return from_start && IsAlignedFirst(0) ? "" : kSomeRows;
  }

  const RowOp& op_;
  std::vector<RowKind>& kinds_;
};

// If elements keep their order (ExpandDims, Reshape, Squeeze), only the first
// dimension matters, which is checked for all ops.
Rules::Method Rules::MethodOf(OpFamily family) {
  static constexpr std::pair<OpFamily, Method> kMethods[] = {
      {OpFamily::kElementwise, &Rules::Rows},
      {OpFamily::kExpandDims, &Rules::Rows},
      {OpFamily::kReshape, &Rules::Rows},
      {OpFamily::kSqueeze, &Rules::Rows},
      {OpFamily::kReduce, &Rules::AxisOfInput1},
      {OpFamily::kScan, &Rules::AxisOfInput1},
      {OpFamily::kSoftmax, &Rules::LastAxis},
      {OpFamily::kTopK, &Rules::LastAxis},
      {OpFamily::kBatchMatMul, &Rules::BatchMatMul},
      {OpFamily::kBatchNorm, &Rules::BatchNorm},
      {OpFamily::kBiasAdd, &Rules::BiasAdd},
      {OpFamily::kBroadcast, &Rules::Broadcast},
      {OpFamily::kConcat, &Rules::Concat},
      {OpFamily::kCopies, &Rules::SameFirst},
      {OpFamily::kEach, &Rules::Each},
      {OpFamily::kEinsum, &Rules::Einsum},
      {OpFamily::kFusedConvolution, &Rules::FusedConvolution},
      {OpFamily::kGather, &Rules::Gather},
      {OpFamily::kGatherNd, &Rules::GatherNd},
      {OpFamily::kImage, &Rules::Image},
      {OpFamily::kMatMul, &Rules::MatMul},
      {OpFamily::kMatrices, &Rules::Matrices},
      {OpFamily::kOneHot, &Rules::OneHot},
      {OpFamily::kPack, &Rules::Pack},
      {OpFamily::kPad, &Rules::Pad},
      {OpFamily::kPoolOfInputs, &Rules::PoolOfInputs},
      {OpFamily::kSelect, &Rules::Select},
      {OpFamily::kShapeOf, &Rules::Sizes},
      {OpFamily::kSlice, &Rules::Slice},
      {OpFamily::kSplit, &Rules::Split},
      {OpFamily::kSplitV, &Rules::SplitV},
      {OpFamily::kStridedSlice, &Rules::StridedSlice},
      {OpFamily::kTranspose, &Rules::Transpose},
      {OpFamily::kUnpack, &Rules::Unpack},
  };
  return MethodIn<Method>(kMethods, family, &Rules::None);
}

}  // namespace

std::string KindsOfOutputs(const RowOp& op, std::vector<RowKind>* kinds) {
  std::string why = Rules(op, kinds).Find();
  if (!why.empty()) return why;
  for (size_t i = 0; i < kinds->size(); ++i) {
    if ((*kinds)[i] != RowKind::kRows || !op.output_shapes[i]) continue;
    const TensorShape& shape = *op.output_shapes[i];
    if (shape.dims() == 0 || shape.dim_size(0) == 0 ||
        shape.dim_size(0) % op.batch != 0) {
      return "gives what has no rows, or not those of the batch";
    }
  }
  return "";
}

}  // namespace tensorflow::multistream
