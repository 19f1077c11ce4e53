// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// On which levels are the nodes of a graph that is cut (cut.h)? Starts with all
// that may be recorded by itself (piece_kinds.cc), and with all loops of which
// that holds (whole_loops.cc). CutIntoPieces finds out what may not be part of
// a piece after all, and begins again if that is in such a loop.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_PIECE_LEVELS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_PIECE_LEVELS_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

class PieceLevels {
 public:
  enum class Kind {
    kBetween,  // runs as always
    kLaunch,   // may be recorded
    kFree,     // launches nothing on the GPU: may be recorded, or run as always
    kLoop,     // launches nothing, in a loop that is recorded as a whole
    kCopied,   // a constant or a handle: each piece has its own
  };
  // A node's id, and one of its outputs.
  using Output = std::pair<int, int>;
  // The send of each copy in place, by its receive.
  using Sends = std::map<const Node*, const Node*>;

  // `graph` has edges from the source and to the sink, and outlives this
  // object.
  explicit PieceLevels(const Graph& graph) : graph_(graph) {}

  // Call first, and again if must_prepare(). An error says why the graph cannot
  // be cut. `library`, `with_xla`: as for CutIntoPieces.
  absl::Status Prepare(const FunctionLibraryDefinition* library, bool with_xla);

  // Finds the levels. Call again after LetRunAsAlways.
  void Find();

  // A piece: its level, and the class of its nodes.
  using PieceId = std::pair<int, int>;
  static constexpr PieceId kNoPiece = {-1, -1};
  PieceId PieceOf(int id) const;
  // The nodes of each piece, in an order in which they can run.
  std::map<PieceId, std::vector<int>> Pieces() const;
  // All nodes in such an order.
  const std::vector<int>& order() const { return order_; }

  // Whether the host waits for the GPU because of the node, and the node need
  // not wait for the piece: then it had better come first, when the GPU has
  // less to do.
  bool HadBetterPrecede(int id, PieceId piece) const {
    return waits_[id] && levels_[id] < piece.first &&
           classes_[id] == piece.second;
  }

  // Of a loop that is not recorded as a whole.
  bool IsInLoop(int id) const { return in_loop_[id]; }
  bool IsCopied(int id) const { return kinds_[id] == Kind::kCopied; }
  // Whether a copied node comes after a node of the piece.
  bool IsCopyAfter(const Node& node, PieceId piece) const;
  bool Launches(int id) const { return kinds_[id] == Kind::kLaunch; }
  bool RunsAsAlways(int id) const { return kinds_[id] == Kind::kBetween; }
  void LetRunAsAlways(int id);
  // The node gives a tensor list that must not leave its piece. All nodes leave
  // that the list goes through, so that they do not take a round each.
  void LetListRunAsAlways(int id);
  // Whether a node had to leave a loop that was to be recorded as a whole.
  bool must_prepare() const { return must_prepare_; }
  // From the next Prepare on no loop is recorded as a whole.
  void DivideLoops() { divides_loops_ = true; }

  DataType TypeOf(const Output& output) const {
    return graph_.FindNodeId(output.first)->output_type(output.second);
  }
  bool IsOnHost(const Output& output) const {
    return outputs_[output.first][output.second] == HOST_MEMORY;
  }

 private:
  // Whether shapes and constants decide the condition of a loop, without shapes
  // that values decide. Else there would be a recording for each number of
  // iterations.
  bool IsCounted(const Node& condition, const Sends& sends) const;
  // From the next Prepare on the loop is not recorded as a whole.
  void Divide(int loop);
  void AddOrder(int from, int to);
  // What a loop gives comes after all that its iterations compute.
  void OrderLoops(const std::vector<ControlFlowInfo>& frames);
  // A receive comes after the sends that its value depends on.
  absl::Status OrderTransfers();
  // Finds an order in which each node comes after those before it.
  absl::Status Sort();
  void FindKinds(const FunctionLibraryDefinition* library, bool with_xla,
                 const std::vector<ControlFlowInfo>& frames);
  // Finds the outermost loops of which each node `may_be_recorded`, and whose
  // iterations are counted. Puts all nodes of one on one level.
  void FindWholeLoops(const std::vector<ControlFlowInfo>& frames,
                      absl::FunctionRef<bool(const Node&)> may_be_recorded);
  // What takes shapes that values decide runs as always, so that the rest needs
  // no recording for each of these shapes: if the largest piece stays about as
  // large.
  void LeaveOutValueShapes();
  // The host knows an Assert's condition once the GPU has computed it, and only
  // then the step ends. If few ops make the conditions of all Asserts, they run
  // as always, before the pieces. Then the step ends while the GPU computes the
  // pieces, and the host prepares the next step meanwhile.
  void LeaveOutConditions();
  // Adds the ops that make what `send` sends. False if they are many, or not as
  // well run elsewhere.
  bool AddMakers(int send, std::set<int>* makers) const;
  // Adds what comes after the node. False if it launches work on the GPU.
  bool AddFollowers(int id, std::set<int>* followers) const;
  // Lets the nodes run as always if the largest piece stays about as large.
  // Returns whether it does.
  bool LeaveOut(const std::vector<int>& nodes);
  // A piece runs as a whole, or not at all. So its nodes are of one class: they
  // are in the same loop, and in the same branches.
  void FindClasses(const std::vector<ControlFlowInfo>& frames);
  // `early`: what may be recorded is on the lowest level that is possible.
  void FindOnce(bool early);
  void FindAll(bool early);
  // How many launches the piece with the most has.
  int LargestPiece() const;
  // Whether all that take the node's outputs, or the tensor that it sends, are
  // on this level.
  bool IsUsedBy(int id, int level) const;
  // For a node that gives a tensor's shape: whether, with these `levels`, a
  // piece on `level` has the tensor. Else it need not take it for its shape.
  bool TakesItsTensor(int id, int level, const std::vector<int>& levels) const;
  // Lets the two ends of a copy run as always if they are not in one piece.
  // Returns whether there are such ends.
  bool KeepPairsTogether();

  // A loop that is recorded with all its iterations, and with the loops in it.
  struct WholeLoop {
    std::string frame;
    std::vector<int> nodes;
  };

  const Graph& graph_;
  std::vector<WholeLoop> loops_;
  std::set<std::string> not_whole_;  // frames that were found to be none
  bool must_prepare_ = false;
  bool divides_loops_ = false;
  // By node id.
  std::vector<int> loop_of_;  // in loops_, or -1
  std::vector<Kind> kinds_;
  std::vector<int> levels_;
  std::vector<int> classes_;
  std::vector<bool> in_loop_;
  std::vector<bool> waits_;
  std::vector<MemoryTypeVector> inputs_, outputs_;
  // Edges, and the order of transfers; without the back edges of loops.
  std::vector<std::vector<int>> before_, after_;
  std::vector<int> order_;
  std::vector<std::pair<int, int>> pairs_;  // copies in place: send, receive
};

// Whether a tensor of this type may be an argument or a result of a piece.
bool MayCross(DataType type);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_PIECE_LEVELS_H_
