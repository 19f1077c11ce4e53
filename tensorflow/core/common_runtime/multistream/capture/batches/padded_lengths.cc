// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/batches/padded_lengths.h"

#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/assigned_nodes.h"
#include "tensorflow/core/common_runtime/multistream/base/host_kernels.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_ends.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow::multistream {
namespace {

constexpr char kMask[] = "multi_stream_mask_of_entries";

// Finds the kind of each tensor of a step, for both lengths side by side.
class Prover : public PaddingProver {
 public:
  Prover(const StepNodes& step, const HaveEntries& have, int64_t length,
         int64_t padded)
      : PaddingProver(step.graph, absl::StrCat("length ", length),
                      absl::StrCat("length ", padded)),
        length_(length),
        padded_length_(padded) {
    for (size_t i = 0; i < step.received.size(); ++i) {
      if (have.received[i]) have_entries_.insert(step.received[i]);
    }
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      if (have.arguments[i]) have_entries_.insert(step.arguments[i]);
    }
  }

  std::vector<NodeMask> masks;

 private:
  TensorShape AddValue(const Node& node, TensorShape shape) override {
    LengthTensor tensor = {LengthKind::kSame,
                           std::vector<LengthDim>(shape.dims())};
    if (have_entries_.contains(&node)) {
      shape.set_dim(1, padded_length_);
      tensor.kind = LengthKind::kEntries;
      tensor.dims[1] = {1, 1};
    }
    tensors_[&node] = {std::move(tensor)};
    return shape;
  }
  void AddVariable(const Node& node) override {
    tensors_[&node] = {{LengthKind::kSame, {}}};
  }

  absl::Status AddOp(const Node& node) override {
    TF_RETURN_IF_ERROR(AddToBoth(node));
    TF_RETURN_IF_ERROR(step_.CheckShapes(node));
    TF_RETURN_IF_ERROR(padded_.CheckShapes(node));
    const std::vector<NodeOutput> inputs = InputsOf(node);
    LengthOp op;
    op.node = &node;
    op.length = length_;
    op.padded = padded_length_;
    for (const NodeOutput& input : inputs) {
      op.inputs.push_back(tensors_.at(input.first)[input.second]);
      op.input_shapes.push_back(*step_.ShapeOf(input));
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      op.output_shapes.push_back(step_.ShapeOf({&node, i}));
      op.padded_shapes.push_back(padded_.ShapeOf({&node, i}));
    }
    op.constant = [&](int i) { return step_.IntegersOf(inputs[i]); };
    bool is_free = !node.IsArg() && !node.IsRecv();
    for (const NodeOutput& input : inputs) {
      const LengthTensor& it = tensors_.at(input.first)[input.second];
      is_free &= it.kind == LengthKind::kSizes || free_.contains(input.first);
    }
    for (DataType type : node.output_types()) {
      is_free &= DataTypeIsInteger(type) || type == DT_BOOL;
    }
    if (is_free) free_.insert(&node);
    std::vector<LengthTensor> outputs;
    std::vector<LengthMask> of_node;
    std::string why = LengthsOfOutputs(op, &outputs, &of_node);
    if (why.empty() && !of_node.empty() &&
        node.attrs().Find(kRunsOnHostAttr) != nullptr) {
      why = "computes on the host, where there is no mask";
    }
    if (!why.empty() && !is_free) return RefusedPadding(node, why);
    if (!why.empty()) {
      // What is computed of positions and sizes may be both.
      of_node.clear();
      outputs.assign(node.num_outputs(), {LengthKind::kSizes, {}});
    }
    for (const LengthMask& mask : of_node) {
      const DataType type = node.input_type(mask.input);
      if (!DataTypeIsFloating(type) && type != DT_INT64 && type != DT_BOOL) {
        return RefusedPadding(node, "sums entries of a type without a mask");
      }
      masks.push_back({node.name(), op.input_shapes[mask.input].dims(), mask});
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      const NodeOutput output = {&node, i};
      if (outputs[i].kind == LengthKind::kSizes && IsUsed(output)) {
        outputs[i] = FromValues(output);
        free_.insert(&node);
      }
    }
    tensors_[&node] = std::move(outputs);
    return absl::OkStatus();
  }

  // Sizes whose values show that they are more than that: the same for both
  // lengths, or for each entry what it is for the shorter length.
  LengthTensor FromValues(NodeOutput output) {
    const TensorShape shape = *step_.ShapeOf(output);
    const TensorShape padded = *padded_.ShapeOf(output);
    LengthTensor sizes = {LengthKind::kSizes, {}};
    if (shape.dims() != padded.dims()) return sizes;
    LengthTensor found = {LengthKind::kSame,
                          std::vector<LengthDim>(shape.dims())};
    for (int d = 0; d < shape.dims(); ++d) {
      if (shape.dim_size(d) == padded.dim_size(d)) continue;
      if (shape.dim_size(d) != length_ ||
          padded.dim_size(d) != padded_length_) {
        return sizes;
      }
      found.kind = LengthKind::kEntries;
      found.dims[d] = {1, 1};
    }
    const std::optional<Tensor> value = step_.ValueOf(output);
    const std::optional<Tensor> longer = padded_.ValueOf(output);
    if (!value || !longer || !DataTypeCanUseMemcpy(value->dtype()))
      return sizes;
    const int64_t bytes = DataTypeSize(value->dtype());
    for (int64_t i = 0; i < value->NumElements(); ++i) {
      int64_t rest = i, at = 0, stride = 1;
      for (int d = shape.dims() - 1; d >= 0; --d) {
        at += rest % shape.dim_size(d) * stride;
        rest /= shape.dim_size(d);
        stride *= padded.dim_size(d);
      }
      if (value->tensor_data().substr(i * bytes, bytes) !=
          longer->tensor_data().substr(at * bytes, bytes)) {
        return sizes;
      }
    }
    return found;
  }

  absl::StatusOr<SizedResult> Result(NodeOutput output) const override {
    const LengthTensor& tensor = tensors_.at(output.first)[output.second];
    SizedResult result = {*step_.ShapeOf(output), *padded_.ShapeOf(output)};
    if (tensor.kind == LengthKind::kSame) return result;
    if (tensor.kind != LengthKind::kEntries) {
      return RefusedPadding(*output.first,
                            "is a result, and depends on the length");
    }
    for (size_t d = 0; d < tensor.dims.size(); ++d) {
      if (!tensor.dims[d].is_length()) continue;
      if (result.blocks > 0) {
        return RefusedPadding(*output.first,
                              "is a result with the length in two dimensions");
      }
      result.blocks = tensor.dims[d].before;
      for (size_t k = 0; k < d; ++k) result.blocks *= result.shape.dim_size(k);
    }
    return result;
  }

  const int64_t length_;
  const int64_t padded_length_;
  absl::flat_hash_set<const Node*> have_entries_;
  absl::flat_hash_map<const Node*, std::vector<LengthTensor>> tensors_;
  // Integers that depend on no input's values.
  absl::flat_hash_set<const Node*> free_;
};

template <typename T>
Tensor Filled(LengthMask::Fill fill) {
  using Limits = std::numeric_limits<T>;
  Tensor value(DataTypeToEnum<T>::value, TensorShape());
  const T highest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  const T lowest =
      Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  T* const it = value.flat<T>().data();
  switch (fill) {
    case LengthMask::Fill::kZero:
    case LengthMask::Fill::kMean:
      *it = T(0);
      break;
    case LengthMask::Fill::kOne:
      *it = T(1);
      break;
    case LengthMask::Fill::kLowest:
      *it = lowest;
      break;
    case LengthMask::Fill::kHighest:
      *it = highest;
  }
  return value;
}

absl::StatusOr<Tensor> Filled(DataType type, LengthMask::Fill fill) {
  switch (type) {
    case DT_FLOAT:
      return Filled<float>(fill);
    case DT_DOUBLE:
      return Filled<double>(fill);
    case DT_HALF:
      return Filled<Eigen::half>(fill);
    case DT_BFLOAT16:
      return Filled<bfloat16>(fill);
    case DT_INT64:
      return Filled<int64_t>(fill);
    case DT_BOOL:
      return Filled<bool>(fill);
    default:
      return absl::UnimplementedError(
          absl::StrCat("a mask of ", DataTypeString(type)));
  }
}

// Adds nodes to a graph, for one device.
class MaskBuilder {
 public:
  MaskBuilder(Graph* graph, const std::string& device)
      : graph_(*graph),
        nodes_("multi_stream", device, graph),
        mask_(nodes_.Add(OfLaunch(
            kMask, nodes_.New("_Recv").Attr("tensor_type", DT_BOOL)))) {}

  absl::Status Mask(const NodeMask& it, Node* node) {
    const Edge* edge;
    TF_RETURN_IF_ERROR(node->input_edge(it.mask.input, &edge));
    const DataType type = node->input_type(it.mask.input);
    TF_ASSIGN_OR_RETURN(const Tensor fill, Filled(type, it.mask.fill));
    Node* shaped = Shaped(it.rank - it.mask.dim - 1);
    Node* filled = nodes_.Constant("Const", fill);
    Node* masked = nodes_.Add(nodes_.New("SelectV2")
                                  .Input(shaped)
                                  .Input(edge->src(), edge->src_output())
                                  .Input(filled));
    TF_RETURN_IF_ERROR(nodes_.status());
    TF_RETURN_IF_ERROR(graph_.UpdateEdge(masked, 0, node, it.mask.input));
    return it.mask.fill == LengthMask::Fill::kMean ? CorrectMean(node, type)
                                                   : absl::OkStatus();
  }

 private:
  // Divides a mean, in which the added entries count, by the share of others.
  absl::Status CorrectMean(Node* mean, DataType type) {
    Node*& share = shares_[type];
    if (share == nullptr) {
      Node* numbers =
          nodes_.Add(nodes_.New("Cast").Input(mask_).Attr("DstT", type));
      Node* axis = nodes_.Constant("Const", Tensor(0));
      share = nodes_.Add(nodes_.New("Mean").Input(numbers).Input(axis));
    }
    std::vector<const Edge*> uses;
    for (const Edge* edge : mean->out_edges()) {
      if (!edge->IsControlEdge()) uses.push_back(edge);
    }
    Node* corrected =
        nodes_.Add(nodes_.New("RealDiv").Input(mean).Input(share));
    TF_RETURN_IF_ERROR(nodes_.status());
    for (const Edge* edge : uses) {
      TF_RETURN_IF_ERROR(
          graph_.UpdateEdge(corrected, 0, edge->dst(), edge->dst_input()));
    }
    return absl::OkStatus();
  }

  // The mask with so many dimensions of size 1 behind it.
  Node* Shaped(int behind) {
    Node*& made = shaped_[behind];
    if (made != nullptr) return made;
    Tensor shape(DT_INT32, {behind + 1});
    shape.flat<int32_t>().setConstant(1);
    shape.flat<int32_t>()(0) = -1;
    Node* sizes = nodes_.Constant("Const", shape);
    return made = nodes_.Add(nodes_.New("Reshape").Input(mask_).Input(sizes));
  }

  Graph& graph_;
  AssignedNodes nodes_;
  Node* const mask_;
  std::map<int, Node*> shaped_;
  std::map<DataType, Node*> shares_;
};

}  // namespace

absl::StatusOr<int64_t> PaddedLengths::Length(const StepShapes& shapes,
                                              const HaveEntries& have) {
  std::optional<int64_t> length;
  for (const auto& [taken, entries] :
       {std::pair(&shapes.received, &have.received),
        std::pair(&shapes.arguments, &have.arguments)}) {
    for (size_t i = 0; i < taken->size(); ++i) {
      if (!(*entries)[i]) continue;
      const int64_t size = (*taken)[i].dim_size(1);
      if (length && *length != size) {
        return absl::FailedPreconditionError(absl::StrCat(
            "the step takes both ", *length, " and ", size, " entries"));
      }
      length = size;
    }
  }
  if (!length || *length == 0) {
    return absl::FailedPreconditionError("the step takes no entries");
  }
  return *length;
}

absl::StatusOr<PaddedLength> PaddedLengths::Pad(const StepShapes& shapes,
                                                const HaveEntries& have,
                                                int64_t padded) const {
  TF_ASSIGN_OR_RETURN(const int64_t length, Length(shapes, have));
  if (padded <= length) {
    return absl::InvalidArgumentError(
        absl::StrCat("not more than ", length, " entries: ", padded));
  }
  Prover prover(step_, have, length, padded);
  TF_ASSIGN_OR_RETURN(std::vector<SizedResult> results,
                      prover.Prove(step_, shapes));
  return PaddedLength{std::move(results), std::move(prover.masks)};
}

absl::StatusOr<std::unique_ptr<Graph>> WithMasks(
    const Graph& graph, const std::vector<NodeMask>& masks,
    const std::string& device) {
  auto masked = std::make_unique<Graph>(graph.flib_def());
  masked->Copy(graph);
  absl::flat_hash_map<std::string, Node*> nodes;
  for (Node* node : masked->op_nodes()) nodes[node->name()] = node;
  MaskBuilder builder(masked.get(), device);
  for (const NodeMask& mask : masks) {
    TF_RETURN_IF_ERROR(builder.Mask(mask, nodes.at(mask.node)));
  }
  return masked;
}

std::string MaskKey() { return KeyOfLaunch(kMask); }

}  // namespace tensorflow::multistream
