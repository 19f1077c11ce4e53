// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Interleavings of threads at the CUDA driver's locks: writers get in, readers
// are never stopped, and a thread that waits for long is woken.

#include <gtest/gtest.h>
#include <pthread.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/base/spinning_locks.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/expect_finds.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"

namespace tensorflow::multistream::search {
namespace {

// Makes lazily made objects before the first search, so that they have the same
// numbers in each search.
class SpinningSearchTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    SpinningReadLock(&lock);
    pthread_rwlock_unlock(&lock);
    int looks = 1;
    const TurnToLook turn(&lock, &looks);
  }
};

class ReadWriteLock {
 public:
  ReadWriteLock() { StateOf(&lock_); }
  void LockToRead() { Expect(SpinningReadLock(&lock_) == 0, "it fails"); }
  void LockToWrite() { Expect(SpinningWriteLock(&lock_) == 0, "it fails"); }
  void Unlock() { pthread_rwlock_unlock(&lock_); }

 private:
  pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;
};

class Mutex {
 public:
  Mutex() { StateOf(&mutex_); }
  void Lock() { Expect(SpinningLock(&mutex_) == 0, "it fails"); }
  void Unlock() { pthread_mutex_unlock(&mutex_); }
  const void* get() const { return &mutex_; }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

// A reader inside one lock takes a second lock, as launches do, while a writer
// waits for the first lock, as making an event does.
void NestedReader(Program* program) {
  struct {
    ReadWriteLock outer, inner;
    Shared here;
    LockWaits waits;
    int written = 0;
  } world;
  program->Thread("launches", [&] {
    world.outer.LockToRead();
    const int written = world.written;
    Touch(world.here, "launches", TFMS_SEARCH_HERE);
    ShowLockWaitsOfThisThread(&world.waits);
    world.inner.LockToRead();
    ShowLockWaitsOfThisThread(nullptr);
    Expect(world.waits.longest == 0,
           "a reader stands back for the writer that waits for it to leave");
    Expect(world.written == written, "a writer is inside beside a reader");
    world.inner.Unlock();
    world.outer.Unlock();
  });
  program->Thread("makes an event", [&] {
    Touch(world.here, "wants to write", TFMS_SEARCH_HERE);
    world.outer.LockToWrite();
    ++world.written;
    world.outer.Unlock();
  });
  program->Run();
}

TEST_F(SpinningSearchTest, ReadersStandBackForTheWritersOfTheirOwnLock) {
  EXPECT_TRUE(SearchAll(NestedReader, Of(3)).all);
  EXPECT_FINDS(Rule::kReadersStandBackForTheirOwnLocksWriter,
               SearchAll(NestedReader), "stands back for the writer");
}

// As NestedReader, by two threads, and under mutexes.
void Launches(Program* program) {
  struct {
    ReadWriteLock outer, inner;
    Mutex stream, shared;
    int events = 0;
    int launches = 0;
  } world;
  for (int i = 0; i < 2; ++i) {
    program->Thread(absl::StrCat("launches ", i), [&] {
      for (int j = 0; j < 2; ++j) {
        world.outer.LockToRead();
        const int events = world.events;
        world.stream.Lock();
        world.inner.LockToRead();
        world.shared.Lock();
        const int launches = world.launches;
        std::this_thread::yield();
        world.launches = launches + 1;
        world.shared.Unlock();
        world.inner.Unlock();
        world.stream.Unlock();
        Expect(world.events == events, "a writer is inside beside a reader");
        world.outer.Unlock();
      }
    });
    program->Thread(absl::StrCat("makes events ", i), [&, i] {
      ReadWriteLock* lock = i == 0 ? &world.outer : &world.inner;
      lock->LockToWrite();
      if (i == 0) ++world.events;
      lock->Unlock();
    });
  }
  program->Run();
  Expect(world.launches == 4 && world.events == 1, "one is lost");
}

TEST_F(SpinningSearchTest, LaunchesAndEvents) {
  SearchAll(Launches, Of(2, 1));
  SearchAtRandom(Launches, Of(0, 1));
}

// There is always a reader, until the writer has been inside.
void ReadersWithoutEnd(Program* program) {
  struct {
    ReadWriteLock lock;
    int readers = 0;
    bool has_written = false;
  } world;
  for (const char* name : {"reads", "reads, too"}) {
    program->Thread(name, [&] {
      while (!world.has_written) {
        world.lock.LockToRead();
        ++world.readers;
        std::this_thread::yield();
        --world.readers;
        world.lock.Unlock();
      }
    });
  }
  program->Thread("writes", [&] {
    world.lock.LockToWrite();
    Expect(world.readers == 0, "a writer is inside beside a reader");
    world.has_written = true;
    world.lock.Unlock();
  });
  program->Run();
}

TEST_F(SpinningSearchTest, AWriterGetsInWhereThereIsAlwaysAReader) {
  EXPECT_TRUE(SearchAll(ReadersWithoutEnd, Of(2)).all);
  EXPECT_FINDS(Rule::kReadersStandBackForAWriter, SearchAll(ReadersWithoutEnd),
               "does not end");
}

// The reader inside waits for a second reader, while a writer waits.
void NeededReader(Program* program) {
  struct {
    ReadWriteLock lock;
    Shared here;
    bool has_read = false;
  } world;
  program->Thread("reads", [&] {
    world.lock.LockToRead();
    BlockUntil(
        world.here, [&] { return world.has_read; }, "waits for the other",
        TFMS_SEARCH_HERE);
    world.lock.Unlock();
  });
  program->Thread("writes", [&] {
    world.lock.LockToWrite();
    world.lock.Unlock();
  });
  program->Thread("is needed", [&] {
    world.lock.LockToRead();
    world.lock.Unlock();
    Touch(world.here, "has read", TFMS_SEARCH_HERE);
    world.has_read = true;
  });
  program->Run();
}

TEST_F(SpinningSearchTest, AWriterDelaysReadersAndNeverStopsThem) {
  EXPECT_TRUE(SearchAll(NeededReader, Of(2)).all);
  EXPECT_FINDS(Rule::kStandingBackEnds, SearchAll(NeededReader),
               "does not end");
}

// The owner sleeps for as long as any other thread can run.
void OwnerThatSleeps(Program* program) {
  struct {
    Mutex mutex;
    absl::Mutex mu;
    absl::CondVar never;
    int inside = 0;
  } world;
  const auto stay = [&] {
    Expect(++world.inside == 1, "two are inside together");
  };
  program->Thread("sleeps", [&] {
    world.mutex.Lock();
    stay();
    {
      absl::MutexLock lock(&world.mu);
      world.never.WaitWithTimeout(&world.mu, absl::Seconds(1));
    }
    --world.inside;
    world.mutex.Unlock();
  });
  for (const char* name : {"waits", "waits, too"}) {
    program->Thread(name, [&] {
      world.mutex.Lock();
      stay();
      --world.inside;
      world.mutex.Unlock();
    });
  }
  program->Run();
}

TEST_F(SpinningSearchTest, WhoWaitsForLongTakesNoCoreAndIsWoken) {
  EXPECT_TRUE(SearchAll(OwnerThatSleeps, Of(1)).all);
  EXPECT_FINDS(Rule::kWhoSpinsForLongSleepsInTheLock,
               SearchAll(OwnerThatSleeps), "does not end");
}

void Turns(Program* program) {
  struct {
    Mutex mutex;
    Shared here;
    int looking = 0;
  } world;
  for (const char* name : {"a", "b", "c"}) {
    program->Thread(name, [&] {
      for (int i = 0; i < 2; ++i) {
        int looks = 3;
        const TurnToLook turn(world.mutex.get(), &looks);
        Expect(turn.IsMine() == (looks > 0), "a turn is waited for in vain");
        if (!turn.IsMine()) continue;
        Expect(++world.looking == 1, "two look at once");
        Touch(world.here, "looks", TFMS_SEARCH_HERE);
        --world.looking;
      }
    });
  }
  program->Run();
  int looks = 1;
  const TurnToLook turn(world.mutex.get(), &looks);
  Expect(turn.IsMine(), "nobody gives the turn on");
}

TEST_F(SpinningSearchTest, OneLooksAtATimeAndGivesTheTurnOn) {
  EXPECT_TRUE(SearchAll(Turns, Of(3)).all);
  EXPECT_FINDS(Rule::kOneLooksAtATime, SearchAll(Turns), "two look at once");
  EXPECT_FINDS(Rule::kTheTurnToLookIsGivenOn, SearchAll(Turns),
               "nobody gives the turn on");
}

}  // namespace
}  // namespace tensorflow::multistream::search
