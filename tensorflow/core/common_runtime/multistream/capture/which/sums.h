// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// In which order does an AddN add? It begins with the first input whose memory
// it may take over, as nothing else refers to the tensor. With three or more
// inputs the order decides the last bits of the sum. So a recorded AddN has to
// find inputs that only it refers to wherever it finds them without capture.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_SUMS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_SUMS_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// For an AddN of three or more floating-point tensors, the nodes that have made
// the memory that it may take over. Nodes that may hand memory on, or a part of
// it, are passed by; nodes that keep a reference to what they give are left
// out. Empty for any other node.
std::vector<const Node*> SummandsOf(const Node& node);

// These nodes, and those that are passed by.
std::vector<const Node*> WithSummands(const Node& node);

// Whether an output of `node` may be the memory that `maker` has made.
bool MayHaveMemoryOf(const Node& maker, const Node& node, int output);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_SUMS_H_
