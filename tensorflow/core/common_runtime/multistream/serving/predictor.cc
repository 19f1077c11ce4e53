// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/predictor.h"

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/serving/predict_messages.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {

std::unique_ptr<Prediction> Predictor::Predict(const char* device,
                                               absl::string_view request,
                                               absl::string_view model,
                                               int64_t version,
                                               int64_t most_bytes) const {
  PredictRequest given;
  if (!given.Read(request) || given.inputs.size() != inputs_.size()) {
    return nullptr;
  }
  std::vector<Tensor> arguments(inputs_.size()), results;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto input =
        absl::c_find_if(given.inputs, [&](const PredictRequest::Input& input) {
          return input.name == inputs_[i].name;
        });
    if (input == given.inputs.end() ||
        !ReadTensor(input->tensor,
                    static_cast<DataType>(callable_->inputs()[i]),
                    inputs_[i].shape, most_bytes, &arguments[i])) {
      return nullptr;
    }
  }
  auto answer = std::make_unique<Prediction>();
  absl::Status status = callable_->Call(device, arguments, &results);
  if (status.ok()) {
    answer->text =
        PredictResponse(model, version, signature_, outputs_, results);
    if (answer->text.empty()) {
      status = absl::ResourceExhaustedError(
          "the results take 2 GB or more, the most of a message");
    }
  }
  if (!status.ok()) {
    answer->code = static_cast<int32_t>(status.code());
    answer->text = std::string(status.message());
    answer->message = answer->text.c_str();
    return answer;
  }
  answer->bytes = answer->text.data();
  answer->size = static_cast<int64_t>(answer->text.size());
  return answer;
}

}  // namespace tensorflow::multistream
