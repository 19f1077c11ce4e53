// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/rest_calls.h"

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/field.hpp>
#include <charconv>
#include <utility>

#include "examples/serving/front/json_answer.h"
#include "examples/serving/front/json_request.h"
#include "examples/serving/front/python_http.h"
#include "examples/serving/front/request_spec.h"

namespace front {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using grpc::StatusCode;

constexpr size_t kSmallBytes = 1 << 16;
constexpr size_t kLargeThreads = 2;
// Whether a call is of the share of samples.
constexpr char kDrawn[] = "1", kNotDrawn[] = "0";
constexpr std::string_view kModels = "/v1/models/";
constexpr std::string_view kVersions = "/versions/";
constexpr std::string_view kPredict = ":predict";

// As serving_error.py.
int StatusOf(StatusCode code) {
  switch (code) {
    case StatusCode::INVALID_ARGUMENT:
    case StatusCode::FAILED_PRECONDITION:
    case StatusCode::OUT_OF_RANGE:
      return 400;
    case StatusCode::NOT_FOUND:
      return 404;
    case StatusCode::RESOURCE_EXHAUSTED:
      return 429;
    case StatusCode::CANCELLED:
      return 499;
    case StatusCode::UNIMPLEMENTED:
      return 501;
    case StatusCode::UNAVAILABLE:
      return 503;
    case StatusCode::DEADLINE_EXCEEDED:
      return 504;
    default:
      return 500;
  }
}

bool IsPlainName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
  });
}

// Without a copy.
grpc::ByteBuffer BufferOf(std::string bytes) {
  auto* const owned = new std::string(std::move(bytes));
  const grpc::Slice slice(
      owned->data(), owned->size(),
      [](void* text) { delete static_cast<std::string*>(text); }, owned);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

std::optional<PredictPath> PredictPath::Of(std::string_view target) {
  if (target.substr(0, kModels.size()) != kModels ||
      target.size() < kModels.size() + kPredict.size() ||
      target.substr(target.size() - kPredict.size()) != kPredict) {
    return std::nullopt;
  }
  target.remove_prefix(kModels.size());
  target.remove_suffix(kPredict.size());
  PredictPath path;
  const size_t slash = target.find('/');
  const std::string_view name = target.substr(0, slash);
  if (!IsPlainName(name)) return std::nullopt;
  path.model = name;
  if (slash == std::string_view::npos) return path;
  target.remove_prefix(slash);
  if (target.substr(0, kVersions.size()) != kVersions) return std::nullopt;
  target.remove_prefix(kVersions.size());
  int64_t version = 0;
  const char* const end = target.data() + target.size();
  const auto read = std::from_chars(target.data(), end, version);
  if (read.ec != std::errc() || read.ptr != end || version < 0) {
    return std::nullopt;
  }
  path.version = version;
  return path;
}

// In the queue, for an HTTP request. Deletes itself when it has ended.
class RestCalls::RestCall : public Call {
 public:
  RestCall(RestCalls* calls, std::shared_ptr<HttpExchange> exchange,
           std::string model, bool by_row)
      : calls_(calls),
        exchange_(std::move(exchange)),
        model_(std::move(model)),
        by_row_(by_row) {}

  void Answer(grpc::ByteBuffer response) override {
    calls_->Run(response.Length(), exchange_,
                [this, response = std::move(response)] {
                  Write(response);
                  delete this;
                });
  }
  void Fail(grpc::Status status) override {
    Say(status);
    delete this;
  }
  void AskPython(grpc::ByteBuffer) override {
    front::AskPython(exchange_, calls_->python_, kNotDrawn);
    delete this;
  }
  Clock::time_point deadline() const override {
    return Clock::time_point::max();
  }
  // An answer that JSON cannot have is an error.
  bool CountsItsAnswer() const override { return true; }

 private:
  void Write(const grpc::ByteBuffer& response) {
    HttpAnswer answer;
    const grpc::Status status = JsonOf(response, &answer.body);
    const std::chrono::duration<double> took = Clock::now() - arrived_;
    calls_->queue_->Count(model_, status.error_code(), took.count());
    if (!status.ok()) return Say(status);
    exchange_->Answer(std::move(answer));
  }
  grpc::Status JsonOf(const grpc::ByteBuffer& response, std::string* json) {
    if (exchange_->IsGone()) return grpc::Status::CANCELLED;
    grpc::Slice bytes;
    // It fails only for a buffer that is not valid.
    if (!response.DumpToSingleSlice(&bytes).ok()) {
      return {StatusCode::INTERNAL, "the answer cannot be read"};
    }
    const std::string error = WriteJsonAnswer(
        {reinterpret_cast<const char*>(bytes.begin()), bytes.size()}, by_row_,
        json);
    if (error.empty()) return grpc::Status::OK;
    return {error == kOutputsHaveNoJson ? StatusCode::INTERNAL
                                        : StatusCode::INVALID_ARGUMENT,
            error};
  }
  void Say(const grpc::Status& error) {
    exchange_->Answer(
        ErrorAnswer(StatusOf(error.error_code()), error.error_message()));
  }

  RestCalls* const calls_;
  const std::shared_ptr<HttpExchange> exchange_;
  const std::string model_;
  const bool by_row_;
  const Clock::time_point arrived_ = Clock::now();
};

RestCalls::RestCalls(CallQueue* queue, Samples* samples,
                     const ServedSignatures* signatures, std::string python,
                     uint64_t most_bytes)
    : queue_(queue),
      samples_(samples),
      signatures_(signatures),
      python_(std::move(python)),
      most_bytes_(most_bytes),
      large_(kLargeThreads) {}

template <class Work>
void RestCalls::Run(size_t bytes, std::shared_ptr<HttpExchange> exchange,
                    Work work) {
  if (bytes > kSmallBytes) {
    asio::post(large_, std::move(work));
  } else {
    asio::dispatch(exchange->executor(), std::move(work));
  }
}

void RestCalls::Handle(std::shared_ptr<HttpExchange> exchange) {
  const HttpRequest& request = exchange->request();
  const auto target = request.target();
  const std::optional<PredictPath> path =
      PredictPath::Of({target.data(), target.size()});
  if (request.method() != http::verb::post || !path ||
      request.count(http::field::content_encoding) > 0 ||
      request.count(http::field::host) != 1) {
    return AskPython(std::move(exchange), python_, "");
  }
  const bool drawn = samples_->Draw(path->model);
  const auto traceparent = request["traceparent"];
  if (drawn || (samples_->traced() &&
                IsTraced({traceparent.data(), traceparent.size()}))) {
    return AskPython(std::move(exchange), python_, drawn ? kDrawn : kNotDrawn);
  }
  Run(request.body().size(), exchange,
      [this, exchange, path = *path] { Predict(exchange, path); });
}

void RestCalls::Predict(std::shared_ptr<HttpExchange> exchange,
                        const PredictPath& path) {
  // It may have waited for a thread for a long time, and for nobody.
  if (exchange->IsGone()) {
    return queue_->Count(path.model, StatusCode::CANCELLED, 0);
  }
  const std::shared_ptr<const Signatures> served =
      signatures_->Find(path.model, path.version);
  std::optional<JsonRequest> read;
  if (served != nullptr) {
    read = ReadJsonRequest(exchange->request().body(), path.model, path.version,
                           *served, most_bytes_);
  }
  if (!read) return AskPython(std::move(exchange), python_, kNotDrawn);
  grpc::ByteBuffer request = BufferOf(std::move(read->predict_request));
  RequestSpec spec = SpecOf(request);
  const uint64_t number = queue_->NextNumber();
  queue_->Add(number, new RestCall(this, exchange, path.model, read->by_row),
              std::move(spec), std::move(request));
  exchange->OnGone([queue = queue_, number] { queue->Cancelled(number); });
}

}  // namespace front
