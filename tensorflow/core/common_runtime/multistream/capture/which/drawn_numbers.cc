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

// Replaces nodes of a graph, all of one device.
class Replacer {
 public:
  Replacer(Graph* graph, const std::string& device)
      : graph_(*graph), device_(device) {}

  absl::Status Replace(Node* node, size_t draw) {
    const Edge* shape;
    TF_RETURN_IF_ERROR(node->input_edge(0, &shape));
    Tensor philox(DT_INT32, TensorShape());
    philox.scalar<int32_t>()() = RNG_ALG_PHILOX;
    Node *key, *counter, *algorithm, *stateless, *sent;
    TF_RETURN_IF_ERROR(Receive(*node, kKey, draw, &key));
    TF_RETURN_IF_ERROR(Receive(*node, kCounter, draw, &counter));
    TF_RETURN_IF_ERROR(Add(NodeBuilder(NewName(*node), "Const")
                               .Attr("dtype", DT_INT32)
                               .Attr("value", philox),
                           &algorithm));
    TF_RETURN_IF_ERROR(
        Add(NodeBuilder(NewName(*node), StatelessOps().at(node->type_string()))
                .Input(shape->src(), shape->src_output())
                .Input(key)
                .Input(counter)
                .Input(algorithm)
                .Attr("dtype", node->output_type(0)),
            &stateless));
    TF_RETURN_IF_ERROR(
        Add(Transfer(NodeBuilder(NewName(*node), "_HostSend")
                         .Input(shape->src(), shape->src_output()),
                     kShape, draw),
            &sent));
    const std::vector<const Edge*> in(node->in_edges().begin(),
                                      node->in_edges().end());
    const std::vector<const Edge*> out(node->out_edges().begin(),
                                       node->out_edges().end());
    for (const Edge* edge : in) {
      if (edge->IsControlEdge()) graph_.AddControlEdge(edge->src(), stateless);
    }
    for (const Edge* edge : out) {
      if (edge->IsControlEdge()) {
        graph_.AddControlEdge(stateless, edge->dst());
      } else {
        TF_RETURN_IF_ERROR(
            graph_.UpdateEdge(stateless, 0, edge->dst(), edge->dst_input()));
      }
    }
    graph_.RemoveNode(node);
    return absl::OkStatus();
  }

 private:
  std::string NewName(const Node& node) const {
    return graph_.NewName(absl::StrCat(node.name(), "/multi_stream_draw"));
  }
  static NodeBuilder& Transfer(NodeBuilder& builder, const char* edge,
                               size_t draw) {
    return builder.Attr("tensor_name", absl::StrCat(edge, draw))
        .Attr("send_device", kDrawDevice)
        .Attr("send_device_incarnation", 0)
        .Attr("recv_device", kDrawDevice)
        .Attr("client_terminated", true);
  }
  absl::Status Receive(const Node& node, const char* edge, size_t draw,
                       Node** received) {
    return Add(
        Transfer(
            NodeBuilder(NewName(node), "_Recv").Attr("tensor_type", DT_UINT64),
            edge, draw),
        received);
  }
  absl::Status Add(NodeBuilder& builder, Node** node) {
    return AddAssigned(builder, device_, &graph_, node);
  }

  Graph& graph_;
  const std::string device_;
};

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
  Replacer replacer(stateless.get(), device);
  for (size_t i = 0; i < draws.size(); ++i) {
    TF_RETURN_IF_ERROR(replacer.Replace(nodes.at(draws[i]), i));
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
