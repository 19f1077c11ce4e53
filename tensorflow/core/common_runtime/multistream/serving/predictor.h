// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a model server answer a request of bytes with bytes, without the
// GIL? A Predictor is a function of named tensors, a SavedModel's signature:
//
//   PredictRequest -> tensors -> ServingCallable -> tensors -> PredictResponse
//
// Several requests may share a step of the callable (batched_calls.h). On
// several devices there is a callable for each (device_choice.h).
// served_models.h finds the Predictor of a request.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PREDICTOR_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PREDICTOR_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/serving/device_choice.h"
#include "tensorflow/core/common_runtime/multistream/serving/predict_messages.h"
#include "tensorflow/core/common_runtime/multistream/serving/serving_callable.h"
#include "tensorflow/core/common_runtime/multistream/step/pinned_group.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow::multistream {

// The answer: a PredictResponse, or the text of the function's error.
struct Prediction {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string bytes;
};

// Calls are thread-safe.
class Predictor {
 public:
  struct Input {
    std::string name;
    PartialTensorShape shape;
  };

  // The function on one device: a callable, which must live longer, and the
  // scope that it is called in (none: of no device).
  struct Replica {
    ServingCallable* callable;
    std::optional<std::string> device;
  };

  // The callables take `inputs` and give `outputs`, in that order. `choice`,
  // which must live longer, is null if there is one replica. An input may take
  // `most_bytes`. Steps that several requests share have one of `batch_sizes`
  // rows, which ascend; without sizes, each request is a step. Steps run on
  // `groups`.
  Predictor(std::vector<Replica> replicas, DeviceChoice* choice,
            std::string signature, int64_t most_bytes,
            std::vector<Input> inputs, std::vector<std::string> outputs,
            std::vector<int> batch_sizes, PinnedGroups groups);

  // Answers requests, in as few steps as possible, on one device. No
  // answer, and no call of the function, for a request whose inputs are not
  // those of the function, each once, or are not plain (predict_messages.h).
  // `version` goes into the answers. Returns how many steps were made.
  size_t Predict(absl::Span<const PredictRequest* const> requests,
                 int64_t version,
                 absl::Span<std::optional<Prediction>> answers) const;

  // OK if requests of one row may share steps, or says why not; each other
  // dimension that the function leaves open is taken as 1. Call the function
  // once before.
  absl::Status MayShare() const;

  // How many requests it has answered, with the function's results or its
  // error.
  int64_t answered() const { return answered_.load(std::memory_order_relaxed); }

 private:
  bool Read(const PredictRequest& request,
            std::vector<Tensor>* arguments) const;
  Prediction Answer(const PredictRequest& request, int64_t version,
                    const BatchedCall& call) const;

  const std::vector<Replica> replicas_;
  DeviceChoice* const choice_;
  const std::string signature_;
  const int64_t most_bytes_;
  const std::vector<Input> inputs_;
  const std::vector<std::string> outputs_;
  // Why requests never share a step, whatever the function computes.
  const std::string never_shared_;
  const std::vector<int> batch_sizes_;
  const PinnedGroups groups_;
  mutable std::atomic<int64_t> answered_{0};
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PREDICTOR_H_
