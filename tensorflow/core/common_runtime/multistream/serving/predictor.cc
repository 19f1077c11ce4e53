// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/predictor.h"

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {

std::optional<Prediction> Predictor::Predict(const PredictRequest& request,
                                             int64_t version) const {
  if (request.inputs.size() != inputs_.size()) return std::nullopt;
  std::vector<Tensor> arguments(inputs_.size()), results;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto input = absl::c_find_if(request.inputs,
                                       [&](const PredictRequest::Input& input) {
                                         return input.name == inputs_[i].name;
                                       });
    if (input == request.inputs.end() ||
        !ReadTensor(input->tensor,
                    static_cast<DataType>(callable_->inputs()[i]),
                    inputs_[i].shape, most_bytes_, &arguments[i])) {
      return std::nullopt;
    }
  }
  absl::Status status = callable_->Call(
      device_.has_value() ? device_->c_str() : nullptr, arguments, &results);
  Prediction answer;
  if (status.ok()) {
    answer.bytes =
        PredictResponse(request.model, version, signature_, outputs_, results);
    if (answer.bytes.empty()) {
      status = absl::ResourceExhaustedError(
          "the results take 2 GB or more, the most of a message");
    }
  }
  if (!status.ok()) {
    answer.code = status.code();
    answer.bytes = std::string(status.message());
  }
  return answer;
}

}  // namespace tensorflow::multistream
