// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The scheduler runs every interleaving, finds textbook faults, and reports
// nothing for correct programs.

#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace tensorflow::multistream::search {
namespace {

const auto kFound = ::testing::ExitedWithCode(kFoundStatus);

// Two threads that add to a counter with a load and a store.
void LostUpdate(Program* program) {
  std::atomic<int> count{0};
  for (const char* name : {"a", "b"}) {
    program->Thread(name, [&] { count.store(count.load() + 1); });
  }
  program->Run();
  Expect(count == 2, "an update is lost");
}

TEST(SchedulerTest, FindsALostUpdateWithOneDeviationAndNotWithout) {
  EXPECT_TRUE(SearchAll(LostUpdate, Of(0)).all);
  EXPECT_EXIT(SearchAll(LostUpdate, Of(1)), kFound, "an update is lost");
  EXPECT_EXIT(SearchAtRandom(LostUpdate), kFound, "an update is lost");
}

TEST(SchedulerTest, WhatAReportPrintsIsTheSameInterleavingAgain) {
  // Switch to thread 1 before thread 0's second operation, its store.
  const char* const report = "TFMS_SEARCH_REPLAY=0:0,2:1\n";
  EXPECT_EXIT(SearchAll(LostUpdate), kFound, report);
  setenv("TFMS_SEARCH_REPLAY", "0:0,2:1", 1);
  EXPECT_EXIT(SearchAll(LostUpdate), kFound, report);
  setenv("TFMS_SEARCH_REPLAY", "0:0", 1);
  EXPECT_EQ(SearchAll(LostUpdate).executions, 1);
  unsetenv("TFMS_SEARCH_REPLAY");
}

TEST(SchedulerTest, RunsEveryInterleaving) {
  // Two threads of three operations each: 6 choose 3 interleavings.
  std::set<std::string> seen;
  const auto body = [&seen](Program* program) {
    std::string order;
    std::atomic<int> object{0};
    for (const char* name : {"a", "b"}) {
      program->Thread(name, [&, name] {
        for (int i = 0; i < 3; ++i) {
          object.load();
          order += name;
        }
      });
    }
    program->Run();
    seen.insert(order);
  };
  EXPECT_TRUE(SearchAll(body, Of(6)).all);
  EXPECT_EQ(seen.size(), 20);
}

TEST(SchedulerTest, FindsADeadlock) {
  const Body body = [](Program* program) {
    absl::Mutex a, b;
    program->Thread("a then b", [&] {
      absl::MutexLock first(&a);
      absl::MutexLock second(&b);
    });
    program->Thread("b then a", [&] {
      absl::MutexLock first(&b);
      absl::MutexLock second(&a);
    });
    program->Run();
  };
  EXPECT_EXIT(SearchAll(body), kFound, "all threads are blocked");
  EXPECT_EXIT(SearchAtRandom(body), kFound, "all threads are blocked");
}

// A lost wakeup: without the mutex, the setter can signal between the waiter's
// check of `set` and its wait.
TEST(SchedulerTest, FindsAWakeUpThatIsLost) {
  const auto program_with = [](bool under_lock) {
    return [under_lock](Program* program) {
      std::atomic<bool> set{false};
      absl::Mutex mu;
      absl::CondVar changed;
      program->Thread("waits", [&] {
        absl::MutexLock lock(&mu);
        while (!set) changed.Wait(&mu);
      });
      program->Thread("sets", [&] {
        if (under_lock) mu.Lock();
        set = true;
        changed.Signal();
        if (under_lock) mu.Unlock();
      });
      program->Run();
    };
  };
  EXPECT_TRUE(SearchAll(program_with(true)).all);
  EXPECT_EXIT(SearchAll(program_with(false)), kFound,
              "all threads are blocked");
}

// Unless another thread can go on meanwhile, and end that.
TEST(SchedulerTest, FindsThreadsThatLookForEver) {
  const auto program_with = [](bool has_setter) {
    return [has_setter](Program* program) {
      std::atomic<bool> done{false};
      absl::Notification notified;
      for (const char* name : {"looks", "looks, too"}) {
        program->Thread(name, [&] {
          while (!done) std::this_thread::yield();
          notified.WaitForNotification();
        });
      }
      if (has_setter) {
        program->Thread("sets", [&] {
          done = true;
          notified.Notify();
        });
      }
      program->Run();
    };
  };
  EXPECT_TRUE(SearchAll(program_with(true)).all);
  EXPECT_EXIT(SearchAll(program_with(false)), kFound, "does not end");
}

TEST(SchedulerTest, TimePassesOnlyWhereNothingElseCanHappen) {
  const auto body = [](Program* program) {
    absl::Mutex mu;
    absl::CondVar changed;
    bool set = false;
    program->Thread("waits", [&] {
      absl::MutexLock lock(&mu);
      while (!set) {
        Expect(!changed.WaitWithTimeout(&mu, absl::Seconds(1)),
               "it was not woken");
      }
      Expect(changed.WaitWithTimeout(&mu, absl::Seconds(1)), "it was woken");
    });
    program->Thread("sets", [&] {
      absl::MutexLock lock(&mu);
      set = true;
      changed.Signal();
    });
    program->Run();
  };
  EXPECT_TRUE(SearchAll(body).all);
}

TEST(SchedulerTest, ADaemonRunsInsteadOfAThreadOrAfterAllOfThem) {
  std::set<int> seen;
  const auto body = [&seen](Program* program) {
    Shared shared;
    int enqueued = 0, done = 0, at_end = 0;
    program->Daemon("stream", [&] {
      const auto ready = [&] { return done < enqueued; };
      while (BlockUntil(shared, ready, "runs", TFMS_SEARCH_HERE)) ++done;
    });
    program->Thread("enqueues", [&] {
      for (int i = 0; i < 2; ++i) {
        Touch(shared, "enqueues", TFMS_SEARCH_HERE);
        ++enqueued;
      }
      Touch(shared, "looks", TFMS_SEARCH_HERE);
      at_end = done;
    });
    program->Run();
    Expect(done == 2, "the daemon has not done all");
    seen.insert(at_end);
  };
  EXPECT_TRUE(SearchAll(body).all);
  EXPECT_EQ(seen, (std::set<int>{0, 1, 2}));
}

// The starting thread goes on meanwhile; the destructor waits for the end.
TEST(SchedulerTest, AThreadMayStartOthers) {
  std::set<int> seen;
  const auto body = [&seen](Program* program) {
    std::atomic<int> count{0};
    program->Thread("starts", [&] {
      auto started = NewThread("is started", [&count] { ++count; });
      seen.insert(count);
      started = nullptr;
      Expect(count == 1, "it has not ended");
    });
    program->Run();
  };
  EXPECT_TRUE(SearchAll(body).all);
  EXPECT_EQ(seen, (std::set<int>{0, 1}));
}

}  // namespace
}  // namespace tensorflow::multistream::search
