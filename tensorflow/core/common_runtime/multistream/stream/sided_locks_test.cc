// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/sided_locks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr SidedLocks::Key kKey[] = {7};

using Side = SidedLocks::Side;
constexpr Side kReaders = SidedLocks::kReaders;
constexpr Side kWriters = SidedLocks::kWriters;
constexpr Side kMovers = SidedLocks::kMovers;

// A row and a column of the table in sided_locks.h.
struct Cell {
  Side first, second;
  bool exclude;
};

class SidedLocksTest : public ::testing::TestWithParam<Cell> {
 protected:
  static Side First() { return GetParam().first; }
  static Side Second() { return GetParam().second; }
  // Starts a thread that enters, and leaves when told to.
  void Start(Side side) {
    threads_.emplace_back([this, side] {
      lock_.Enter(side, kKey);
      ++inside_;
      released_.WaitForNotification();
      lock_.Leave(side, kKey);
    });
  }
  // Blocks until `inside` threads are inside and `waiting` threads wait.
  void WaitUntil(int inside, int waiting) {
    while (inside_ != inside || lock_.waiting() != waiting) {
      std::this_thread::yield();
    }
  }
  void JoinAll() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  SidedLocks lock_;
  std::atomic<int> inside_{0};
  absl::Notification released_;
  std::vector<std::thread> threads_;
};

// A later thread does not overtake a thread that it excludes.
TEST_P(SidedLocksTest, IsAsInTheTable) {
  EXPECT_EQ(SidedLocks::Exclude(First(), Second()), GetParam().exclude);
  lock_.Enter(First(), kKey);
  Start(Second());
  if (GetParam().exclude) {
    WaitUntil(/*inside=*/0, /*waiting=*/1);
    Start(First());
    WaitUntil(/*inside=*/0, /*waiting=*/2);
    lock_.Leave(First(), kKey);
    WaitUntil(/*inside=*/1, /*waiting=*/1);
  } else {
    WaitUntil(/*inside=*/1, /*waiting=*/0);
    lock_.Leave(First(), kKey);
  }
  released_.Notify();
  JoinAll();
  EXPECT_EQ(lock_.size(), 0);
}

// When the last thread that excludes them leaves, all waiting threads enter
// together or, if they exclude each other, one.
TEST_P(SidedLocksTest, WaitersComeInAsInTheTable) {
  if (!GetParam().exclude) return;
  constexpr int kThreads = 4;
  const bool two_first = !SidedLocks::Exclude(First(), First());
  const bool all_together = !SidedLocks::Exclude(Second(), Second());
  lock_.Enter(First(), kKey);
  if (two_first) lock_.Enter(First(), kKey);
  for (int i = 0; i < kThreads; ++i) Start(Second());
  WaitUntil(/*inside=*/0, /*waiting=*/kThreads);
  if (two_first) lock_.Leave(First(), kKey);
  WaitUntil(/*inside=*/0, /*waiting=*/kThreads);
  lock_.Leave(First(), kKey);
  const int inside = all_together ? kThreads : 1;
  WaitUntil(inside, /*waiting=*/kThreads - inside);
  released_.Notify();
  JoinAll();
  EXPECT_EQ(inside_, kThreads);
}

std::string NameOf(const ::testing::TestParamInfo<Cell>& info) {
  static constexpr const char* kNames[] = {"Readers", "Writers", "Movers"};
  return absl::StrCat(kNames[info.param.first], "And",
                      kNames[info.param.second]);
}

INSTANTIATE_TEST_SUITE_P(Table, SidedLocksTest,
                         ::testing::Values(Cell{kReaders, kReaders, false},
                                           Cell{kReaders, kWriters, true},
                                           Cell{kReaders, kMovers, true},
                                           Cell{kWriters, kReaders, true},
                                           Cell{kWriters, kWriters, false},
                                           Cell{kWriters, kMovers, true},
                                           Cell{kMovers, kReaders, true},
                                           Cell{kMovers, kWriters, true},
                                           Cell{kMovers, kMovers, true}),
                         NameOf);

// Several keys. These tests hang if the lock does not admit a waiting thread.

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
  while (locks.waiting() == 0) std::this_thread::yield();
  locks.Leave(kOne, {1});
  // The thread still waits for key 2, and has not taken key 1.
  EXPECT_EQ(locks.waiting(), 1);
  EXPECT_FALSE(entered.HasBeenNotified());
  locks.Enter(kOther, {1});
  locks.Leave(kOther, {1});
  locks.Leave(kOne, {2});
  other.join();
  EXPECT_TRUE(entered.HasBeenNotified());
  EXPECT_EQ(locks.size(), 0);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
