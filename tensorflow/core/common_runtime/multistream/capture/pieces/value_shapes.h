// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which nodes have inputs whose shapes depend on values? A recording is for one
// shape, so what takes such an input would need another recording in many
// steps. An embedding's gradient has as many rows as a batch has different ids:
//
//   ids --> Unique --> as many as differ --> UnsortedSegmentSum --> ...
//                \-> where they are          decided by values

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_VALUE_SHAPES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_VALUE_SHAPES_H_

#include <utility>
#include <vector>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// Whether the shape of an output depends on the values of the node's inputs. To
// know it, the node's kernel waits for the GPU.
bool HasValueShape(const Node& node);

// The ids of the nodes that take what has a shape decided by values, or a size
// made of such a shape. `order` has the graph's nodes in an order in which
// they can run; what a loop's iteration gives the next one counts as known.
// `copies` are the sends within the graph, each with its receive.
std::vector<int> TakeValueShapes(
    const Graph& graph, const std::vector<int>& order,
    const std::vector<std::pair<int, int>>& copies);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_VALUE_SHAPES_H_
