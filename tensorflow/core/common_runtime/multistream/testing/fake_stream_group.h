// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// For tests: a stream group that only records its calls.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_FAKE_STREAM_GROUP_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_FAKE_STREAM_GROUP_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"

namespace tensorflow::multistream {

// The calls of all groups that share the record, in order: "2 waits for 0", "1
// records" and "2 waits for event of 1".
class StreamRecord {
 public:
  void Add(std::string call) {
    absl::MutexLock lock(&mu_);
    calls_.push_back(std::move(call));
  }
  // The calls since the last Take.
  std::vector<std::string> Take() {
    absl::MutexLock lock(&mu_);
    return std::exchange(calls_, {});
  }

 private:
  absl::Mutex mu_;
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mu_);
};

class FakeStreamGroup : public StreamGroup {
 public:
  FakeStreamGroup(int gpu, int index, StreamRecord* record)
      : StreamGroup(gpu, index), record_(record) {}

  void WaitFor(StreamGroup* other) override {
    record_->Add(absl::StrCat(index(), " waits for ", other->index()));
  }
  std::unique_ptr<StreamEvent> NewEvent() override {
    return std::make_unique<StreamEvent>();
  }
  void Record(StreamEvent*) override {
    record_->Add(absl::StrCat(index(), " records"));
  }
  void WaitForEvent(StreamGroup* other, StreamEvent*) override {
    record_->Add(absl::StrCat(index(), " waits for event of ", other->index()));
  }
  void ThenExecute(std::function<void()> f) override { f(); }
  absl::Status Synchronize() override { return absl::OkStatus(); }

 private:
  StreamRecord* const record_;
};

inline std::unique_ptr<GpuGroups> NewFakeGroups(int gpu, int count,
                                                StreamRecord* record) {
  std::vector<std::unique_ptr<StreamGroup>> groups;
  for (int i = 0; i < count; ++i) {
    groups.push_back(std::make_unique<FakeStreamGroup>(gpu, i, record));
  }
  return std::make_unique<GpuGroups>(std::move(groups));
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_FAKE_STREAM_GROUP_H_
