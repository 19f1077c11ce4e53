// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Interleavings of threads that take the locks of variables: threads
// that exclude each other by the table in sided_locks.h are never inside
// together, and no thread waits for ever.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/stream/sided_locks.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/expect_finds.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"

namespace tensorflow::multistream::search {
namespace {

constexpr SidedLocks::Side kSides[] = {
    SidedLocks::kReaders, SidedLocks::kWriters, SidedLocks::kMovers};
constexpr const char* kNames[] = {"reader", "writer", "mover"};

// The table in sided_locks.h, written down a second time.
bool ExcludeByTheTable(int a, int b) { return a != b || a == 2; }

struct Visit {
  SidedLocks::Side side;
  std::vector<SidedLocks::Key> keys;
};

struct Watched {
  SidedLocks locks;
  Shared here;
  // By key and side, counted by the threads themselves.
  int inside[3][3] = {};
  int entered = 0;
};

void Stay(Watched* watched, const Visit& visit) {
  for (SidedLocks::Key key : visit.keys) {
    for (int other : kSides) {
      if (!ExcludeByTheTable(visit.side, other)) continue;
      Expect(watched->inside[key][other] == 0,
             absl::StrCat("a ", kNames[visit.side], " and a ", kNames[other],
                          " are inside together"));
    }
  }
  for (SidedLocks::Key key : visit.keys) ++watched->inside[key][visit.side];
  Touch(watched->here, "is inside", TFMS_SEARCH_HERE);
  for (SidedLocks::Key key : visit.keys) --watched->inside[key][visit.side];
  ++watched->entered;
}

// Each thread makes its visits, one after the other.
Body Visits(std::vector<std::vector<Visit>> threads) {
  return [threads](Program* program) {
    auto watched = std::make_shared<Watched>();
    int expected = 0;
    for (const std::vector<Visit>& visits : threads) {
      expected += visits.size();
      program->Thread(kNames[visits[0].side], [watched, visits] {
        for (const Visit& visit : visits) {
          watched->locks.Enter(visit.side, visit.keys);
          Stay(watched.get(), visit);
          watched->locks.Leave(visit.side, visit.keys);
        }
      });
    }
    program->Run();
    Expect(watched->entered == expected, "not all have been inside");
    Expect(watched->locks.size() == 0, "a lock is left");
    Expect(watched->locks.waiting() == 0, "a waiter is left");
  };
}

Body Pair(SidedLocks::Side a, SidedLocks::Side b) {
  return Visits({{{a, {1}}, {a, {1}}}, {{b, {1}}, {b, {1}}}});
}

TEST(LocksSearchTest, AllPairsOfSides) {
  for (SidedLocks::Side a : kSides) {
    for (SidedLocks::Side b : kSides) {
      EXPECT_TRUE(SearchAll(Pair(a, b)).all) << kNames[a] << kNames[b];
    }
  }
}

TEST(LocksSearchTest, EachCellOfTheTableThatIsBrokenIsFound) {
  EXPECT_FINDS(Rule::kMoversExcludeMovers,
               SearchAll(Pair(SidedLocks::kMovers, SidedLocks::kMovers)),
               "a mover and a mover are inside together");
  EXPECT_FINDS(Rule::kMoversExcludeReaders,
               SearchAll(Pair(SidedLocks::kMovers, SidedLocks::kReaders)),
               "are inside together");
  EXPECT_FINDS(Rule::kMoversExcludeWriters,
               SearchAll(Pair(SidedLocks::kMovers, SidedLocks::kWriters)),
               "are inside together");
  EXPECT_FINDS(Rule::kReadersExcludeWriters,
               SearchAll(Pair(SidedLocks::kReaders, SidedLocks::kWriters)),
               "are inside together");
}

// Two variables, locked in different orders; one request has a duplicate key.
Body SeveralKeys() {
  return Visits({{{SidedLocks::kMovers, {1, 2}}},
                 {{SidedLocks::kReaders, {2, 1, 2}}},
                 {{SidedLocks::kMovers, {2}}}});
}

TEST(LocksSearchTest, SeveralKeysAtOnce) {
  EXPECT_TRUE(SearchAll(SeveralKeys()).all);
  SearchAtRandom(
      Visits({{{SidedLocks::kMovers, {0, 1, 2}}, {SidedLocks::kReaders, {1}}},
              {{SidedLocks::kReaders, {2, 1}}, {SidedLocks::kWriters, {0, 0}}},
              {{SidedLocks::kWriters, {1}}, {SidedLocks::kMovers, {2, 0}}},
              {{SidedLocks::kReaders, {0}}, {SidedLocks::kReaders, {0, 2}}}}),
      Seconds(2));
}

TEST(LocksSearchTest, AWaiterThatNobodyWakesIsFound) {
  const Body body =
      Visits({{{SidedLocks::kMovers, {1, 2}}}, {{SidedLocks::kMovers, {2}}}});
  EXPECT_TRUE(SearchAll(body).all);
  EXPECT_FINDS(Rule::kWhoLeavesWakesTheWaitersOfAllKeys, SearchAll(body),
               "all threads are blocked");
}

// Threads whose sides do not exclude each other are inside together, whether
// they wait for a mover before or not.
Body Together(SidedLocks::Side side, int threads) {
  return [=](Program* program) {
    Watched watched;
    int inside = 0;
    watched.locks.Enter(SidedLocks::kMovers, {1});
    for (int i = 0; i < threads; ++i) {
      program->Thread(kNames[side], [&] {
        watched.locks.Enter(side, {1});
        ++inside;
        BlockUntil(
            watched.here, [&] { return inside == threads; },
            "waits for the others", TFMS_SEARCH_HERE);
        watched.locks.Leave(side, {1});
      });
    }
    program->Thread("mover",
                    [&] { watched.locks.Leave(SidedLocks::kMovers, {1}); });
    program->Run();
  };
}

TEST(LocksSearchTest, SidesThatDoNotExcludeEachOtherAreInsideTogether) {
  for (SidedLocks::Side side : {SidedLocks::kReaders, SidedLocks::kWriters}) {
    EXPECT_TRUE(SearchAll(Together(side, 3)).all) << kNames[side];
  }
  // One of several leaves before a thread that all of them exclude comes in.
  EXPECT_TRUE(SearchAll(Visits({{{SidedLocks::kReaders, {1}}},
                                {{SidedLocks::kReaders, {1}}},
                                {{SidedLocks::kWriters, {1}}}}))
                  .all);
}

// The sides of `first` and `second` exclude each other. A thread of the second
// that waits for one of the first enters before later ones of the first.
Body ThreadsThatComeLater(SidedLocks::Side first, SidedLocks::Side second) {
  return [=](Program* program) {
    Watched watched;
    bool has_entered = false;
    watched.locks.Enter(first, {1});
    program->Thread("waits", [&] {
      watched.locks.Enter(second, {1});
      has_entered = true;
      watched.locks.Leave(second, {1});
    });
    program->Thread("comes later", [&] {
      if (watched.locks.waiting() == 0) return;
      watched.locks.Enter(first, {1});
      Expect(has_entered, "who waits is overtaken");
      watched.locks.Leave(first, {1});
    });
    program->Thread("is inside", [&] { watched.locks.Leave(first, {1}); });
    program->Run();
  };
}

TEST(LocksSearchTest, WhoWaitsIsNotOvertaken) {
  for (SidedLocks::Side first : kSides) {
    for (SidedLocks::Side second : kSides) {
      EXPECT_EQ(SidedLocks::Exclude(first, second),
                ExcludeByTheTable(first, second));
      if (!SidedLocks::Exclude(first, second)) continue;
      EXPECT_TRUE(SearchAll(ThreadsThatComeLater(first, second)).all);
    }
  }
  EXPECT_FINDS(Rule::kWhoWaitsIsNotOvertaken,
               SearchAll(ThreadsThatComeLater(SidedLocks::kReaders,
                                              SidedLocks::kWriters)),
               "who waits is overtaken");
}

// A thread that waits for two keys has none of them, and keeps nobody out of
// another key. A thread without keys never waits.
void OtherKeys(Program* program) {
  Watched watched;
  watched.locks.Enter(SidedLocks::kReaders, {1, 2});
  program->Thread("waits", [&] {
    watched.locks.Enter(SidedLocks::kWriters, {1, 2});
    watched.locks.Leave(SidedLocks::kWriters, {1, 2});
  });
  program->Thread("goes on", [&] {
    watched.locks.Leave(SidedLocks::kReaders, {1});
    for (const std::vector<SidedLocks::Key>& keys :
         {std::vector<SidedLocks::Key>{1}, {3}, {}}) {
      watched.locks.Enter(SidedLocks::kWriters, keys);
      watched.locks.Leave(SidedLocks::kWriters, keys);
    }
    watched.locks.Leave(SidedLocks::kReaders, {2});
  });
  program->Run();
}

TEST(LocksSearchTest, OneKeyKeepsNobodyOutOfAnother) {
  EXPECT_TRUE(SearchAll(OtherKeys).all);
}

}  // namespace
}  // namespace tensorflow::multistream::search
