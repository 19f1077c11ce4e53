// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/batches/length_rules.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/length_moves.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/op_families.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
namespace {

// LengthsOfOutputs compares the dimensions with the shapes.
class Rules : public LengthMoves {
 public:
  Rules(const LengthOp& op, std::vector<LengthTensor>* outputs,
        std::vector<LengthMask>* masks)
      : LengthMoves(op, masks), outputs_(*outputs) {}

  std::string Find() {
    const std::optional<OpRule> rule = RuleOf(*op_.node);
    if (!rule) return "is not known to keep entries apart";
    if (Has(LengthKind::kUnknown)) {
      return "takes a value of which nothing is known";
    }
    const bool entries = Has(LengthKind::kEntries);
    if (!entries && !Has(LengthKind::kSizes)) {
      return All(LengthKind::kSame,
                 [&](int i) { return Dims(op_.output_shapes[i]->dims()); });
    }
    if (rule->family == OpFamily::kEach) return Each();
    if (rule->family == OpFamily::kShapeOf) return ShapeOf();
    for (int i = 0; i < Inputs(); ++i) {
      const char role = rule->roles[i];
      if (IsEntries(i) && (role == 'p' || role == 's')) {
        return "takes a shape, an axis or an index from entries";
      }
      const bool shapes = role == 's' || rule->family == OpFamily::kRange;
      if (entries && !shapes && Kind(i) == LengthKind::kSizes) {
        return kSizeAsValue;
      }
    }
    if (!entries && !MakesEntries(*rule)) return FromSizes();
    if (std::string why = (this->*MethodOf(rule->family))(); !why.empty()) {
      // What is made of sizes may be a shape.
      return entries || !FromSizes().empty() ? why : "";
    }
    return All(LengthKind::kEntries, [&](int) { return dims_; });
  }

  std::string CompareWithShapes() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      LengthTensor& it = outputs_[i];
      const bool has_dims =
          it.kind == LengthKind::kSame || it.kind == LengthKind::kEntries;
      if (!has_dims || !op_.output_shapes[i] || !op_.padded_shapes[i]) continue;
      const TensorShape& shape = *op_.output_shapes[i];
      const TensorShape& padded = *op_.padded_shapes[i];
      const int rank = static_cast<int>(it.dims.size());
      if (shape.dims() != rank || padded.dims() != rank) return kMixes;
      it.kind = LengthKind::kSame;
      for (int d = 0; d < rank; ++d) {
        const LengthDim& dim = it.dims[d];
        const int64_t size = shape.dim_size(d), more = padded.dim_size(d);
        if (dim.is_length()) it.kind = LengthKind::kEntries;
        if (dim.is_length()
                ? size != dim.Size(op_.length) || more != dim.Size(op_.padded)
                : size != more) {
          return "does not grow with the length";
        }
      }
      if (shape.num_elements() == 0) return "gives nothing";
    }
    return "";
  }

 private:
  using Method = std::string (Rules::*)();
  static Method MethodOf(OpFamily family);

  template <class DimsOf>
  std::string All(LengthKind kind, const DimsOf& dims_of) {
    outputs_.assign(op_.node->num_outputs(), {});
    for (int i = 0; i < op_.node->num_outputs(); ++i) {
      if (!op_.output_shapes[i] || !op_.padded_shapes[i]) continue;
      outputs_[i] = {kind, dims_of(i)};
    }
    return "";
  }
  std::string Each() {
    outputs_ = op_.inputs;
    return "";
  }
  std::string ShapeOf() {
    outputs_.assign(op_.node->num_outputs(), {LengthKind::kSizes, {}});
    return "";
  }
  // Other outputs that are made of sizes must be integers or booleans, for
  // which the host and a GPU compute the same values.
  std::string FromSizes() {
    masks_.clear();
    for (DataType type : op_.node->output_types()) {
      if (!DataTypeIsInteger(type) && type != DT_BOOL) return kSizeAsValue;
    }
    return ShapeOf();
  }
  // Whether sizes say how long the output is, or how often a value is repeated.
  bool MakesEntries(const OpRule& rule) const {
    if (rule.family == OpFamily::kRange) return true;
    for (int i = 0; i < Inputs(); ++i) {
      if (Kind(i) == LengthKind::kSizes && rule.roles[i] != 's') return false;
    }
    return true;
  }

  // Elementwise.
  std::string Keep() {
    dims_ = Of(0);
    return "";
  }
  // MatrixBandPart, which asks where an element is.
  std::string Matrices() {
    for (int d = std::max(Rank(0) - 2, 0); d < Rank(0); ++d) {
      if (Of(0)[d].before > 1) return kMixes;
    }
    return Keep();
  }
  // Merges the dimensions of an input, the last of which is dimension `last` of
  // the output, into dims_.
  std::string Align(const Dims& dims, const TensorShape& shape, int last) {
    for (int k = 0; k < static_cast<int>(dims.size()); ++k) {
      const int to = last - static_cast<int>(dims.size()) + 1 + k;
      if (to < 0) return kMixes;
      if (!dims[k].is_length()) {
        plain_[to] = plain_[to] || shape.dim_size(k) != 1;
      } else if (dims_[to].is_length() && dims_[to] != dims[k]) {
        return kMixes;
      } else {
        dims_[to] = dims[k];
      }
    }
    return "";
  }
  std::string Broadcast() {
    dims_.assign(OutputRank(), {});
    plain_.assign(OutputRank(), false);
    for (int i = 0; i < Inputs(); ++i) {
      const std::string why =
          Align(Of(i), op_.input_shapes[i], OutputRank() - 1);
      if (!why.empty()) return why;
    }
    return ObstacleInPlain();
  }
  std::string ObstacleInPlain() const {
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (dims_[d].is_length() && plain_[d]) return kUnlike;
    }
    return "";
  }
  // The condition may be a vector with an element for each row of the other
  // inputs.
  std::string Select() {
    const bool same = op_.input_shapes[0] == *op_.output_shapes[0];
    return same || Rank(0) == 0 ? Broadcast() : kMixes;
  }
  std::string BiasAdd() {
    const bool is_nchw = Attr<std::string>("data_format", "") == "NCHW";
    const int channel = is_nchw ? 1 : Rank(0) - 1;
    if (IsEntries(1) || Of(0)[channel].is_length()) return kAlong;
    return Keep();
  }

  // Products. Added entries that are summed are 0 in both inputs: 0 times NaN
  // is NaN.
  std::string Contract(int dim0, int dim1) {
    if (Of(0)[dim0] != Of(1)[dim1]) return kUnlike;
    if (!Of(0)[dim0].is_length()) return "";
    if (std::string why = Mask(0, dim0, Fill::kZero); !why.empty()) return why;
    return Mask(1, dim1, Fill::kZero);
  }
  std::string Product(bool transposed0, bool transposed1) {
    const int rank0 = Rank(0), rank1 = Rank(1);
    if (rank0 < 2 || rank1 < 2) return kMixes;
    const std::string why =
        Contract(rank0 - (transposed0 ? 2 : 1), rank1 - (transposed1 ? 1 : 2));
    if (!why.empty()) return why;
    dims_.assign(OutputRank(), {});
    plain_.assign(OutputRank(), false);
    for (int i : {0, 1}) {
      Dims batch = Of(i);
      batch.resize(batch.size() - 2);
      const std::string why =
          Align(batch, op_.input_shapes[i], OutputRank() - 3);
      if (!why.empty()) return why;
    }
    if (std::string why = ObstacleInPlain(); !why.empty()) return why;
    dims_[OutputRank() - 2] = Of(0)[rank0 - (transposed0 ? 1 : 2)];
    dims_[OutputRank() - 1] = Of(1)[rank1 - (transposed1 ? 2 : 1)];
    return "";
  }
  std::string MatMul() {
    for (int i = 2; i < Inputs(); ++i) {
      if (IsEntries(i)) return kMixes;
    }
    const std::string why =
        Product(Attr("transpose_a", false), Attr("transpose_b", false));
    // A bias is along the last dimension.
    return !why.empty() || Inputs() == 2 || !dims_.back().is_length() ? why
                                                                      : kAlong;
  }
  std::string BatchMatMul() {
    return Product(Attr("adj_x", false), Attr("adj_y", false));
  }
  std::string Einsum() {
    const std::string equation = Attr<std::string>("equation", "");
    const std::vector<std::string> sides = absl::StrSplit(equation, "->");
    if (sides.size() != 2) return kMixes;
    const std::vector<std::string> inputs = absl::StrSplit(sides[0], ',');
    if (static_cast<int>(inputs.size()) != Inputs()) return kMixes;
    const auto is_simple = [](const std::string& labels) {
      return absl::c_all_of(labels, [&labels](char label) {
        return absl::ascii_isalpha(label) && absl::c_count(labels, label) == 1;
      });
    };
    if (!is_simple(sides[1])) return kMixes;
    absl::flat_hash_map<char, LengthDim> of;
    for (int i = 0; i < Inputs(); ++i) {
      const std::string& labels = inputs[i];
      if (!is_simple(labels) || static_cast<int>(labels.size()) != Rank(i)) {
        return kMixes;
      }
      for (int d = 0; d < Rank(i); ++d) {
        const auto [known, is_new] = of.insert({labels[d], Of(i)[d]});
        if (!is_new && known->second != Of(i)[d]) return kUnlike;
      }
    }
    for (int i = 0; i < Inputs(); ++i) {
      for (int d = 0; d < Rank(i); ++d) {
        if (!Of(i)[d].is_length() ||
            absl::StrContains(sides[1], inputs[i][d])) {
          continue;
        }
        const std::string why = Mask(i, d, Fill::kZero);
        if (!why.empty()) return why;
      }
    }
    for (char label : sides[1]) dims_.push_back(of[label]);
    return "";
  }

  // Convolutions see zeros behind the last entry.
  std::string Image() {
    const std::string& op = op_.node->type_string();
    const bool is_convolution =
        op == "Conv2D" || op == "_FusedConv2D" || op == "DepthwiseConv2dNative";
    const auto format = Attr<std::string>("data_format", "");
    const bool is_nchw = format == "NCHW";
    if (!is_convolution || Rank(0) != 4 ||
        Attr<std::string>("padding", "") != "SAME" ||
        !(is_nchw || format == "NHWC")) {
      return kMixes;
    }
    for (int i = 1; i < Inputs(); ++i) {
      if (IsEntries(i)) return kMixes;
    }
    dims_ = Of(0);
    const auto strides = Attr<std::vector<int64_t>>("strides", {});
    const int height = is_nchw ? 2 : 1;
    for (int d : {height, height + 1}) {
      if (!dims_[d].is_length()) continue;
      if (strides.size() != 4 || strides[d] != 1) return kMixes;
      if (std::string why = Mask(0, d, Fill::kZero); !why.empty()) return why;
    }
    return dims_[is_nchw ? 1 : 3].is_length() ? kAlong : "";
  }

  // Along axes.
  std::string Reduce() {
    static const auto* fills = new absl::flat_hash_map<absl::string_view, Fill>{
        {"All", Fill::kOne},
        {"Any", Fill::kZero},
        {"EuclideanNorm", Fill::kZero},
        {"Max", Fill::kLowest},
        {"Mean", Fill::kMean},
        {"Min", Fill::kHighest},
        {"Prod", Fill::kOne},
        {"Sum", Fill::kZero}};
    const auto axes = Constant(1);
    if (!axes) return kUnknownAxis;
    std::vector<bool> reduced(Rank(0), false);
    for (int64_t axis : *axes) {
      const int dim = Normalized(axis, Rank(0));
      if (dim < 0) return kUnknownAxis;
      reduced[dim] = true;
    }
    const bool keeps = Attr("keep_dims", false);
    for (int d = 0; d < Rank(0); ++d) {
      if (!reduced[d]) {
        dims_.push_back(Of(0)[d]);
        continue;
      }
      if (keeps) dims_.push_back({});
      if (!Of(0)[d].is_length()) continue;
      const std::string why = Mask(0, d, fills->at(op_.node->type_string()));
      if (!why.empty()) return why;
    }
    return "";
  }
  std::string Scan() {
    const std::string& op = op_.node->type_string();
    const bool is_arg = op == "ArgMax" || op == "ArgMin";
    const bool goes_on =
        op != "ReverseV2" && !is_arg && !Attr("reverse", false);
    const auto axes = Constant(1);
    if (!axes) return kUnknownAxis;
    dims_ = Of(0);
    for (int64_t axis : *axes) {
      const int dim = Normalized(axis, Rank(0));
      if (dim < 0) return kUnknownAxis;
      const LengthDim along = Of(0)[dim];
      if (along.is_length() && !(goes_on && along.before == 1)) return kAlong;
      if (is_arg) dims_.erase(dims_.begin() + dim);
    }
    return "";
  }
  std::string Softmax() {
    dims_ = Of(0);
    if (dims_.empty() || !dims_.back().is_length()) return "";
    return Mask(0, Rank(0) - 1, Fill::kLowest);
  }
  std::string LastAxis() {
    dims_ = Of(0);
    return dims_.empty() || dims_.back().is_length() ? kAlong : "";
  }
  std::string None() { return kMixes; }

  std::vector<LengthTensor>& outputs_;
  std::vector<bool> plain_;  // a dimension of more than one without entries
};

Rules::Method Rules::MethodOf(OpFamily family) {
  static constexpr std::pair<OpFamily, Method> kMethods[] = {
      {OpFamily::kElementwise, &Rules::Keep},
      {OpFamily::kMatrices, &Rules::Matrices},
      {OpFamily::kFusedConvolution, &Rules::Image},
      {OpFamily::kImage, &Rules::Image},
      {OpFamily::kBatchMatMul, &Rules::BatchMatMul},
      {OpFamily::kBiasAdd, &Rules::BiasAdd},
      {OpFamily::kBroadcast, &Rules::Broadcast},
      {OpFamily::kConcat, &Rules::Concat},
      {OpFamily::kCopies, &Rules::Copies},
      {OpFamily::kEinsum, &Rules::Einsum},
      {OpFamily::kExpandDims, &Rules::ExpandDims},
      {OpFamily::kFill, &Rules::Filled},
      {OpFamily::kGather, &Rules::Gather},
      {OpFamily::kGatherNd, &Rules::GatherNd},
      {OpFamily::kMatMul, &Rules::MatMul},
      {OpFamily::kOneHot, &Rules::OneHot},
      {OpFamily::kPack, &Rules::Pack},
      {OpFamily::kPad, &Rules::Pad},
      {OpFamily::kRange, &Rules::Range},
      {OpFamily::kReduce, &Rules::Reduce},
      {OpFamily::kReshape, &Rules::Reshape},
      {OpFamily::kScan, &Rules::Scan},
      {OpFamily::kSelect, &Rules::Select},
      {OpFamily::kSlice, &Rules::Slice},
      {OpFamily::kSoftmax, &Rules::Softmax},
      {OpFamily::kSplit, &Rules::Split},
      {OpFamily::kSplitV, &Rules::SplitV},
      {OpFamily::kSqueeze, &Rules::Squeeze},
      {OpFamily::kStridedSlice, &Rules::StridedSlice},
      {OpFamily::kTopK, &Rules::LastAxis},
      {OpFamily::kTranspose, &Rules::Transpose},
      {OpFamily::kUnpack, &Rules::Unpack},
  };
  return MethodIn<Method>(kMethods, family, &Rules::None);
}

}  // namespace

std::string LengthsOfOutputs(const LengthOp& op,
                             std::vector<LengthTensor>* outputs,
                             std::vector<LengthMask>* masks) {
  Rules rules(op, outputs, masks);
  std::string why = rules.Find();
  return why.empty() ? rules.CompareWithShapes() : why;
}

}  // namespace tensorflow::multistream
