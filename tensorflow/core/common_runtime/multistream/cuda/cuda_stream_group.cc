// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/cuda_stream_group.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/gpu_device_context.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/platform/logging.h"
#include "xla/stream_executor/event_based_timer.h"

namespace tensorflow::multistream {
namespace {

struct CudaEvent : public StreamEvent {
  explicit CudaEvent(std::unique_ptr<se::Event> e) : event(std::move(e)) {}
  const std::unique_ptr<se::Event> event;
};

}  // namespace

absl::Status CudaStreamGroup::Bind(BaseGPUDevice* device) {
  absl::MutexLock lock(&mu_);
  if (stream_ != nullptr) return absl::OkStatus();
  executor_ = device->executor();
  events_ = device->tensorflow_accelerator_device_info()->event_mgr;
  stream_ = device->compute_stream();
  const auto* context = static_cast<const GPUDeviceContext*>(
      device->tensorflow_accelerator_device_info()->default_context);
  streams_ = {stream_, context->host_to_device_stream(),
              context->device_to_host_stream(),
              context->device_to_device_stream(0)};
  static constexpr const char* kUses[] = {"", " from host", " to host",
                                          " on GPU"};
  for (int i = 0; i < kMarkStreams; ++i) {
    if (i > 0 && streams_[i] == stream_) streams_[i] = nullptr;
    if (streams_[i] == nullptr) continue;
    // Names for NVIDIA's tools; TensorFlow's profiler does not show them.
    streams_[i]->TFMS_SET_STREAM_NAME(
        absl::StrCat("group ", index(), kUses[i]));
  }
  return absl::OkStatus();
}

absl::Status CudaStreamGroup::MarkForTrace() {
  if (stream_ == nullptr || allocator() == nullptr) return absl::OkStatus();
  void* memory =
      allocator()->AllocateRaw(Allocator::kAllocatorAlignment, kMarkBytes);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("stream group ", index(), " of GPU ", gpu(), " has no ",
                     kMarkBytes, " bytes to mark its streams for a trace"));
  }
  absl::Status status;
  for (int i = 0; i < kMarkStreams; ++i) {
    if (streams_[i] == nullptr) continue;
    // The memory's previous user may still run on the group's compute stream.
    if (i > 0) status.Update(streams_[i]->WaitFor(stream_));
    for (const int bytes : {kMarkBytes, 4 * (1 + kMarkStreams * index() + i)}) {
      se::DeviceAddressBase mark(memory, bytes);
      status.Update(streams_[i]->MemZero(&mark, bytes));
    }
    status.Update(streams_[i]->BlockHostUntilDone());
  }
  allocator()->DeallocateRaw(memory);
  return status;
}

void CudaStreamGroup::WaitFor(StreamGroup* other) {
  Check(stream_->WaitFor(static_cast<CudaStreamGroup*>(other)->stream_));
}

std::unique_ptr<StreamEvent> CudaStreamGroup::NewEvent() {
  auto event = executor_->CreateEvent();
  Check(event.status());
  return std::make_unique<CudaEvent>(*std::move(event));
}

void CudaStreamGroup::Record(StreamEvent* event) {
  Check(stream_->RecordEvent(static_cast<CudaEvent*>(event)->event.get()));
}

void CudaStreamGroup::WaitForEvent(StreamGroup*, StreamEvent* event) {
  Check(stream_->WaitFor(static_cast<CudaEvent*>(event)->event.get()));
}

bool CudaStreamGroup::IsCompleted(StreamEvent* event) {
  return static_cast<CudaEvent*>(event)->event->PollForStatus() ==
         se::Event::Status::kComplete;
}

void CudaStreamGroup::ThenExecute(std::function<void()> f) {
  events_->ThenExecute(stream_, std::move(f));
}

absl::Status CudaStreamGroup::Synchronize() {
  return stream_->BlockHostUntilDone();
}

std::function<double()> CudaStreamGroup::StartTimer() {
  auto timer = stream_->CreateEventBasedTimer(/*use_delay_kernel=*/false);
  if (!timer.ok()) return StreamGroup::StartTimer();
  return [timer = std::shared_ptr<se::EventBasedTimer>(*std::move(timer))] {
    auto elapsed = timer->GetElapsedDuration();
    return elapsed.ok() ? absl::ToDoubleMicroseconds(*elapsed) : 0.0;
  };
}

absl::Status CudaStreamGroup::Copy(Direction direction, const void* from,
                                   void* to, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const se::DeviceAddressBase source(const_cast<void*>(from), bytes);
  if (direction == Direction::kToHost) {
    return stream_->Memcpy(to, source, bytes);
  }
  se::DeviceAddressBase destination(to, bytes);
  return direction == Direction::kToDevice
             ? stream_->Memcpy(&destination, from, bytes)
             : stream_->Memcpy(&destination, source, bytes);
}

void CudaStreamGroup::Check(const absl::Status& status) {
  if (!status.ok()) {
    LOG(FATAL) << "Stream group " << index() << " of GPU " << gpu()
               << " cannot be ordered: " << status;
  }
}

}  // namespace tensorflow::multistream
