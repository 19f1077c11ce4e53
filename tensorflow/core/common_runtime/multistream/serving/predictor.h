// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a model server answer a request of bytes with bytes, without the
// GIL? A Predictor is a function of named tensors, a SavedModel's signature:
//
//   PredictRequest -> tensors -> ServingCallable -> tensors -> PredictResponse

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PREDICTOR_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PREDICTOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/serving/serving_callable.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow::multistream {

// The answer: a PredictResponse, or the function's error. Python reads the
// first four fields.
struct Prediction {
  int32_t code = 0;
  const char* message = "";
  const char* bytes = nullptr;
  int64_t size = 0;

  std::string text;  // of both
};

// Calls are thread-safe.
class Predictor {
 public:
  struct Input {
    std::string name;
    PartialTensorShape shape;
  };

  // The callable, which must live longer, takes `inputs` and gives `outputs`,
  // in that order.
  Predictor(ServingCallable* callable, std::string signature,
            std::vector<Input> inputs, std::vector<std::string> outputs)
      : callable_(callable),
        signature_(std::move(signature)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {}

  // nullptr, without a call of the function, if the request is not plain
  // (predict_messages.h), or if its inputs are not those of the function, each
  // once. An input may take `most_bytes`. `model` and `version` go into the
  // answer.
  std::unique_ptr<Prediction> Predict(const char* device,
                                      absl::string_view request,
                                      absl::string_view model, int64_t version,
                                      int64_t most_bytes) const;

 private:
  ServingCallable* const callable_;
  const std::string signature_;
  const std::vector<Input> inputs_;
  const std::vector<std::string> outputs_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PREDICTOR_H_
