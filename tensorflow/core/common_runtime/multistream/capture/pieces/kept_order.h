// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which order do constants keep that each piece has its own copy of (cut.h)?
// Constant folding orders a constant after the ops that the constant was made
// of. Most such edges only delay ops, so copies leave them out. But such an
// edge may be all that orders two ops that use a variable: TensorFlow removes
// edges that a path along others makes redundant.
//
//   assign ---> constant ---> assign_add      no other edge between the two

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_KEPT_ORDER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_KEPT_ORDER_H_

#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// Whether each piece has its own copy of the node: a constant or a handle.
bool HasOwnCopies(const Node& node);

// Adds a control edge from what comes before such a node to what comes after
// it, wherever two ops that use a resource, of which one may change it, have no
// other order. The graph has edges from its source.
void KeepOrderOfResources(Graph* graph);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_KEPT_ORDER_H_
