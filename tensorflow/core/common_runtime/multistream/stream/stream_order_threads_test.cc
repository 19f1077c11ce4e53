// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_order.h"

namespace tensorflow {
namespace multistream {
namespace {

using RecordedEvent = std::unique_ptr<StreamOrder::RecordedEvent>;

constexpr int kGroups = 4;

// Streams as vector clocks: how much work of each other stream is ordered
// before each stream's end.
using Clock = std::vector<int64_t>;

struct ModelEvent : public StreamEvent {
  int group = -1;  // not recorded yet
  Clock clock;
};

class ModelStreams {
 public:
  ModelStreams() : clocks_(kGroups, Clock(kGroups)) {}

  // Enqueues work on a stream, and returns how much the stream has.
  int64_t Launch(int group) {
    absl::MutexLock lock(&mu_);
    return ++clocks_[group][group];
  }
  void Record(int group, ModelEvent* event) {
    absl::MutexLock lock(&mu_);
    event->group = group;
    event->clock = clocks_[group];
  }
  void Wait(int group, int other, const ModelEvent& event) {
    absl::MutexLock lock(&mu_);
    if (event.group != other || group == other) ++wrong_events_;
    for (size_t i = 0; i < event.clock.size(); ++i) {
      clocks_[group][i] = std::max(clocks_[group][i], event.clock[i]);
    }
  }
  // Whether future work of `group` is ordered after `work` of `other`.
  bool IsAfter(int group, int other, int64_t work) {
    absl::MutexLock lock(&mu_);
    return clocks_[group][other] >= work;
  }
  int wrong_events() {
    absl::MutexLock lock(&mu_);
    return wrong_events_;
  }

 private:
  absl::Mutex mu_;
  std::vector<Clock> clocks_ ABSL_GUARDED_BY(mu_);
  int wrong_events_ ABSL_GUARDED_BY(mu_) = 0;
};

class ModelGroup : public StreamGroup {
 public:
  ModelGroup(int index, ModelStreams* streams)
      : StreamGroup(0, index), streams_(streams) {}
  void WaitFor(StreamGroup*) override {}
  void RecordOwnEvent() override {}
  void WaitForOwnEventOf(StreamGroup*) override {}
  std::unique_ptr<StreamEvent> NewEvent() override {
    return std::make_unique<ModelEvent>();
  }
  // Yields before and after, so that other threads get in, as at a driver.
  void Record(StreamEvent* event) override {
    std::this_thread::yield();
    streams_->Record(index(), static_cast<ModelEvent*>(event));
    std::this_thread::yield();
  }
  void WaitForEvent(StreamGroup* other, StreamEvent* event) override {
    std::this_thread::yield();
    streams_->Wait(index(), other->index(), *static_cast<ModelEvent*>(event));
    std::this_thread::yield();
  }
  void ThenExecute(std::function<void()> f) override { f(); }
  absl::Status Synchronize() override { return absl::OkStatus(); }

 private:
  ModelStreams* const streams_;
};

class StreamOrderThreadsTest : public ::testing::TestWithParam<bool> {
 protected:
  StreamOrderThreadsTest() {
    std::vector<std::unique_ptr<StreamGroup>> groups;
    for (int i = 0; i < kGroups; ++i) {
      groups.push_back(std::make_unique<ModelGroup>(i, &streams_));
    }
    gpu_ = std::make_unique<GpuGroups>(std::move(groups));
    order_ = std::make_unique<StreamOrder>(gpu_.get(), GetParam());
  }

  // Work of a group, with the position that covers it.
  struct Launch {
    int group = 0;
    int64_t work = 0;
    int64_t position = 0;
  };

  Launch LaunchOn(int group) {
    Launch launch;
    launch.group = group;
    launch.work = streams_.Launch(group);
    launch.position = order_->Launched(group);
    absl::MutexLock lock(&mu_);
    last_[group] = launch;
    return launch;
  }
  // The last launch of `group`, by any thread.
  Launch LastOf(int group) {
    absl::MutexLock lock(&mu_);
    return last_[group];
  }

  bool IsAfter(int group, const Launch& launch) {
    return streams_.IsAfter(group, launch.group, launch.work);
  }
  // Knows must be true only where the streams are ordered.
  void CheckKnown(const Launch& launch) {
    for (int group = 0; group < kGroups; ++group) {
      if (!order_->Knows(group, launch.group, launch.position)) continue;
      if (group != launch.group) ++known_;
      if (!IsAfter(group, launch)) ++false_knowledge_;
    }
  }

  void Run(int seed) {
    std::mt19937 random(seed);
    auto any_group = [&] { return static_cast<int>(random() % kGroups); };
    for (int i = 0; i < kTurns; ++i) {
      const int group = any_group();
      switch (random() % 4) {
        case 0: {
          const Launch launch = LaunchOn(any_group());
          RecordedEvent recorded = order_->Record(launch.group);
          order_->WaitFor(group, *recorded);
          if (!IsAfter(group, launch)) ++early_;
          CheckKnown(launch);
          order_->WaitFor((group + 1) % kGroups, *recorded);
          order_->Recycle(std::move(recorded));
          break;
        }
        case 1: {
          const Launch launch = LaunchOn(any_group());
          order_->WaitForTail(group, launch.group, launch.position);
          if (!IsAfter(group, launch)) ++early_;
          break;
        }
        case 2: {
          const Launch launch = LastOf(any_group());
          order_->WaitForTail(group, launch.group, launch.position);
          if (!IsAfter(group, launch)) ++early_;
          break;
        }
        case 3: {
          // Not counted by Launched.
          Launch launch;
          launch.group = any_group();
          launch.work = streams_.Launch(launch.group);
          order_->WaitForAll(group, launch.group);
          if (!IsAfter(group, launch)) ++early_;
          break;
        }
      }
      for (int other = 0; other < kGroups; ++other) CheckKnown(LastOf(other));
    }
  }

  static constexpr int kThreads = 8;
  static constexpr int kTurns = 3000;

  ModelStreams streams_;
  std::unique_ptr<GpuGroups> gpu_;
  std::unique_ptr<StreamOrder> order_;
  absl::Mutex mu_;
  Launch last_[kGroups] ABSL_GUARDED_BY(mu_);
  std::atomic<int64_t> known_{0}, false_knowledge_{0}, early_{0};
};

TEST_P(StreamOrderThreadsTest, WhatIsKnownHasBeenWaitedFor) {
  for (int i = 0; i < kGroups; ++i) LaunchOn(i);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] { Run(i); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(false_knowledge_, 0);
  EXPECT_EQ(early_, 0);
  EXPECT_EQ(streams_.wrong_events(), 0);
  // Otherwise the test shows little. The counts depend on scheduling.
  EXPECT_GT(known_, kThreads * kTurns);
  EXPECT_GT(order_->counts().waited, kThreads * kTurns / 4);
  if (GetParam()) {
    EXPECT_GT(order_->counts().known, kTurns / 30);
  } else {
    EXPECT_EQ(order_->counts().known, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Reduce, StreamOrderThreadsTest, ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& info) {
                           return info.param ? "Reduced" : "Unreduced";
                         });

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
