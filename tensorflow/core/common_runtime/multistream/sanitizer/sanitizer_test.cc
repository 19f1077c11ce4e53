// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which uses, frees and allocations are reported, how, and how long is a
// history kept?

#include "tensorflow/core/common_runtime/multistream/sanitizer/sanitizer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace tensorflow::multistream {
namespace {

constexpr uintptr_t kM = 0x1000;
constexpr size_t kBytes = 0x100;
constexpr size_t kSmallHistory = 10'000;

const void* Address(uintptr_t a) { return reinterpret_cast<const void*>(a); }

// A sanitizer of four groups, told of the steps of a program:
//
//   1=x   1-x   1~x   group 1 launches op x, which writes, reads or does both
//   1*x               group 1 launches op x, which uses no tensor
//   1r    2w          group 1 records the event, group 2 waits for it
//   1r7   2w7         the same with event 7
//   2<1               group 2 waits for the end of group 1's stream
//   1new  1copy       group 1's allocator hands out memory; for a copy
//   free              the allocator takes it back
//   1mark             notes group 1's position
//   done  1done       the host has learned that the position noted, or the end
//                     of group 1's stream, is completed
//   host  1host       the host has waited for the position, or for the end
//   1many             group 1 writes 10,000 other ranges
//
// Memory is kBytes at kM unless @BEGIN or @BEGIN+BYTES, in hexadecimal, follow.
class SanitizerTest : public ::testing::Test {
 protected:
  void Use(int group, const std::string& op, bool is_write, uintptr_t begin,
           size_t bytes = kBytes) {
    sanitizer_.Launch(group, op, {{Address(begin), bytes, is_write, "m"}});
  }

  void Do(const std::string& step) {
    static const auto* const kStep = new std::regex(
        "([0-3]?)([a-z]+|[=*~<-])(\\w*)"
        "(?:@([0-9a-f]+))?(?:\\+([0-9a-f]+))?");
    std::smatch part;
    ASSERT_TRUE(std::regex_match(step, part, *kStep)) << step;
    const auto number = [](const std::string& text, int64_t otherwise,
                           int base) {
      return text.empty() ? otherwise : std::stoll(text, nullptr, base);
    };
    const bool has_group = part[1].length() > 0;
    const int group = number(part[1], 0, 10);
    const std::string verb = part[2], name = part[3];
    const uintptr_t begin = number(part[4], kM, 16);
    const size_t bytes = number(part[5], kBytes, 16);
    if (verb == "=" || verb == "-") {
      Use(group, name, verb == "=", begin, bytes);
    } else if (verb == "~") {
      sanitizer_.Launch(group, name,
                        {{Address(begin), bytes, true, "m"},
                         {Address(begin), bytes, false, "m"}});
    } else if (verb == "*") {
      sanitizer_.Launch(group, name, {});
    } else if (verb == "r") {
      sanitizer_.Record(number(name, 0, 10), group);
    } else if (verb == "w") {
      sanitizer_.Wait(group, number(name, 0, 10));
    } else if (verb == "<") {
      sanitizer_.WaitForTail(group, number(name, 0, 10));
    } else if (verb == "new" || verb == "copy") {
      sanitizer_.Allocate(group, Address(begin), bytes, verb == "copy");
    } else if (verb == "free") {
      sanitizer_.Free(Address(begin));
    } else if (verb == "forget") {
      sanitizer_.Forget(Address(begin), bytes);
    } else if (verb == "mark") {
      position_ = sanitizer_.Tail(group);
    } else if (verb == "done") {
      sanitizer_.Completed(has_group ? sanitizer_.Tail(group) : position_);
    } else if (verb == "host") {
      sanitizer_.HostSynchronized(has_group ? sanitizer_.Tail(group)
                                            : position_);
    } else if (verb == "many") {
      for (int i = 0; i < 10'000; ++i) {
        Use(group, "z", /*is_write=*/true, begin + i * 0x200);
      }
    } else {
      FAIL() << step;
    }
  }

  // Kind, group and op of both sides, and the memory unless it is the default.
  std::string Reports() const {
    static constexpr const char* kKinds[] = {
        "read after write", "write after read",  "write after write",
        "freed in use",     "handed out in use", "handed out twice",
        "used after free"};
    std::string text;
    for (const Report& it : reports_) {
      absl::StrAppend(&text, text.empty() ? "" : "; ",
                      kKinds[static_cast<int>(it.kind)], ": ");
      absl::StrAppend(&text, it.current.group, it.current.op, ", ",
                      it.previous.group, it.previous.op);
      const auto begin = reinterpret_cast<uintptr_t>(it.address);
      if (begin != kM || it.bytes != kBytes) {
        absl::StrAppend(&text, " @", absl::Hex(begin), "+",
                        absl::Hex(it.bytes));
      }
    }
    return text;
  }

  std::vector<Report> reports_;
  Sanitizer sanitizer_{4, [this](const Report& r) { reports_.push_back(r); }};
  Position position_;
};

struct Case {
  const char* what;
  const char* program;
  const char* reports;
};

class SanitizerCasesTest : public SanitizerTest,
                           public ::testing::WithParamInterface<Case> {};

TEST_P(SanitizerCasesTest, Reports) {
  SCOPED_TRACE(GetParam().what);
  for (absl::string_view step :
       absl::StrSplit(GetParam().program, ' ', absl::SkipEmpty())) {
    Do(std::string(step));
  }
  EXPECT_EQ(Reports(), GetParam().reports) << GetParam().program;
}

constexpr Case kOrder[] = {
    {"a read that does not wait for the write", "1=x 2-y",
     "read after write: 2y, 1x"},
    {"a read that waits for the write", "1=x 1r 2w 2-y", ""},
    {"a write that does not wait for the read", "1-x 2=y",
     "write after read: 2y, 1x"},
    {"a write that waits for the read", "1-x 2<1 2=y", ""},
    {"a write that does not wait for the write", "1=x 2=y",
     "write after write: 2y, 1x"},
    {"a write that waits for the write", "1=x 2<1 2=y", ""},
    {"reads need no order", "1-x 2-y", ""},
    {"one stream is in order", "1=x 1-y 1=z", ""},
    {"an op that reads and writes the same memory is one use", "1~x 2=y",
     "write after write: 2y, 1x"},
    {"waits add up", "1=x 1r1 2w1 2r2 3w2 3-y", ""},
    {"a wait for a point before the other group's wait", "1=x 2r 2<1 3w 3-y",
     "read after write: 3y, 1x"},
    {"a wait for an event is for the record that it found",
     "1=x 1r 2w 1=z 1r 2-y 2w 2-y2", "read after write: 2y, 1z"},
    {"an event recorded again does not stand for its old point",
     "1=x 1r 3r 2w 2-y", "read after write: 2y, 1x"},
    {"an event without a record orders nothing", "1=x 2w 2-y",
     "read after write: 2y, 1x"},
    {"what is launched after the record is not waited for", "1=x 1r 1=z 2w 2-y",
     "read after write: 2y, 1z"},
    {"ranges that overlap in part", "1=x@1000+100 1=z@1180+80 2-y@1080+100",
     "read after write: 2y, 1x @1080+80"},
    {"every part of a range remembers its own last write",
     "1=x@1000+180 2<1 1=z@1080+80 2-y0@1000+80 2-y2@1100+80 2-y@1000+180",
     "read after write: 2y, 1z @1080+80"},
    {"neighbours do not touch",
     "1=x@1000+100 2=y@1100+100 2=y@f00+100 2=y@1080+0", ""},
    {"a write comes after the reads of every group", "1-a 2-b 3-c 0<2 0=x",
     "write after read: 0x, 1a; write after read: 0x, 3c"},
    {"forks and joins of many groups",
     "0=x 1<0 2<0 3<0 1-a 2-b 3-c 0<1 0<2 0<3 "
     "0=y 1<0 2<0 3<0 1-a 2-b 3-c 0<1 0<2 0<3 0=z",
     ""},
    {"a join that forgets a group", "0=x 1<0 2<0 1-a 2-b 0<1 0=y",
     "write after read: 0y, 2b"},
    {"what the host waited for comes before all that it launches later",
     "1=x 1host 2-y", ""},
    {"the host waited for no more than the position",
     "1=x@1000 1mark 1=z@2000 host 2-y@1000 2-y@2000",
     "read after write: 2y, 1z @2000+100"},
    {"the host waited for what the stream had waited for", "1=x 2<1 2host 3-y",
     ""},
    {"completion is no wait", "1=x 1done 2-y", "read after write: 2y, 1x"},
    {"a pair of ops is reported once", "1=x 2-y 1<2 1=x 2-y 1<2 1=x 2-other",
     "read after write: 2y, 1x; read after write: 2other, 1x"},
};

constexpr Case kLifetimes[] = {
    {"freed while another group may use it, reported once",
     "1new 1=x 2<1 2-y free 1new 1=z", "freed in use: 1, 2y"},
    {"held until the other group has completed its use",
     "1new 1=x 2<1 2-y 2done free 1new 1=z", ""},
    {"freed once the host has waited", "1new 1=x 2<1 2-y 2host free 3new 3=z",
     ""},
    {"held until too early a point", "1new 1=x 2<1 2-y 2mark 2-z done free",
     "freed in use: 1, 2z"},
    {"a completed stream vouches for the streams that it waited for",
     "1new 1=x 2<1 2-y 3<2 3done free", ""},
    {"freed after the owner has waited", "1new 1=x 2<1 2-y 1<2 free 1new 1=z",
     ""},
    {"the owner reuses its memory at once",
     "1new 1=x 1-y free 1new 1=x 1-y free", ""},
    {"others use memory handed out again only after its owner",
     "1new 1=x free 1new 2=y 1<2 1=p 2<1 2=z", "handed out in use: 2y, 1x"},
    {"others use memory that the host copied to at once; the uses after the "
     "copy are checked",
     "1new 1=x free 1copy 2-y free 1new 2=z",
     "freed in use: 1, 2y; handed out in use: 2z, 1x"},
    {"uses that others put in order are forgotten, later ones are checked",
     "1new 1=x free forget 2new 2=y 1-z", "read after write: 1z, 2y"},
    {"memory in use elsewhere is not for a copy either", "2new 2-y free 1copy",
     "handed out in use: 1, 2y"},
    {"handed to another group before its owner is done", "1new 1*s free 2new",
     "handed out in use: 2, 1s"},
    {"handed to another group that has waited", "1new 1*s free 2<1 2new 2=y",
     ""},
    {"handed to another group once its owner has completed",
     "1new 1*s free 1done 2new 2=y", ""},
    {"an earlier use of any part of a block",
     "1new@1000+200 2-b@1000+80 1<2 free 1new@1000+200 3=y@1100+80",
     "handed out in use: 3y, 2b @1100+80"},
    {"a part of freed memory handed to another group",
     "1new@1000+200 1=x@1000+200 free 2new@1100+80",
     "handed out in use: 2, 1x @1100+80"},
    {"an allocation ends the history of its range and of no more",
     "1=x@1000+180 1done 2new@1080+80 2=y@1080+80 2=l@1000+80 2=r@1100+80",
     "write after write: 2l, 1x @1000+80; write after write: 2r, 1x @1100+80"},
    {"handed out twice", "1new 1=x 3<1 3-y 2new@1080+100",
     "handed out twice: 2, 1x @1080+80"},
    {"neighbours may both be handed out",
     "1new@1000+100 2new@1100+100 2new@f00+100 3new@1080+0", ""},
    {"used after the free", "1new 1=x free 1-y", "used after free: 1y, 1x"},
    {"a second free is ignored", "1new 1=x free 1*later free 1-y",
     "used after free: 1y, 1x"},
    {"use of a freed block's remainder",
     "1new@1000+300 1=x@1000+300 free 1new@1100+100 1=y@1100+100 "
     "1=l@1000+100 1=r@1200+100",
     "used after free: 1l, 1x; used after free: 1r, 1x @1200+100"},
    {"memory of no allocator is tracked for order only",
     "free 1=x free 1=y 2-z", "read after write: 2z, 1y"},
    {"a sweep keeps what a group has not waited for",
     "1=x 1many@100000 0<1 2<1 1many@800000 2-y 3-y",
     "read after write: 3y, 1x"},
    {"a sweep merges only what is alike",
     "1new@1000 1new@1100 1new@1200 3new@1300 1=a@1000 1=b@1100 3=c@1300 "
     "free@1200 free@1300 2many@100000 2=d@1000 2=e@1100 1<2 free@1000 "
     "1=f@1100 free@1100 1=g@1100 1new@1200 1new@1300",
     "write after write: 2d, 1a; write after write: 2e, 1b @1100+100; "
     "used after free: 1g, 1f @1100+100; handed out in use: 1, 3c @1300+100"},
    {"a sweep keeps the differences of freed memory",
     "1new@1000 1new@1200 1new@1300 3new@1100 1=p@1000 3=q@1100 free@1000 "
     "free@1100 free@1200 1done 3done 1=x@1300 free@1300 2many@100000 "
     "2-y@1100 3new@1300",
     "used after free: 2y, 3q @1100+100; handed out in use: 3, 1x @1300+100"},
};

INSTANTIATE_TEST_SUITE_P(Order, SanitizerCasesTest,
                         ::testing::ValuesIn(kOrder));
INSTANTIATE_TEST_SUITE_P(Lifetimes, SanitizerCasesTest,
                         ::testing::ValuesIn(kLifetimes));

TEST_F(SanitizerTest, ReportsEndBeforeTheyAreAFlood) {
  for (size_t i = 0; i < Sanitizer::kMostReports + 100; ++i) {
    Use(1, "x", true, kM);
    Use(2, absl::StrCat("y", i), false, kM);
    sanitizer_.WaitForTail(1, 2);
  }
  EXPECT_EQ(reports_.size(), Sanitizer::kMostReports);
  EXPECT_EQ(sanitizer_.report_count(), Sanitizer::kMostReports);
}

TEST_F(SanitizerTest, AReportNamesBothSidesTheMemoryAndWhatIsMissing) {
  sanitizer_.Launch(1, "MatMul", {{Address(kM), 64, true, "product"}});
  sanitizer_.Launch(2, "Relu", {{Address(kM), 256, false, "input"}});
  for (const char* step : {"1new@2000", "2-y@2000", "free@2000"}) Do(step);
  ASSERT_EQ(reports_.size(), 2);
  const std::string text =
      absl::StrCat(ReportAsText(reports_[0]), ReportAsText(reports_[1]));
  for (const char* part :
       {"group 2, op 'Relu' reads tensor 'input'",
        "group 1, op 'MatMul' writes tensor 'product'", "64 bytes at 0x1000",
        "group 2 must wait for group 1 after op 'MatMul' before op 'Relu'",
        "memory of group 1 freed while group 2 may still use it",
        "group 1 frees it", "group 2, op 'y' reads tensor 'm'",
        "256 bytes at 0x2000", "must be held until group 2 has completed"}) {
    EXPECT_TRUE(absl::StrContains(text, part)) << part << "\n" << text;
  }
}

// The addresses keep moving: if the history were never forgotten, these would
// be 200,000 parts.
TEST_F(SanitizerTest, HistoryThatEveryStreamComesAfterIsForgotten) {
  for (uintptr_t i = 0; i < 100'000; ++i) {
    const uintptr_t at = 0x100000 + i * 0x100;
    const int reader = 1 + i % 3;
    Use(0, "x", true, at);
    for (int group : {1, 2, 3}) sanitizer_.WaitForTail(group, 0);
    Use(reader, "y", false, at, kBytes / 2);
    sanitizer_.WaitForTail(0, reader);
  }
  EXPECT_EQ(Reports(), "");
  EXPECT_LT(sanitizer_.history_size(), kSmallHistory);
}

TEST_F(SanitizerTest, HistoryOfFreedMemoryEndsWhenItIsHandedOutAgain) {
  for (uintptr_t i = 0; i < 100'000; ++i) {
    const uintptr_t at = 0x100000 + (i * 37 % 64) * 0x40;
    sanitizer_.Allocate(1, Address(at), 0x40 + i % 3 * 0x10);
    Use(1, "x", true, at, 0x40);
    Use(1, "y", false, at + 0x8, 0x8);
    sanitizer_.Free(Address(at));
  }
  EXPECT_EQ(Reports(), "");
  EXPECT_LT(sanitizer_.history_size(), kSmallHistory);
}

// A pool that hands out all of its memory before it reuses any.
TEST_F(SanitizerTest, HistoryOfFreedMemoryThatIsNotReusedIsBounded) {
  for (uintptr_t i = 0; i < 50'000; ++i) {
    const uintptr_t at = 0x100000 + i * 0x100;
    sanitizer_.Allocate(1, Address(at), 0x100);
    Use(1, "x", true, at);
    sanitizer_.Free(Address(at));
    if (i % 100 == 0) sanitizer_.Completed(sanitizer_.Tail(1));
  }
  EXPECT_LT(sanitizer_.history_size(), kSmallHistory);
  Use(1, "y", true, 0x100000);
  EXPECT_EQ(Reports(), "used after free: 1y, 1x @100000+100");
}

// As the value of a variable that is a slice of another tensor.
TEST_F(SanitizerTest, APartOfWhatWasAllocatedIsNotRenewed) {
  sanitizer_.Allocate(1, Address(kM), kBytes);
  Use(1, "x", true, kM);
  sanitizer_.WaitForTail(2, 1);
  Use(2, "y", false, kM + 0x80, 0x80);
  for (const uintptr_t part : {kM, kM + 0x40}) {
    sanitizer_.Renew(1, Address(part), 0x20);
  }
  EXPECT_EQ(Reports(), "");
  // The whole is still known, and who uses the rest.
  sanitizer_.Free(Address(kM));
  EXPECT_TRUE(absl::StrContains(Reports(), "2y"));
}

TEST(SanitizerThreadsTest, ThreadsMayCallAtTheSameTime) {
  std::atomic<int> reports{0};
  Sanitizer* current = nullptr;
  Sanitizer sanitizer(4, [&](const Report&) {
    ++reports;
    current->report_count();  // the lock is free
  });
  current = &sanitizer;
  const auto on_all_groups = [](auto run) {
    std::vector<std::thread> threads;
    for (int group = 0; group < 4; ++group) threads.emplace_back(run, group);
    for (std::thread& thread : threads) thread.join();
  };
  on_all_groups([&sanitizer](int group) {
    for (uintptr_t i = 0; i < 2'000; ++i) {
      const void* at = Address(0x100000 * (group + 1) + i % 16 * 0x100);
      sanitizer.Allocate(group, at, 0x100);
      sanitizer.Launch(group, absl::StrCat("op", group),
                       {{at, 0x100, true, "m"}});
      sanitizer.Record(group, group);
      sanitizer.Wait((group + 1) % 4, group);
      sanitizer.Completed(sanitizer.Tail(group));
      if (i % 100 == 0) sanitizer.HostSynchronized(group);
      sanitizer.Free(at);
    }
  });
  EXPECT_EQ(reports, 0);
  // Memory that every thread uses without a wait is reported.
  on_all_groups([&sanitizer](int group) {
    sanitizer.Launch(group, absl::StrCat("shared", group),
                     {{Address(kM), kBytes, true, "m"}});
  });
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
}  // namespace tensorflow::multistream
