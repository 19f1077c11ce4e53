// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/pieces/cut.h"

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/memory_types.h"
#include "tensorflow/core/common_runtime/multistream/base/assigned_nodes.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/capture/pieces/kept_order.h"
#include "tensorflow/core/common_runtime/multistream/capture/pieces/piece_graph.h"
#include "tensorflow/core/common_runtime/multistream/capture/pieces/piece_levels.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/equal_ops.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_ends.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/sums.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/values_on_device.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/validate.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {

// Not stateful: a session keeps the kernels of stateful ops for other graphs.
REGISTER_OP(kPieceOp)
    .Input("arguments: Tin")
    .Output("results: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .Attr("f: func")
    .SetShapeFn(shape_inference::UnknownShape);

namespace {

// Each round finds at least one node that cannot be in a piece. A graph that
// takes more rounds is not cut, so that a session is made in limited time.
constexpr int kMostRounds = 200;
// Each finds a loop that is not recorded as a whole.
constexpr int kMostRestarts = 8;

using Output = PieceLevels::Output;
using PieceId = PieceLevels::PieceId;
constexpr PieceId kNoPiece = PieceLevels::kNoPiece;

class Cutter {
 public:
  Cutter(const Graph& graph, const FunctionLibraryDefinition* library,
         bool with_xla, int fewest_launches)
      : old_(graph.flib_def()),
        library_(library == nullptr ? &old_.flib_def() : library),
        with_xla_(with_xla),
        fewest_launches_(fewest_launches),
        levels_(old_) {
    old_.Copy(graph);
    FixupSourceAndSinkEdges(&old_);
    KeepOrderOfResources(&old_);
  }

  Cut Make() {
    Cut cut = TryMake();
    for (int again = 1; levels_.must_prepare(); ++again) {
      if (again == kMostRestarts) levels_.DivideLoops();
      cut = TryMake();
    }
    return cut;
  }

 private:
  Cut TryMake() {
    Cut cut;
    if (const absl::Status status = levels_.Prepare(library_, with_xla_);
        !status.ok()) {
      cut.no_pieces = std::string(status.message());
      return cut;
    }
    if (levels_.must_prepare()) return cut;
    cut.launches = CountLaunches(old_);
    for (int round = 0; round < kMostRounds; ++round) {
      levels_.Find();
      cut.pieces.clear();
      bool is_final = true;
      for (const auto& [id, nodes] : levels_.Pieces()) {
        absl::StatusOr<std::optional<Piece>> piece = MakePiece(id, nodes);
        if (!piece.ok()) return NotCut(piece.status());
        if (piece->has_value()) {
          cut.pieces.push_back(*std::move(*piece));
        } else {
          is_final = false;
        }
      }
      if (levels_.must_prepare()) return cut;
      if (!is_final) continue;
      if (cut.pieces.empty()) {
        cut.no_pieces = "none is large enough";
        return cut;
      }
      absl::StatusOr<std::unique_ptr<Graph>> rest = MakeRest(cut.pieces);
      if (!rest.ok()) return NotCut(rest.status());
      absl::Status places = graph::ValidateGraphHasNoCycle(**rest);
      places.Update(ValidateMemoryTypes(DEVICE_GPU, rest->get()));
      for (const Piece& piece : cut.pieces) {
        places.Update(ValidateMemoryTypes(DEVICE_GPU, piece.graph.get()));
      }
      if (!places.ok()) return NotCut(places);
      cut.graph = *std::move(rest);
      VLOG(1) << "A graph of " << old_.num_op_nodes() << " nodes is cut into "
              << cut.pieces.size() << " pieces after " << round + 1
              << " rounds";
      return cut;
    }
    cut.pieces.clear();
    cut.no_pieces = "the graph is too large";
    return cut;
  }

  static Cut NotCut(const absl::Status& status) {
    LOG(ERROR) << "Multi-stream: a graph could not be cut: " << status;
    Cut cut;
    cut.no_pieces = "it could not be cut, see the log";
    return cut;
  }

  // The piece of these nodes; nullopt if one of them had to leave it.
  absl::StatusOr<std::optional<Piece>> MakePiece(
      PieceId of, const std::vector<int>& nodes) {
    const PieceBorder border = BorderOf(old_, levels_, of, nodes);
    int launches = 0, kernels = 0;
    for (const int id : nodes) {
      if (!levels_.Launches(id)) continue;
      ++launches;
      kernels += MostKernelsOf(*old_.FindNodeId(id), *library_);
    }
    const auto is_copied = [this](const Output& it) {
      return levels_.TypeOf(it) != DT_RESOURCE;
    };
    const int64_t copies =
        absl::c_count_if(border.takes, is_copied) + border.gives.size();
    if (kernels < fewest_launches_ || kernels * 2 < copies) return Leave(nodes);
    bool leaves = false;
    for (const Output& output : border.gives) {
      const DataType type = levels_.TypeOf(output);
      if (MayCross(type)) continue;
      if (type == DT_VARIANT) {
        levels_.LetListRunAsAlways(output.first);
      } else {
        levels_.LetRunAsAlways(output.first);
      }
      leaves = true;
    }
    for (const Output& output : border.takes) {
      const DataType type = levels_.TypeOf(output);
      if (MayCross(type) || type == DT_RESOURCE) continue;
      for (const Edge* edge : old_.FindNodeId(output.first)->out_edges()) {
        const int to = edge->dst()->id();
        if (levels_.PieceOf(to) == of) levels_.LetRunAsAlways(to);
      }
      leaves = true;
    }
    if (LeaveSums(of, border)) leaves = true;
    if (leaves) return std::nullopt;
    Piece piece;
    piece.launches = launches;
    piece.in_loop = levels_.IsInLoop(nodes[0]);
    static std::atomic<int> number{0};
    piece.name = absl::StrCat("piece_", ++number);
    // Which arguments decide sizes is found by trying.
    std::set<Output> decide;
    while (true) {
      TF_ASSIGN_OR_RETURN(piece.graph, GraphOfPiece(old_, levels_, piece.name,
                                                    of, nodes, border, decide));
      ValuesOnDevice values = PutValuesOnDevice(*piece.graph);
      piece.recorded = std::move(values.graph);
      if (values.obstacle.empty()) break;
      VLOG(2) << "Not in a piece: " << values.obstacle;
      const Needs needs = NeedsOf(values.obstacle_at, of, border);
      const size_t before = decide.size();
      decide.insert(needs.arguments.begin(), needs.arguments.end());
      if (decide.size() > before) continue;
      for (const int id : needs.copies) levels_.LetRunAsAlways(id);
      if (needs.copies.empty()) LeaveAt(values.obstacle_at, nodes);
      return std::nullopt;
    }
    piece.recorded = WithoutEqualOps(*piece.graph, std::move(piece.recorded));
    piece.capturable = ClassifyForCapture(
        piece.recorded == nullptr ? *piece.graph : *piece.recorded, library_);
    piece.capturable.is_piece = true;
    if (!piece.capturable.obstacle.empty()) {
      VLOG(2) << "Not in a piece: " << piece.capturable.obstacle;
      LeaveAt(piece.capturable.obstacle_at, nodes);
      return std::nullopt;
    }
    // What a piece computes on the GPU does not go to the host: the step would
    // wait in the middle.
    for (const Capturable::Result& result : piece.capturable.results) {
      if (!result.on_device) continue;
      levels_.LetRunAsAlways(border.gives[result.index].first);
      leaves = true;
    }
    if (leaves) return std::nullopt;
    border_[piece.name] = border;
    id_[piece.name] = of;
    return piece;
  }

  // Lets sums, or what they add, leave a piece in which an AddN would begin
  // with another tensor than without capture (sums.h). Returns whether any did.
  bool LeaveSums(PieceId of, const PieceBorder& border) {
    bool leaves = false;
    for (const Node* node : old_.op_nodes()) {
      const bool is_inside = levels_.PieceOf(node->id()) == of;
      for (const Node* it : SummandsOf(*node)) {
        const bool is_of_piece = levels_.PieceOf(it->id()) == of;
        if (is_inside == is_of_piece || levels_.IsCopied(it->id())) continue;
        // In a recording, what comes from outside is a copy, to which more than
        // the sum refers. And what the piece gives twice, as itself and
        // reshaped, are two copies.
        const auto has_its_memory = [&](const Output& output) {
          return MayHaveMemoryOf(*it, *old_.FindNodeId(output.first),
                                 output.second);
        };
        if (is_of_piece && absl::c_count_if(border.gives, has_its_memory) < 2) {
          continue;
        }
        levels_.LetRunAsAlways(is_of_piece ? it->id() : node->id());
        leaves = true;
        break;
      }
    }
    return leaves;
  }

  std::optional<Piece> Leave(const std::vector<int>& nodes) {
    for (const int id : nodes) levels_.LetRunAsAlways(id);
    return std::nullopt;
  }

  // The node with this name, which a recorded graph may have lengthened, leaves
  // its piece; all nodes do if there is none.
  void LeaveAt(absl::string_view name, const std::vector<int>& nodes) {
    int found = -1;
    for (const int id : nodes) {
      const std::string& it = old_.FindNodeId(id)->name();
      const bool is_it =
          name == it || absl::StartsWith(name, absl::StrCat(it, "/on_device"));
      if (is_it) found = id;
    }
    if (found < 0 || levels_.RunsAsAlways(found)) {
      Leave(nodes);
    } else {
      levels_.LetRunAsAlways(found);
    }
  }

  // What decides a value that an op of the GPU needs on the host.
  struct Needs {
    std::set<Output> arguments;  // they become a part of a recording's key
    std::vector<int> copies;     // from the GPU to the host: they end a piece
  };
  Needs NeedsOf(const std::string& name, PieceId of,
                const PieceBorder& border) const {
    Needs needs;
    const Node* found = nullptr;
    for (const int id : levels_.order()) {
      const Node* node = old_.FindNodeId(id);
      if (node->name() == name && levels_.PieceOf(id) == of) found = node;
    }
    if (found == nullptr || IsOnHost(*found)) return needs;
    WalkFinds(*found, [&](const Node& next, auto go_to) {
      for (const Edge* edge : next.in_edges()) {
        if (edge->IsControlEdge()) continue;
        const Output from(edge->src()->id(), edge->src_output());
        if (!levels_.IsOnHost(from)) continue;
        if (levels_.PieceOf(from.first) != of) {
          if (absl::c_linear_search(border.takes, from) &&
              MayCross(levels_.TypeOf(from))) {
            needs.arguments.insert(from);
          }
        } else if (edge->src()->IsRecv()) {
          needs.copies.push_back(from.first);
        } else {
          go_to(edge->src());
        }
      }
      return false;
    });
    return needs;
  }

  absl::StatusOr<Node*> AddPiece(const Piece& piece, Graph* graph) {
    const PieceBorder& border = border_.at(piece.name);
    NodeDef def;
    def.set_op(kPieceOp);
    def.set_name(absl::StrCat("_multi_stream_", piece.name));
    std::vector<DataType> takes, gives;
    std::vector<int> taken_on_host, given_on_host;
    for (size_t i = 0; i < border.takes.size(); ++i) {
      const Output& output = border.takes[i];
      takes.push_back(levels_.TypeOf(output));
      if (levels_.IsOnHost(output)) {
        taken_on_host.push_back(static_cast<int>(i));
      }
      def.add_input(absl::StrCat(old_.FindNodeId(output.first)->name(), ":",
                                 output.second));
    }
    for (size_t i = 0; i < border.gives.size(); ++i) {
      gives.push_back(levels_.TypeOf(border.gives[i]));
      if (levels_.IsOnHost(border.gives[i])) {
        given_on_host.push_back(static_cast<int>(i));
      }
    }
    AddNodeAttr("Tin", takes, &def);
    AddNodeAttr("Tout", gives, &def);
    NameAttrList function;
    function.set_name(piece.name);
    AddNodeAttr("f", function, &def);
    // MemoryTypesForNode reads these.
    AddNodeAttr("_input_hostmem", taken_on_host, &def);
    AddNodeAttr("_output_hostmem", given_on_host, &def);
    return AddAssigned(
        std::move(def),
        old_.FindNodeId(levels_.order().front())->assigned_device_name(),
        graph);
  }

  // What runs before a constant runs before each piece with a copy of it: an
  // edge to the constant may be all that puts a node into its loop. `before` is
  // made for `first`, which may be a constant after a node of the piece.
  void KeepInLoop(const Node& copied, const Node& first, Node* before,
                  const std::vector<Node*>& made, Graph* graph) const {
    for (const Edge* edge : copied.out_edges()) {
      Node* piece = made[edge->dst()->id()];
      if (!edge->IsControlEdge() && piece != nullptr && piece != before &&
          levels_.PieceOf(edge->dst()->id()) != kNoPiece &&
          !levels_.IsCopyAfter(first, levels_.PieceOf(edge->dst()->id()))) {
        graph->AddControlEdge(before, piece);
      }
    }
  }

  // The graph in which a node stands for each piece.
  absl::StatusOr<std::unique_ptr<Graph>> MakeRest(
      const std::vector<Piece>& pieces) {
    auto graph = std::make_unique<Graph>(old_.flib_def());
    graph->set_versions(old_.versions());
    std::vector<Node*> made(old_.num_node_ids());
    std::map<PieceId, Node*> by_id;
    std::map<Output, std::pair<Node*, int>> given;
    for (const Piece& piece : pieces) {
      TF_ASSIGN_OR_RETURN(by_id[id_.at(piece.name)],
                          AddPiece(piece, graph.get()));
    }
    std::vector<bool> is_used(old_.num_node_ids());
    for (const Edge* edge : old_.edges()) {
      const int to = edge->dst()->id();
      if (edge->dst()->IsOp() && levels_.PieceOf(to) == kNoPiece) {
        is_used[edge->src()->id()] = true;
      }
    }
    for (const int id : levels_.order()) {
      const Node* node = old_.FindNodeId(id);
      if (levels_.PieceOf(id) != kNoPiece) {
        made[id] = by_id.at(levels_.PieceOf(id));
        continue;
      }
      // Only pieces use it, and have it.
      if (levels_.IsCopied(id) && !is_used[id]) continue;
      TF_ASSIGN_OR_RETURN(
          made[id],
          AddAssigned(node->def(), node->assigned_device_name(), graph.get()));
      for (const auto& [piece, op] : by_id) {
        if (!levels_.HadBetterPrecede(id, piece)) continue;
        graph->AddControlEdge(made[id], op);
      }
    }
    for (const Piece& piece : pieces) {
      Node* node = by_id.at(id_.at(piece.name));
      const PieceBorder& border = border_.at(piece.name);
      for (size_t i = 0; i < border.gives.size(); ++i) {
        given[border.gives[i]] = {node, static_cast<int>(i)};
      }
    }
    const auto source_of = [&](const Output& output) {
      const auto found = given.find(output);
      return found != given.end()
                 ? found->second
                 : std::pair<Node*, int>(made[output.first], output.second);
    };
    for (const Piece& piece : pieces) {
      Node* node = by_id.at(id_.at(piece.name));
      const PieceBorder& border = border_.at(piece.name);
      for (size_t i = 0; i < border.takes.size(); ++i) {
        const auto [from, output] = source_of(border.takes[i]);
        graph->AddEdge(from, output, node, static_cast<int>(i));
      }
    }
    for (const Edge* edge : old_.edges()) {
      if (!edge->src()->IsOp() || !edge->dst()->IsOp()) continue;
      Node* to = made[edge->dst()->id()];
      Node* from = made[edge->src()->id()];
      if (levels_.IsCopied(edge->dst()->id()) && from != nullptr) {
        KeepInLoop(*edge->dst(), *edge->src(), from, made, graph.get());
      }
      if (to == nullptr || from == nullptr || from == to) continue;
      if (edge->IsControlEdge()) {
        graph->AddControlEdge(from, to);
      } else if (to->type_string() != kPieceOp) {
        const auto [node, output] =
            source_of({edge->src()->id(), edge->src_output()});
        graph->AddEdge(node, output, to, edge->dst_input());
      }
    }
    FixupSourceAndSinkEdges(graph.get());
    return graph;
  }

  Graph old_;
  const FunctionLibraryDefinition* const library_;
  const bool with_xla_;
  const int fewest_launches_;
  PieceLevels levels_;
  // By name of a piece.
  std::map<std::string, PieceBorder> border_;
  std::map<std::string, PieceId> id_;
};

}  // namespace

Cut CutIntoPieces(const Graph& graph, const FunctionLibraryDefinition* library,
                  bool with_xla, int fewest_launches) {
  return Cutter(graph, library, with_xla, fewest_launches).Make();
}

}  // namespace tensorflow::multistream
