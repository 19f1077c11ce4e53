// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// A trace has the events between Start and Stop, up to the limit.

#include "tensorflow/core/common_runtime/multistream/trace/trace.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

namespace tensorflow::multistream {
namespace {

using Names = std::vector<std::string>;

void Record(int group, const std::string& name) {
  ScopedTrace trace(TraceKind::kKernel, /*gpu=*/0, group);
  if (trace.is_on()) trace.Set(0, name);
}

Names NamesOf(const Trace::Recorded& recorded) {
  Names names;
  for (const TraceEvent& event : recorded.events) names.push_back(event.name);
  return names;
}

TEST(TraceTest, HasWhatBeganAndEndedWhileItWasOn) {
  Record(0, "before");
  EXPECT_EQ(Trace::Begin(), 0);
  ASSERT_TRUE(Trace::Get()->Start(10));
  {
    ScopedTrace open(TraceKind::kStep, 0, 0);
    EXPECT_TRUE(Trace::Get()->Stop().events.empty());
    ASSERT_TRUE(Trace::Get()->Start(10));
  }
  Record(0, "during");
  EXPECT_FALSE(Trace::Get()->Start(10)) << "there is one at a time";
  const Trace::Recorded recorded = Trace::Get()->Stop();
  Record(0, "after");
  EXPECT_EQ(NamesOf(recorded), Names{"during"});
  EXPECT_TRUE(Trace::Get()->Stop().events.empty());
}

TEST(TraceTest, ItsMemoryIsBoundedAndWhatIsDroppedCounts) {
  ASSERT_TRUE(Trace::Get()->Start(3));
  for (int i = 0; i < 10; ++i) Record(0, std::to_string(i));
  const Trace::Recorded recorded = Trace::Get()->Stop();
  EXPECT_EQ(NamesOf(recorded), (Names{"0", "1", "2"}));
  EXPECT_EQ(recorded.dropped, 7);
}

// Also while threads record side by side.
TEST(TraceTest, AStreamRunsOneKernelAfterTheOther) {
  constexpr int kEach = 1000;
  ASSERT_TRUE(Trace::Get()->Start(4 * kEach + 3));
  {
    ScopedTrace outer(TraceKind::kKernel, 0, 1);
    Record(1, "inner");
    Record(2, "of another group");
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < kEach; ++i) Record(t / 2, "op");
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Trace::Recorded recorded = Trace::Get()->Stop();
  EXPECT_EQ(recorded.events.size(), 4 * kEach + 3);
  std::map<int, int64_t> busy_until;
  for (const TraceEvent& event : recorded.events) {
    EXPECT_LE(event.begin, event.end);
    EXPECT_GE(event.begin, busy_until[event.group]);
    busy_until[event.group] = event.end;
  }
}

TEST(TraceTest, LinesHaveAllOfAnEventWhateverItsName) {
  Trace::Recorded recorded;
  recorded.dropped = 2;
  recorded.events.push_back(
      {TraceKind::kCopy, 1, 3, 5, 8, 4096, "", "a\tb\nc"});
  recorded.events.push_back(
      {TraceKind::kKernel, 0, 0, 1, 2, 0, "MatMul", "dense/MatMul"});
  EXPECT_EQ(Trace::Lines(recorded),
            "2\n"
            "copy\t1\t3\t5\t8\t4096\t\ta b c\n"
            "kernel\t0\t0\t1\t2\t0\tMatMul\tdense/MatMul\n");
}

}  // namespace
}  // namespace tensorflow::multistream
