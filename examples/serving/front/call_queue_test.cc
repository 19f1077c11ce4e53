// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/call_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace front {
namespace {

using grpc::StatusCode;

constexpr char kPlain[] = "\x0a\x03\x0a\x01m";  // model_spec { name: "m" }

grpc::ByteBuffer Bytes(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

// Says how it was ended, and how often.
class FakeCall : public Call {
 public:
  void Answer(grpc::ByteBuffer response) override {
    size = response.Length();
    End("answered");
  }
  void Fail(grpc::Status status) override {
    code = status.error_code();
    text = status.error_message();
    End("failed");
  }
  void AskPython(grpc::ByteBuffer request) override {
    size = request.Length();
    End("python");
  }
  Clock::time_point deadline() const override { return deadline_; }

  std::string how;
  StatusCode code = StatusCode::OK;
  std::string text;
  size_t size = 0;
  std::atomic<int> ends{0};
  Clock::time_point deadline_ = Clock::time_point::max();

 private:
  void End(const char* what) {
    how = what;
    ++ends;
  }
};

CallQueue::Limits SomeLimits() { return {2, 3, 60, 1 << 20}; }

class CallQueueTest : public testing::Test {
 protected:
  uint64_t Add(FakeCall* call, const std::string& request = kPlain) {
    const uint64_t number = queue.NextNumber();
    queue.Add(number, call, Bytes(request));
    return number;
  }

  CallQueue queue{SomeLimits(), Metrics({0.1, 1}, {"m"})};
};

TEST_F(CallQueueTest, CallsAreAnsweredInTheirOrder) {
  FakeCall calls[3];
  for (FakeCall& call : calls) Add(&call);
  for (FakeCall& call : calls) {
    const CallQueue::Taken taken = queue.Take();
    queue.Answered(taken, StatusCode::OK, Bytes("answer"));
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
  queue.Answered(queue.Take(), StatusCode::INVALID_ARGUMENT,
                 Bytes("not a number"));
  EXPECT_EQ(call.code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(call.text, "not a number");
}

TEST_F(CallQueueTest, WhatIsNotPlainGoesToPythonAndIsCountedThere) {
  FakeCall call;
  Add(&call, "some request");
  queue.NotPlain(queue.Take());
  EXPECT_EQ(call.how, "python");
  EXPECT_EQ(call.size, 12u);
  EXPECT_NE(queue.Json().find("\"answers\": []"), std::string::npos);
}

TEST_F(CallQueueTest, AFullQueueIsSaidAtOnceAndCountsWhatRunsForNobody) {
  FakeCall calls[5], refused;
  for (FakeCall& call : calls) Add(&call);
  const CallQueue::Taken taken = queue.Take();
  Add(&refused);
  EXPECT_EQ(refused.code, StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.text,
            "the server is full: 2 calls run (--threads) and 3 may wait "
            "(--queue). Try again later.");
  queue.Cancelled(taken.number);  // its lane is still busy
  FakeCall also_refused;
  Add(&also_refused);
  EXPECT_EQ(also_refused.code, StatusCode::RESOURCE_EXHAUSTED);
  queue.Answered(taken, StatusCode::OK, Bytes("for nobody"));
  FakeCall accepted;
  Add(&accepted);
  EXPECT_EQ(accepted.ends, 0);
}

TEST_F(CallQueueTest, LargeRequestsAreBoundedTogetherAndSmallOnesAreNot) {
  CallQueue large({64, 64, 60, 100000}, Metrics({1}, {"m"}));
  std::vector<std::unique_ptr<FakeCall>> calls;
  const auto add = [&](size_t size) {
    calls.push_back(std::make_unique<FakeCall>());
    large.Add(large.NextNumber(), calls.back().get(),
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
  large.Answered(large.Take(), StatusCode::OK, Bytes(""));
  EXPECT_EQ(add(65537)->ends, 0);
}

TEST_F(CallQueueTest, ACancelledCallIsNotRun) {
  FakeCall first, second;
  const uint64_t number = Add(&first);
  Add(&second);
  queue.Cancelled(number);
  EXPECT_EQ(first.code, StatusCode::CANCELLED);
  queue.Answered(queue.Take(), StatusCode::OK, Bytes(""));
  EXPECT_EQ(second.how, "answered");
  queue.Cancelled(number);
  queue.Cancelled(1000);  // of no call
  EXPECT_EQ(first.ends, 1);
}

TEST_F(CallQueueTest, ACallWhoseDeadlineIsUpIsNotRun) {
  FakeCall late, next;
  late.deadline_ = Clock::now();
  Add(&late);
  Add(&next);
  const CallQueue::Taken taken = queue.Take();
  EXPECT_EQ(late.code, StatusCode::DEADLINE_EXCEEDED);
  EXPECT_NE(late.text.find("it was not run"), std::string::npos);
  next.deadline_ = Clock::now();
  queue.Cancelled(taken.number);
  EXPECT_EQ(next.code, StatusCode::DEADLINE_EXCEEDED);
  EXPECT_NE(next.text.find("was running"), std::string::npos);
}

TEST_F(CallQueueTest, LateCallsEndWhetherTheyWaitOrRun) {
  CallQueue quick({1, 3, 0.05, 1 << 20}, Metrics({1}, {"m"}));
  FakeCall runs, waits;
  quick.Add(quick.NextNumber(), &runs, Bytes(kPlain));
  quick.Add(quick.NextNumber(), &waits, Bytes(kPlain));
  const CallQueue::Taken taken = quick.Take();
  quick.EndLateCalls();
  EXPECT_EQ(runs.ends + waits.ends, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  quick.EndLateCalls();
  EXPECT_NE(runs.text.find("was running"), std::string::npos);
  EXPECT_NE(waits.text.find("was waiting"), std::string::npos);
  quick.Answered(taken, StatusCode::OK, Bytes("for nobody"));
  EXPECT_EQ(runs.ends, 1);
}

TEST_F(CallQueueTest, DrainingRefusesAndClosingEndsAll) {
  FakeCall runs, waits, refused;
  Add(&runs);
  Add(&waits);
  const CallQueue::Taken taken = queue.Take();
  queue.Drain();
  Add(&refused);
  EXPECT_EQ(refused.code, StatusCode::UNAVAILABLE);
  EXPECT_EQ(runs.ends + waits.ends, 0);
  queue.Close();
  EXPECT_EQ(runs.code, StatusCode::UNAVAILABLE);
  EXPECT_EQ(waits.code, StatusCode::UNAVAILABLE);
  EXPECT_NE(queue.Json().find("\"running\": 1, \"waiting\": 0, \"open\": 0"),
            std::string::npos)
      << queue.Json();
  queue.Answered(taken, StatusCode::OK, Bytes("for nobody"));
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
TEST_F(CallQueueTest, EachCallEndsOnce) {
  constexpr int kCalls = 2000;
  // The lanes wait for calls as long as the process lives.
  CallQueue& busy =
      *new CallQueue({4, kCalls, 0.001, 1 << 20}, Metrics({1}, {"m"}));
  std::vector<std::unique_ptr<FakeCall>> calls;
  for (int i = 0; i < 4 * kCalls; ++i) {
    calls.push_back(std::make_unique<FakeCall>());
  }
  static std::atomic<int> taken{0};
  std::atomic<bool> closed{false};
  std::vector<std::thread> threads;
  for (int lane = 0; lane < 4; ++lane) {
    std::thread([&busy] {
      for (;;) {
        CallQueue::Taken call = busy.Take();
        ++taken;
        if (taken % 3 == 0) {
          busy.NotPlain(std::move(call));
        } else {
          busy.Answered(call, StatusCode::OK, Bytes("x"));
        }
      }
    }).detach();
  }
  threads.emplace_back([&] {
    while (!closed) busy.EndLateCalls();
  });
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([&, client] {
      for (int i = 0; i < kCalls; ++i) {
        const uint64_t number = busy.NextNumber();
        busy.Add(number, calls[client * kCalls + i].get(), Bytes(kPlain));
        if (i % 2) busy.Cancelled(number - i % 5);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  busy.Close();
  closed = true;
  threads[0].join();
  // Lanes may be about to end their last calls.
  for (const auto& call : calls) {
    while (call->ends == 0) std::this_thread::yield();
    EXPECT_EQ(call->ends, 1);
  }
  EXPECT_GT(taken, 0);
}

}  // namespace
}  // namespace front
