// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Of what is the graph of a piece (cut.h) made?

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_PIECE_GRAPH_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_PIECE_GRAPH_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/capture/pieces/piece_levels.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// What a piece's nodes take from others and give to others.
struct PieceBorder {
  std::vector<PieceLevels::Output> takes;
  std::vector<PieceLevels::Output> gives;
};

PieceBorder BorderOf(const Graph& graph, const PieceLevels& levels,
                     PieceLevels::PieceId of, const std::vector<int>& nodes);

// The nodes of piece `of` in the `whole` graph, with an _Arg for each output
// that the piece takes and a _Retval for each that it gives. `decide`: the
// taken outputs that decide sizes.
absl::StatusOr<std::unique_ptr<Graph>> GraphOfPiece(
    const Graph& whole, const PieceLevels& levels, const std::string& name,
    PieceLevels::PieceId of, const std::vector<int>& nodes,
    const PieceBorder& border, const std::set<PieceLevels::Output>& decide);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_PIECE_GRAPH_H_
