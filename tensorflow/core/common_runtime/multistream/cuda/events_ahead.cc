// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/events_ahead.h"

#include <map>
#include <thread>
#include <utility>

#include "absl/base/call_once.h"
#include "tensorflow/core/common_runtime/multistream/cuda/graph_memory.h"
#include "tensorflow/core/common_runtime/multistream/cuda/loaded_library.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {
namespace {

// More than the steps of all clients that begin while one event is made. An
// event takes a few microseconds and about 100 bytes.
constexpr int kEventsAhead = 256;

struct AllEvents {
  absl::Mutex mu;
  std::map<CUcontext, EventsAhead*> by_context ABSL_GUARDED_BY(mu);
};

AllEvents* All() {
  static auto* all = new AllEvents;
  return all;
}

EventsAhead* OfCurrentContext() {
  CUcontext context = nullptr;
  if (cuCtxGetCurrent(&context) != CUDA_SUCCESS) return nullptr;
  AllEvents* all = All();
  absl::MutexLock lock(&all->mu);
  const auto found = all->by_context.find(context);
  return found == all->by_context.end() ? nullptr : found->second;
}

template <typename Name, typename Function>
struct Taken;
template <typename Name>
struct Taken<Name, CUresult (*)(CUevent*, unsigned int)> {
  static inline CUresult (*stock)(CUevent*, unsigned int) = nullptr;
  static CUresult Call(CUevent* event, unsigned int flags) {
    if (flags == CU_EVENT_DISABLE_TIMING) {
      EventsAhead* const events = OfCurrentContext();
      if (events != nullptr && events->Take(event)) return CUDA_SUCCESS;
    }
    return stock(event, flags);
  }
};

const CallByName& EventCreation() {
  static const CallByName call = TFMS_CALL_BY_NAME(Taken, cuEventCreate);
  return call;
}

// In the thread's relaxed capture mode: while another thread captures in the
// global mode, CUDA would refuse.
CUresult MakeEvent(CUcontext context, CUevent* event) {
  CUresult result = cuCtxSetCurrent(context);
  if (result != CUDA_SUCCESS) return result;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  result = cuThreadExchangeStreamCaptureMode(&mode);
  if (result != CUDA_SUCCESS) return result;
  result = reinterpret_cast<decltype(&cuEventCreate)>(*EventCreation().stock)(
      event, CU_EVENT_DISABLE_TIMING);
  cuThreadExchangeStreamCaptureMode(&mode);
  if (result != CUDA_SUCCESS) {
    VLOG(1) << "Multi-stream: no more events are made ahead: "
            << Checked("cuEventCreate", result);
  }
  return result;
}

}  // namespace

EventsAhead* EventsAhead::Begin(int count, Make make) {
  auto* const events = new EventsAhead(count, std::move(make));
  for (int i = 0; i < count; ++i) {
    if (!events->Add()) return events;
  }
  std::thread([events] {
    do {
      absl::MutexLock lock(&events->mu_);
      events->mu_.Await(absl::Condition(events, &EventsAhead::IsShort));
    } while (events->Add());
  }).detach();
  return events;
}

bool EventsAhead::Take(CUevent* event) {
  absl::MutexLock lock(&mu_);
  if (events_.empty()) return false;
  *event = events_.back();
  events_.pop_back();
  return true;
}

bool EventsAhead::Add() {
  CUevent event;
  if (make_(&event) != CUDA_SUCCESS) return false;
  absl::MutexLock lock(&mu_);
  events_.push_back(event);
  return true;
}

absl::StatusOr<bool> RedirectEventCreation(const std::string& library,
                                           const std::string& cuda) {
  TF_ASSIGN_OR_RETURN(const int calls,
                      ReplaceCalls(library, cuda, {EventCreation()}));
  return calls > 0;
}

absl::Status KeepEventsOfCurrentContext() {
  CUcontext context = nullptr;
  TF_RETURN_IF_ERROR(Checked("cuCtxGetCurrent", cuCtxGetCurrent(&context)));
  AllEvents* all = All();
  {
    absl::MutexLock lock(&all->mu);
    if (all->by_context.find(context) != all->by_context.end()) {
      return absl::OkStatus();
    }
  }
  // Without the lock: other contexts' events are taken meanwhile.
  EventsAhead* const events = EventsAhead::Begin(
      kEventsAhead,
      [context](CUevent* event) { return MakeEvent(context, event); });
  absl::MutexLock lock(&all->mu);
  all->by_context[context] = events;
  return absl::OkStatus();
}

void MakeEventsAhead() {
  static absl::once_flag once;
  static auto* redirected = new absl::Status;
  absl::call_once(once, [] {
    constexpr char kFramework[] = "libtensorflow_framework.so";
    bool any = false;
    // In some releases both make events.
    for (const char* library : {kFramework, "libtensorflow_cc.so"}) {
      const absl::StatusOr<bool> calls =
          RedirectEventCreation(library, kFramework);
      if (calls.ok()) {
        any |= *calls;
      } else if (!absl::IsNotFound(calls.status())) {
        redirected->Update(calls.status());
      }
    }
    if (!any) {
      redirected->Update(absl::UnimplementedError(
          "TensorFlow does not make events by calls that can be redirected"));
    }
  });
  absl::Status status = *redirected;
  status.Update(KeepEventsOfCurrentContext());
  if (status.ok()) return;
  LOG(INFO) << "Multi-stream: events are made when they are needed, which can "
               "make a step wait for another's kernels: "
            << status.message();
}

}  // namespace tensorflow::multistream
