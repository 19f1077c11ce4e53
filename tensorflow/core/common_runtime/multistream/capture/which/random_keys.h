// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a recording get the key and the counter of a stateless random op?
// TensorFlow's op StatelessRandomGetKeyCounter makes them of a seed, on the
// host: it waits for the GPU if the seed is a variable there, as of Keras 3's
// dropout. The op draws once, by Philox with a key of its own and the seed as
// the counter. So can a random op on the GPU:
//
//   seed -- as uint64 --> StatelessRandomUniformFullIntV2 --> key, c
//                              key of its own                 counter: 0, c

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_RANDOM_KEYS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_RANDOM_KEYS_H_

#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// Whether the node makes a key and a counter of its input.
bool MakesKey(const Node& node);

// Adds nodes that compute the outputs of such a node on `seed`'s device, of its
// output, an int64 [2] there: the key, uint64 [1], and the counter, uint64 [2].
// Their names begin with `name`.
absl::Status AddKeyAndCounter(const std::string& name, Node* seed, int output,
                              Graph* graph, Node** key, Node** counter);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_RANDOM_KEYS_H_
