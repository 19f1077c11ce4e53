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

// Why no step may have the rows of several requests: the function says how many
// rows an input has, or an input cannot be joined. Else empty.
std::string WhyNeverShared(const ServingCallable& callable,
                           const std::vector<Predictor::Input>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const PartialTensorShape& shape = inputs[i].shape;
    if (shape.dims() > 0 && shape.dim_size(0) >= 0) {
      return absl::StrCat("input ", inputs[i].name, " has ", shape.dim_size(0),
                          " rows in each call");
    }
    const auto type = static_cast<DataType>(callable.inputs()[i]);
    if (!CanBeBatched(type)) {
      return absl::StrCat("input ", inputs[i].name, " is ",
                          DataTypeString(type));
    }
  }
  return "";
}

}  // namespace

Predictor::Predictor(std::vector<Replica> replicas, DeviceChoice* choice,
                     std::string signature, int64_t most_bytes,
                     std::vector<Input> inputs,
                     std::vector<std::string> outputs,
                     std::vector<int> batch_sizes, PinnedGroups groups)
    : replicas_(std::move(replicas)),
      choice_(choice),
      signature_(std::move(signature)),
      most_bytes_(most_bytes),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      never_shared_(WhyNeverShared(*replicas_[0].callable, inputs_)),
      batch_sizes_(never_shared_.empty() ? std::move(batch_sizes)
                                         : std::vector<int>()),
      groups_(groups) {}

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

size_t Predictor::Predict(absl::Span<const PredictRequest* const> requests,
                          int64_t version,
                          absl::Span<std::optional<Prediction>> answers) const {
  const PinnedThread pinned(groups_);
  size_t steps = 0;
  for (size_t begin = 0, end = 0; begin < requests.size(); begin = end) {
    // A small request can become a large tensor: what is in memory at once is
    // bounded.
    int64_t bytes = 0;
    std::vector<BatchedCall> calls;
    std::vector<size_t> numbers;  // of the requests
    for (; end < requests.size() && bytes <= most_bytes_; ++end) {
      BatchedCall call;
      if (!Read(*requests[end], &call.arguments)) continue;
      for (const Tensor& argument : call.arguments) {
        bytes += static_cast<int64_t>(argument.TotalBytes());
      }
      calls.push_back(std::move(call));
      numbers.push_back(end);
    }
    if (calls.empty()) continue;
    const int chosen = choice_ == nullptr ? 0 : choice_->Begin();
    const Replica& replica = replicas_[chosen];
    steps += replica.callable->CallTogether(ScopeOf(replica), batch_sizes_,
                                            absl::MakeSpan(calls));
    if (choice_ != nullptr) choice_->End(chosen);
    answered_.fetch_add(calls.size(), std::memory_order_relaxed);
    for (size_t i = 0; i < calls.size(); ++i) {
      answers[numbers[i]] = Answer(*requests[numbers[i]], version, calls[i]);
    }
  }
  return steps;
}

absl::Status Predictor::MayShare() const {
  if (!never_shared_.empty()) {
    return absl::FailedPreconditionError(never_shared_);
  }
  std::vector<TensorShape> shapes;
  for (const Input& input : inputs_) {
    TensorShape& shape = shapes.emplace_back();
    if (input.shape.unknown_rank()) shape.AddDim(1);
    for (int i = 0; i < input.shape.dims(); ++i) {
      shape.AddDim(std::max<int64_t>(input.shape.dim_size(i), 1));
    }
  }
  for (const int rows : batch_sizes_) {
    if (rows == 1) continue;  // a request of one row is such a step
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
