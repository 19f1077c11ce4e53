// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/predictor.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {
namespace {

const char* ScopeOf(const Predictor::Replica& replica) {
  return replica.device.has_value() ? replica.device->c_str() : nullptr;
}

}  // namespace

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
                    static_cast<DataType>(replicas_[0].callable->inputs()[i]),
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
  if (plain.empty()) return;
  const int chosen = choice_ == nullptr ? 0 : choice_->Begin();
  const Replica& replica = replicas_[chosen];
  replica.callable->CallTogether(ScopeOf(replica), batch_sizes_, plain);
  if (choice_ != nullptr) choice_->End(chosen);
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
    for (const Replica& replica : replicas_) {
      const absl::Status may =
          replica.callable->MayShare(ScopeOf(replica), shapes, rows);
      if (may.ok()) continue;
      if (choice_ == nullptr) return may;
      return absl::Status(may.code(), absl::StrCat("on ", *replica.device, ": ",
                                                   may.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace tensorflow::multistream
