// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Interleavings of the threads that run steps: each closure runs, even when
// all threads are blocked in closures that wait for it.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/step/session_threads.h"
#include "tensorflow/core/common_runtime/multistream/step/step_threads.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/expect_finds.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/late_streams.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"

namespace tensorflow::multistream::search {
namespace {

struct Pool {
  int threads = 2;
  int looking = 0;
  int of_group = 2;
};

class World {
 public:
  // `stock`: how many threads the pool may have.
  World(const Pool& pool, int stock)
      : stock_(stock),
        threads_(std::make_unique<StepThreads>(pool.threads, pool.looking,
                                               pool.of_group)) {}

  void Schedule(std::function<void()> closure) {
    ++scheduled_;
    threads_->Schedule(&group_, [this, closure = std::move(closure)] {
      closure();
      Touch(here_, "has run", TFMS_SEARCH_HERE);
      ++run_;
    });
  }
  // A closure that schedules another closure and waits for it, as a Python op
  // that calls a function does.
  void ScheduleCall() {
    Schedule([this] {
      auto called = std::make_shared<absl::Notification>();
      Schedule([called] { called->Notify(); });
      called->WaitForNotification();
    });
  }
  void AwaitAll() {
    BlockUntil(
        here_, [this] { return run_ == scheduled_; }, "waits for all",
        TFMS_SEARCH_HERE);
  }
  // By a thread of the program: the pool's end, too.
  void End() { threads_ = nullptr; }
  void ExpectAll() const {
    Expect(run_ == scheduled_,
           absl::StrCat(run_, " of ", scheduled_, " closures have run"));
  }

 private:
  const StockThreads stock_;
  LateStreamGroup group_{0};
  const Shared here_;
  int scheduled_ = 0;
  int run_ = 0;
  std::unique_ptr<StepThreads> threads_;
};

// `calls` closures block at once. With `later`, time then passes until no
// thread is replaced, and more closures come.
Body Closures(Pool pool, int plain, int calls, bool later = false) {
  return [=](Program* program) {
    auto world =
        std::make_shared<World>(pool, calls == 0 ? 0 : pool.threads + calls);
    program->Thread("schedules", [=] {
      absl::Mutex mu;
      absl::CondVar never;
      for (int i = 0; i < plain; ++i) world->Schedule([] {});
      for (int i = 0; i < calls; ++i) world->ScheduleCall();
      if (calls > 0) world->AwaitAll();
      for (int i = 0; later && i < 3; ++i) {
        absl::SleepFor(absl::Seconds(2));
        absl::MutexLock lock(&mu);
        never.WaitWithTimeout(&mu, absl::Seconds(2));
      }
      for (int i = 0; later && i < 3; ++i) world->Schedule([] {});
      if (later) world->AwaitAll();
      world->End();
    });
    program->Run();
    world->ExpectAll();
  };
}
Body Plain(Pool pool, int closures) { return Closures(pool, closures, 0); }
Body Calls(Pool pool, int calls) { return Closures(pool, 0, calls); }

TEST(ThreadsSearchTest, EachClosureRunsBeforeTheEnd) {
  EXPECT_TRUE(SearchAll(Plain({1, 0, 1}, 2), Of(2)).all);
  EXPECT_TRUE(SearchAll(Plain({2, 1, 2}, 3), Of(1)).all);
  SearchAtRandom(Plain({2, 0, 1}, 4), Of(0, 0.5));
}

TEST(ThreadsSearchTest, BlockedClosuresLetOthersRun) {
  EXPECT_TRUE(SearchAll(Calls({1, 0, 1}, 1), Of(1)).all);
  SearchAtRandom(Calls({2, 0, 2}, 3), Of(0, 1));
  SearchAtRandom(Calls({2, 0, 1}, 3), Of(0, 0.5));
  SearchAtRandom(Calls({2, 1, 1}, 3), Of(0, 0.5));
  SearchAtRandom(Closures({2, 0, 2}, 0, 2, /*later=*/true), Of(0, 0.5));
}

const char* const kStandsStill = "does not end|all threads are blocked";

TEST(ThreadsSearchTest, ClosuresThatFindNoThreadAreFound) {
  EXPECT_FINDS(Rule::kWhoIsBlockedIsReplaced,
               SearchAtRandom(Calls({2, 0, 2}, 3)), kStandsStill);
  EXPECT_FINDS(Rule::kWhoIsBlockedDoesNotCountForItsGroup,
               SearchAtRandom(Calls({2, 0, 1}, 3)), kStandsStill);
  EXPECT_FINDS(Rule::kWhoSchedulesWakesTheWatcher,
               SearchAtRandom(Calls({2, 0, 2}, 3)), kStandsStill);
  EXPECT_FINDS(Rule::kWhoAdmitsTheLastTellsOfTheEnd,
               SearchAtRandom(Plain({2, 0, 1}, 4)), kStandsStill);
}

}  // namespace
}  // namespace tensorflow::multistream::search
