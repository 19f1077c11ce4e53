// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which frees and allocations are reported, and how long is a history kept?

#include <gtest/gtest.h>

#include <cstdint>

#include "tensorflow/core/common_runtime/multistream/sanitizer/sanitizer.h"
#include "tensorflow/core/common_runtime/multistream/sanitizer/sanitizer_events.h"

namespace tensorflow {
namespace multistream {
namespace {

class SanitizerMemoryTest : public SanitizerTest {};

// 1: allocate =x--r             free
// 2:               w--y (running)
TEST_F(SanitizerMemoryTest, MemoryFreedWhileAnotherGroupMayUseItIsReported) {
  Allocate(1);
  Write(1, "x");
  sanitizer_.WaitForTail(2, 1);
  Read(2, "y");
  Free();
  ExpectOne(ReportKind::kFreedInUse, "", 1, "y", 2);
  // The same pair is reported once.
  Allocate(1);
  Write(1, "z");
  ExpectNone();
}

// 1: allocate =x--r                    free, allocate =z
// 2:               w--y  (completed)
TEST_F(SanitizerMemoryTest, MemoryHeldUntilTheOtherGroupPassedIsNotReported) {
  Allocate(1);
  Write(1, "x");
  sanitizer_.WaitForTail(2, 1);
  Read(2, "y");
  sanitizer_.Completed(sanitizer_.Tail(2));
  Free();
  Allocate(1);
  Write(1, "z");
  ExpectNone();
}

// 1: allocate =x--r                    free
// host: blocks until 2 is done
// 2:               w--y
TEST_F(SanitizerMemoryTest, MemoryFreedOnceTheHostWaitedIsNotReported) {
  Allocate(1);
  Write(1, "x");
  sanitizer_.WaitForTail(2, 1);
  Read(2, "y");
  sanitizer_.HostSynchronized(2);
  Free();
  Allocate(3);
  Write(3, "z");
  ExpectNone();
}

// 2:      w--y--(position)--z      completed up to the position, not z
TEST_F(SanitizerMemoryTest, MemoryHeldUntilTooEarlyAPointIsReported) {
  Allocate(1);
  Write(1, "x");
  sanitizer_.WaitForTail(2, 1);
  Read(2, "y");
  const Position position = sanitizer_.Tail(2);
  Read(2, "z");
  sanitizer_.Completed(position);
  Free();
  ExpectOne(ReportKind::kFreedInUse, "", 1, "z", 2);
}

// 2:      w--y--r
// 3:             w     completed, so 2 has completed y
TEST_F(SanitizerMemoryTest, AStreamThatPassedItsWaitsVouchesForTheOthers) {
  Allocate(1);
  Write(1, "x");
  sanitizer_.WaitForTail(2, 1);
  Read(2, "y");
  sanitizer_.WaitForTail(3, 2);
  sanitizer_.Completed(sanitizer_.Tail(3));
  Free();
  ExpectNone();
}

// 1: allocate =x--r      w  free, allocate =z
// 2:               w--y--r
TEST_F(SanitizerMemoryTest, MemoryFreedAfterTheOwnerWaitedIsNotReported) {
  Allocate(1);
  Write(1, "x");
  sanitizer_.WaitForTail(2, 1);
  Read(2, "y");
  sanitizer_.WaitForTail(1, 2);
  Free();
  Allocate(1);
  Write(1, "z");
  ExpectNone();
}

// 1: allocate =x -y free allocate =z
TEST_F(SanitizerMemoryTest, TheOwnerReusesItsMemoryAtOnce) {
  for (int i = 0; i < 3; ++i) {
    Allocate(1);
    Write(1, "x");
    Read(1, "y");
    Free();
  }
  ExpectNone();
}

// 1: allocate =x free, allocate again           =p--r
// 2:                                   =y             w--z
TEST_F(SanitizerMemoryTest, OthersUseMemoryHandedOutAgainOnlyAfterItsOwner) {
  Allocate(1);
  Write(1, "x");
  Free();
  Allocate(1);
  Write(2, "y");
  ExpectOne(ReportKind::kHandedOutInUse, "y", 2, "x", 1);
  sanitizer_.WaitForTail(1, 2);
  Write(1, "p");
  sanitizer_.WaitForTail(2, 1);
  Write(2, "z");
  ExpectNone();
}

// 1: allocate =x free, allocate for a copy
// 2:                                         -y free, allocate =z
// The host waited for the copy, which waited for x.
TEST_F(SanitizerMemoryTest, OthersUseMemoryThatTheHostCopiedToAtOnce) {
  Allocate(1);
  Write(1, "x");
  Free();
  sanitizer_.Allocate(1, Address(kM), kBytes, /*for_copy=*/true);
  Read(2, "y");
  ExpectNone();
  // Uses after the copy are still checked.
  Free();
  ExpectOne(ReportKind::kFreedInUse, "", 1, "y", 2);
  Allocate(1);
  Write(2, "z");
  ExpectOne(ReportKind::kHandedOutInUse, "z", 2, "x", 1);
}

// 1: allocate =x free
// 2:                  forget, allocate =y       (x is still running)
TEST_F(SanitizerMemoryTest, WhatOthersPutInOrderIsNotFollowed) {
  Allocate(1);
  Write(1, "x");
  Free();
  sanitizer_.Forget(Address(kM), kBytes);
  Allocate(2);
  Write(2, "y");
  ExpectNone();
  // Later uses are checked.
  Read(1, "z");
  ExpectOne(ReportKind::kReadAfterWrite, "z", 1, "y", 2);
}

// 1: allocate               free, allocate for a copy
// 2:            -y (still running)
TEST_F(SanitizerMemoryTest, MemoryInUseElsewhereIsNotForACopyEither) {
  Allocate(2);
  Write(2, "y");
  Free();
  sanitizer_.Allocate(1, Address(kM), kBytes, /*for_copy=*/true);
  ExpectOne(ReportKind::kHandedOutInUse, "", 1, "y", 2);
}

// 1: allocate, scratch of op s, free             (s is still running)
// 2:                                 allocate
TEST_F(SanitizerMemoryTest,
       MemoryHandedToAnotherGroupBeforeItsOwnerIsDoneIsReported) {
  Allocate(1);
  sanitizer_.Launch(1, "s", {});
  Free();
  Allocate(2);
  ExpectOne(ReportKind::kHandedOutInUse, "", 2, "s", 1);
}

// 1: allocate, scratch of op s, free--r
// 2:                                   w  allocate
TEST_F(SanitizerMemoryTest, MemoryHandedToAnotherGroupThatWaitedIsNotReported) {
  Allocate(1);
  sanitizer_.Launch(1, "s", {});
  Free();
  sanitizer_.WaitForTail(2, 1);
  Allocate(2);
  Write(2, "y");
  ExpectNone();
}

// 1: allocate, scratch of op s, free (completed)
// 2:                                          allocate
TEST_F(SanitizerMemoryTest,
       MemoryHandedToAnotherGroupOnceItsOwnerPassedIsNotReported) {
  Allocate(1);
  sanitizer_.Launch(1, "s", {});
  Free();
  sanitizer_.Completed(sanitizer_.Tail(1));
  Allocate(2);
  Write(2, "y");
  ExpectNone();
}

//      1000       1080       1100       1180
// 1:  allocate ...........w  free, allocate again
// 2: -b |---------|--r
// 3:                       |---------| =y     no wait for group 1
TEST_F(SanitizerMemoryTest, AnEarlierUseOfAnyPartOfABlockIsReported) {
  Allocate(1, 0x1000, 0x200);
  Read(2, "b", 0x1000, 0x80);
  sanitizer_.WaitForTail(1, 2);
  Free(0x1000);
  Allocate(1, 0x1000, 0x200);
  Write(3, "y", 0x1100, 0x80);
  ASSERT_EQ(reports_.size(), 1) << AllText();
  EXPECT_EQ(reports_[0].address, Address(0x1100));
  EXPECT_EQ(reports_[0].bytes, 0x80);
  ExpectOne(ReportKind::kHandedOutInUse, "y", 3, "b", 2);
}

//       1000       1100       1200
// 1:     allocate =x, free          (x is still running)
// 2:                 |allocate|
TEST_F(SanitizerMemoryTest, PartOfFreedMemoryHandedToAnotherGroupIsReported) {
  Allocate(1, 0x1000, 0x200);
  Write(1, "x", 0x1000, 0x200);
  Free(0x1000);
  Allocate(2, 0x1100, 0x80);
  ASSERT_EQ(reports_.size(), 1) << AllText();
  EXPECT_EQ(reports_[0].address, Address(0x1100));
  EXPECT_EQ(reports_[0].bytes, 0x80);
  ExpectOne(ReportKind::kHandedOutInUse, "", 2, "x", 1);
}

//      1000       1080       1100       1180
// 1: =x |------------------------------|      (completed)
// 2:             |allocate =y|
TEST_F(SanitizerMemoryTest, AllocateEndsTheHistoryOfItsRangeAndOfNoMore) {
  Write(1, "x", 0x1000, 0x180);
  sanitizer_.Completed(sanitizer_.Tail(1));
  Allocate(2, 0x1080, 0x80);
  Write(2, "y", 0x1080, 0x80);
  ExpectNone();
  Write(2, "left", 0x1000, 0x80);
  ExpectOne(ReportKind::kWriteAfterWrite, "left", 2, "x", 1);
  Write(2, "right", 0x1100, 0x80);
  ExpectOne(ReportKind::kWriteAfterWrite, "right", 2, "x", 1);
}

// 1: allocate =x--r
// 2:               |  allocate
// 3:               w--y
TEST_F(SanitizerMemoryTest, MemoryHandedOutTwiceIsReported) {
  Allocate(1);
  Write(1, "x");
  sanitizer_.WaitForTail(3, 1);
  Read(3, "y");
  Allocate(2, kM + 0x80, kBytes);
  ASSERT_EQ(reports_.size(), 1) << AllText();
  EXPECT_EQ(reports_[0].address, Address(kM + 0x80));
  EXPECT_EQ(reports_[0].bytes, kBytes - 0x80);
  ExpectOne(ReportKind::kHandedOutTwice, "", 2, "x", 1);
}

TEST_F(SanitizerMemoryTest, NeighboursMayBothBeHandedOut) {
  Allocate(1, 0x1000, 0x100);
  Allocate(2, 0x1100, 0x100);
  Allocate(2, 0xf00, 0x100);
  Allocate(3, 0x1080, 0);
  ExpectNone();
}

// 1: allocate =x  free  -y
TEST_F(SanitizerMemoryTest, UseAfterTheFreeIsReported) {
  Allocate(1);
  Write(1, "x");
  Free();
  Read(1, "y");
  ExpectOne(ReportKind::kUsedAfterFree, "y", 1, "x", 1);
}

TEST_F(SanitizerMemoryTest, ASecondFreeIsIgnored) {
  Allocate(1);
  Write(1, "x");
  Free();
  sanitizer_.Launch(1, "later", {});
  Free();
  Read(1, "y");
  ExpectOne(ReportKind::kUsedAfterFree, "y", 1, "x", 1);
}

TEST_F(SanitizerMemoryTest, UseOfAFreedBlocksRemainderIsReported) {
  Allocate(1, 0x1000, 0x300);
  Write(1, "x", 0x1000, 0x300);
  Free(0x1000);
  Allocate(1, 0x1100, 0x100);
  Write(1, "y", 0x1100, 0x100);
  ExpectNone();
  Write(1, "left", 0x1000, 0x100);
  ExpectOne(ReportKind::kUsedAfterFree, "left", 1, "x", 1);
  Write(1, "right", 0x1200, 0x100);
  ExpectOne(ReportKind::kUsedAfterFree, "right", 1, "x", 1);
}

TEST_F(SanitizerMemoryTest,
       MemoryThatNoAllocatorHandedOutIsTrackedForOrderOnly) {
  Free();
  Write(1, "x");
  Free();
  Write(1, "y");
  ExpectNone();
  Read(2, "z");
  ExpectOne(ReportKind::kReadAfterWrite, "z", 2, "y", 1);
}

TEST_F(SanitizerMemoryTest, AReportOfALifetimeSaysWhoseMemoryItIs) {
  Allocate(1);
  Read(2, "y");
  Free();
  ASSERT_EQ(reports_.size(), 1);
  EXPECT_EQ(ReportAsText(reports_[0]),
            "Stream sanitizer: memory of group 1 freed while group 2 may still "
            "use it\n"
            "  now:     group 1 frees it\n"
            "  before:  group 2, op 'y' reads tensor 'm'\n"
            "  memory:  256 bytes at 0x1000\n"
            "  missing: group 1 must wait for group 2 after op 'y' before the "
            "memory is freed, or the memory must be held until group 2 has "
            "completed op 'y'");
}

// The addresses keep moving: if the history were never forgotten, these would
// be 200,000 parts.
TEST_F(SanitizerMemoryTest, HistoryThatEveryStreamComesAfterIsForgotten) {
  for (uintptr_t i = 0; i < 100'000; ++i) {
    const uintptr_t at = 0x100000 + i * 0x100;
    Write(0, "x", at);
    for (int group : {1, 2, 3}) sanitizer_.WaitForTail(group, 0);
    Read(1 + i % 3, "y", at, kBytes / 2);
    sanitizer_.WaitForTail(0, 1 + i % 3);
  }
  ExpectNone();
  EXPECT_LT(sanitizer_.history_size(), 10'000);
}

TEST_F(SanitizerMemoryTest, HistoryOfFreedMemoryEndsWhenItIsHandedOutAgain) {
  for (uintptr_t i = 0; i < 100'000; ++i) {
    const uintptr_t at = 0x100000 + (i * 37 % 64) * 0x40;
    Allocate(1, at, 0x40 + i % 3 * 0x10);
    Write(1, "x", at, 0x40);
    Read(1, "y", at + 0x8, 0x8);
    Free(at);
  }
  ExpectNone();
  EXPECT_LT(sanitizer_.history_size(), 10'000);
}

// A sweep forgets no use that a later race may have to be compared with.
TEST_F(SanitizerMemoryTest, ASweepKeepsWhatAGroupHasNotWaitedFor) {
  Write(1, "x");
  for (uintptr_t i = 0; i < 10'000; ++i) Write(1, "z", 0x100000 + i * 0x200);
  sanitizer_.WaitForTail(0, 1);
  sanitizer_.WaitForTail(2, 1);
  for (uintptr_t i = 0; i < 10'000; ++i) Write(1, "z", 0x800000 + i * 0x200);
  Read(2, "y");
  ExpectNone();
  Read(3, "y");
  ExpectOne(ReportKind::kReadAfterWrite, "y", 3, "x", 1);
}

// A pool that hands out all of its memory before it reuses any.
TEST_F(SanitizerMemoryTest, HistoryOfFreedMemoryThatIsNotReusedIsBounded) {
  for (uintptr_t i = 0; i < 50'000; ++i) {
    const uintptr_t at = 0x100000 + i * 0x100;
    Allocate(1, at, 0x100);
    Write(1, "x", at, 0x100);
    Free(at);
    if (i % 100 == 0) sanitizer_.Completed(sanitizer_.Tail(1));
  }
  ExpectNone();
  EXPECT_LT(sanitizer_.history_size(), 10'000);
  Write(1, "y", 0x100000);
  ExpectOne(ReportKind::kUsedAfterFree, "y", 1, "x", 1);
}

//      1000   1100   1200   1300   1400
//     |live  |live  |freed |freed |
// 1:   =a     =b
// 3:                 =c of group 3's
TEST_F(SanitizerMemoryTest, ASweepMakesOneOnlyOfWhatIsAlike) {
  for (uintptr_t at : {0x1000, 0x1100, 0x1200}) Allocate(1, at);
  Allocate(3, 0x1300);
  Write(1, "a", 0x1000);
  Write(1, "b", 0x1100);
  Write(3, "c", 0x1300);
  Free(0x1200);
  Free(0x1300);
  for (uintptr_t i = 0; i < 10'000; ++i) Write(2, "z", 0x100000 + i * 0x200);
  ExpectNone();
  Write(2, "d", 0x1000);
  ExpectOne(ReportKind::kWriteAfterWrite, "d", 2, "a", 1);
  Write(2, "e", 0x1100);
  ExpectOne(ReportKind::kWriteAfterWrite, "e", 2, "b", 1);
  sanitizer_.WaitForTail(1, 2);
  Free(0x1000);
  Write(1, "f", 0x1100);
  ExpectNone();
  Free(0x1100);
  Write(1, "g", 0x1100);
  ExpectOne(ReportKind::kUsedAfterFree, "g", 1, "f", 1);
  Allocate(1, 0x1200);
  ExpectNone();
  Allocate(1, 0x1300);
  ExpectOne(ReportKind::kHandedOutInUse, "", 1, "c", 3);
}

//      1000      1100        1200      1300
//     |freed    |freed      |freed    |freed, x may still run
//               |group 3's
TEST_F(SanitizerMemoryTest, ASweepKeepsTheDifferencesOfFreedMemory) {
  for (uintptr_t at : {0x1000, 0x1200, 0x1300}) Allocate(1, at);
  Allocate(3, 0x1100);
  Write(1, "p", 0x1000);
  Write(3, "q", 0x1100);
  for (uintptr_t at : {0x1000, 0x1100, 0x1200}) Free(at);
  sanitizer_.Completed(sanitizer_.Tail(1));
  sanitizer_.Completed(sanitizer_.Tail(3));
  Write(1, "x", 0x1300);
  Free(0x1300);
  for (uintptr_t i = 0; i < 10'000; ++i) Write(2, "z", 0x100000 + i * 0x200);
  ExpectNone();
  Read(2, "y", 0x1100);
  ExpectOne(ReportKind::kUsedAfterFree, "y", 2, "q", 3);
  Allocate(3, 0x1300);
  ExpectOne(ReportKind::kHandedOutInUse, "", 3, "x", 1);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
