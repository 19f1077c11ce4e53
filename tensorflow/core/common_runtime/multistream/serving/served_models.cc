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

using Answers = std::vector<std::optional<Prediction>>;

// Without an answer, Python is to answer.
bool SendAnswers(int socket, size_t steps, Answers answers) {
  AnswersHead all = {steps};
  std::vector<AnswerHead> heads(answers.size(), {kAskPython, 0});
  std::vector<iovec> parts = {{&all, sizeof all},
                              {heads.data(), heads.size() * sizeof heads[0]}};
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].has_value()) continue;
    std::string& body = answers[i]->bytes;
    if (answers[i]->code != absl::StatusCode::kOk &&
        body.size() > kLongestMessage) {
      size_t bytes = kLongestMessage;
      // Not within a character of UTF-8.
      while (bytes > 0 && (body[bytes] & 0xc0) == 0x80) --bytes;
      body.resize(bytes);
    }
    heads[i] = {static_cast<int64_t>(answers[i]->code), body.size()};
    if (!body.empty()) parts.push_back({body.data(), body.size()});
  }
  return SendAll(socket, parts.data(), parts.size());
}

}  // namespace

ServedModels::Withdrawn ServedModels::Publish(absl::string_view model,
                                              int64_t version,
                                              Signatures signatures) {
  auto published = std::make_shared<Version>();
  published->signatures = std::move(signatures);
  absl::MutexLock lock(&mutex_);
  return std::exchange(models_[std::string(model)][version],
                       std::move(published));
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

size_t ServedModels::Predict(absl::Span<const PredictRequest* const> requests,
                             absl::Span<std::optional<Prediction>> answers) {
  int64_t number = 0;
  const std::shared_ptr<Version> version = Find(*requests[0], &number);
  if (version == nullptr) return 0;
  absl::ReaderMutexLock lock(&version->used);
  // No signature is left if the version was withdrawn since it was found.
  const absl::string_view signature = requests[0]->signature;
  const auto found = version->signatures.find(
      signature.empty() ? kDefaultSignature : signature);
  if (found == version->signatures.end()) return 0;
  return found->second->Predict(requests, number, answers);
}

std::vector<std::optional<Prediction>> ServedModels::Answer(
    absl::Span<const absl::string_view> batch, size_t* steps) {
  std::vector<PredictRequest> requests(batch.size());
  std::vector<std::optional<Prediction>> answers(batch.size());
  // The front makes batches of requests for one function: runs of requests
  // that name the same one are long.
  std::vector<const PredictRequest*> run;
  const auto end_run = [&](size_t end) {
    if (run.empty()) return;
    *steps += Predict(
        run, absl::MakeSpan(answers).subspan(end - run.size(), run.size()));
    run.clear();
  };
  for (size_t i = 0; i < batch.size(); ++i) {
    const bool is_read = requests[i].Read(batch[i]);
    if (!is_read || (!run.empty() && !requests[i].AsksTheSame(*run[0]))) {
      end_run(i);
    }
    if (is_read) run.push_back(&requests[i]);
  }
  end_run(batch.size());
  return answers;
}

void ServedModels::Answer(int socket) {
  SocketReader reader(socket);
  std::unique_ptr<char[]> bytes;
  uint64_t room = 0;
  std::vector<RequestHead> heads;
  std::vector<absl::string_view> requests;
  for (BatchHead batch; reader.Read(&batch, sizeof batch);) {
    heads.resize(batch.requests);
    if (!reader.Read(heads.data(), heads.size() * sizeof heads[0])) return;
    uint64_t size = 0;
    for (const RequestHead& head : heads) size += head.size;
    if (size > room) {
      bytes.reset(new char[size]);
      room = size;
    }
    if (!reader.Read(bytes.get(), size)) return;
    requests.clear();
    uint64_t begin = 0;
    for (const RequestHead& head : heads) {
      requests.emplace_back(bytes.get() + begin, head.size);
      begin += head.size;
    }
    size_t steps = 0;
    Answers answers = Answer(requests, &steps);
    if (!SendAnswers(socket, steps, std::move(answers))) return;
    if (room > kKeptBytes) {
      bytes.reset();
      room = 0;
    }
  }
}

}  // namespace tensorflow::multistream
