// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/served_call.h"

#include <grpc/support/time.h>

#include <chrono>
#include <utility>

#include "examples/serving/front/inflate.h"

namespace front {
namespace {

constexpr char kPredict[] = "/tensorflow.serving.PredictionService/Predict";
// What Python is told beside the request: how the client traces the call, and
// whether the call is of the share of samples.
constexpr char kTraceParent[] = "traceparent";
constexpr char kTraceState[] = "tracestate";
constexpr char kSampled[] = "x-sampled";
// A deadline that is later is none: clients write times that overflow a clock.
constexpr int64_t kLongestSeconds = 365 * 24 * 3600;

Clock::time_point DeadlineOf(gpr_timespec deadline) {
  const gpr_timespec left =
      gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  if (left.tv_sec > kLongestSeconds) return Clock::time_point::max();
  return Clock::now() + std::chrono::seconds(left.tv_sec) +
         std::chrono::nanoseconds(left.tv_nsec);
}

}  // namespace

// A call of the gRPC server in Python for a client's call, with one request and
// any number of responses. It keeps itself until gRPC needs it no more.
class PythonCall
    : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // Without a request if the client has sent none.
  PythonCall(ServedCall* client, std::unique_ptr<grpc::ByteBuffer> request)
      : client_(client), request_(std::move(request)) {}

  void AddMetadata(const char* key, std::string_view value) {
    if (!value.empty()) context_.AddMetadata(key, std::string(value));
  }
  void Start(std::shared_ptr<PythonCall> self, const std::string& method,
             gpr_timespec deadline, grpc::GenericStub* python) {
    self_ = std::move(self);
    context_.set_deadline(deadline);
    python->PrepareBidiStreamingCall(&context_, method, {}, this);
    // Until the client has each response: the status comes after it.
    AddHold();
    if (request_ != nullptr) {
      StartWriteLast(request_.get(), grpc::WriteOptions());
    } else {
      StartWritesDone();
    }
    StartRead(&response_);
    StartCall();
  }
  // The client is ready for the next response.
  void Next() { StartRead(&response_); }
  // The client takes no more.
  void Stop() {
    Cancel();
    RemoveHold();
  }
  void Cancel() { context_.TryCancel(); }

 private:
  void OnReadDone(bool ok) override {
    if (ok) {
      client_->Send(std::move(response_));
    } else {
      RemoveHold();
    }
  }
  void OnDone(const grpc::Status& status) override {
    client_->Fail(status);  // or OK
    self_.reset();
  }

  ServedCall* const client_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ByteBuffer> request_;
  grpc::ByteBuffer response_;
  std::shared_ptr<PythonCall> self_;
};

grpc::ServerGenericBidiReactor* Service::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  return new ServedCall(context, this);
}

ServedCall::ServedCall(grpc::GenericCallbackServerContext* context,
                       Service* service)
    : context_(context),
      service_(service),
      deadline_(DeadlineOf(context->raw_deadline())) {
  StartRead(&request_);
}

ServedCall::~ServedCall() {
  if (counts_) --service_->unsent_;
}

void ServedCall::OnReadDone(bool ok) {
  if (!ok) {
    if (context_->IsCancelled()) {
      Finish(grpc::Status::CANCELLED);
    } else {
      AskPython(nullptr);  // it says what is wrong
    }
    return;
  }
  counts_ = !service_->closed_;
  if (counts_) ++service_->unsent_;
  grpc::ByteBuffer request;
  request.Swap(&request_);  // a move would copy it, for as long as the call
  if (!Inflate(&request, service_->most_bytes_)) {
    Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
            "the request is not gzip, or has more than " +
                std::to_string(service_->most_bytes_) +
                " bytes (--max-request-mb)"});
    return;
  }
  if (context_->method() != kPredict) {
    AskPython(std::move(request));
    return;
  }
  RequestSpec spec = SpecOf(request);
  Samples* const samples = service_->samples_;
  const bool drawn = samples->Draw(spec.model);
  sampled_ = drawn ? "1" : "0";
  // gRPC copies the metadata when they are first asked for.
  if (drawn || (samples->traced() && IsTraced(Metadata(kTraceParent)))) {
    AskPython(std::move(request));
    return;
  }
  const uint64_t number = service_->queue()->NextNumber();
  number_ = number;
  service_->queue()->Add(number, this, std::move(spec), std::move(request));
  // gRPC keeps this object until this function returns, also if the call has
  // ended. OnCancel may have come before the queue had the call.
  bool cancelled = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    cancelled = cancelled_;
  }
  if (cancelled) service_->queue()->Cancelled(number);
}

void ServedCall::Answer(grpc::ByteBuffer response) {
  response_ = std::move(response);
  StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
}

void ServedCall::AskPython(grpc::ByteBuffer request) {
  AskPython(std::make_unique<grpc::ByteBuffer>(std::move(request)));
}

std::string_view ServedCall::Metadata(const char* key) const {
  const auto found = context_->client_metadata().find(key);
  if (found == context_->client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

void ServedCall::AskPython(std::unique_ptr<grpc::ByteBuffer> request) {
  auto call = std::make_shared<PythonCall>(this, std::move(request));
  for (const char* key : {kTraceParent, kTraceState}) {
    call->AddMetadata(key, Metadata(key));
  }
  call->AddMetadata(kSampled, sampled_);
  bool cancelled = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    python_call_ = call;
    cancelled = cancelled_;
  }
  // This object can be gone as soon as the call has started.
  call->Start(call, context_->method(), context_->raw_deadline(),
              service_->python());
  if (cancelled) call->Cancel();
}

void ServedCall::Send(grpc::ByteBuffer message) {
  response_ = std::move(message);
  StartWrite(&response_);
}

void ServedCall::OnWriteDone(bool ok) {
  // Only of what Python sends: no such call is made for an Answer.
  if (ok) {
    python_call_->Next();
  } else {
    python_call_->Stop();
  }
}

void ServedCall::OnCancel() {
  std::shared_ptr<PythonCall> call;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    call = python_call_;
  }
  service_->queue()->Cancelled(number_);
  if (call != nullptr) call->Cancel();
}

}  // namespace front
