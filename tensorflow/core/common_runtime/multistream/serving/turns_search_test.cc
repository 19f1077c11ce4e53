// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Interleavings of threads that return from calls: one thread at a time has the
// turn to ask for the GIL, no turn is lost between two threads, and no thread
// waits for ever.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/serving/python_turns.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/expect_finds.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"

namespace tensorflow::multistream {
namespace {

using search::Body;
using search::Expect;
using search::Of;
using search::Program;
using search::SearchAll;
using search::SearchAtRandom;

constexpr std::chrono::hours kNever(1);

// Limits with which no thread loses a turn or gives up.
PythonTurns::Limits Patient() {
  PythonTurns::Limits limits;
  limits.turn = limits.wait = limits.pause_after = kNever;
  return limits;
}

// Patient, with pauses, and two threads that poll.
PythonTurns::Limits Pausing() {
  PythonTurns::Limits limits = Patient();
  limits.looking = 2;
  limits.pause_after = std::chrono::microseconds(1);
  limits.pause = std::chrono::microseconds(5);
  return limits;
}

struct World {
  explicit World(const PythonTurns::Limits& limits) : turns(limits) {}

  PythonTurns turns;
  absl::Mutex python;
  search::Shared here;
  int have_turn = 0;
  int ended = 0;
};

// A thread that comes when `threads` threads have ended and turns are on again:
// no thread waits, and this thread gets the turn.
void AddLast(Program* program, std::shared_ptr<World> world, int threads) {
  program->Thread("comes last", [world, threads] {
    search::BlockUntil(
        world->here, [=] { return world->ended == threads; },
        "waits for the end", TFMS_SEARCH_HERE);
    absl::SleepFor(absl::Hours(1));
    Expect(world->turns.waiting() == 0, "a waiter is left");
    Expect(world->turns.Enter(), "nobody has the turn, and nobody gets it");
    world->turns.Leave();
  });
}

// Each thread returns from `calls` calls.
Body Calls(PythonTurns::Limits limits, int threads, int calls) {
  return [=](Program* program) {
    auto world = std::make_shared<World>(limits);
    for (int i = 0; i < threads; ++i) {
      program->Thread(absl::StrCat("calls ", i), [=] {
        for (int j = 0; j < calls; ++j) {
          const bool has_turn = world->turns.Enter();
          if (limits.wait == kNever) Expect(has_turn, "it has waited in vain");
          if (has_turn && limits.turn == kNever) {
            Expect(++world->have_turn == 1, "two have the turn");
          }
          {
            absl::MutexLock lock(&world->python);
            world->turns.HasLock();
            std::this_thread::yield();
          }
          if (has_turn && limits.turn == kNever) --world->have_turn;
          world->turns.Leave();
        }
        search::Touch(world->here, "has ended", TFMS_SEARCH_HERE);
        ++world->ended;
      });
    }
    AddLast(program, world, threads);
    program->Run();
  };
}

// One thread keeps its turn until `others` threads have returned.
Body OneThatKeepsItsTurn(int others) {
  PythonTurns::Limits limits = Patient();
  limits.turn = PythonTurns::Limits().turn;
  return [=](Program* program) {
    auto world = std::make_shared<World>(limits);
    program->Thread("keeps its turn", [=] {
      world->turns.Enter();
      world->turns.HasLock();
      search::BlockUntil(
          world->here, [=] { return world->ended == others; },
          "waits for the others", TFMS_SEARCH_HERE);
      world->turns.Leave();
      ++world->ended;
    });
    for (int i = 0; i < others; ++i) {
      program->Thread(absl::StrCat("calls ", i), [=] {
        Expect(world->turns.Enter(), "it has waited in vain");
        world->turns.HasLock();
        world->turns.Leave();
        search::Touch(world->here, "has come back", TFMS_SEARCH_HERE);
        ++world->ended;
      });
    }
    AddLast(program, world, others + 1);
    program->Run();
  };
}

// Limits so short that waits, turns and pauses end at any moment.
PythonTurns::Limits Hasty() {
  PythonTurns::Limits limits;
  limits.turn = std::chrono::microseconds(8);
  limits.wait = std::chrono::microseconds(30);
  limits.pause_after = std::chrono::microseconds(20);
  limits.pause = std::chrono::microseconds(5);
  limits.lost = 3;
  limits.turns_for_lost = 2;
  limits.off = std::chrono::microseconds(50);
  return limits;
}

TEST(TurnsSearchTest, OneAtATimeHasTheTurn) {
  EXPECT_TRUE(SearchAll(Calls(Patient(), 2, 2), Of(2)).all);
  EXPECT_TRUE(SearchAll(Calls(Patient(), 3, 1), Of(2)).all);
  SearchAtRandom(Calls(Patient(), 3, 2), Of(0, 0.5));
  SearchAtRandom(Calls(Pausing(), 3, 2), Of(0, 0.5));
}

TEST(TurnsSearchTest, NobodyWaitsForEver) {
  EXPECT_TRUE(SearchAll(OneThatKeepsItsTurn(1), Of(2)).all);
  SearchAtRandom(OneThatKeepsItsTurn(2), Of(0, 0.5));
  SearchAtRandom(Calls(Hasty(), 3, 3), Of(0, 1));
}

TEST(TurnsSearchTest, TurnsThatAreLostAreFound) {
  EXPECT_FINDS(Rule::kOneHasTheTurn, SearchAtRandom(Calls(Pausing(), 3, 2)),
               "two have the turn");
  EXPECT_FINDS(Rule::kWhoHasTheTurnLongLosesIt,
               SearchAll(OneThatKeepsItsTurn(1)), "does not end");
  EXPECT_FINDS(Rule::kWhoGoesCallsTheNext, SearchAll(Calls(Patient(), 3, 1)),
               "waited in vain|all threads are blocked");
  EXPECT_FINDS(Rule::kWhoLeavesEndsItsTurn, SearchAll(Calls(Patient(), 2, 2)),
               "does not end|nobody gets it");
}

}  // namespace
}  // namespace tensorflow::multistream
