// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// May a step whose inputs have `length` entries in their second dimension, such
// as the tokens of a sentence, run with more entries, so that few recordings
// serve sentences of any length? Pure graph code: no device in it.
//
// Entries depend on each other, unlike rows: attention and sums run over all of
// them. So the added entries are taken out where a step computes over entries:
// a mask, which is an input of the recording, sets them to what changes nothing
// there.
//
//   lengths 4         entries   1  2  3  ?        mask   1  1  1  0
//
//   Tanh(x) ...................... .8 1. 1.  ?      entries stay apart
//   Softmax(x) --> Softmax(mask ? x : -inf)         = .1 .2 .7  0
//   Sum(x) ------> Sum(mask ? x : 0)                = 6
//
// Last bits may differ from the shorter step's, as a kernel may sum in another
// order. A step with an op for which that is not known is refused
// (length_rules.h).

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_PADDED_LENGTHS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_PADDED_LENGTHS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/length_rules.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/sized_step.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// Which inputs have entries, in the order of Capturable.
struct HaveEntries {
  std::vector<bool> received;
  std::vector<bool> arguments;
};

// A mask of a node's input.
struct NodeMask {
  std::string node;
  int rank = 0;  // of the input
  LengthMask mask;

  bool operator==(const NodeMask& other) const {
    return node == other.node && rank == other.rank && mask == other.mask;
  }
};

struct PaddedLength {
  std::vector<SizedResult> results;  // sends, results, then checks
  std::vector<NodeMask> masks;
};

// The proofs for one graph. Thread-safe.
class PaddedLengths {
 public:
  // As for IndependentRows.
  explicit PaddedLengths(const Graph& graph) : step_(graph) {}

  const Graph& graph() const { return step_.graph; }

  // The length: the second dimension of all inputs that have entries. An error
  // if they differ.
  static absl::StatusOr<int64_t> Length(const StepShapes& shapes,
                                        const HaveEntries& have);
  // FailedPrecondition names the op and the node that forbid padding.
  absl::StatusOr<PaddedLength> Pad(const StepShapes& shapes,
                                   const HaveEntries& have,
                                   int64_t padded) const;

 private:
  const StepNodes step_;
};

// A copy of `graph`, all of `device`, with the masks. It receives by MaskKey a
// boolean for each entry: false for those that are added.
absl::StatusOr<std::unique_ptr<Graph>> WithMasks(
    const Graph& graph, const std::vector<NodeMask>& masks,
    const std::string& device);

// The rendezvous key of the mask, which no other graph has.
std::string MaskKey();

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_PADDED_LENGTHS_H_
