// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/python_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tensorflow::multistream {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// `turn` and `wait`: in ms. Nothing else happens by time.
PythonTurns::Limits Times(int turn, int wait = 3'600'000) {
  PythonTurns::Limits limits;
  limits.turn = milliseconds(turn);
  limits.wait = milliseconds(wait);
  limits.off = limits.most_off = limits.pause_after = limits.pause = hours(1);
  return limits;
}
const PythonTurns::Limits kNever = Times(3'600'000);

// Turns are off after `lost` lost ones.
PythonTurns::Limits Losing(int lost) {
  PythonTurns::Limits limits = Times(1);
  limits.lost = lost;
  return limits;
}

// A pause of so many ms each time a thread has waited.
PythonTurns::Limits Pausing(int pause, int wait = 3'600'000) {
  PythonTurns::Limits limits = Times(3'600'000, wait);
  limits.pause_after = milliseconds(0);
  limits.pause = milliseconds(pause);
  return limits;
}

// Each in a thread of its own.
void InThreads(int count, const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(f, i);
  for (std::thread& thread : threads) thread.join();
}

// In a thread that gets the turn and the GIL, and never calls Leave.
void GoAwayWithATurn(PythonTurns* turns) {
  InThreads(1, [&](int) {
    EXPECT_TRUE(turns->Enter());
    turns->HasLock();
  });
}

TEST(PythonTurnsTest, OneBehindTheOther) {
  for (const int looking : {1, 100}) {
    PythonTurns::Limits limits = kNever;
    limits.looking = looking;
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
}

TEST(PythonTurnsTest, AThreadThatNeverComesBackLosesItsTurn) {
  const PythonTurns::Limits limits = Times(5);
  PythonTurns turns(limits);
  // The second thread waits, and takes the turn from the first: one loss. Later
  // threads find a turn that no thread waited for, which counts as no loss.
  GoAwayWithATurn(&turns);
  GoAwayWithATurn(&turns);
  for (int i = 0; i < 3 * limits.lost; ++i) {
    std::this_thread::sleep_for(2 * limits.turn);
    GoAwayWithATurn(&turns);
  }
}

TEST(PythonTurnsTest, ATurnIsNotLostWhileItsThreadAsksForTheLock) {
  PythonTurns turns(Times(1, 100));
  ASSERT_TRUE(turns.Enter());
  InThreads(3, [&](int) { EXPECT_FALSE(turns.Enter()); });
  turns.HasLock();
  InThreads(1, [&](int) { EXPECT_TRUE(turns.Enter()); });
  turns.Leave();
  // A thread that has lost the turn does not end another's turn.
  turns.Leave();
  InThreads(1, [&](int) { EXPECT_FALSE(turns.Enter()); });
}

// A called function may call Python, which may call a function.
TEST(PythonTurnsTest, ACallWithinACall) {
  PythonTurns turns(kNever);
  turns.Leave();
  turns.Leave();
  ASSERT_TRUE(turns.Enter());
  turns.HasLock();
  EXPECT_TRUE(turns.Enter());
  turns.HasLock();
  turns.Leave();
  InThreads(1, [&](int) { EXPECT_TRUE(turns.Enter()); });
}

// `count` times, a thread waits for the turn of the thread before, which has
// the GIL and does not leave. The last thread leaves.
void Lose(int count, PythonTurns* turns) {
  std::vector<std::thread> threads;
  std::atomic<int> entered{0};
  for (int i = 0; i <= count; ++i) {
    threads.emplace_back([&entered, turns, is_last = i == count] {
      EXPECT_TRUE(turns->Enter());
      ++entered;
      while (!is_last && turns->waiting() == 0) std::this_thread::yield();
      turns->HasLock();
      if (is_last) turns->Leave();
    });
    while (entered <= i) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PythonTurnsTest, WhereManyTurnsAreLostThereAreNone) {
  PythonTurns few(Losing(3)), many(Losing(3));
  Lose(2, &few);
  EXPECT_TRUE(few.Enter());
  few.Leave();
  Lose(3, &many);
  EXPECT_FALSE(many.Enter());
}

// As when the threads of a pool end, one after the other.
TEST(PythonTurnsTest, WhoWaitsWhenThereAreNoneAnyMoreGoesOn) {
  constexpr int kThreads = 10;
  const PythonTurns::Limits limits = Losing(3);
  PythonTurns turns(limits);
  ASSERT_TRUE(turns.Enter());
  std::atomic<int> with_a_turn{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      if (turns.Enter()) ++with_a_turn;
      turns.HasLock();
    });
  }
  while (turns.waiting() < kThreads) std::this_thread::yield();
  turns.HasLock();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(with_a_turn, limits.lost);
}

TEST(PythonTurnsTest, OtherTurnsMakeUpForLostOnes) {
  PythonTurns::Limits limits = Losing(2);
  limits.turns_for_lost = 10;
  PythonTurns turns(limits);
  for (int i = 0; i < 5; ++i) {
    Lose(1, &turns);
    for (int k = 0; k < 9; ++k) {
      ASSERT_TRUE(turns.Enter());
      turns.Leave();
    }
  }
}

TEST(PythonTurnsTest, ThereAreTurnsAgainLaterEachTime) {
  PythonTurns::Limits limits = Losing(1);
  limits.off = milliseconds(5);
  limits.most_off = milliseconds(20);
  PythonTurns turns(limits);
  for (const int expected : {5, 10, 20, 20}) {
    const auto begin = steady_clock::now();
    Lose(1, &turns);
    while (!turns.Enter()) std::this_thread::yield();
    EXPECT_GE(steady_clock::now() - begin, milliseconds(expected));
    turns.Leave();
  }
}

// Has the turn while another thread begins to wait for it, and leaves it.
// Returns the other thread, which waits or does `then` with its turn.
std::thread LeaveToOneThatWaits(PythonTurns* turns,
                                const std::function<void()>& then) {
  EXPECT_TRUE(turns->Enter());
  std::thread other([=] {
    if (turns->Enter()) then();
    turns->Leave();
  });
  while (turns->waiting() == 0) std::this_thread::yield();
  turns->Leave();
  return other;
}

TEST(PythonTurnsTest, NobodyHasATurnInAPause) {
  PythonTurns turns(Pausing(3'600'000, 100));
  std::thread other = LeaveToOneThatWaits(&turns, [] {});
  EXPECT_FALSE(turns.Enter());
  other.join();
}

TEST(PythonTurnsTest, APauseEnds) {
  PythonTurns turns(Pausing(20));
  const auto begin = steady_clock::now();
  bool had_turn = false;
  LeaveToOneThatWaits(&turns, [&] { had_turn = true; }).join();
  EXPECT_TRUE(had_turn);
  EXPECT_GE(steady_clock::now() - begin, milliseconds(20));
}

// Threads wait for a pause to end; these waits must not cause the next pause.
TEST(PythonTurnsTest, APauseLeadsToNoOther) {
  PythonTurns turns(Pausing(500));
  const auto begin = steady_clock::now();
  std::thread other = LeaveToOneThatWaits(&turns, [] {});
  EXPECT_TRUE(turns.Enter());
  EXPECT_LT(steady_clock::now() - begin, milliseconds(1000));
  turns.Leave();
  other.join();
}

TEST(PythonTurnsTest, ThereIsNoPauseWhereNobodyWaitsForLong) {
  PythonTurns alone(Pausing(3'600'000, 100));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(alone.Enter());
    alone.Leave();
  }
  PythonTurns turns(kNever);
  bool had_turn = false;
  LeaveToOneThatWaits(&turns, [&] { had_turn = true; }).join();
  EXPECT_TRUE(had_turn);
}

// Whatever the times are.
TEST(PythonTurnsTest, AllGoOn) {
  PythonTurns::Limits limits;
  limits.turn = microseconds(20);
  limits.wait = microseconds(100);
  limits.pause_after = microseconds(300);
  limits.pause = microseconds(50);
  limits.off = microseconds(200);
  limits.most_off = microseconds(500);
  limits.looking = 2;
  PythonTurns turns(limits);
  std::mutex lock;
  int done = 0;
  InThreads(24, [&](int thread) {
    for (int i = 0; i < 2000; ++i) {
      turns.Enter();
      {
        std::lock_guard<std::mutex> python(lock);
        turns.HasLock();
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
}  // namespace tensorflow::multistream
