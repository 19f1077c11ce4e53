// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/events_ahead.h"

#include <gtest/gtest.h>

#include <cstdint>
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

TEST(EventsAheadTest, TakingDoesNotWaitForMaking) {
  absl::Notification go_on;
  intptr_t made = 0;  // one thread after the other
  EventsAhead* const events = EventsAhead::Begin(3, [&](CUevent* event) {
    if (made == 3) go_on.WaitForNotification();
    if (made == 7) return CUDA_ERROR_DEINITIALIZED;
    *event = reinterpret_cast<CUevent>(++made);
    return CUDA_SUCCESS;
  });
  std::set<intptr_t> taken;
  for (int i = 0; i < 3; ++i) taken.insert(TakenBy(events));
  EXPECT_EQ(taken, std::set<intptr_t>({1, 2, 3}));
  EXPECT_EQ(TakenBy(events), 0);
  go_on.Notify();
  for (int i = 0; i < 4; ++i) taken.insert(TakenInTheEndBy(events));
  EXPECT_EQ(taken, std::set<intptr_t>({1, 2, 3, 4, 5, 6, 7}));
}

TEST(EventsAheadTest, NoneIsMadeAfterAFailure) {
  EventsAhead* const events =
      EventsAhead::Begin(3, [](CUevent*) { return CUDA_ERROR_OUT_OF_MEMORY; });
  EXPECT_EQ(TakenBy(events), 0);
}

using EventsOfLibraryTest = CallsOfLibraryTest;

TEST_F(EventsOfLibraryTest, ComeFromThoseOfTheContext) {
  driver.current = 1;
  const absl::Status status = MakeEventsAheadFor(kLibrary, kCuda);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(MakeEventsAheadFor(kLibrary, kCuda).ok());
  std::set<int> taken;
  for (int i = 0; i < 20; ++i) {
    taken.insert(Call("EventOfDriver", CU_EVENT_DISABLE_TIMING));
  }
  EXPECT_EQ(taken.size(), 20);
  EXPECT_EQ(taken.count(0), 0);
  EXPECT_LE(*taken.rbegin(), 256 + 20);
  // Made for the call: with timing, and in a context without such events. At
  // most 20 are being made to replace those taken.
  EXPECT_GT(Call("EventOfDriver", CU_EVENT_DEFAULT), 256);
  driver.current = 2;
  EXPECT_GT(Call("EventOfDriver", CU_EVENT_DISABLE_TIMING), 256);
  EXPECT_FALSE(MakeEventsAheadFor("libno_such_library.so", kCuda).ok());
}

}  // namespace
}  // namespace tensorflow::multistream
