// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/predictor.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {

bool Predictor::Read(const PredictRequest& request,
                     std::vector<Tensor>* arguments) const {
  if (request.inputs.size() != inputs_.size()) return false;
  arguments->resize(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto input = absl::c_find_if(request.inputs,
                                       [&](const PredictRequest::Input& input) {
                                         return input.name == inputs_[i].name;
                                       });
    if (input == request.inputs.end() ||
        !ReadTensor(input->tensor,
                    static_cast<DataType>(callable_->inputs()[i]),
                    inputs_[i].shape, most_bytes_, &(*arguments)[i])) {
      return false;
    }
  }
  return true;
}

Prediction Predictor::Answer(const PredictRequest& request, int64_t version,
                             const BatchedCall& call) const {
  absl::Status status = call.status;
  Prediction answer;
  if (status.ok()) {
    answer.bytes = PredictResponse(request.model, version, signature_, outputs_,
                                   call.results);
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

void Predictor::Predict(absl::Span<const PredictRequest* const> requests,
                        int64_t version,
                        absl::Span<std::optional<Prediction>> answers) const {
  std::vector<BatchedCall> calls(requests.size());
  std::vector<BatchedCall*> plain;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (Read(*requests[i], &calls[i].arguments)) plain.push_back(&calls[i]);
  }
  callable_->CallTogether(device(), batch_sizes_, plain);
  for (const BatchedCall* call : plain) {
    const size_t i = call - calls.data();
    answers[i] = Answer(*requests[i], version, *call);
  }
}

absl::Status Predictor::MayShare() const {
  for (const int rows : batch_sizes_) {
    if (rows == 1) continue;  // a request of one row is such a step
    std::vector<TensorShape> shapes;
    for (const Input& input : inputs_) {
      TensorShape& shape = shapes.emplace_back();
      for (int i = 0; i < input.shape.dims(); ++i) {
        shape.AddDim(std::max<int64_t>(input.shape.dim_size(i), 1));
      }
      if (input.shape.unknown_rank()) shape.AddDim(1);
    }
    TF_RETURN_IF_ERROR(callable_->MayShare(device(), shapes, rows));
  }
  return absl::OkStatus();
}

}  // namespace tensorflow::multistream
