// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/served_models.h"

#include <sys/uio.h>

#include <utility>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/serving/front_frames.h"

namespace tensorflow::multistream {
namespace {

constexpr char kDefaultSignature[] = "serving_default";
// As Python's errors for clients (serving_error.py).
constexpr size_t kLongestMessage = 2000;
// A larger buffer is not kept for the next request.
constexpr uint64_t kKeptBytes = 1 << 20;

// Without an answer, Python is to answer.
bool SendAnswer(int socket, std::optional<Prediction> answer) {
  AnswerHead head = {kAskPython, 0};
  std::string body;
  if (answer.has_value()) {
    body = std::move(answer->bytes);
    if (answer->code != absl::StatusCode::kOk &&
        body.size() > kLongestMessage) {
      body.resize(kLongestMessage);
    }
    head = {static_cast<int64_t>(answer->code), body.size()};
  }
  iovec parts[] = {{&head, sizeof head}, {body.data(), body.size()}};
  return SendAll(socket, parts, 2);
}

}  // namespace

void ServedModels::Publish(absl::string_view model, int64_t version,
                           Signatures signatures) {
  auto published = std::make_shared<Version>();
  published->signatures = std::move(signatures);
  absl::MutexLock lock(&mutex_);
  models_[std::string(model)][version] = std::move(published);
}

ServedModels::Withdrawn ServedModels::Withdraw(absl::string_view model,
                                               int64_t version) {
  absl::MutexLock lock(&mutex_);
  const auto versions = models_.find(model);
  if (versions == models_.end()) return nullptr;
  const auto found = versions->second.find(version);
  if (found == versions->second.end()) return nullptr;
  Withdrawn withdrawn = std::move(found->second);
  versions->second.erase(found);
  return withdrawn;
}

void ServedModels::WaitForRequests(const Withdrawn& withdrawn) {
  if (withdrawn == nullptr) return;
  // Requests that have found the version hold it, for reading.
  absl::MutexLock lock(&withdrawn->used);
  withdrawn->signatures.clear();
}

std::shared_ptr<ServedModels::Version> ServedModels::Find(
    const PredictRequest& request, int64_t* number) {
  absl::MutexLock lock(&mutex_);
  const auto versions = models_.find(request.model);
  if (versions == models_.end() || versions->second.empty()) return nullptr;
  const auto found = request.has_version
                         ? versions->second.find(request.version)
                         : std::prev(versions->second.end());
  if (found == versions->second.end()) return nullptr;
  *number = found->first;
  return found->second;
}

std::optional<Prediction> ServedModels::Predict(const PredictRequest& request) {
  int64_t number = 0;
  const std::shared_ptr<Version> version = Find(request, &number);
  if (version == nullptr) return std::nullopt;
  absl::ReaderMutexLock lock(&version->used);
  // No signature is left if the version was withdrawn since it was found.
  const auto found = version->signatures.find(
      request.signature.empty() ? kDefaultSignature : request.signature);
  if (found == version->signatures.end()) return std::nullopt;
  return found->second->Predict(request, number);
}

void ServedModels::Answer(int socket) {
  std::unique_ptr<char[]> bytes;
  uint64_t room = 0;
  RequestHead head;
  while (ReceiveAll(socket, &head, sizeof head)) {
    if (head.size > room) {
      bytes.reset(new char[head.size]);
      room = head.size;
    }
    if (!ReceiveAll(socket, bytes.get(), head.size)) return;
    PredictRequest request;
    std::optional<Prediction> answer;
    if (request.Read({bytes.get(), head.size})) answer = Predict(request);
    if (!SendAnswer(socket, std::move(answer))) return;
    if (room > kKeptBytes) {
      bytes.reset();
      room = 0;
    }
  }
}

}  // namespace tensorflow::multistream
