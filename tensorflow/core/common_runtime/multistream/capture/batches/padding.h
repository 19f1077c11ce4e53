// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which calls are padded to a larger batch, so that few recordings serve
// batches of any size? Captured steps ask for each call, if there is
// TF_MULTI_STREAM_CAPTURE_BATCHES.
//
//   batches 2, 8        a call of 5 rows   -->  the recording for 8 rows
//                       of 2, of 8         -->  as they are
//                       of 9               -->  as it is

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_PADDING_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_PADDING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

// Of calls whose inputs, and the variables that they read, have the same
// shapes.
struct Padding {
  // Why they are not padded. The rest means nothing then.
  std::string why_not;
  int64_t rows = 0;  // that the recording has
  std::vector<std::pair<DataType, TensorShape>> variables;
  // What the step gives: first what it sends, then its results.
  std::vector<BatchResult> results;

  // Of an input that has this shape in the call.
  TensorShape Padded(const TensorShape& shape) const;
};

// Of one graph. Thread-safe.
class Paddings {
 public:
  // Inputs of different shapes that are remembered.
  static constexpr size_t kMostShapes = 1024;

  // `batches` has the rows of batches that may be recorded, ascending.
  Paddings(const Graph& graph, std::vector<int> batches);

  // nullptr if the call's batch is one of those, or larger than all.
  // `key` stands for the shapes of what it takes, variables apart.
  std::shared_ptr<const Padding> Of(std::string key, const StepShapes& shapes);

 private:
  std::shared_ptr<const Padding> NewPadding(const StepShapes& shapes) const;

  const IndependentRows rows_;
  const std::vector<int> batches_;
  absl::Mutex mu_;
  absl::flat_hash_map<std::string, std::shared_ptr<const Padding>> known_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_PADDING_H_
