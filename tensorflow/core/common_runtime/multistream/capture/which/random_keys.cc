// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/random_keys.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "tensorflow/core/common_runtime/multistream/base/assigned_nodes.h"
#include "tensorflow/core/framework/rng_alg.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {
namespace {

// The key with which TensorFlow draws a key of a seed.
constexpr uint64_t kOwnKey = 0x02461e293ec8f720;

template <class T>
Tensor VectorOf(std::initializer_list<T> values) {
  Tensor vector(DataTypeToEnum<T>::value,
                TensorShape({static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), vector.flat<T>().data());
  return vector;
}

}  // namespace

bool MakesKey(const Node& node) {
  return node.type_string() == "StatelessRandomGetKeyCounter";
}

absl::Status AddKeyAndCounter(const std::string& name, Node* seed, int output,
                              Graph* graph, Node** key, Node** counter) {
  AssignedNodes nodes(name, seed->assigned_device_name(), graph);
  const auto on_device = [&](const Tensor& value, Node** node) {
    return nodes.Constant("Const", value, node);
  };
  const auto on_host = [&](const Tensor& value, Node** node) {
    return nodes.Constant("HostConst", value, node);
  };
  Node *checked, *bits, *own_key, *mask, *zero, *one, *two, *philox, *drawn;
  TF_RETURN_IF_ERROR(on_device(VectorOf<uint64_t>({kOwnKey}), &own_key));
  TF_RETURN_IF_ERROR(on_device(VectorOf<uint64_t>({0, 1}), &mask));
  TF_RETURN_IF_ERROR(on_host(VectorOf<int32_t>({0}), &zero));
  TF_RETURN_IF_ERROR(on_host(VectorOf<int32_t>({1}), &one));
  TF_RETURN_IF_ERROR(on_host(VectorOf<int32_t>({2}), &two));
  TF_RETURN_IF_ERROR(on_host(Tensor(int32_t{RNG_ALG_PHILOX}), &philox));
  // As TensorFlow's op does, which takes no other shape.
  TF_RETURN_IF_ERROR(nodes.Add(NodeBuilder(nodes.NewName("seed"), "EnsureShape")
                                   .Input(seed, output)
                                   .Attr("shape", PartialTensorShape({2})),
                               &checked));
  TF_RETURN_IF_ERROR(nodes.Add(NodeBuilder(nodes.NewName("bits"), "Bitcast")
                                   .Input(checked)
                                   .Attr("type", DT_UINT64),
                               &bits));
  TF_RETURN_IF_ERROR(nodes.Add(
      NodeBuilder(nodes.NewName("drawn"), "StatelessRandomUniformFullIntV2")
          .Input(two)
          .Input(own_key)
          .Input(bits)
          .Input(philox)
          .Attr("dtype", DT_UINT64),
      &drawn));
  TF_RETURN_IF_ERROR(nodes.Add(NodeBuilder(nodes.NewName("key"), "StridedSlice")
                                   .Input(drawn)
                                   .Input(zero)
                                   .Input(one)
                                   .Input(one),
                               key));
  return nodes.Add(
      NodeBuilder(nodes.NewName("counter"), "Mul").Input(drawn).Input(mask),
      counter);
}

}  // namespace tensorflow::multistream
