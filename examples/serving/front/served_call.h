// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What becomes of a client's call? Predict goes to the queue, and from there to
// the engine (call_queue.h). Every other method, and what the engine leaves to
// Python, goes to the gRPC server in Python, message by message; so do samples
// (samples.h):
//
//   client -> ServedCall -> CallQueue -> a lane -> engine
//                 |
//                 +-> PythonCall -> gRPC server in Python

#ifndef EXAMPLES_SERVING_FRONT_SERVED_CALL_H_
#define EXAMPLES_SERVING_FRONT_SERVED_CALL_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "examples/serving/front/call_queue.h"
#include "examples/serving/front/samples.h"

namespace front {

class PythonCall;

// The calls of all methods.
class Service : public grpc::CallbackGenericService {
 public:
  // They must live longer.
  Service(CallQueue* queue, Samples* samples, grpc::GenericStub* python,
          size_t most_bytes)
      : queue_(queue),
        samples_(samples),
        python_(python),
        most_bytes_(most_bytes) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  CallQueue* queue() const { return queue_; }
  grpc::GenericStub* python() const { return python_; }

  // From now on, calls that come are not counted by `unsent`.
  void Close() { closed_ = true; }
  // How many calls have a request, and wait for an answer or for its way to
  // gRPC.
  int unsent() const { return unsent_; }

 private:
  friend class ServedCall;

  CallQueue* const queue_;
  Samples* const samples_;
  grpc::GenericStub* const python_;
  const size_t most_bytes_;  // of a request
  std::atomic<bool> closed_{false};
  std::atomic<int> unsent_{0};
};

// Deletes itself when gRPC needs it no more.
class ServedCall : public grpc::ServerGenericBidiReactor, public Call {
 public:
  ServedCall(grpc::GenericCallbackServerContext* context, Service* service);
  ~ServedCall() override;

  void Answer(grpc::ByteBuffer response) override;
  void Fail(grpc::Status status) override { Finish(std::move(status)); }
  void AskPython(grpc::ByteBuffer request) override;
  Clock::time_point deadline() const override { return deadline_; }

  // A message of Python's; PythonCall::Next is called when it has been sent.
  void Send(grpc::ByteBuffer message);

 private:
  void AskPython(std::unique_ptr<grpc::ByteBuffer> request);
  // Of what the client sends beside the request; empty if it does not.
  std::string_view Metadata(const char* key) const;
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { delete this; }

  grpc::GenericCallbackServerContext* const context_;
  Service* const service_;
  const Clock::time_point deadline_;
  bool counts_ = false;  // in Service::unsent
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  std::string_view sampled_;         // "1" or "0" for a call of Predict
  std::atomic<uint64_t> number_{0};  // in the queue

  std::mutex mutex_;  // OnCancel comes at any time
  bool cancelled_ = false;
  std::shared_ptr<PythonCall> python_call_;
};

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_SERVED_CALL_H_
