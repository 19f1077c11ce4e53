/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include "tensorflow/core/common_runtime/multistream/stream/sided_locks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"

namespace tensorflow {
namespace multistream {
namespace {

using Keys = std::vector<SidedLocks::Key>;

constexpr SidedLocks::Key kKey[] = {7};

// One side and another.
using Sides = std::pair<SidedLocks::Side, SidedLocks::Side>;

// Threads on both sides of a lock.
class SidedLocksTest : public ::testing::TestWithParam<Sides> {
 protected:
  static SidedLocks::Side Ours() { return GetParam().first; }
  static SidedLocks::Side Theirs() { return GetParam().second; }
  static void PauseBriefly() {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  // Starts threads of one side that leave once `count` of them are inside.
  void StartTogether(SidedLocks::Side side, int count) {
    all_inside_ = std::make_unique<absl::BlockingCounter>(count);
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, side] {
        lock_.Enter(side, kKey);
        all_inside_->DecrementCount();
        released_.WaitForNotification();
        lock_.Leave(side, kKey);
      });
    }
  }
  void JoinAll() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  SidedLocks lock_;
  std::unique_ptr<absl::BlockingCounter> all_inside_;
  absl::Notification released_;
  std::vector<std::thread> threads_;
};

TEST_P(SidedLocksTest, ManyOfOneSideAreInsideAtOnce) {
  StartTogether(Ours(), 4);
  all_inside_->Wait();  // none has left
  released_.Notify();
  JoinAll();
}

TEST_P(SidedLocksTest, AllWhoWaitedAreInsideAtOnce) {
  lock_.Enter(Theirs(), kKey);
  StartTogether(Ours(), 4);
  PauseBriefly();
  lock_.Leave(Theirs(), kKey);
  all_inside_->Wait();
  released_.Notify();
  JoinAll();
}

TEST_P(SidedLocksTest, TheOtherSideComesInWhenTheLastHasLeft) {
  lock_.Enter(Ours(), kKey);
  lock_.Enter(Ours(), kKey);
  std::atomic<bool> inside{false};
  std::thread other([&] {
    lock_.Enter(Theirs(), kKey);
    inside = true;
    lock_.Leave(Theirs(), kKey);
  });
  PauseBriefly();
  lock_.Leave(Ours(), kKey);
  PauseBriefly();
  EXPECT_FALSE(inside);
  lock_.Leave(Ours(), kKey);
  other.join();
}

// One of ours is always inside, unless those that come let the other side go
// first.
TEST_P(SidedLocksTest, WhoWaitsGetsInThoughTheOtherSideKeepsComing) {
  constexpr int kTimes = 20;
  std::atomic<bool> stop{false};
  for (int i = 0; i < 4; ++i) {
    threads_.emplace_back([&] {
      while (!stop) {
        lock_.Enter(Ours(), kKey);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        lock_.Leave(Ours(), kKey);
      }
    });
  }
  std::atomic<int> times{0};
  std::thread other([&] {
    while (times < kTimes && !stop) {
      lock_.Enter(Theirs(), kKey);
      if (!stop) ++times;
      lock_.Leave(Theirs(), kKey);
    }
  });
  // Long enough on any machine.
  for (int i = 0; i < 1000 && times < kTimes; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  stop = true;
  other.join();
  JoinAll();
  EXPECT_EQ(times, kTimes);
}

std::string NameOf(const ::testing::TestParamInfo<Sides>& info) {
  static constexpr const char* kNames[] = {"Readers", "Writers", "Movers"};
  return absl::StrCat(kNames[info.param.first], "And",
                      kNames[info.param.second]);
}

INSTANTIATE_TEST_SUITE_P(
    AllPairs, SidedLocksTest,
    ::testing::Values(Sides(SidedLocks::kReaders, SidedLocks::kWriters),
                      Sides(SidedLocks::kReaders, SidedLocks::kMovers),
                      Sides(SidedLocks::kWriters, SidedLocks::kReaders),
                      Sides(SidedLocks::kWriters, SidedLocks::kMovers),
                      Sides(SidedLocks::kMovers, SidedLocks::kReaders),
                      Sides(SidedLocks::kMovers, SidedLocks::kWriters)),
    NameOf);

// It hangs if a thread that waits is forgotten.
TEST(SidedLocksThreadsTest, NeverAreBothSidesInside) {
  constexpr int kThreads = 4;  // of each side
  constexpr int kRounds = 100000;
  SidedLocks lock;
  std::atomic<int> inside[2] = {};
  std::atomic<int> both{0}, together{0}, rounds{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2 * kThreads; ++t) {
    const auto side = static_cast<SidedLocks::Side>(t % 2);
    threads.emplace_back([&, side] {
      while (rounds++ < kRounds) {
        lock.Enter(side, kKey);
        if (++inside[side] > 1) ++together;
        if (rounds % 8 == 0) std::this_thread::yield();
        if (inside[1 - side] > 0) ++both;
        --inside[side];
        lock.Leave(side, kKey);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(both, 0);
  // Else the threads would show little.
  EXPECT_GT(together, 0);
}

// Each side's only thread has to be woken in most of the rounds.
TEST(SidedLocksThreadsTest, NobodyIsForgotten) {
  constexpr int kRounds = 100000;
  SidedLocks lock;
  int changes = 0;  // guarded by the lock, as each side is one thread
  std::vector<std::thread> threads;
  for (SidedLocks::Side side : {SidedLocks::kReaders, SidedLocks::kWriters}) {
    threads.emplace_back([&, side] {
      for (int i = 0; i < kRounds; ++i) {
        lock.Enter(side, kKey);
        ++changes;
        lock.Leave(side, kKey);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(changes, 2 * kRounds);
}

// Several keys. Those that wait do so for ever unless the lock lets them in.

constexpr SidedLocks::Side kOne = SidedLocks::kReaders;
constexpr SidedLocks::Side kOther = SidedLocks::kWriters;

TEST(ManySidedLocksTest, OneKeyKeepsNobodyOutOfAnother) {
  SidedLocks locks;
  locks.Enter(kOne, {1});
  locks.Enter(kOther, {2});
  locks.Enter(kOther, {});
  locks.Leave(kOther, {});
  locks.Leave(kOther, {2});
  locks.Leave(kOne, {1});
}

TEST(ManySidedLocksTest, WhoWaitsForOneKeyKeepsNobodyOutWhoCameBefore) {
  SidedLocks locks;
  locks.Enter(kOne, {1});
  locks.Enter(kOne, {2});
  absl::Notification entered;
  std::thread other([&] {
    locks.Enter(kOther, {1, 2});
    entered.Notify();
    locks.Leave(kOther, {1, 2});
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  locks.Leave(kOne, {1});
  // It waits for the other key still, and has not taken this one.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(entered.HasBeenNotified());
  locks.Enter(kOther, {1});
  locks.Leave(kOther, {1});
  locks.Leave(kOne, {2});
  other.join();
  EXPECT_TRUE(entered.HasBeenNotified());
  EXPECT_EQ(locks.size(), 0);
}

TEST(ManySidedLocksTest, AKeyThatIsThereTwiceCountsAsOne) {
  SidedLocks locks;
  locks.Enter(kOne, {1, 2, 1});
  std::thread other([&] {
    locks.Enter(kOther, {1, 1});
    locks.Leave(kOther, {1, 1});
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  locks.Leave(kOne, {1, 2, 1});
  other.join();
  locks.Enter(kOne, {1});
  locks.Leave(kOne, {1});
  EXPECT_EQ(locks.size(), 0);
}

// Of any two that have a key in common and are of different sides, one is
// inside at a time, and none waits for ever.
TEST(ManySidedLocksTest, ThreadsWithManyKeysAllGetIn) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 20000;
  constexpr int kKeys = 5;
  SidedLocks locks;
  std::atomic<int> inside[kKeys][2] = {};
  std::atomic<int> both{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto side = static_cast<SidedLocks::Side>(t % 2);
      unsigned random = t + 1;
      for (int i = 0; i < kRounds; ++i) {
        random = random * 1664525 + 1013904223;
        Keys keys;
        for (int k = 0; k < kKeys; ++k) {
          if (random >> (16 + k) & 1) keys.push_back(k);
        }
        locks.Enter(side, keys);
        for (auto k : keys) ++inside[k][side];
        if (i % 8 == 0) std::this_thread::yield();
        for (auto k : keys) {
          if (inside[k][1 - side] > 0) ++both;
          --inside[k][side];
        }
        locks.Leave(side, keys);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(both, 0);
  EXPECT_EQ(locks.size(), 0);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
