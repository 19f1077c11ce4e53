// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/call_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "examples/serving/front/call_queue_fixture.h"

namespace front {
namespace {

CallQueue::Limits SomeLimits() { return {2, 3, 60}; }

class CallQueueTest : public testing::Test {
 protected:
  uint64_t Add(FakeCall* call, const std::string& request = kPlain) {
    const uint64_t number = queue.NextNumber();
    queue.Add(number, call, SpecOf(Bytes(request)), Bytes(request));
    return number;
  }

  Lanes lanes{SomeLimits()};
  CallQueue& queue = lanes.queue;
};

TEST_F(CallQueueTest, CallsAreAnsweredInTheirOrder) {
  FakeCall calls[3];
  for (FakeCall& call : calls) Add(&call);
  EXPECT_EQ(lanes.Sent(), "{1}{2}");  // of two lanes
  for (FakeCall& call : calls) {
    EXPECT_EQ(call.ends, 0);
    lanes.Answer("answer");
    EXPECT_EQ(call.how, "answered");
    EXPECT_EQ(call.size, 6u);
  }
  EXPECT_NE(queue.Json().find("\"answers\": [[\"m\", 0, "), std::string::npos)
      << queue.Json();
  EXPECT_NE(queue.Json().find(", [3, 0, 0]]]"), std::string::npos);
}

TEST_F(CallQueueTest, AnErrorOfTheEngineKeepsItsText) {
  FakeCall call;
  Add(&call);
  queue.Answered(lanes.End()[0], StatusCode::INVALID_ARGUMENT,
                 Bytes("not a number"));
  EXPECT_EQ(call.code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(call.text, "not a number");
}

TEST_F(CallQueueTest, WhatIsNotPlainGoesToPythonAndIsCountedThere) {
  FakeCall call;
  Add(&call, "some request");
  queue.NotPlain(std::move(lanes.End()[0]));
  EXPECT_EQ(call.how, "python");
  EXPECT_EQ(call.size, 12u);
  EXPECT_NE(queue.Json().find("\"answers\": []"), std::string::npos);
}

TEST_F(CallQueueTest, ACallMayCountItsAnswerItselfButNoError) {
  FakeCall calls[2];
  for (FakeCall& call : calls) {
    call.counts_itself = true;
    Add(&call);
  }
  lanes.Answer();
  EXPECT_EQ(calls[0].how, "answered");
  EXPECT_NE(queue.Json().find("\"answers\": []"), std::string::npos);
  queue.Count("m", StatusCode::INTERNAL, 0.5);
  EXPECT_NE(queue.Json().find("\"answers\": [[\"m\", 13, 0.5, [0, 1, 0]]]"),
            std::string::npos)
      << queue.Json();
  queue.Answered(lanes.End()[0], StatusCode::INVALID_ARGUMENT, Bytes("no"));
  EXPECT_NE(queue.Json().find("[\"m\", 3, "), std::string::npos)
      << queue.Json();
}

TEST_F(CallQueueTest, AFullQueueIsSaidAtOnceAndCountsWhatRunsForNobody) {
  FakeCall calls[5], refused;
  for (FakeCall& call : calls) Add(&call);
  Add(&refused);
  EXPECT_EQ(refused.code, StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.text,
            "the server is full: 2 calls run (--threads) and 3 may wait "
            "(--queue). Try again later.");
  queue.Cancelled(1);  // its lane is still busy
  FakeCall also_refused;
  Add(&also_refused);
  EXPECT_EQ(also_refused.code, StatusCode::RESOURCE_EXHAUSTED);
  lanes.Answer("for nobody");
  FakeCall accepted;
  Add(&accepted);
  EXPECT_EQ(accepted.ends, 0);
}

TEST_F(CallQueueTest, LargeRequestsAreBoundedTogetherAndSmallOnesAreNot) {
  Lanes large({64, 64, 60}, 100000);
  std::vector<std::unique_ptr<FakeCall>> calls;
  const auto add = [&](size_t size) {
    calls.push_back(std::make_unique<FakeCall>());
    large.queue.Add(large.queue.NextNumber(), calls.back().get(), {},
                    Bytes(std::string(size, 'x')));
    return calls.back().get();
  };
  for (int i = 0; i < 16; ++i) EXPECT_EQ(add(100000)->ends, 0);
  const FakeCall* refused = add(65537);
  EXPECT_EQ(refused->code, StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(refused->text.find("have 1600000 bytes, and 65537 more"),
            std::string::npos)
      << refused->text;
  EXPECT_EQ(add(65536)->ends, 0);
  large.Answer();
  EXPECT_EQ(add(65537)->ends, 0);
}

TEST_F(CallQueueTest, LargeRequestsThatRunForNobodyAreStillThere) {
  Lanes large({64, 64, 60}, 100000);
  std::vector<std::unique_ptr<FakeCall>> calls;
  const auto add = [&] {
    const uint64_t number = large.queue.NextNumber();
    calls.push_back(std::make_unique<FakeCall>());
    large.queue.Add(number, calls.back().get(), {},
                    Bytes(std::string(100000, 'x')));
    return number;
  };
  for (int i = 0; i < 16; ++i) large.queue.Cancelled(add());
  add();
  EXPECT_EQ(calls.back()->code, StatusCode::RESOURCE_EXHAUSTED);
  large.Answer("for nobody");
  add();
  EXPECT_EQ(calls.back()->ends, 0);
}

TEST_F(CallQueueTest, ACancelledCallIsNotRun) {
  FakeCall busy[2], first, second;
  for (FakeCall& call : busy) Add(&call);
  const uint64_t number = Add(&first);
  Add(&second);
  queue.Cancelled(number);
  EXPECT_EQ(first.code, StatusCode::CANCELLED);
  lanes.Answer();
  EXPECT_EQ(lanes.Sent(), "{2}{4}");
  queue.Cancelled(number);
  queue.Cancelled(1000);  // of no call
  EXPECT_EQ(first.ends, 1);
}

TEST_F(CallQueueTest, ACallWhoseDeadlineIsUpIsNotRun) {
  FakeCall busy[2], late, next;
  for (FakeCall& call : busy) Add(&call);
  late.deadline_ = Clock::now();
  Add(&late);
  const uint64_t number = Add(&next);
  lanes.Answer();
  EXPECT_EQ(late.code, StatusCode::DEADLINE_EXCEEDED);
  EXPECT_NE(late.text.find("it was not run"), std::string::npos);
  EXPECT_EQ(lanes.Sent(), "{2}{4}");
  next.deadline_ = Clock::now();
  queue.Cancelled(number);
  EXPECT_EQ(next.code, StatusCode::DEADLINE_EXCEEDED);
  EXPECT_NE(next.text.find("was running"), std::string::npos);
}

TEST_F(CallQueueTest, LateCallsEndWhetherTheyWaitOrRun) {
  Lanes quick({1, 3, 0.05});
  FakeCall runs, waits;
  quick.queue.Add(quick.queue.NextNumber(), &runs, {}, Bytes(kPlain));
  quick.queue.Add(quick.queue.NextNumber(), &waits, {}, Bytes(kPlain));
  quick.queue.EndLateCalls();
  EXPECT_EQ(runs.ends + waits.ends, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  quick.queue.EndLateCalls();
  EXPECT_NE(runs.text.find("was running"), std::string::npos);
  EXPECT_NE(waits.text.find("was waiting"), std::string::npos);
  quick.Answer("for nobody");
  EXPECT_EQ(runs.ends, 1);
  EXPECT_TRUE(quick.IsIdle());
}

TEST_F(CallQueueTest, DrainingRefusesAndClosingEndsAll) {
  FakeCall runs[2], waits, refused;
  for (FakeCall& call : runs) Add(&call);
  Add(&waits);
  queue.Drain();
  Add(&refused);
  EXPECT_EQ(refused.code, StatusCode::UNAVAILABLE);
  EXPECT_EQ(runs[0].ends + waits.ends, 0);
  queue.Close();
  EXPECT_EQ(runs[0].code, StatusCode::UNAVAILABLE);
  EXPECT_EQ(waits.code, StatusCode::UNAVAILABLE);
  EXPECT_NE(queue.Json().find("\"running\": 2, \"waiting\": 0, \"open\": 0"),
            std::string::npos)
      << queue.Json();
  lanes.Answer("for nobody");
  lanes.Answer("for nobody");
  EXPECT_NE(queue.Json().find("\"running\": 0"), std::string::npos);
}

TEST_F(CallQueueTest, NamesThatAreNoModelsCountAsNone) {
  FakeCall calls[2];
  const std::string unknown = "\x0a\x05\x0a\x03you";
  queue.Cancelled(Add(&calls[0], unknown));
  queue.Cancelled(Add(&calls[1], "\xff\xff"));
  EXPECT_NE(queue.Json().find("\"answers\": [[\"\", 1, "), std::string::npos)
      << queue.Json();
}

// Lanes, clients that cancel, the look for late calls and the end, at once.
TEST(CallQueuesTest, EachCallEndsOnce) {
  constexpr int kCalls = 2000, kClients = 4, kLanes = 4;
  // The lanes wait for batches as long as the process lives.
  struct Lane {
    std::mutex mutex;
    std::condition_variable changed;
    CallQueue::Batch batch;
  };
  Lane* const lanes = new Lane[kLanes];
  CallQueue& busy = *new CallQueue(
      {kLanes, kClients * kCalls, 0.001}, new LargeRequests(1 << 20),
      Metrics({1}, {"m"}), [lanes](size_t lane, CallQueue::Batch batch) {
        const std::lock_guard<std::mutex> lock(lanes[lane].mutex);
        lanes[lane].batch = std::move(batch);
        lanes[lane].changed.notify_one();
      });
  busy.SetBatching("m", "serving_default",
                   {8, std::chrono::microseconds(100), 3});
  std::vector<std::unique_ptr<FakeCall>> calls;
  for (int i = 0; i < kClients * kCalls; ++i) {
    calls.push_back(std::make_unique<FakeCall>());
  }
  static std::atomic<int> taken{0};
  for (int number = 0; number < kLanes; ++number) {
    std::thread([&busy, lanes, number] {
      for (Lane& lane = lanes[number];;) {
        CallQueue::Batch batch;
        {
          std::unique_lock<std::mutex> lock(lane.mutex);
          lane.changed.wait(lock, [&] { return !lane.batch.empty(); });
          batch.swap(lane.batch);
        }
        busy.Idle(number, taken % 7);
        for (CallQueue::Taken& call : batch) {
          if (++taken % 3 == 0) {
            busy.NotPlain(std::move(call));
          } else {
            busy.Answered(call, StatusCode::OK, Bytes("x"));
          }
        }
      }
    }).detach();
  }
  std::thread([&busy] { busy.RunWaiting(); }).detach();
  std::atomic<bool> closed{false};
  std::thread late([&] {
    while (!closed) busy.EndLateCalls();
  });
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      for (int i = 0; i < kCalls; ++i) {
        const uint64_t number = busy.NextNumber();
        const grpc::ByteBuffer request = Bytes(i % 5 ? kPlain : "other");
        busy.Add(number, calls[client * kCalls + i].get(), SpecOf(request),
                 request);
        if (i % 2) busy.Cancelled(number - i % 5);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  busy.Close();
  closed = true;
  late.join();
  // Lanes may be about to end their last calls.
  for (const auto& call : calls) {
    while (call->ends == 0) std::this_thread::yield();
    EXPECT_EQ(call->ends, 1);
  }
  EXPECT_GT(taken, 0);
}

}  // namespace
}  // namespace front
