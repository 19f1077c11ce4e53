// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// For searches of captured steps: devices and recorders on late streams, with
// memory that is reused at once after it is freed. Recordings replay like CUDA
// graphs: the same work at the same addresses.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_LATE_DEVICE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_LATE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"
#include "tensorflow/core/common_runtime/multistream/memory/group_allocator.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/late_memory.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/late_streams.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream::search {

// The device of a group or of its recorder. It has no kernels: the ops are
// LateExecutor's.
class LateDevice : public Device {
 public:
  LateDevice(LateStreamGroup* stream, Allocator* memory, Allocator* pinned,
             Device* leader)
      : Device(Env::Default(),
               BuildDeviceAttributes("/device:GPU:0", "GPU", Bytes(1 << 20),
                                     DeviceLocality())),
        stream_(stream),
        memory_(memory),
        pinned_(pinned),
        leader_(leader) {}

  LateStreamGroup* stream() const { return stream_; }
  absl::Status Sync() override { return stream_->Synchronize(); }
  Allocator* GetAllocator(AllocatorAttributes attributes) override {
    return attributes.on_host() ? pinned_ : memory_;
  }
  ResourceMgr* resource_manager() override {
    return leader_ == nullptr ? Device::resource_manager()
                              : leader_->resource_manager();
  }
  void CopyTensorInSameDevice(const Tensor* from, Tensor* to,
                              const DeviceContext*,
                              StatusCallback done) override {
    Copy(from->data(), to->data(), from->TotalBytes());
    done(absl::OkStatus());
  }
  // Enqueues on the stream; a recorder may add to its recording instead.
  virtual void Enqueue(const char* what, std::function<void()> work) {
    stream_->Enqueue(what, std::move(work));
  }
  void Copy(const void* from, void* to, size_t bytes) {
    CopyInHalves(from, to, bytes, [&](std::function<void()> work) {
      Enqueue("copies on the device", std::move(work));
    });
  }

 private:
  LateStreamGroup* const stream_;
  Allocator* const memory_;
  Allocator* const pinned_;
  Device* const leader_;
};

class LateRecording;

// The recording stream of a group. The recorders of all sessions share it, and
// only one may record at a time.
struct LateRecorderStream {
  explicit LateRecorderStream(int index) : stream(index) {}

  LateStreamGroup stream;
  bool is_used = false;
};

class LateRecorder : public LateDevice, public Recorder {
 public:
  // `group`: the stream on which recordings are launched.
  LateRecorder(LateStreamGroup* group, LateRecorderStream* own,
               Allocator* memory, Allocator* pinned, Device* leader)
      : LateDevice(&own->stream, memory, pinned, leader),
        group_(group),
        own_(own) {}

  Device* device() override { return this; }
  std::unique_ptr<Recording> NewRecording() override;
  Allocator* GetAllocator(AllocatorAttributes attributes) override {
    if (memory_ == nullptr) return LateDevice::GetAllocator(attributes);
    return attributes.on_host() ? memory_->pinned() : memory_->device();
  }
  void Enqueue(const char* what, std::function<void()> work) override {
    if (list_ == nullptr) {
      LateDevice::Enqueue(what, std::move(work));
    } else {
      list_->push_back({what, std::move(work)});
    }
  }

 private:
  friend class LateRecording;
  using List = std::vector<std::pair<const char*, std::function<void()>>>;

  LateStreamGroup* const group_;
  LateRecorderStream* const own_;
  RecordingMemory* memory_ = nullptr;  // not null while recording
  List* list_ = nullptr;
};

class LateRecording : public Recording {
 public:
  // Two exceed 1 MB, so that with capture_mb = 1 recordings are evicted.
  static constexpr int64_t kBytes = 600'000;

  explicit LateRecording(LateRecorder* recorder)
      : recorder_(recorder),
        memory_(recorder->LateDevice::GetAllocator(AllocatorAttributes()),
                recorder->LateDevice::GetAllocator(PinnedMemory())) {}
  ~LateRecording() override { *is_alive_ = false; }

  Allocator* memory() override { return memory_.device(); }
  bool Has(const void* address, size_t bytes) const override {
    return memory_.IsDevice(address, bytes);
  }
  absl::Status Record(std::function<absl::Status()> enqueue) override {
    LateRecorderStream* own = recorder_->own_;
    Expect(!std::exchange(own->is_used, true),
           "a recorder's stream is used by two at once");
    recorder_->memory_ = &memory_;
    memory_.Start();
    absl::Status status;
    {
      absl::MutexLock lock(recorder_->group_->launch_mu());
      own->stream.WaitFor(recorder_->group_);
      status = enqueue();
      own->stream.Synchronize().IgnoreError();
    }
    if (status.ok()) {
      memory_.Repeat();
      recorder_->list_ = &list_;
      status = memory_.Check(enqueue());
      recorder_->list_ = nullptr;
    }
    recorder_->memory_ = nullptr;
    own->is_used = false;
    return status;
  }
  bool has_branches() const override { return false; }
  absl::Status Launch(bool) override {
    for (auto& [what, work] : list_) {
      recorder_->group_->Enqueue(what, [is_alive = is_alive_, work = work] {
        Expect(*is_alive, "a graph runs whose recording has ended");
        work();
      });
    }
    return absl::OkStatus();
  }
  int64_t bytes() const override { return kBytes; }

 private:
  LateRecorder* const recorder_;
  RecordingMemory memory_;
  LateRecorder::List list_;
  const std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

inline std::unique_ptr<Recording> LateRecorder::NewRecording() {
  return std::make_unique<LateRecording>(this);
}

// A GPU with groups and their recorders; each group has its own memory.
class LateLeader : public GroupLeader {
 public:
  explicit LateLeader(int groups) : late_(groups) {
    for (int i = 0; i < groups; ++i) {
      memory_.push_back(std::make_unique<LateMemory>());
      Device* leader = i == 0 ? nullptr : devices_[0].get();
      devices_.push_back(std::make_unique<LateDevice>(
          late_.streams[i], memory_[i].get(), &pinned_, leader));
      recorder_streams_.push_back(
          std::make_unique<LateRecorderStream>(groups + i));
      recorders_.push_back(std::make_unique<LateRecorder>(
          late_.streams[i], recorder_streams_[i].get(), memory_[i].get(),
          &pinned_, devices_[0].get()));
    }
    late_.gpu->NoteRecorder();
  }
  void AddTo(Program* program) {
    late_.AddTo(program);
    for (auto& it : recorder_streams_) it->stream.AddTo(program);
  }

  GpuGroups* gpu_groups() const override { return late_.gpu.get(); }
  Device* group_device(int i) override { return devices_[i].get(); }
  GroupMember* group_member(int) override { return nullptr; }
  std::shared_ptr<StepThreads> session_threads(int) const override {
    return nullptr;
  }
  const SessionStreams& session_streams() const override { return streams_; }
  Recorder* recorder(int i) const override { return recorders_[i].get(); }

  LateDevice* device(int i) { return devices_[i].get(); }
  LateRecorder* recorder_device(int i) { return recorders_[i].get(); }
  LateStreamGroup* stream(int i) { return late_.streams[i]; }
  int64_t in_use() const {
    int64_t in_use = pinned_.in_use();
    for (const auto& memory : memory_) in_use += memory->in_use();
    return in_use;
  }

 private:
  LateMemory pinned_;
  std::vector<std::unique_ptr<LateMemory>> memory_;
  LateGpu late_;
  std::vector<std::unique_ptr<LateDevice>> devices_;
  std::vector<std::unique_ptr<LateRecorderStream>> recorder_streams_;
  std::vector<std::unique_ptr<LateRecorder>> recorders_;
  SessionStreams streams_;
};

}  // namespace tensorflow::multistream::search

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_LATE_DEVICE_H_
