// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/events_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/cuda/calls_by_name_fixture.h"
#include "tensorflow/core/common_runtime/multistream/cuda/fake_driver.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace {

FakeDriver& driver = *LoadFakeDriver();

}  // namespace

namespace tensorflow::multistream {
namespace {

intptr_t TakenBy(EventsAhead* events) {
  CUevent event = nullptr;
  return events->Take(&event) ? reinterpret_cast<intptr_t>(event) : 0;
}

// Waits until an event is there.
intptr_t TakenInTheEndBy(EventsAhead* events) {
  while (true) {
    if (const intptr_t event = TakenBy(events)) return event;
    absl::SleepFor(absl::Milliseconds(1));
  }
}

// First: threads that make events read what it writes.
TEST(TensorFlowsEventsTest, AreMadeByName) {
  constexpr char kFramework[] = "libtensorflow_framework.so";
  const absl::StatusOr<bool> calls =
      RedirectEventCreation(kFramework, kFramework);
  ASSERT_TRUE(calls.ok()) << calls.status();
  EXPECT_TRUE(*calls);
}

// What `make` of a test does; its thread may outlive the test.
struct Maker {
  absl::Notification go_on;
  absl::Notification has_failed;
  std::atomic<int> calls{0};
};

TEST(EventsAheadTest, TakingDoesNotWaitForMaking) {
  auto maker = std::make_shared<Maker>();
  EventsAhead* const events = EventsAhead::Begin(3, [maker](CUevent* event) {
    const int number = ++maker->calls;
    if (number == 4) maker->go_on.WaitForNotification();
    if (number == 8) {
      maker->has_failed.Notify();
      return CUDA_ERROR_DEINITIALIZED;
    }
    *event = reinterpret_cast<CUevent>(static_cast<intptr_t>(number));
    return CUDA_SUCCESS;
  });
  std::set<intptr_t> taken;
  for (int i = 0; i < 3; ++i) taken.insert(TakenBy(events));
  EXPECT_EQ(taken, std::set<intptr_t>({1, 2, 3}));
  EXPECT_EQ(TakenBy(events), 0);
  maker->go_on.Notify();
  for (int i = 0; i < 4; ++i) taken.insert(TakenInTheEndBy(events));
  EXPECT_EQ(taken, std::set<intptr_t>({1, 2, 3, 4, 5, 6, 7}));
  maker->has_failed.WaitForNotification();
  EXPECT_EQ(TakenBy(events), 0);
}

TEST(EventsAheadTest, NoneIsMadeAfterAFailure) {
  auto maker = std::make_shared<Maker>();
  EventsAhead* const events = EventsAhead::Begin(3, [maker](CUevent* event) {
    *event = reinterpret_cast<CUevent>(intptr_t{1});
    return ++maker->calls == 1 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  });
  absl::SleepFor(absl::Milliseconds(50));  // a thread would make some
  EXPECT_EQ(maker->calls, 1);
  EXPECT_EQ(TakenBy(events), 0);
}

using EventsOfLibraryTest = CallsOfLibraryTest;

// The fake driver numbers events from 1.
TEST_F(EventsOfLibraryTest, ComeFromThoseOfTheContext) {
  driver.current = 1;
  const absl::StatusOr<bool> calls = RedirectEventCreation(kLibrary, kCuda);
  ASSERT_TRUE(calls.ok()) << calls.status();
  EXPECT_TRUE(*calls);
  for (int i = 0; i < 2; ++i) {  // the second changes nothing
    const absl::Status status = KeepEventsOfCurrentContext();
    ASSERT_TRUE(status.ok()) << status;
  }
  // With timing: made for the call.
  EXPECT_EQ(Call("EventOfDriver", CU_EVENT_DEFAULT), 257);
  EXPECT_EQ(Call("EventOfDriver", CU_EVENT_DISABLE_TIMING), 256);
  // Another context has none. Of the first's, two would be below 256.
  driver.current = 2;
  for (int i = 0; i < 3; ++i) {
    EXPECT_GT(Call("EventOfDriver", CU_EVENT_DISABLE_TIMING), 257);
  }
  EXPECT_FALSE(RedirectEventCreation("libno_such_library.so", kCuda).ok());
}

}  // namespace
}  // namespace tensorflow::multistream
