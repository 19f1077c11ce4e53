// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/batches/length_moves.h"

namespace tensorflow::multistream {

// Inputs from `first` on that are alike but along `axis` of theirs.
std::string LengthMoves::Alike(int first, int last, int axis) {
  dims_ = Of(first);
  for (int i = first; i < last; ++i) {
    if (Of(i) != dims_) return kUnlike;
  }
  return axis >= 0 && dims_[axis].is_length() ? kAlong : "";
}
std::string LengthMoves::Concat() {
  const bool is_old = op_.node->type_string() == "Concat";
  const int at = AxisOfInput(is_old ? 0 : Inputs() - 1, OutputRank());
  if (at < 0) return kUnknownAxis;
  return is_old ? Alike(1, Inputs(), at) : Alike(0, Inputs() - 1, at);
}
std::string LengthMoves::Pack() {
  if (std::string why = Alike(0, Inputs(), -1); !why.empty()) return why;
  return Insert(Normalized(Attr<int64_t>("axis", 0), OutputRank()));
}
std::string LengthMoves::Insert(int at) {
  if (at < 0 || at > static_cast<int>(dims_.size())) return kUnknownAxis;
  dims_.insert(dims_.begin() + at, LengthDim());
  return "";
}
std::string LengthMoves::Unpack() {
  const int axis = Normalized(Attr<int64_t>("axis", 0), Rank(0));
  dims_ = Of(0);
  if (axis < 0 || dims_[axis].is_length()) return kAlong;
  dims_.erase(dims_.begin() + axis);
  return "";
}
std::string LengthMoves::Split() { return SplitOf(1, 0); }
std::string LengthMoves::SplitV() { return SplitOf(0, 2); }
std::string LengthMoves::SplitOf(int value, int axis_input) {
  const int axis = AxisOfInput(axis_input, Rank(value));
  if (axis < 0) return kUnknownAxis;
  return Alike(value, value + 1, axis);
}
std::string LengthMoves::OneHot() {
  dims_ = Of(0);
  return Insert(Normalized(Attr<int64_t>("axis", -1), OutputRank()));
}
std::string LengthMoves::Pad() {
  const auto paddings = Constant(1);
  dims_ = Of(0);
  if (!paddings || paddings->size() != 2 * dims_.size()) {
    return kUnknownBounds;
  }
  for (size_t d = 0; d < dims_.size(); ++d) {
    const bool padded = (*paddings)[2 * d] != 0 || (*paddings)[2 * d + 1] != 0;
    if (dims_[d].is_length() && padded) return kAlong;
  }
  return "";
}

// Lookups.
std::string LengthMoves::Gather() {
  const std::string& op = op_.node->type_string();
  if (Attr<int64_t>("batch_dims", 0) != 0) return kMixes;
  const Dims ids = Of(1);
  if (op == "ResourceGather") {
    dims_ = ids;
    dims_.resize(OutputRank());
    return "";
  }
  const int axis = op == "GatherV2" ? AxisOfInput(2, Rank(0)) : 0;
  if (axis < 0) return kUnknownAxis;
  dims_ = Of(0);
  if (dims_[axis].is_length()) return kSomeEntries;
  dims_.erase(dims_.begin() + axis);
  dims_.insert(dims_.begin() + axis, ids.begin(), ids.end());
  return "";
}
std::string LengthMoves::GatherNd() {
  if (IsEntries(0) || Of(1).empty() || Of(1).back().is_length()) {
    return kMixes;
  }
  dims_ = Of(1);
  dims_.pop_back();
  dims_.resize(OutputRank());
  return "";
}

// Data movement and reshaping.
std::string LengthMoves::ExpandDims() {
  const auto axis = Constant(1);
  if (!axis || axis->size() != 1) return kUnknownAxis;
  dims_ = Of(0);
  return Insert(Normalized(axis->front(), OutputRank()));
}
std::string LengthMoves::Squeeze() {
  const auto named = Attr<std::vector<int64_t>>("squeeze_dims", {});
  std::vector<bool> gone(Rank(0), false);
  for (int d = 0; named.empty() && d < Rank(0); ++d) gone[d] = Size(0, d) == 1;
  for (int64_t axis : named) {
    const int d = Normalized(axis, Rank(0));
    if (d < 0) return kUnknownAxis;
    gone[d] = true;
  }
  for (int d = 0; d < Rank(0); ++d) {
    if (!gone[d]) dims_.push_back(Of(0)[d]);
  }
  return "";
}
std::string LengthMoves::Transpose() {
  const auto order = Constant(1);
  if (!order) return kUnknownAxis;
  for (int64_t axis : *order) {
    const int d = Normalized(axis, Rank(0));
    if (d < 0) return kUnknownAxis;
    dims_.push_back(Of(0)[d]);
  }
  return "";
}
// Elements keep their order, so each dimension is a product of factors, and
// the output's dimensions group the same factors.
std::string LengthMoves::Reshape() {
  std::vector<int64_t> factors;  // 0: the length
  for (int d = 0; d < Rank(0); ++d) {
    const LengthDim it = Of(0)[d];
    if (it.is_length()) {
      factors.insert(factors.end(), {it.before, 0, it.after});
    } else {
      factors.push_back(Size(0, d));
    }
  }
  size_t at = 0;
  // Takes factors whose product is `product`; may leave a part of the last.
  const auto take = [&](int64_t product) {
    while (product > 1 && at < factors.size() && factors[at] != 0) {
      int64_t& factor = factors[at];
      if (factor % product == 0) {
        factor /= product;
        return true;
      }
      if (product % factor != 0) return false;
      product /= factor;
      ++at;
    }
    return product == 1;
  };
  for (int d = 0; d < OutputRank(); ++d) {
    LengthDim dim;
    if (Short(d) == Long(d)) {
      if (!take(Short(d))) return kMixes;
    } else {
      dim.before = 1;
      while (at < factors.size() && factors[at] != 0) {
        dim.before *= factors[at++];
      }
      if (at++ >= factors.size()) return kMixes;
      const int64_t done = dim.before * op_.length;
      dim.after = Short(d) / done;
      if (Short(d) % done != 0 || !take(dim.after)) return kMixes;
    }
    dims_.push_back(dim);
  }
  for (; at < factors.size(); ++at) {
    if (factors[at] != 1) return kMixes;
  }
  return "";
}
// BroadcastTo, Tile.
std::string LengthMoves::Copies() {
  const int more = OutputRank() - Rank(0);
  for (int d = 0; d < OutputRank(); ++d) {
    const LengthDim from = d < more ? LengthDim() : Of(0)[d - more];
    const int64_t size = d < more ? 1 : Size(0, d - more);
    if (from.is_length()) {
      dims_.push_back(from);
    } else if (Short(d) == Long(d)) {
      dims_.push_back({});
    } else if (size == 1) {
      dims_.push_back(Repeated(d));
    } else {
      return kMixes;
    }
  }
  return "";
}
std::string LengthMoves::Filled() {
  for (int d = 0; d < OutputRank(); ++d) dims_.push_back(Repeated(d));
  return "";
}
std::string LengthMoves::Range() {
  if (!Constant(0) || !Constant(2) || !IsLength(0)) return kSizeAsValue;
  dims_.push_back({1, 1});
  return "";
}
// Dimension `from` of the input is the next of the output, `whole` if it
// begins with the first element and leaves out none before the last.
std::string LengthMoves::Part(int from, bool whole) {
  const int to = static_cast<int>(dims_.size());
  if (to >= OutputRank()) return kMixes;
  const LengthDim it = Of(0)[from];
  if (it.is_length()) {
    if (!whole || Short(to) != Size(0, from)) return kSomeEntries;
    dims_.push_back(it);
  } else if (Short(to) == Long(to)) {
    dims_.push_back({});
  } else if (whole && IsLength(to)) {
    dims_.push_back({1, 1});
  } else {
    return kMixes;
  }
  return "";
}
std::string LengthMoves::Slice() {
  const auto begin = Constant(1);
  if (!begin || static_cast<int>(begin->size()) != Rank(0)) {
    return kUnknownBounds;
  }
  for (int d = 0; d < Rank(0); ++d) {
    if (std::string why = Part(d, (*begin)[d] == 0); !why.empty()) return why;
  }
  return "";
}
std::string LengthMoves::StridedSlice() {
  const auto begin = Constant(1), strides = Constant(3);
  if (!begin || !strides || strides->size() != begin->size()) {
    return kUnknownBounds;
  }
  const auto mask = [&](const char* name) { return Attr<int64_t>(name, 0); };
  const int64_t ellipsis = mask("ellipsis_mask");
  const int64_t added = mask("new_axis_mask") & ~ellipsis;
  const int64_t gone = mask("shrink_axis_mask");
  const int64_t all = mask("begin_mask");
  int named = 0;
  for (size_t i = 0; i < begin->size(); ++i) {
    if (((ellipsis | added) >> i & 1) == 0) ++named;
  }
  int from = 0;
  const auto keep = [&](int until) {
    std::string why;
    while (why.empty() && from < until) why = Part(from++, /*whole=*/true);
    return why;
  };
  for (size_t i = 0; i < begin->size(); ++i) {
    std::string why;
    if (ellipsis >> i & 1) {
      why = keep(from + Rank(0) - named);
    } else if (added >> i & 1) {
      dims_.push_back({});
    } else if (from >= Rank(0)) {
      return kUnknownBounds;
    } else if (gone >> i & 1) {
      const int64_t index = (*begin)[i];
      const LengthDim it = Of(0)[from++];
      const bool is_first = index >= 0 && index < op_.length;
      if (it.is_length() && !(it.is_alone() && is_first)) return kSomeEntries;
    } else {
      const bool from_start = (all >> i & 1) || (*begin)[i] == 0;
      why = Part(from++, from_start && (*strides)[i] == 1);
    }
    if (!why.empty()) return why;
  }
  return keep(Rank(0));
}

}  // namespace tensorflow::multistream
