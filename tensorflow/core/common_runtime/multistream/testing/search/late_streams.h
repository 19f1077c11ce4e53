// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// For searches: stream groups whose work takes effect late. Each stream is a
// daemon of the program, and executes its work in FIFO order, at any time
// before a thread needs the result. Host callbacks run on another daemon. While
// no program runs, as during its set-up, work is executed when it is enqueued.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_LATE_STREAMS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_LATE_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow::multistream::search {

class LateStreamGroup;

// Enqueues a copy in two halves, between which other threads can run. Calls
// `enqueue` with the work of each half.
template <class Enqueue>
void CopyInHalves(const void* from, void* to, size_t bytes, Enqueue enqueue) {
  const auto part = [&](size_t begin, size_t end) {
    enqueue([=] {
      std::memcpy(static_cast<char*>(to) + begin,
                  static_cast<const char*>(from) + begin, end - begin);
    });
  };
  part(0, bytes / 2);
  part(bytes / 2, bytes);
}

// A position in a stream: its end when the event was recorded.
struct LateEvent : public StreamEvent {
  LateStreamGroup* group = nullptr;
  int64_t position = 0;
};

class LateStreamGroup : public StreamGroup {
 public:
  explicit LateStreamGroup(int index) : StreamGroup(/*gpu=*/0, index) {}

  void AddTo(Program* program) {
    program->Daemon(absl::StrCat("stream ", index()), [this] { RunStream(); });
    program->Daemon(absl::StrCat("callbacks of stream ", index()),
                    [this] { RunCallbacks(); });
  }

  // Enqueues work of a kernel, which runs atomically when the stream reaches
  // it. `what` must outlive the program.
  void Enqueue(const char* what, std::function<void()> work) {
    Add({what, nullptr, 0, std::move(work)});
  }

  void WaitFor(StreamGroup* other) override {
    auto* late = static_cast<LateStreamGroup*>(other);
    Add({"waits for a stream", late, late->enqueued_, nullptr});
  }
  std::unique_ptr<StreamEvent> NewEvent() override {
    return std::make_unique<LateEvent>();
  }
  void Record(StreamEvent* event) override {
    Touch(shared_, "records an event", TFMS_SEARCH_HERE);
    auto* late = static_cast<LateEvent*>(event);
    late->group = this;
    late->position = enqueued_;
  }
  void WaitForEvent(StreamGroup*, StreamEvent* event) override {
    auto* late = static_cast<LateEvent*>(event);
    // As in CUDA, waiting for an event that was never recorded does nothing.
    if (late->group == nullptr) return;
    // Waits for the latest Record before this call; a later Record does not
    // count.
    Add({"waits for an event", late->group, late->position, nullptr});
  }
  bool IsCompleted(StreamEvent* event) override {
    auto* late = static_cast<LateEvent*>(event);
    Touch(shared_, "asks for an event", TFMS_SEARCH_HERE);
    return done_ >= late->position;
  }
  void ThenExecute(std::function<void()> f) override {
    Add({"enqueues a host callback", nullptr, 0, [this, f = std::move(f)] {
           if (!IsSearched()) return f();
           callbacks_.push_back(f);
         }});
  }
  absl::Status Synchronize() override {
    const int64_t end = enqueued_;
    if (IsSearched()) {
      BlockUntil(
          shared_, [this, end] { return done_ >= end; }, "synchronizes",
          TFMS_SEARCH_HERE);
    }
    return absl::OkStatus();
  }

 private:
  struct Work {
    const char* what;
    LateStreamGroup* waits_for;
    int64_t position;  // in the stream waits_for
    std::function<void()> run;
  };

  absl::Status Copy(Direction direction, const void* from, void* to,
                    size_t bytes) override {
    static constexpr const char* kWhat[] = {
        "copies to the device", "copies to the host", "copies on the device"};
    CopyInHalves(from, to, bytes, [&](std::function<void()> work) {
      Enqueue(kWhat[static_cast<int>(direction)], std::move(work));
    });
    return absl::OkStatus();
  }

  void Add(Work work) {
    Touch(shared_, "enqueues work", TFMS_SEARCH_HERE);
    ++enqueued_;
    if (IsSearched()) {
      work_.push_back(std::move(work));
      return;
    }
    ++done_;
    if (work.run) work.run();
  }

  bool HeadIsReady() const {
    return !work_.empty() &&
           (work_.front().waits_for == nullptr ||
            work_.front().waits_for->done_ >= work_.front().position);
  }
  void RunStream() {
    while (BlockUntil(
        shared_, [this] { return HeadIsReady(); }, "goes on",
        TFMS_SEARCH_HERE)) {
      Work work = std::move(work_.front());
      work_.pop_front();
      Tell(work.what, TFMS_SEARCH_HERE);
      if (work.run) work.run();
      ++done_;
    }
  }
  void RunCallbacks() {
    while (BlockUntil(
        shared_, [this] { return !callbacks_.empty(); }, "runs a callback",
        TFMS_SEARCH_HERE)) {
      std::function<void()> callback = std::move(callbacks_.front());
      callbacks_.pop_front();
      callback();
    }
  }

  const Shared shared_;
  std::deque<Work> work_;
  std::deque<std::function<void()>> callbacks_;
  int64_t enqueued_ = 0;
  int64_t done_ = 0;
};

// The groups of a GPU, and their streams.
struct LateGpu {
  explicit LateGpu(int count) {
    std::vector<std::unique_ptr<StreamGroup>> groups;
    for (int i = 0; i < count; ++i) {
      auto group = std::make_unique<LateStreamGroup>(i);
      streams.push_back(group.get());
      groups.push_back(std::move(group));
    }
    gpu = std::make_unique<GpuGroups>(std::move(groups));
  }
  void AddTo(Program* program) {
    for (LateStreamGroup* stream : streams) stream->AddTo(program);
  }

  std::unique_ptr<GpuGroups> gpu;
  std::vector<LateStreamGroup*> streams;
};

// A value in two halves: a kernel writes them one after the other, and a reader
// expects them to be equal.
struct Halves {
  int64_t first = 0;
  int64_t second = 0;
};

}  // namespace tensorflow::multistream::search

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_LATE_STREAMS_H_
