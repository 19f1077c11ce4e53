// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The scheduler runs every interleaving, finds textbook faults, and reports
// nothing for correct programs.

#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace tensorflow {
namespace multistream {
namespace search {
namespace {

const auto kFound = ::testing::ExitedWithCode(kFoundStatus);

// Two threads that add to a counter with a load and a store.
void LostUpdate(Program* program) {
  auto count = std::make_shared<std::atomic<int>>(0);
  for (const char* name : {"a", "b"}) {
    program->Thread(name, [count] { count->store(count->load() + 1); });
  }
  program->Run();
  Expect(*count == 2, "an update is lost");
}

TEST(SchedulerTest, FindsALostUpdateBothWays) {
  EXPECT_EXIT(SearchAll(LostUpdate), kFound, "an update is lost");
  EXPECT_EXIT(SearchAtRandom(LostUpdate), kFound, "an update is lost");
}

TEST(SchedulerTest, FindsItWithOneDeviationAndNotWithout) {
  Limits limits;
  limits.deviations = 0;
  EXPECT_TRUE(SearchAll(LostUpdate, limits).all);
  limits.deviations = 1;
  EXPECT_EXIT(SearchAll(LostUpdate, limits), kFound, "an update is lost");
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
  auto* seen = new std::set<std::string>;
  Limits limits;
  limits.deviations = 6;
  const Searched searched = SearchAll(
      [seen](Program* program) {
        auto order = std::make_shared<std::string>();
        auto object = std::make_shared<std::atomic<int>>(0);
        for (const char* name : {"a", "b"}) {
          program->Thread(name, [=] {
            for (int i = 0; i < 3; ++i) {
              object->load();
              *order += name;
            }
          });
        }
        program->Run();
        seen->insert(*order);
      },
      limits);
  EXPECT_TRUE(searched.all);
  EXPECT_EQ(seen->size(), 20);
}

TEST(SchedulerTest, FindsADeadlock) {
  const Body body = [](Program* program) {
    struct Locks {
      absl::Mutex a, b;
    };
    auto locks = std::make_shared<Locks>();
    program->Thread("a then b", [locks] {
      absl::MutexLock first(&locks->a);
      absl::MutexLock second(&locks->b);
    });
    program->Thread("b then a", [locks] {
      absl::MutexLock first(&locks->b);
      absl::MutexLock second(&locks->a);
    });
    program->Run();
  };
  EXPECT_EXIT(SearchAll(body), kFound, "all threads are blocked");
  EXPECT_EXIT(SearchAtRandom(body), kFound, "all threads are blocked");
}

// A lost wakeup: without the mutex, the setter can signal between the waiter's
// check of `set` and its wait.
TEST(SchedulerTest, FindsAWakeUpThatIsLost) {
  struct Event {
    std::atomic<bool> set{false};
    absl::Mutex mu;
    absl::CondVar changed;
  };
  const auto program_with = [](bool under_lock) {
    return [under_lock](Program* program) {
      auto event = std::make_shared<Event>();
      program->Thread("waits", [event] {
        absl::MutexLock lock(&event->mu);
        while (!event->set) event->changed.Wait(&event->mu);
      });
      program->Thread("sets", [event, under_lock] {
        if (under_lock) {
          absl::MutexLock lock(&event->mu);
          event->set = true;
          event->changed.Signal();
        } else {
          event->set = true;
          event->changed.Signal();
        }
      });
      program->Run();
    };
  };
  EXPECT_TRUE(SearchAll(program_with(true)).all);
  EXPECT_EXIT(SearchAll(program_with(false)), kFound,
              "all threads are blocked");
}

TEST(SchedulerTest, FindsThreadsThatLookForEver) {
  const Body body = [](Program* program) {
    auto done = std::make_shared<std::atomic<bool>>(false);
    for (const char* name : {"a", "b"}) {
      program->Thread(name, [done] {
        while (!*done) std::this_thread::yield();
      });
    }
    program->Run();
  };
  EXPECT_EXIT(SearchAll(body), kFound, "does not end");
}

TEST(SchedulerTest, ThreadsThatLookLetOthersGoOn) {
  const Searched searched = SearchAll([](Program* program) {
    auto done = std::make_shared<std::atomic<bool>>(false);
    auto notified = std::make_shared<absl::Notification>();
    for (const char* name : {"looks", "looks, too"}) {
      program->Thread(name, [=] {
        while (!*done) std::this_thread::yield();
        notified->WaitForNotification();
      });
    }
    program->Thread("sets", [=] {
      *done = true;
      notified->Notify();
    });
    program->Run();
  });
  EXPECT_TRUE(searched.all);
}

TEST(SchedulerTest, TimePassesOnlyWhereNothingElseCanHappen) {
  const Searched searched = SearchAll([](Program* program) {
    struct Event {
      absl::Mutex mu;
      absl::CondVar changed;
      bool set = false;
    };
    auto event = std::make_shared<Event>();
    program->Thread("waits", [event] {
      absl::MutexLock lock(&event->mu);
      while (!event->set) {
        Expect(!event->changed.WaitWithTimeout(&event->mu, absl::Seconds(1)),
               "it was not woken");
      }
      Expect(event->changed.WaitWithTimeout(&event->mu, absl::Seconds(1)),
             "it was woken");
    });
    program->Thread("sets", [event] {
      absl::MutexLock lock(&event->mu);
      event->set = true;
      event->changed.Signal();
    });
    program->Run();
  });
  EXPECT_TRUE(searched.all);
}

TEST(SchedulerTest, ADaemonRunsInsteadOfAThreadOrAfterAllOfThem) {
  auto* seen = new std::set<int>;
  const Searched searched = SearchAll([seen](Program* program) {
    struct Queue {
      Shared shared;
      int enqueued = 0;
      int done = 0;
      std::atomic<int> at_end{0};
    };
    auto queue = std::make_shared<Queue>();
    program->Daemon("stream", [queue] {
      while (BlockUntil(
          queue->shared, [queue] { return queue->done < queue->enqueued; },
          "runs", TFMS_SEARCH_HERE)) {
        ++queue->done;
      }
    });
    program->Thread("enqueues", [queue] {
      for (int i = 0; i < 2; ++i) {
        Touch(queue->shared, "enqueues", TFMS_SEARCH_HERE);
        ++queue->enqueued;
      }
      Touch(queue->shared, "looks", TFMS_SEARCH_HERE);
      queue->at_end = queue->done;
    });
    program->Run();
    Expect(queue->done == 2, "the daemon has not done all");
    seen->insert(queue->at_end);
  });
  EXPECT_TRUE(searched.all);
  EXPECT_EQ(*seen, (std::set<int>{0, 1, 2}));
}

// The starting thread goes on meanwhile; the destructor waits for the end.
TEST(SchedulerTest, AThreadMayStartOthers) {
  auto* seen = new std::set<int>;
  const Searched searched = SearchAll([seen](Program* program) {
    auto count = std::make_shared<std::atomic<int>>(0);
    program->Thread("starts", [=] {
      auto started = NewThread("is started", [count] { ++*count; });
      seen->insert(*count);
      started = nullptr;
      Expect(*count == 1, "it has not ended");
    });
    program->Run();
  });
  EXPECT_TRUE(searched.all);
  EXPECT_EQ(*seen, (std::set<int>{0, 1}));
}

}  // namespace
}  // namespace search
}  // namespace multistream
}  // namespace tensorflow
