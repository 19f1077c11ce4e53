// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which calls are padded to a larger batch, so that few recordings serve
// batches of any size? CapturedSteps asks for each call, if
// TF_MULTI_STREAM_CAPTURE_BATCHES is set.
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

// The padding of all calls with the same shapes of inputs and variables.
struct Padding {
  // Why these calls are not padded, or empty. If set, the other members are
  // invalid.
  std::string why_not;
  int64_t rows = 0;  // rows of the recording
  std::vector<std::pair<DataType, TensorShape>> variables;
  // The outputs: first the sends, then the results.
  std::vector<BatchResult> results;

  // The padded shape of an input that has `shape` in the call.
  TensorShape Padded(const TensorShape& shape) const;
};

// The paddings of one graph. Thread-safe.
class Paddings {
 public:
  // The most combinations of shapes in the cache, which is cleared when full.
  static constexpr size_t kMostShapes = 1024;

  // `batches` are the batch sizes that may be recorded, ascending.
  Paddings(const Graph& graph, std::vector<int> batches);

  // nullptr if the call's batch is one of `batches`, or larger than all. `key`
  // identifies the shapes of the inputs, without variables.
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
