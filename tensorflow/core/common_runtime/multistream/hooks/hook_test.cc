// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/core/common_runtime/multistream/hooks/hook.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>  // NOLINT
#include <utility>

namespace tensorflow::multistream {
namespace {

// A function as the patches change TensorFlow's.
int Twice(int x) {
  if (auto* ours = Hook<&Twice>::Take()) return ours(x);
  return 2 * x;
}

int Unhooked(int x) {
  if (auto* ours = Hook<&Unhooked>::Take()) return ours(x);
  return x;
}

int Countdown(int x) {
  if (auto* ours = Hook<&Countdown>::Take()) return ours(x);
  return x == 0 ? 0 : Countdown(x - 1);
}

struct Counter {
  int Add(std::unique_ptr<int> step) {
    if (auto* ours = Hook<&Counter::Add>::Take()) {
      return ours(this, std::move(step));
    }
    return value += *step;
  }
  int Value() const {
    if (auto* ours = Hook<&Counter::Value>::Take()) return ours(this);
    return value;
  }
  int value = 0;
};

// A function that cannot be patched.
int Given(const std::string& text, int* calls) {
  ++*calls;
  return text.size();
}

int calls = 0;

TEST(HookTest, OursIsCalledInItsPlaceAndCanCallIt) {
  EXPECT_EQ(Twice(4), 8);
  Hook<&Twice>::Set([](int x) { return 100 + Hook<&Twice>::Stock(x); });
  EXPECT_EQ(Twice(4), 108);
  EXPECT_EQ(Unhooked(3), 3);  // one of several leaves the others
  // The next call is ours again, on every thread.
  EXPECT_EQ(Twice(4), 108);
  std::thread([] { EXPECT_EQ(Twice(5), 110); }).join();
  Hook<&Twice>::Set([](int x) { return x; });
  EXPECT_EQ(Twice(4), 4);
  Hook<&Twice>::Set(nullptr);
  EXPECT_EQ(Twice(4), 8);
}

TEST(HookTest, AFunctionThatCallsItselfAsksAgain) {
  Hook<&Countdown>::Set([](int x) {
    ++calls;
    return Hook<&Countdown>::Stock(x);
  });
  EXPECT_EQ(Countdown(3), 0);
  EXPECT_EQ(calls, 4);
}

TEST(HookTest, AMemberFunctionsObjectIsTheFirstArgument) {
  Counter counter;
  Hook<&Counter::Add>::Set([](Counter* of, std::unique_ptr<int> step) {
    *step *= 10;
    return Hook<&Counter::Add>::Stock(of, std::move(step));
  });
  EXPECT_EQ(counter.Add(std::make_unique<int>(2)), 20);
  EXPECT_EQ(counter.Value(), 20);
  Hook<&Counter::Value>::Set(
      [](const Counter* of) { return 1 + Hook<&Counter::Value>::Stock(of); });
  EXPECT_EQ(counter.Value(), 21);
}

TEST(HookTest, ACallOfAFunctionThatCannotBeChangedIsHooked) {
  int stock = 0;
  EXPECT_EQ(Hook<&Given>::Call("abc", &stock), 3);
  EXPECT_EQ(stock, 1);
  Hook<&Given>::Set([](const std::string& text, int*) { return 7; });
  EXPECT_EQ(Hook<&Given>::Call("abc", &stock), 7);
  EXPECT_EQ(stock, 1);
}

}  // namespace
}  // namespace tensorflow::multistream
