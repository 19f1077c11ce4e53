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

#include "tensorflow/core/common_runtime/multistream/serving/python_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tensorflow {
namespace multistream {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

PythonTurns::Limits Never() {
  PythonTurns::Limits limits;
  limits.turn = limits.wait = limits.others = hours(1);
  return limits;
}

// Each in a thread of its own.
void InThreads(int count, const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(f, i);
  for (std::thread& thread : threads) thread.join();
}

class HowManyLookTest : public ::testing::TestWithParam<int> {};

TEST_P(HowManyLookTest, OneAtATime) {
  constexpr int kThreads = 50, kRounds = 300;
  PythonTurns::Limits limits = Never();
  limits.looking = GetParam();
  PythonTurns turns(limits);
  int inside = 0;
  InThreads(kThreads, [&](int) {
    for (int i = 0; i < kRounds; ++i) {
      ASSERT_TRUE(turns.Enter());
      ++inside;
      turns.Leave();
    }
  });
  EXPECT_EQ(inside, kThreads * kRounds);
  EXPECT_EQ(turns.waiting(), 0);
}

TEST_P(HowManyLookTest, OneBehindTheOther) {
  PythonTurns::Limits limits = Never();
  limits.looking = GetParam();
  PythonTurns turns(limits);
  ASSERT_TRUE(turns.Enter());
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_TRUE(turns.Enter());
      order.push_back(i);
      turns.Leave();
    });
    while (turns.waiting() <= i) std::this_thread::yield();
  }
  turns.Leave();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

// With more looking than there are threads, nobody is passed by.
INSTANTIATE_TEST_SUITE_P(, HowManyLookTest, ::testing::Values(1, 100));

TEST(PythonTurnsTest, AThreadThatNeverComesBackLosesItsTurn) {
  PythonTurns::Limits limits = Never();
  limits.turn = milliseconds(5);
  PythonTurns turns(limits);
  for (int i = 0; i < 10; ++i) {
    std::thread([&] { EXPECT_TRUE(turns.Enter()); }).join();
  }
}

TEST(PythonTurnsTest, WhoHasLostTheTurnDoesNotEndAnothersTurn) {
  PythonTurns::Limits limits = Never();
  limits.turn = milliseconds(5);
  PythonTurns turns(limits);
  ASSERT_TRUE(turns.Enter());
  std::thread([&] {
    EXPECT_TRUE(turns.Enter());
    const auto begin = steady_clock::now();
    std::thread([&] { turns.Leave(); }).join();  // has none
    std::thread([&] {
      EXPECT_TRUE(turns.Enter());
      EXPECT_GE(steady_clock::now() - begin, milliseconds(4));
    }).join();
  }).join();
  turns.Leave();
}

TEST(PythonTurnsTest, NobodyWaitsLong) {
  PythonTurns::Limits limits = Never();
  limits.wait = milliseconds(1);
  PythonTurns turns(limits);
  std::thread([&] { EXPECT_TRUE(turns.Enter()); }).join();
  InThreads(20, [&](int) {
    for (int i = 0; i < 20; ++i) {
      EXPECT_FALSE(turns.Enter());
      turns.Leave();
    }
  });
  EXPECT_EQ(turns.waiting(), 0);
}

TEST(PythonTurnsTest, SomeTurnsAreForThoseThatDoNotAsk) {
  PythonTurns::Limits limits = Never();
  limits.turn = milliseconds(5);
  limits.others = nanoseconds(0);
  PythonTurns turns(limits);
  for (int i = 0; i < 100; ++i) {  // they are none that was lost
    ASSERT_TRUE(turns.Enter());
    std::thread waits([&] {
      EXPECT_TRUE(turns.Enter());
      turns.Leave();
    });
    while (turns.waiting() == 0) std::this_thread::yield();
    const auto begin = steady_clock::now();
    turns.Leave();
    waits.join();
    EXPECT_GE(steady_clock::now() - begin, milliseconds(4));
  }
}

TEST(PythonTurnsTest, WhereTurnsAreLostThereAreNone) {
  PythonTurns::Limits limits;
  limits.turn = microseconds(100);
  limits.off = hours(1);
  PythonTurns turns(limits);
  std::atomic<bool> none{false};
  InThreads(4, [&](int) {
    while (!none) {
      if (!turns.Enter() && !turns.Enter()) none = true;
      std::this_thread::sleep_for(milliseconds(2));
      turns.Leave();
    }
  });
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(turns.Enter());
}

// Whatever the times are.
TEST(PythonTurnsTest, AllGoOn) {
  PythonTurns::Limits limits;
  limits.turn = microseconds(20);
  limits.wait = microseconds(100);
  limits.others = microseconds(50);
  limits.off = microseconds(200);
  limits.looking = 2;
  PythonTurns turns(limits);
  std::mutex lock;
  int done = 0;
  InThreads(24, [&](int thread) {
    for (int i = 0; i < 2000; ++i) {
      turns.Enter();
      {
        std::lock_guard<std::mutex> python(lock);
        ++done;
      }
      if ((i + thread) % 50 == 0) std::this_thread::sleep_for(microseconds(50));
      turns.Leave();
    }
  });
  EXPECT_EQ(done, 24 * 2000);
  EXPECT_EQ(turns.waiting(), 0);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
