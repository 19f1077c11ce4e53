// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which calls does the queue send together, and in which order?

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "examples/serving/front/call_queue_fixture.h"

namespace front {
namespace {

std::string Field(int number, const std::string& bytes) {
  return std::string() + char(number << 3 | 2) + char(bytes.size()) + bytes;
}

// Calls of 4 rows share a batch; 2 batches at once.
class BatchesTest : public testing::Test {
 protected:
  explicit BatchesTest(std::chrono::microseconds wait = std::chrono::hours(1)) {
    lanes.queue.SetBatching("m", "serving_default", {4, wait, 2});
  }
  FakeCall* Add(int rows, const std::string& spec = "\x0a\x01m") {
    calls_.push_back(std::make_unique<FakeCall>());
    const std::string shape = Field(2, std::string("\x08") + char(rows));
    const std::string tensor = "\x08\x01" + Field(2, shape);  // float
    const std::string input = Field(1, "x") + Field(2, tensor);
    const grpc::ByteBuffer request = Bytes(Field(1, spec) + Field(2, input));
    lanes.queue.Add(lanes.queue.NextNumber(), calls_.back().get(),
                    SpecOf(request), request);
    return calls_.back().get();
  }

  // The thread of RunWaiting uses it as long as the process lives.
  Lanes& lanes = *new Lanes({4, 100, 60});

 private:
  std::vector<std::unique_ptr<FakeCall>> calls_;
};

TEST_F(BatchesTest, ALoneCallDoesNotWaitAndOthersShareAFullBatch) {
  for (int i = 0; i < 4; ++i) Add(1);
  EXPECT_EQ(lanes.Sent(), "{1}");
  Add(1);
  EXPECT_EQ(lanes.Sent(), "{1}{2 3 4 5}");
  // Two batches run: no more, although two lanes are idle.
  for (int i = 0; i < 8; ++i) Add(1);
  EXPECT_EQ(lanes.Sent(), "{1}{2 3 4 5}");
  lanes.Answer();
  EXPECT_EQ(lanes.Sent(), "{2 3 4 5}{6 7 8 9}");
}

TEST_F(BatchesTest, ABatchHasNoMoreRowsThanItMayAndALargeCallIsAlone) {
  Add(1);
  Add(3);
  Add(2);
  EXPECT_EQ(lanes.Sent(), "{1}{2}");
  lanes.Answer();
  lanes.Answer();
  EXPECT_EQ(lanes.Sent(), "{3}");
  Add(9);
  EXPECT_EQ(lanes.Sent(), "{3}{4}");
}

TEST_F(BatchesTest, WhenTheOnlyBatchEndsTheNextOneDoesNotWait) {
  Add(1);
  Add(1);
  Add(1);
  EXPECT_EQ(lanes.Sent(), "{1}");
  lanes.Answer();
  EXPECT_EQ(lanes.Sent(), "{2 3}");
}

TEST_F(BatchesTest, OtherFunctionsAndVersionsHaveOtherBatches) {
  Add(1);
  Add(1);
  Add(1, "\x0a\x01m\x1a\x01s");         // another signature, without batches
  Add(1, "\x0a\x01m\x12\x02\x08\x05");  // version 5
  EXPECT_EQ(lanes.Sent(), "{1}{3}{4}");
  EXPECT_EQ(Add(1, "\x0a\x01n")->ends, 0);
  EXPECT_EQ(lanes.Sent(), "{1}{3}{4}{5}");
}

TEST_F(BatchesTest, CallsThatEndLeaveTheirBatch) {
  Add(1);
  FakeCall* gone = Add(1);
  Add(1);
  lanes.queue.Cancelled(2);
  EXPECT_EQ(gone->code, StatusCode::CANCELLED);
  Add(1);
  Add(1);
  EXPECT_EQ(lanes.Sent(), "{1}") << "the rows of the call that is gone count";
  Add(1);
  EXPECT_EQ(lanes.Sent(), "{1}{3 4 5 6}");
}

TEST_F(BatchesTest, CallsThatTheEngineCannotJoinAreBatchesOfTheirOwn) {
  for (int i = 0; i < 3; ++i) Add(1);
  EXPECT_EQ(lanes.Sent(), "{1}");
  lanes.Answer();
  EXPECT_EQ(lanes.Sent(), "{2 3}");
  for (int i = 0; i < 4; ++i) Add(1);
  EXPECT_EQ(lanes.Sent(), "{2 3}{4 5 6 7}");
  lanes.Answer("", /*steps=*/3);  // it has failed, and was made again
  lanes.Answer("", /*steps=*/4);
  for (int i = 0; i < 6; ++i) Add(1);
  EXPECT_EQ(lanes.Sent(), "{8}{9}{10}{11}") << "on all lanes";
  for (int i = 0; i < 98; ++i) {
    Add(1);
    lanes.Answer();
  }
  while (!lanes.IsIdle()) lanes.Answer();
  for (int i = 0; i < 3; ++i) Add(1);
  lanes.Answer();
  EXPECT_EQ(lanes.Sent(), "{113 114}") << "after 100 batches again";
}

TEST_F(BatchesTest, AFunctionAtItsLimitLeavesIdleLanesToOthers) {
  Lanes few({4, 3, 60});
  few.queue.SetBatching("m", "serving_default", {4, std::chrono::hours(1), 1});
  std::vector<std::unique_ptr<FakeCall>> calls;
  const auto add = [&](const char* spec) {
    calls.push_back(std::make_unique<FakeCall>());
    const grpc::ByteBuffer request = Bytes(Field(1, spec));
    few.queue.Add(few.queue.NextNumber(), calls.back().get(), SpecOf(request),
                  request);
    return calls.back().get();
  };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(add("\x0a\x01m")->ends, 0);
  EXPECT_EQ(
      add("\x0a\x01m")->text,
      "the server is full: as many steps of the signature or the model "
      "run as may (--batch-steps, --share), and 3 may wait (--queue). Try "
      "again later.");
  EXPECT_EQ(add("\x0a\x01o")->ends, 0);
  EXPECT_EQ(few.Sent(), "{1}{6}");
  // Also of other versions: the limit is the signature's.
  EXPECT_EQ(add("\x0a\x01m\x12\x02\x08\x05")->ends, 1);
}

constexpr char kOther[] = "\x0a\x01n";

TEST_F(BatchesTest, AModelHasNoMoreThanItsShareAndItsCallsWaitForItselfAlone) {
  lanes.queue.SetShare("n", {1, 2, 0});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Add(1, kOther)->ends, 0);
  EXPECT_EQ(lanes.Sent(), "{1}");
  const FakeCall* refused = Add(1, kOther);
  EXPECT_EQ(refused->code, StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused->text,
            "as many calls of model n wait as may, 2 (--share). Try again "
            "later.");
  Add(1, "\x0a\x01o");
  EXPECT_EQ(lanes.Sent(), "{1}{5}");
  lanes.Answer();
  EXPECT_EQ(lanes.Sent(), "{5}{2}");
  EXPECT_EQ(Add(1, kOther)->ends, 0);
}

TEST_F(BatchesTest, AShareHoldsForCallsThatWaitAlready) {
  for (int i = 0; i < 9; ++i) Add(1);
  EXPECT_EQ(lanes.Sent(), "{1}{2 3 4 5}");
  lanes.queue.SetShare("m", {1, 100, 0});
  lanes.Answer();
  EXPECT_EQ(lanes.Sent(), "{2 3 4 5}") << "one of the two that may run";
  lanes.Answer();
  EXPECT_EQ(lanes.Sent(), "{6 7 8 9}");
}

TEST_F(BatchesTest, AModelWhoseCallsMayNotWaitRunsThem) {
  lanes.queue.SetShare("n", {2, 0, 0});
  EXPECT_EQ(Add(1, kOther)->ends, 0);
  EXPECT_EQ(Add(1, kOther)->ends, 0);
  EXPECT_EQ(Add(1, kOther)->ends, 1);
  EXPECT_EQ(lanes.Sent(), "{1}{2}");
}

TEST_F(BatchesTest, TheHighestPriorityGoesFirst) {
  lanes.queue.SetShare("n", {100, 100, 1});
  for (int i = 0; i < 5; ++i) Add(1, "\x0a\x01o");  // of four lanes
  Add(1, kOther);
  EXPECT_EQ(lanes.Sent(), "{1}{2}{3}{4}");
  lanes.Answer();
  EXPECT_EQ(lanes.Sent(), "{2}{3}{4}{6}");
  lanes.Answer();
  EXPECT_EQ(lanes.Sent(), "{3}{4}{6}{5}");
}

class ShortWaitTest : public BatchesTest {
 protected:
  ShortWaitTest() : BatchesTest(std::chrono::milliseconds(20)) {
    std::thread([queue = &lanes.queue] { queue->RunWaiting(); }).detach();
  }
};

TEST_F(ShortWaitTest, ACallWaitsForOthersOnlySoLong) {
  Add(1);
  const Clock::time_point began = Clock::now();
  Add(1);
  Add(1);
  while (lanes.Sent() == "{1}") std::this_thread::yield();
  EXPECT_EQ(lanes.Sent(), "{1}{2 3}");
  EXPECT_GE(Clock::now() - began, std::chrono::milliseconds(20));
}

// A timer that is not told of a time would leave the call waiting beside an
// idle lane.
TEST_F(ShortWaitTest, ATimeThatIsSetWhileAnotherBatchBeginsIsKept) {
  lanes.queue.SetBatching("o", "serving_default",
                          {4, std::chrono::milliseconds(100), 2});
  lanes.queue.SetBatching("p", "serving_default",
                          {4, std::chrono::hours(1), 2});
  // The thread of RunWaiting sleeps by now.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  // Of four lanes.
  for (const char* spec :
       {"\x0a\x01o", "\x0a\x01p", "\x0a\x01q", "\x0a\x01q"}) {
    Add(1, spec);
  }
  Add(1, "\x0a\x01o");
  Add(1, "\x0a\x01q");
  EXPECT_EQ(lanes.Sent(), "{1}{2}{3}{4}");
  lanes.End(1, /*newest=*/true);
  EXPECT_EQ(lanes.Sent(), "{1}{2}{3}{6}");
  lanes.End(1, /*newest=*/true);
  EXPECT_EQ(lanes.Sent(), "{1}{2}{3}");
  const Clock::time_point began = Clock::now();
  while (lanes.Sent() == "{1}{2}{3}" &&
         Clock::now() < began + std::chrono::seconds(10)) {
    std::this_thread::yield();
  }
  EXPECT_EQ(lanes.Sent(), "{1}{2}{3}{5}");
}

}  // namespace
}  // namespace front
