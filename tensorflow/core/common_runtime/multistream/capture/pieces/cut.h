// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which pieces of a graph may be recorded, if the graph as a whole may not?
// Pure graph code, without devices.
//
// Nodes get levels that grow along all edges. Nodes on odd levels may be
// recorded, and all nodes of one odd level are a piece. Nodes on even levels
// run as they always do:
//
//   level 0   arguments
//   level 1       Gather --> Mul          a piece
//   level 2                     \--> Where
//   level 3       MatMul <------------/   a piece
//   level 4       result
//
// In the graph that remains, one node stands for each piece. Since levels grow
// along the edges, that graph has no cycle.
//
// What may be recorded is on the highest odd level that its users allow: what
// is not needed between two pieces is in the later one. Or on the lowest, if
// the largest piece is much larger then, as with an optimizer that ends by
// counting steps. A node that launches nothing, and comes after no piece, joins
// one only if all its users are in it. A piece with few launches does not pay
// for copying what it takes and gives: its nodes run as always.
//
// A piece runs as a whole or not at all. So if nodes of an odd level are in
// other branches, they are other pieces. A loop is in a piece with all its
// iterations if constants and shapes decide how many there are, and all of it
// may be recorded. Else nodes of the loop are pieces, which run in each
// iteration.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_CUT_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_CUT_H_

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/capture/which/capturable.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// The op that stands for a piece. Attribute `f` names the piece.
inline constexpr char kPieceOp[] = "_MultiStreamPiece";

struct Piece {
  std::string name;  // unique in the process
  // The piece's nodes, with an _Arg for what the piece takes and a _Retval for
  // what the piece gives.
  std::unique_ptr<Graph> graph;
  // The graph to record (values_on_device.h); nullptr: `graph`.
  std::unique_ptr<Graph> recorded;
  Capturable capturable;
  int launches = 0;  // ops that launch kernels
  bool in_loop = false;
};

struct Cut {
  std::unique_ptr<Graph> graph;  // with a kPieceOp for each piece
  std::vector<Piece> pieces;     // none: the graph remains as it is
  std::string no_pieces;         // why there are none
  int launches = 0;              // of the whole graph
};

// `graph` is one GPU's part of a step. `with_xla`: what XLA compiles may be
// recorded. `fewest_launches`: of a piece.
Cut CutIntoPieces(const Graph& graph, const FunctionLibraryDefinition* library,
                  bool with_xla, int fewest_launches);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_CUT_H_
