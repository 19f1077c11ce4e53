// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a recording draw other random numbers in each launch? The kernel of
// a stateful op, as of dropout in tf-keras, has a generator. Each step reserves
// numbers of the generator, and launches with its state by value. So in a
// recorded graph, the stateless op that draws the same numbers takes the op's
// place, and has the state on the device. Before each launch, the state is
// reserved of the same kernel's generator (replay/recorded_copies.h). So the
// numbers are those of stock TensorFlow, also if only some steps are replayed.
//
//   the step:        shape --> RandomUniform
//
//   the recorded     shape --> StatelessRandomUniformV2
//   graph:             |            ^          ^
//                     send       receive    receive
//                  draw_shape   draw_key   draw_counter
//
// How does a recording get the key and the counter of a stateless random op?
// TensorFlow's op StatelessRandomGetKeyCounter makes them of a seed, on the
// host: it waits for the GPU if the seed is a variable there, as of Keras 3's
// dropout. The op draws once, by Philox with a key of its own and the seed as
// the counter. So can a random op on the GPU:
//
//   seed -- as uint64 --> StatelessRandomUniformFullIntV2 --> key, c
//                              key of its own                 counter: 0, c

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_DRAWN_NUMBERS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_DRAWN_NUMBERS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// Whether a stateless op can draw the numbers that the node draws.
bool HasStatelessDraw(const Node& node);

// A copy of `graph`, all of `device`, with stateless ops in place of the nodes
// with these names, which draw numbers.
absl::StatusOr<std::unique_ptr<Graph>> WithStatelessDraws(
    const Graph& graph, const std::vector<std::string>& draws,
    const std::string& device);

// The rendezvous keys by which such a graph receives, for each draw the key of
// type uint64 [1], then the counter, uint64 [2]; and by which it sends the
// shapes, int32 or int64 [rank].
std::vector<std::string> DrawStateKeys(size_t draws);
std::vector<std::string> DrawShapeKeys(size_t draws);

// Whether the node makes a key and a counter of its input.
bool MakesKey(const Node& node);

// Adds nodes that compute the outputs of such a node on `seed`'s device, of its
// output, an int64 [2] there: the key, uint64 [1], and the counter, uint64 [2].
// Their names begin with `name`.
absl::Status AddKeyAndCounter(const std::string& name, Node* seed, int output,
                              Graph* graph, Node** key, Node** counter);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_DRAWN_NUMBERS_H_
