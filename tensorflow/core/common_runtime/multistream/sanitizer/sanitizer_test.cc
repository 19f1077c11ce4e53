// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which uses are reported as not ordered, how, and how often?

#include "tensorflow/core/common_runtime/multistream/sanitizer/sanitizer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/sanitizer/sanitizer_events.h"

namespace tensorflow {
namespace multistream {
namespace {

// 1: =x
// 2:     -y
TEST_F(SanitizerTest, AReadThatDoesNotWaitForTheWriteIsReported) {
  Write(1, "x");
  Read(2, "y");
  ExpectOne(ReportKind::kReadAfterWrite, "y", 2, "x", 1);
}

// 1: =x--r
// 2:      w--y
TEST_F(SanitizerTest, AReadThatWaitsForTheWriteIsNotReported) {
  Write(1, "x");
  sanitizer_.Record(kEvent, 1);
  sanitizer_.Wait(2, kEvent);
  Read(2, "y");
  ExpectNone();
}

// 1: -x
// 2:     =y
TEST_F(SanitizerTest, AWriteThatDoesNotWaitForTheReadIsReported) {
  Read(1, "x");
  Write(2, "y");
  ExpectOne(ReportKind::kWriteAfterRead, "y", 2, "x", 1);
}

// 1: -x--r
// 2:      w--=y
TEST_F(SanitizerTest, AWriteThatWaitsForTheReadIsNotReported) {
  Read(1, "x");
  sanitizer_.WaitForTail(2, 1);
  Write(2, "y");
  ExpectNone();
}

// 1: =x
// 2:     =y
TEST_F(SanitizerTest, AWriteThatDoesNotWaitForTheWriteIsReported) {
  Write(1, "x");
  Write(2, "y");
  ExpectOne(ReportKind::kWriteAfterWrite, "y", 2, "x", 1);
}

// 1: =x--r
// 2:      w--=y
TEST_F(SanitizerTest, AWriteThatWaitsForTheWriteIsNotReported) {
  Write(1, "x");
  sanitizer_.WaitForTail(2, 1);
  Write(2, "y");
  ExpectNone();
}

// 1: -x
// 2:     -y
TEST_F(SanitizerTest, ReadsNeedNoOrder) {
  Read(1, "x");
  Read(2, "y");
  ExpectNone();
}

// 1: =x -y =z
TEST_F(SanitizerTest, OneStreamIsInOrder) {
  Write(1, "x");
  Read(1, "y");
  Write(1, "z");
  ExpectNone();
}

// 1: =x -x    in place, then
// 2:       -y
TEST_F(SanitizerTest, AnOpThatReadsAndWritesTheSameMemoryIsOneUse) {
  sanitizer_.Launch(
      1, "x",
      {{Address(kM), kBytes, true, "m"}, {Address(kM), kBytes, false, "m"}});
  ExpectNone();
  Write(2, "y");
  ExpectOne(ReportKind::kWriteAfterWrite, "y", 2, "x", 1);
}

// 1: =x--r
// 2:      w------r
// 3:              w--y
TEST_F(SanitizerTest, WaitsAddUp) {
  Write(1, "x");
  sanitizer_.Record(1, 1);
  sanitizer_.Wait(2, 1);
  sanitizer_.Record(2, 2);
  sanitizer_.Wait(3, 2);
  Read(3, "y");
  ExpectNone();
}

// 1: =x------r
// 2:      r   w       group 3 waits for a point before group 2's wait
// 3:       w-----y
TEST_F(SanitizerTest, AWaitThatCameTooEarlyToLearnIsReported) {
  Write(1, "x");
  sanitizer_.Record(2, 2);
  sanitizer_.WaitForTail(2, 1);
  sanitizer_.Wait(3, 2);
  Read(3, "y");
  ExpectOne(ReportKind::kReadAfterWrite, "y", 3, "x", 1);
}

// 1: =x--r--=z--r'
// 2:      w--------y     waited for r, not for r'
TEST_F(SanitizerTest, AWaitForAnEventIsForTheRecordThatItFound) {
  Write(1, "x");
  sanitizer_.Record(kEvent, 1);
  sanitizer_.Wait(2, kEvent);
  Write(1, "z");
  sanitizer_.Record(kEvent, 1);
  Read(2, "y");
  ExpectOne(ReportKind::kReadAfterWrite, "y", 2, "z", 1);
  sanitizer_.Wait(2, kEvent);
  Read(2, "y2");
  ExpectNone();
}

// 1: =x--r
// 3:       r       the same event, recorded again elsewhere
// 2:         w--y
TEST_F(SanitizerTest, AnEventRecordedAgainNoLongerStandsForItsOldPoint) {
  Write(1, "x");
  sanitizer_.Record(kEvent, 1);
  sanitizer_.Record(kEvent, 3);
  sanitizer_.Wait(2, kEvent);
  Read(2, "y");
  ExpectOne(ReportKind::kReadAfterWrite, "y", 2, "x", 1);
}

// 1: =x
// 2:     w--y    nothing recorded
TEST_F(SanitizerTest, WaitingForAnEventThatHasNoRecordOrdersNothing) {
  Write(1, "x");
  sanitizer_.Wait(2, kEvent);
  Read(2, "y");
  ExpectOne(ReportKind::kReadAfterWrite, "y", 2, "x", 1);
  sanitizer_.Record(kEvent, 1);
  sanitizer_.ForgetEvent(kEvent);
  sanitizer_.Wait(3, kEvent);
  Read(3, "z");
  ExpectOne(ReportKind::kReadAfterWrite, "z", 3, "x", 1);
}

// 1: =x--r--=z
// 2:      w------y
TEST_F(SanitizerTest, WhatIsLaunchedAfterTheRecordIsNotWaitedFor) {
  Write(1, "x");
  sanitizer_.Record(kEvent, 1);
  Write(1, "z");
  sanitizer_.Wait(2, kEvent);
  Read(2, "y");
  ExpectOne(ReportKind::kReadAfterWrite, "y", 2, "z", 1);
}

//      1000  1080  1100  1180  1200
// 1: =x |-----------|
// 1: =z                    |-----|
// 2: -y       |-----------|
TEST_F(SanitizerTest, RangesThatOverlapInPartAreComparedWhereTheyDo) {
  Write(1, "x", 0x1000, 0x100);
  Write(1, "z", 0x1180, 0x80);
  Read(2, "y", 0x1080, 0x100);
  ASSERT_EQ(reports_.size(), 1) << AllText();
  EXPECT_EQ(reports_[0].previous.op, "x");
  EXPECT_EQ(reports_[0].address, Address(0x1080));
  EXPECT_EQ(reports_[0].bytes, 0x80);
}

//      1000  1080  1100  1180
// 1: =x |-----------------|
// 1: =z       |-----|             the last write of the middle
// 2: -y |-----------------|
TEST_F(SanitizerTest, EveryPartOfARangeRemembersItsOwnLastWrite) {
  Write(1, "x", 0x1000, 0x180);
  sanitizer_.WaitForTail(2, 1);
  Write(1, "z", 0x1080, 0x80);
  Read(2, "y0", 0x1000, 0x80);
  Read(2, "y2", 0x1100, 0x80);
  ExpectNone();
  Read(2, "y", 0x1000, 0x180);
  ASSERT_EQ(reports_.size(), 1) << AllText();
  EXPECT_EQ(reports_[0].previous.op, "z");
  EXPECT_EQ(reports_[0].address, Address(0x1080));
  EXPECT_EQ(reports_[0].bytes, 0x80);
}

TEST_F(SanitizerTest, NeighboursDoNotTouch) {
  Write(1, "x", 0x1000, 0x100);
  Write(2, "y", 0x1100, 0x100);
  Write(2, "y", 0xf00, 0x100);
  Write(2, "y", 0x1080, 0);
  ExpectNone();
}

// 1: -a--------
// 2:    -b--r
// 3:       -c--
// 0:         w-=x    has waited for group 2 alone
TEST_F(SanitizerTest, AWriteComesAfterTheReadsOfEveryGroup) {
  Read(1, "a");
  Read(2, "b");
  Read(3, "c");
  sanitizer_.WaitForTail(0, 2);
  Write(0, "x");
  ASSERT_EQ(reports_.size(), 2) << AllText();
  EXPECT_EQ(reports_[0].kind, ReportKind::kWriteAfterRead);
  EXPECT_EQ(reports_[0].previous.op, "a");
  EXPECT_EQ(reports_[1].kind, ReportKind::kWriteAfterRead);
  EXPECT_EQ(reports_[1].previous.op, "c");
}

// 0: =x--r--------w--=y--r--------w--=z
// 1:      w--a--r          w--a--r
// 2:      w--b--r          w--b--r
// 3:      w--c--r          w--c--r
TEST_F(SanitizerTest, ForksAndJoinsOfManyGroupsOrderThemAll) {
  for (const char* change : {"x", "y", "z"}) {
    Write(0, change);
    for (int group : {1, 2, 3}) sanitizer_.WaitForTail(group, 0);
    for (int group : {1, 2, 3}) Read(group, absl::StrCat("read", group));
    for (int group : {1, 2, 3}) sanitizer_.WaitForTail(0, group);
  }
  ExpectNone();
}

// 0: =x--r-----w--=y      joins group 1, not group 2
// 1:      w--a--r
// 2:      w--b
TEST_F(SanitizerTest, AJoinThatForgetsAGroupIsReported) {
  Write(0, "x");
  for (int group : {1, 2}) sanitizer_.WaitForTail(group, 0);
  Read(1, "a");
  Read(2, "b");
  sanitizer_.WaitForTail(0, 1);
  Write(0, "y");
  ExpectOne(ReportKind::kWriteAfterRead, "y", 0, "b", 2);
}

// 1: =x
// host: blocks until 1 is done
// 2:                        -y
TEST_F(SanitizerTest, WhatTheHostWaitedForComesBeforeAllThatItLaunchesLater) {
  Write(1, "x");
  sanitizer_.HostSynchronized(1);
  Read(2, "y");
  Write(3, "z", kM + kBytes);
  ExpectNone();
}

// 1: =x--(position)--=z
// host: blocks until the position is completed
// 2:                                        -y
TEST_F(SanitizerTest, TheHostWaitedForNoMoreThanThePosition) {
  Write(1, "x", 0x1000);
  const Position position = sanitizer_.Tail(1);
  Write(1, "z", 0x2000);
  sanitizer_.HostSynchronized(position);
  Read(2, "y", 0x1000);
  ExpectNone();
  Read(2, "y", 0x2000);
  ExpectOne(ReportKind::kReadAfterWrite, "y", 2, "z", 1);
}

// 1: =x--r
// 2:      w     host: blocks until 2 is done
// 3:                                         -y
TEST_F(SanitizerTest, TheHostWaitedForWhatTheStreamHadWaitedFor) {
  Write(1, "x");
  sanitizer_.WaitForTail(2, 1);
  sanitizer_.HostSynchronized(2);
  Read(3, "y");
  ExpectNone();
}

// 1: =x      completed, by luck, before y was launched
// 2:     -y
TEST_F(SanitizerTest, PassingIsNoWait) {
  Write(1, "x");
  sanitizer_.Completed(sanitizer_.Tail(1));
  Read(2, "y");
  ExpectOne(ReportKind::kReadAfterWrite, "y", 2, "x", 1);
}

TEST_F(SanitizerTest, APairOfOpsIsReportedOnce) {
  for (int step = 0; step < 10; ++step) {
    Write(1, "x");
    Read(2, "y");
    sanitizer_.WaitForTail(1, 2);
  }
  EXPECT_EQ(sanitizer_.report_count(), 1);
  ExpectOne(ReportKind::kReadAfterWrite, "y", 2, "x", 1);
  Write(1, "x");
  Read(2, "other");
  EXPECT_EQ(sanitizer_.report_count(), 2);
  ExpectOne(ReportKind::kReadAfterWrite, "other", 2, "x", 1);
}

TEST_F(SanitizerTest, ReportsEndBeforeTheyAreAFlood) {
  for (size_t i = 0; i < Sanitizer::kMostReports + 100; ++i) {
    Write(1, "x");
    Read(2, absl::StrCat("y", i));
    sanitizer_.WaitForTail(1, 2);
  }
  EXPECT_EQ(reports_.size(), Sanitizer::kMostReports);
}

TEST_F(SanitizerTest, AReportNamesBothOpsTheTensorAndTheMissingWait) {
  sanitizer_.Launch(1, "dense/MatMul", {{Address(kM), 64, true, "product"}});
  sanitizer_.Launch(2, "dense/Relu", {{Address(kM), 256, false, "input"}});
  ASSERT_EQ(reports_.size(), 1);
  EXPECT_EQ(ReportAsText(reports_[0]),
            "Stream sanitizer: read after write that nothing orders\n"
            "  now:     group 2, op 'dense/Relu' reads tensor 'input'\n"
            "  before:  group 1, op 'dense/MatMul' writes tensor 'product'\n"
            "  memory:  64 bytes at 0x1000\n"
            "  missing: group 2 must wait for group 1 after op 'dense/MatMul' "
            "before op 'dense/Relu'");
}

TEST(SanitizerThreadsTest, ThreadsMayCallAtTheSameTime) {
  std::atomic<int> reports{0};
  Sanitizer* current = nullptr;
  Sanitizer sanitizer(4, [&](const Report&) {
    ++reports;
    current->report_count();  // the lock is free
  });
  current = &sanitizer;
  std::vector<std::thread> threads;
  for (int group = 0; group < 4; ++group) {
    threads.emplace_back([&sanitizer, group] {
      const uintptr_t own = 0x100000 * (group + 1);
      for (uintptr_t i = 0; i < 2'000; ++i) {
        const uintptr_t at = own + i % 16 * 0x100;
        sanitizer.Allocate(group, Address(at), 0x100);
        sanitizer.Launch(group, absl::StrCat("op", group),
                         {{Address(at), 0x100, true, "m"}});
        sanitizer.Record(group, group);
        sanitizer.Wait((group + 1) % 4, group);
        sanitizer.Completed(sanitizer.Tail(group));
        if (i % 100 == 0) sanitizer.HostSynchronized(group);
        sanitizer.Free(Address(at));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reports, 0);
  // Memory that every thread uses without a wait is reported.
  threads.clear();
  for (int group = 0; group < 4; ++group) {
    threads.emplace_back([&sanitizer, group] {
      sanitizer.Launch(group, absl::StrCat("shared", group),
                       {{Address(kM), kBytes, true, "m"}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reports, 3);
}

// Like a variable that one step of the leader changes in place while another
// step, launched by another thread on the same stream, reads it.
TEST(SanitizerThreadsTest, ARenewalIsNoMomentWithoutTheMemory) {
  std::atomic<int> reports{0};
  Sanitizer sanitizer(4, [&](const Report&) { ++reports; });
  sanitizer.Allocate(0, Address(kM), kBytes);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) sanitizer.Renew(0, Address(kM), kBytes);
  });
  for (int i = 0; i < 100'000; ++i) {
    sanitizer.Launch(0, "read", {{Address(kM), kBytes, false, "m"}});
  }
  stop = true;
  writer.join();
  EXPECT_EQ(reports, 0);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
