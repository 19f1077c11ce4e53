// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/drawn_numbers.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/base/assigned_nodes.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_ends.h"
#include "tensorflow/core/framework/rng_alg.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {
namespace {

constexpr char kKey[] = "multi_stream_draw_key_";
constexpr char kCounter[] = "multi_stream_draw_counter_";
constexpr char kShape[] = "multi_stream_draw_shape_";

// The stateless ops compute the same function of the generator's state.
const absl::flat_hash_map<absl::string_view, const char*>& StatelessOps() {
  static const auto* ops =
      new absl::flat_hash_map<absl::string_view, const char*>{
          {"RandomStandardNormal", "StatelessRandomNormalV2"},
          {"RandomUniform", "StatelessRandomUniformV2"},
          {"TruncatedNormal", "StatelessTruncatedNormalV2"}};
  return *ops;
}

absl::Status Replace(Node* node, size_t draw, const std::string& device,
                     Graph* graph) {
  AssignedNodes nodes(absl::StrCat(node->name(), "/multi_stream_draw"), device,
                      graph);
  const auto receive = [&](const char* edge) {
    return nodes.Add(
        OfLaunch(absl::StrCat(edge, draw),
                 nodes.New("_Recv").Attr("tensor_type", DT_UINT64)));
  };
  const Edge* shape;
  TF_RETURN_IF_ERROR(node->input_edge(0, &shape));
  Node* key = receive(kKey);
  Node* counter = receive(kCounter);
  Node* philox = nodes.Constant("Const", Tensor(int32_t{RNG_ALG_PHILOX}));
  Node* stateless = nodes.Add(nodes.New(StatelessOps().at(node->type_string()))
                                  .Input(shape->src(), shape->src_output())
                                  .Input(key)
                                  .Input(counter)
                                  .Input(philox)
                                  .Attr("dtype", node->output_type(0)));
  nodes.Add(OfLaunch(
      absl::StrCat(kShape, draw),
      nodes.New("_HostSend").Input(shape->src(), shape->src_output())));
  TF_RETURN_IF_ERROR(nodes.status());
  const std::vector<const Edge*> in(node->in_edges().begin(),
                                    node->in_edges().end());
  const std::vector<const Edge*> out(node->out_edges().begin(),
                                     node->out_edges().end());
  for (const Edge* edge : in) {
    if (edge->IsControlEdge()) graph->AddControlEdge(edge->src(), stateless);
  }
  for (const Edge* edge : out) {
    if (edge->IsControlEdge()) {
      graph->AddControlEdge(stateless, edge->dst());
    } else {
      TF_RETURN_IF_ERROR(
          graph->UpdateEdge(stateless, 0, edge->dst(), edge->dst_input()));
    }
  }
  graph->RemoveNode(node);
  return absl::OkStatus();
}

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

bool HasStatelessDraw(const Node& node) {
  return StatelessOps().contains(node.type_string());
}

absl::StatusOr<std::unique_ptr<Graph>> WithStatelessDraws(
    const Graph& graph, const std::vector<std::string>& draws,
    const std::string& device) {
  auto stateless = std::make_unique<Graph>(graph.flib_def());
  stateless->Copy(graph);
  absl::flat_hash_map<std::string, Node*> nodes;
  for (Node* node : stateless->op_nodes()) nodes[node->name()] = node;
  for (size_t i = 0; i < draws.size(); ++i) {
    TF_RETURN_IF_ERROR(Replace(nodes.at(draws[i]), i, device, stateless.get()));
  }
  FixupSourceAndSinkEdges(stateless.get());
  return stateless;
}

std::vector<std::string> DrawStateKeys(size_t draws) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < draws; ++i) {
    keys.push_back(KeyOfLaunch(absl::StrCat(kKey, i)));
    keys.push_back(KeyOfLaunch(absl::StrCat(kCounter, i)));
  }
  return keys;
}

std::vector<std::string> DrawShapeKeys(size_t draws) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < draws; ++i) {
    keys.push_back(KeyOfLaunch(absl::StrCat(kShape, i)));
  }
  return keys;
}

bool MakesKey(const Node& node) {
  return node.type_string() == "StatelessRandomGetKeyCounter";
}

absl::Status AddKeyAndCounter(const std::string& name, Node* seed, int output,
                              Graph* graph, Node** key, Node** counter) {
  AssignedNodes nodes(name, seed->assigned_device_name(), graph);
  const auto on_host = [&nodes](int32_t value) {
    return nodes.Constant("HostConst", VectorOf<int32_t>({value}));
  };
  Node* own_key = nodes.Constant("Const", VectorOf<uint64_t>({kOwnKey}));
  Node* mask = nodes.Constant("Const", VectorOf<uint64_t>({0, 1}));
  Node* one = on_host(1);
  Node* philox = nodes.Constant("HostConst", Tensor(int32_t{RNG_ALG_PHILOX}));
  // As TensorFlow's op does, which takes no other shape.
  Node* checked = nodes.Add(nodes.New("EnsureShape")
                                .Input(seed, output)
                                .Attr("shape", PartialTensorShape({2})));
  Node* bits =
      nodes.Add(nodes.New("Bitcast").Input(checked).Attr("type", DT_UINT64));
  Node* drawn = nodes.Add(nodes.New("StatelessRandomUniformFullIntV2")
                              .Input(on_host(2))
                              .Input(own_key)
                              .Input(bits)
                              .Input(philox)
                              .Attr("dtype", DT_UINT64));
  *key = nodes.Add(nodes.New("StridedSlice")
                       .Input(drawn)
                       .Input(on_host(0))
                       .Input(one)
                       .Input(one));
  *counter = nodes.Add(nodes.New("Mul").Input(drawn).Input(mask));
  return nodes.status();
}

}  // namespace tensorflow::multistream
