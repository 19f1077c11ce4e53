// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which calls of a step are padded to the size of a recording, and to which?
// CapturedSteps asks for each call, if TF_MULTI_STREAM_CAPTURE_BATCHES or
// TF_MULTI_STREAM_CAPTURE_LENGTHS is set.
//
//   a call of 5 rows of 11 entries
//      |  lengths 16, 32      as 5 rows of 16 entries    (padded_lengths.h)
//      |  batches 2, 8        as 8 rows of 16 entries    (independent_rows.h)
//      v
//   the recording for 8 rows of 16 entries
//
// A call that has one of the sizes, or more than all, keeps its size.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_PADDINGS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_PADDINGS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/padded_lengths.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/sized_step.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// One output of a padded step.
struct PaddedResult {
  TensorShape shape;   // for the call
  TensorShape padded;  // of the recording
  // Depends on the rows or the entries of the call.
  bool is_padded = false;
  // The result for the call consists of so many blocks of equal size. Each is
  // the beginning of a block of the recording's result, which may have more.
  int64_t blocks = 1;

  // The size of a recording's block, if one of the call has `bytes`.
  int64_t Stride(int64_t bytes) const {
    return blocks == 1 ? bytes : bytes / length * padded_length;
  }
  int64_t length = 1;
  int64_t padded_length = 1;
};

// The padding of all calls with the same shapes of inputs and variables.
struct Padding {
  // Why a call is not padded as it is asked, or empty.
  std::string why_not;
  // The recording's rows; 0: those of the call.
  int64_t rows = 0;
  // The recording's entries; 0: those of the call, and no masks.
  int64_t length = 0;
  HaveEntries have;
  Tensor mask;  // a boolean for each entry: whether it is one of the call's
  // Shared by all paddings of a graph that have these masks.
  std::shared_ptr<const std::vector<NodeMask>> masks;
  std::vector<std::pair<DataType, TensorShape>> variables;
  // What a recording makes (StepInterface): sends, results, checks.
  std::vector<PaddedResult> results;

  // The shape, with the recording's rows, of an input that has `shape`.
  TensorShape WithRows(const TensorShape& shape) const;
};

// The paddings of one graph. Thread-safe.
class Paddings {
 public:
  // The most combinations of shapes in the cache, which is cleared when full.
  static constexpr size_t kMostShapes = 8192;

  // `batches` and `lengths` are the sizes that may be recorded, ascending.
  Paddings(const Graph& graph, std::vector<int> batches,
           std::vector<int> lengths);

  // nullptr if the call is recorded as it is. `key` identifies the shapes of
  // the inputs, without variables.
  std::shared_ptr<const Padding> Of(std::string key, const StepShapes& shapes);

  // The graph with the masks of a padding.
  absl::StatusOr<std::unique_ptr<Graph>> Masked(
      const std::vector<NodeMask>& masks, const std::string& device) const {
    return WithMasks(lengths_.graph(), masks, device);
  }

 private:
  // Notes which inputs have had another second dimension in another call.
  // Returns whether one is new.
  bool NoteEntries(const StepShapes& shapes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::shared_ptr<Padding> NewPadding(const StepShapes& shapes,
                                      const HaveEntries& have) const;
  // Each returns whether it pads the call.
  absl::StatusOr<bool> PadLength(StepShapes* shapes, Padding* padding) const;
  absl::StatusOr<bool> PadRows(const StepShapes& shapes,
                               Padding* padding) const;

  const IndependentRows rows_;
  const PaddedLengths lengths_;
  const std::vector<int> row_sizes_;
  const std::vector<int> length_sizes_;
  absl::Mutex mu_;
  absl::flat_hash_map<std::string, std::shared_ptr<const Padding>> known_
      ABSL_GUARDED_BY(mu_);
  std::optional<StepShapes> first_ ABSL_GUARDED_BY(mu_);  // shapes seen
  std::shared_ptr<const std::vector<NodeMask>> masks_ ABSL_GUARDED_BY(mu_);
  HaveEntries have_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_PADDINGS_H_
