// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/drawn_numbers.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/base/assigned_nodes.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/framework/rng_alg.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {
namespace {

constexpr char kDrawDevice[] = "/job:draw/replica:0/task:0/device:CPU:0";
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

std::string RendezvousKey(const char* edge, size_t draw) {
  return Rendezvous::CreateKey(kDrawDevice, 0, kDrawDevice,
                               absl::StrCat(edge, draw), FrameAndIter(0, 0));
}

NodeBuilder& Transfer(NodeBuilder& builder, const char* edge, size_t draw) {
  return builder.Attr("tensor_name", absl::StrCat(edge, draw))
      .Attr("send_device", kDrawDevice)
      .Attr("send_device_incarnation", 0)
      .Attr("recv_device", kDrawDevice)
      .Attr("client_terminated", true);
}

absl::Status Replace(Node* node, size_t draw, const std::string& device,
                     Graph* graph) {
  AssignedNodes nodes(absl::StrCat(node->name(), "/multi_stream_draw"), device,
                      graph);
  const auto receive = [&](const char* edge, Node** received) {
    return nodes.Add(Transfer(NodeBuilder(nodes.NewName("state"), "_Recv")
                                  .Attr("tensor_type", DT_UINT64),
                              edge, draw),
                     received);
  };
  const Edge* shape;
  TF_RETURN_IF_ERROR(node->input_edge(0, &shape));
  Node *key, *counter, *philox, *stateless, *sent;
  TF_RETURN_IF_ERROR(receive(kKey, &key));
  TF_RETURN_IF_ERROR(receive(kCounter, &counter));
  TF_RETURN_IF_ERROR(
      nodes.Constant("Const", Tensor(int32_t{RNG_ALG_PHILOX}), &philox));
  TF_RETURN_IF_ERROR(
      nodes.Add(NodeBuilder(nodes.NewName("drawn"),
                            StatelessOps().at(node->type_string()))
                    .Input(shape->src(), shape->src_output())
                    .Input(key)
                    .Input(counter)
                    .Input(philox)
                    .Attr("dtype", node->output_type(0)),
                &stateless));
  TF_RETURN_IF_ERROR(
      nodes.Add(Transfer(NodeBuilder(nodes.NewName("shape"), "_HostSend")
                             .Input(shape->src(), shape->src_output()),
                         kShape, draw),
                &sent));
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
    keys.push_back(RendezvousKey(kKey, i));
    keys.push_back(RendezvousKey(kCounter, i));
  }
  return keys;
}

std::vector<std::string> DrawShapeKeys(size_t draws) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < draws; ++i) keys.push_back(RendezvousKey(kShape, i));
  return keys;
}

}  // namespace tensorflow::multistream
