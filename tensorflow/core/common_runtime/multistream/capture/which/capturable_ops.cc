// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/capturable_ops.h"

#include <string>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/integer_ops.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/op_families.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/determinism.h"

namespace tensorflow::multistream {
namespace {

// Beside the ops that may run with padded inputs.
const absl::flat_hash_set<absl::string_view>& OthersListed() {
  static const auto* ops = new absl::flat_hash_set<absl::string_view>{
      "BatchToSpaceND", "Diag", "DiagPart", "ExtractImagePatches", "InTopKV2",
      "LowerBound", "MatrixDiagPartV3", "MatrixDiagV3", "MatrixSetDiagV3",
      "ReverseSequence", "ScatterNd", "SpaceToBatchND", "TensorScatterAdd",
      "TensorScatterMax", "TensorScatterMin", "TensorScatterSub",
      "TensorScatterUpdate", "UnsortedSegmentMax", "UnsortedSegmentMin",
      "UnsortedSegmentProd", "UnsortedSegmentSum", "UpperBound",
      // Gradients.
      "AvgPool3DGrad", "AvgPoolGrad", "BiasAddGrad", "Conv2DBackpropFilter",
      "Conv3DBackpropFilterV2", "Conv3DBackpropInputV2",
      "DepthwiseConv2dNativeBackpropFilter",
      "DepthwiseConv2dNativeBackpropInput", "EluGrad", "FusedBatchNormGrad",
      "FusedBatchNormGradV2", "FusedBatchNormGradV3", "InvGrad",
      "LeakyReluGrad", "MaxPool3DGrad", "MaxPoolGrad", "MirrorPadGrad",
      "ReciprocalGrad", "Relu6Grad", "ReluGrad", "ResizeBilinearGrad",
      "RsqrtGrad", "SeluGrad", "SigmoidGrad", "SoftmaxCrossEntropyWithLogits",
      "SoftplusGrad", "SoftsignGrad", "SparseSoftmaxCrossEntropyWithLogits",
      "SqrtGrad", "StridedSliceGrad", "TanhGrad",
      // Random numbers of a key and a counter.
      "StatelessRandomGetAlg", "StatelessRandomGetKeyCounter",
      "StatelessRandomNormalV2", "StatelessRandomUniformFullIntV2",
      "StatelessRandomUniformIntV2", "StatelessRandomUniformV2",
      "StatelessTruncatedNormalV2",
      // Numbers to ids, and counts: Keras's Discretization, Hashing and
      // CategoryEncoding.
      "Bincount", "Bucketize", "DenseBincount", "_TensorToHashBucketFast",
      // Quantization in training.
      "FakeQuantWithMinMaxArgsGradient", "FakeQuantWithMinMaxVars",
      "FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannel",
      "FakeQuantWithMinMaxVarsPerChannelGradient",
      // Shape computations, on the host; and order.
      "BroadcastGradientArgs", "NoOp",
      // Loops and branches, which values on the host decide.
      "Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch",
      // Of recordings only.
      kKeptDecided};
  return *ops;
}

const absl::flat_hash_set<absl::string_view>& ListOps() {
  static const auto* ops = new absl::flat_hash_set<absl::string_view>{
      "EmptyTensorList",      "TensorListConcatV2", "TensorListElementShape",
      "TensorListFromTensor", "TensorListGather",   "TensorListGetItem",
      "TensorListLength",     "TensorListPopBack",  "TensorListPushBack",
      "TensorListReserve",    "TensorListSetItem",  "TensorListStack"};
  return *ops;
}

// TensorFlow's own kernels of these ops ask CUDA whether the stream has
// completed, which ends a capture.
bool AsksStream(const Node& node) {
  std::string format;
  const absl::string_view op = node.type_string();
  return op == "ResizeNearestNeighbor" || op == "ResizeNearestNeighborGrad" ||
         (op == "AvgPoolGrad" &&
          TryGetNodeAttr(node.attrs(), "data_format", &format) &&
          format == "NHWC");
}

// Of cuDNN: a recurrent layer, or its gradient.
bool IsRecurrent(const Node& node) {
  return node.type_string() == "CudnnRNNV3" ||
         node.type_string() == "CudnnRNNBackpropV3";
}

// The kernel keeps what cuDNN needs for a shape, with memory, from the first
// step of the shape on. Executors share the kernel, so this is no recording's.
// A layer also gives its gradient a value on the host, which is not read there.
const char* ObstacleAtRecurrentLayer(const Node& node) {
  return HasNoDropout(node.def()) ? "" : "has dropout within cuDNN";
}

}  // namespace

bool MayHaveList(const Node& node) {
  static const auto* flow = new absl::flat_hash_set<absl::string_view>{
      "Enter", "Exit", "Identity", "Merge", "NextIteration", "Switch"};
  if (flow->contains(node.type_string())) return true;
  if (node.IsConstant()) {
    const TensorProto* value = nullptr;
    return TryGetNodeAttr(node.attrs(), "value", &value) &&
           value->variant_val_size() == 1 &&
           absl::c_all_of(value->variant_val(0).tensors(),
                          [](const TensorProto& element) {
                            return DataTypeCanUseMemcpy(element.dtype());
                          });
  }
  DataType type = DT_FLOAT;
  TryGetNodeAttr(node.attrs(), "element_dtype", &type);
  return ListOps().contains(node.type_string()) && DataTypeCanUseMemcpy(type);
}

bool GivesVariableShape(const Node& node) {
  return node.type_string() == "VariableShape";
}

bool HasVariant(const Node& node) {
  return absl::c_linear_search(node.input_types(), DT_VARIANT) ||
         absl::c_linear_search(node.output_types(), DT_VARIANT);
}

bool ChangesVariables(absl::string_view op) {
  static const auto* ops =
      new absl::flat_hash_set<absl::string_view>{"AssignAddVariableOp",
                                                 "AssignSubVariableOp",
                                                 "AssignVariableOp",
                                                 "ResourceApplyAdaMax",
                                                 "ResourceApplyAdadelta",
                                                 "ResourceApplyAdagrad",
                                                 "ResourceApplyAdagradV2",
                                                 "ResourceApplyAdam",
                                                 "ResourceApplyCenteredRMSProp",
                                                 "ResourceApplyGradientDescent",
                                                 "ResourceApplyKerasMomentum",
                                                 "ResourceApplyMomentum",
                                                 "ResourceApplyRMSProp",
                                                 "ResourceScatterAdd",
                                                 "ResourceScatterSub",
                                                 "ResourceScatterUpdate"};
  return ops->contains(op);
}

bool IsListed(absl::string_view op) {
  static const auto* of_variables = new absl::flat_hash_set<absl::string_view>{
      "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarHandleOp"};
  return (HasRule(op) && !of_variables->contains(op)) ||
         OthersListed().contains(op) || ListOps().contains(op);
}

const char* ObstacleAtScatter(const Node& node) {
  const absl::string_view op = node.type_string();
  const bool on_variable = absl::StartsWith(op, "ResourceScatter");
  DataType type = DT_INVALID;
  if ((!on_variable && op != "ScatterNd" &&
       !absl::StartsWith(op, "TensorScatter")) ||
      !TryGetNodeAttr(node.attrs(), on_variable ? "dtype" : "T", &type)) {
    return "";
  }
  if (DataTypeIsInteger(type) || type == DT_BOOL) {
    return "of integers runs on the host";
  }
  return OpDeterminismRequired() ? "runs on the host with op determinism" : "";
}

bool CopiesHostInput(const Node& node, int input) {
  constexpr int kSequenceLengths = 4;
  return IsRecurrent(node) && input == kSequenceLengths;
}

bool CopiesHostInput(const Node& node) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (CopiesHostInput(node, i)) return true;
  }
  return false;
}

const char* ObstacleAtOp(const Node& node) {
  if (AsksStream(node)) return "asks whether the GPU has completed";
  if (IsRecurrent(node)) return ObstacleAtRecurrentLayer(node);
  if (!IsListed(node.type_string())) {
    return "is not known to launch the same kernels in each step";
  }
  return ObstacleAtScatter(node);
}

}  // namespace tensorflow::multistream
