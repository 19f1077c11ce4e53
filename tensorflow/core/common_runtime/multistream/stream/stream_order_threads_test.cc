// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Threads that launch and wait at random: what StreamOrder knows is what the
// streams, modelled as vector clocks, have waited for.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/base/vector_clock.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_order.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr int kGroups = 4;
constexpr int kThreads = 8;
constexpr int kTurns = 3000;

struct ModelEvent : public StreamEvent {
  int group = -1;  // not recorded yet
  VectorClock clock;
};

// How much work of each other stream is ordered before each stream's end.
struct Model {
  absl::Mutex mu;
  VectorClock clocks[kGroups] ABSL_GUARDED_BY(mu);
  int wrong_events ABSL_GUARDED_BY(mu) = 0;
};

// Yields in each call, so that other threads get in, as at a driver.
class ModelGroup : public FakeStreamGroup {
 public:
  ModelGroup(int index, Model* model, StreamRecord* record)
      : FakeStreamGroup(0, index, record), model_(model) {}
  std::unique_ptr<StreamEvent> NewEvent() override {
    return std::make_unique<ModelEvent>();
  }
  void Record(StreamEvent* event) override {
    std::this_thread::yield();
    {
      absl::MutexLock lock(&model_->mu);
      auto* recorded = static_cast<ModelEvent*>(event);
      recorded->group = index();
      recorded->clock = model_->clocks[index()];
    }
    std::this_thread::yield();
  }
  void WaitForEvent(StreamGroup* other, StreamEvent* event) override {
    std::this_thread::yield();
    {
      absl::MutexLock lock(&model_->mu);
      const auto* recorded = static_cast<ModelEvent*>(event);
      if (recorded->group != other->index() || other == this) {
        ++model_->wrong_events;
      }
      model_->clocks[index()].Join(recorded->clock);
    }
    std::this_thread::yield();
  }

 private:
  Model* const model_;
};

class StreamOrderThreadsTest : public ::testing::TestWithParam<bool> {
 protected:
  StreamOrderThreadsTest() {
    std::vector<std::unique_ptr<StreamGroup>> groups;
    for (int i = 0; i < kGroups; ++i) {
      groups.push_back(std::make_unique<ModelGroup>(i, &model_, &record_));
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

  Launch Work(int group) {
    absl::MutexLock lock(&model_.mu);
    VectorClock& clock = model_.clocks[group];
    clock.Raise(group, clock[group] + 1);
    return {group, clock[group]};
  }
  Launch LaunchOn(int group) {
    Launch launch = Work(group);
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
    absl::MutexLock lock(&model_.mu);
    return model_.clocks[group].Covers(launch.group, launch.work);
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
    for (int i = 0; i < kTurns; ++i) {
      const int group = random() % kGroups, other = random() % kGroups;
      const int how = random() % 4;
      const Launch launch = how == 3   ? Work(other)  // not counted by Launched
                            : how == 2 ? LastOf(other)
                                       : LaunchOn(other);
      std::unique_ptr<StreamOrder::RecordedEvent> recorded;
      if (how == 3) {
        order_->WaitForAll(group, other);
      } else if (how > 0) {
        order_->WaitForTail(group, other, launch.position);
      } else {
        recorded = order_->Record(other);
        order_->WaitFor(group, *recorded);
      }
      if (!IsAfter(group, launch)) ++early_;
      if (how == 0) {
        CheckKnown(launch);
        order_->WaitFor((group + 1) % kGroups, *recorded);
        order_->Recycle(std::move(recorded));
      }
      for (int of = 0; of < kGroups; ++of) CheckKnown(LastOf(of));
    }
  }

  Model model_;
  StreamRecord record_;
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
  {
    absl::MutexLock lock(&model_.mu);
    EXPECT_EQ(model_.wrong_events, 0);
  }
  // Otherwise the test shows little. The counts depend on scheduling.
  EXPECT_GT(known_, kThreads * kTurns);
  EXPECT_GT(order_->counts().waited, kThreads * kTurns / 4);
  if (GetParam()) {
    EXPECT_GT(order_->counts().known, kTurns / 30);
  } else {
    EXPECT_EQ(order_->counts().known, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Reduce, StreamOrderThreadsTest, ::testing::Bool());

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
