// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a model server answer a request of bytes with bytes, without the
// GIL? A Predictor is a function of named tensors, a SavedModel's signature:
//
//   PredictRequest -> tensors -> ServingCallable -> tensors -> PredictResponse
//
// served_models.h finds the Predictor of a request.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PREDICTOR_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PREDICTOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/serving/predict_messages.h"
#include "tensorflow/core/common_runtime/multistream/serving/serving_callable.h"
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

  // The callable, which must live longer, takes `inputs` and gives `outputs`,
  // in that order; it is called in the scope of `device` (none: of none). An
  // input may take `most_bytes`.
  Predictor(ServingCallable* callable, std::string signature,
            std::optional<std::string> device, int64_t most_bytes,
            std::vector<Input> inputs, std::vector<std::string> outputs)
      : callable_(callable),
        signature_(std::move(signature)),
        device_(std::move(device)),
        most_bytes_(most_bytes),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {}

  // Nothing, without a call of the function, if the request's inputs are not
  // those of the function, each once, or are not plain (predict_messages.h).
  // `version` goes into the answer.
  std::optional<Prediction> Predict(const PredictRequest& request,
                                    int64_t version) const;

 private:
  ServingCallable* const callable_;
  const std::string signature_;
  const std::optional<std::string> device_;
  const int64_t most_bytes_;
  const std::vector<Input> inputs_;
  const std::vector<std::string> outputs_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PREDICTOR_H_
