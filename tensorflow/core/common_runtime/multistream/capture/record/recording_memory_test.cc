// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"

namespace tensorflow::multistream {
namespace {

class RecordingMemoryTest : public ::testing::Test {
 protected:
  void* Take(size_t bytes) { return memory_->device()->AllocateRaw(64, bytes); }
  void Free(void* address) { memory_->device()->DeallocateRaw(address); }
  void* TakeAndFree(size_t bytes) {
    void* address = Take(bytes);
    Free(address);
    return address;
  }

  // The CPU's, of which so many allocations succeed.
  class FewAllocations : public AllocatorWrapper {
   public:
    FewAllocations() : AllocatorWrapper(cpu_allocator()) {}
    void* AllocateRaw(size_t alignment, size_t bytes,
                      const AllocationAttributes&) override {
      return left-- > 0 ? AllocatorWrapper::AllocateRaw(alignment, bytes)
                        : nullptr;
    }
    int left = 1000;
  };

  FewAllocations few_;
  std::unique_ptr<RecordingMemory> memory_ =
      std::make_unique<RecordingMemory>(&few_, cpu_allocator());
};

TEST_F(RecordingMemoryTest, ARepeatGetsTheSameAddresses) {
  void* input = Take(100);
  memory_->Start();
  std::vector<void*> first, second;
  for (std::vector<void*>* run : {&first, &second}) {
    void* a = Take(1000);
    void* b = TakeAndFree(500);
    void* c = Take(400);  // in b's place
    run->insert(run->end(), {a, b, c});
    EXPECT_EQ(b, c);
    EXPECT_NE(a, input);
    EXPECT_TRUE(memory_->Check().ok());
    Free(a);
    Free(c);
    memory_->Repeat();
  }
  EXPECT_EQ(first, second);
  EXPECT_EQ(few_.left, 997);
  EXPECT_EQ(memory_->bytes(), 1600);
  Free(input);
}

TEST_F(RecordingMemoryTest, SmallOnesDoNotTakeLargePlaces) {
  memory_->Start();
  void* large = TakeAndFree(10'000);
  void* small = Take(100);
  EXPECT_NE(large, small);
  Free(small);
}

TEST_F(RecordingMemoryTest, AnythingElseInARepeatIsAnError) {
  const auto difference = [&](const std::vector<size_t>& sizes) {
    memory_->Repeat();
    std::vector<void*> all;
    for (size_t bytes : sizes) all.push_back(Take(bytes));
    const std::string message(memory_->Check().message());
    for (void* address : all) {
      if (address != nullptr) Free(address);
    }
    return message;
  };
  memory_->Start();
  void* a = Take(10);
  void* b = Take(20);
  Free(a);
  Free(b);
  EXPECT_EQ(difference({10, 20}), "");
  EXPECT_TRUE(absl::StrContains(difference({10, 21}), "21 bytes where"));
  EXPECT_TRUE(absl::StrContains(difference({10}), "1 times, first 2"));
  EXPECT_TRUE(absl::StrContains(difference({10, 20, 5}), "more than 2 times"));
  EXPECT_EQ(difference({10, 20}), "");
}

// Ops with separate memory can run side by side.
TEST_F(RecordingMemoryTest, SomeMemoryIsNotGivenAgain) {
  memory_ = std::make_unique<RecordingMemory>(cpu_allocator(), cpu_allocator(),
                                              /*apart_bytes=*/2500);
  memory_->Start();
  void* a = TakeAndFree(1000);
  void* b = TakeAndFree(1000);
  void* c = TakeAndFree(1000);
  EXPECT_NE(a, b);
  EXPECT_NE(b, c);
  EXPECT_NE(a, c);
  // Another 1000 bytes would exceed the 2500 bytes of apart_bytes.
  EXPECT_EQ(TakeAndFree(1000), a);
  EXPECT_EQ(memory_->bytes(), 3000);
  void* d = TakeAndFree(400);
  void* e = TakeAndFree(400);
  EXPECT_NE(d, e);
  EXPECT_EQ(TakeAndFree(400), d);
  memory_->Repeat();
  for (void* address : {a, b, c, a}) EXPECT_EQ(TakeAndFree(1000), address);
  for (void* address : {d, e, d}) EXPECT_EQ(TakeAndFree(400), address);
}

TEST_F(RecordingMemoryTest, MemoryUsedForLongerThanAtFirstIsAnError) {
  memory_->Start();
  void* a = TakeAndFree(10);
  EXPECT_EQ(Take(10), a);
  memory_->Repeat();
  void* again = Take(10);
  EXPECT_EQ(Take(10), nullptr);  // `again` has its place
  EXPECT_TRUE(absl::StrContains(memory_->Check().message(), "for longer"));
  Free(again);
  Free(a);
}

TEST_F(RecordingMemoryTest, WhatAnEarlierRunKeepsDoesNotCount) {
  memory_->Start();
  void* a = TakeAndFree(10);
  void* result = Take(10);
  EXPECT_EQ(result, a);
  memory_->Repeat();
  EXPECT_EQ(Take(10), a);
  Free(a);
  EXPECT_EQ(Take(10), a);
  EXPECT_TRUE(memory_->Check().ok());
  Free(a);
  Free(result);
}

TEST_F(RecordingMemoryTest, AVariableThatMovesIsAnError) {
  int x, y;
  memory_->Start();
  memory_->NoteRead(&x);
  memory_->NoteRead(&y);
  const auto same = [&](std::vector<const void*> reads) {
    memory_->Repeat();
    for (const void* read : reads) memory_->NoteRead(read);
    EXPECT_EQ(memory_->Check().ok(), memory_->SameReads());
    return memory_->SameReads();
  };
  EXPECT_TRUE(same({&x, &y}));
  EXPECT_FALSE(same({&x, &x}));
  EXPECT_FALSE(same({&x}));
  EXPECT_TRUE(same({&x, &y}));
}

TEST_F(RecordingMemoryTest, ARepeatThatFailsNeedNotAskForAll) {
  const absl::Status failure = absl::InternalError("an op has failed");
  int x, y;
  memory_->Start();
  TakeAndFree(10);
  memory_->NoteRead(&x);
  TakeAndFree(20);
  memory_->NoteRead(&y);

  memory_->Repeat();
  TakeAndFree(10);
  memory_->NoteRead(&x);
  EXPECT_EQ(memory_->Check(failure), failure);
  EXPECT_TRUE(absl::IsAborted(memory_->Check()));
  // Even in a failed run the allocations must be the same.
  EXPECT_EQ(Take(30), nullptr);
  EXPECT_TRUE(absl::IsAborted(memory_->Check(failure)));
  memory_->Repeat();
  memory_->NoteRead(&y);
  EXPECT_TRUE(absl::IsAborted(memory_->Check(failure)));
}

TEST_F(RecordingMemoryTest, PinnedMemoryIsNotUsedAgain) {
  memory_->Start();
  Allocator* pinned = memory_->pinned();
  void* a = pinned->AllocateRaw(64, 100);
  pinned->DeallocateRaw(a);
  void* b = pinned->AllocateRaw(64, 100);
  EXPECT_NE(a, b);
  EXPECT_TRUE(memory_->IsPinned(a, 100));
  EXPECT_TRUE(memory_->IsPinned(static_cast<char*>(b) + 50, 50));
  EXPECT_FALSE(memory_->IsPinned(b, 101));
  EXPECT_FALSE(memory_->IsDevice(b, 100));
  EXPECT_FALSE(memory_->IsPinned(&a, 1));
  pinned->DeallocateRaw(b);
}

TEST_F(RecordingMemoryTest, AllOfTheDevicesMemoryCanBeToldOnce) {
  using Spans = RecordingMemory::Spans;
  EXPECT_EQ(memory_->All(), Spans());
  void* input = Take(100);
  void* pinned = memory_->pinned()->AllocateRaw(64, 100);
  memory_->Start();
  void* a = TakeAndFree(1000);
  EXPECT_EQ(Take(600), a);
  const Spans all = {{input, 100}, {a, 1000}};
  EXPECT_EQ(memory_->All(), all);
  Free(a);
  EXPECT_EQ(memory_->All(), all);
  memory_->Repeat();
  EXPECT_EQ(memory_->All(), all);
  memory_->pinned()->DeallocateRaw(pinned);
  Free(input);
}

TEST_F(RecordingMemoryTest, WhatARunWasGivenIsToldOnce) {
  using Spans = RecordingMemory::Spans;
  std::vector<size_t> numbers;
  const auto given = [&] {
    Spans spans;
    numbers.clear();
    for (const Allocation& made : memory_->TakeGiven()) {
      spans.emplace_back(reinterpret_cast<const void*>(made.begin),
                         made.end - made.begin);
      numbers.push_back(made.number);
    }
    return spans;
  };
  void* input = Take(100);
  void* pinned = memory_->pinned()->AllocateRaw(64, 100);
  EXPECT_EQ(given(), Spans({{input, 100}}));
  EXPECT_EQ(given(), Spans());
  memory_->Start();
  void* a = nullptr;
  for (int run = 0; run < 2; ++run) {
    a = Take(1000);
    EXPECT_EQ(given(), Spans({{a, 1000}}));
    Free(a);
    void* again = Take(600);  // in a's block, all of which counts as given
    void* b = TakeAndFree(50);
    EXPECT_EQ(given(), Spans({{again, 1000}, {b, 50}}));
    EXPECT_EQ(numbers, std::vector<size_t>({1, 2}));
    EXPECT_EQ(again, a);
    Free(again);
    memory_->Repeat();
  }
  // Memory given out in an earlier run does not count for the next run.
  TakeAndFree(1000);
  memory_->Repeat();
  EXPECT_EQ(given(), Spans());
  // Nor does an allocation that failed.
  EXPECT_EQ(Take(1), nullptr);
  EXPECT_EQ(given(), Spans());
  memory_->pinned()->DeallocateRaw(pinned);
  Free(input);
}

TEST_F(RecordingMemoryTest, WhatARunHasFreedIsToldOnce) {
  using Numbers = std::vector<size_t>;
  void* input = Take(100);
  memory_->Start();
  for (int run = 0; run < 2; ++run) {
    void* a = Take(1000);
    void* b = TakeAndFree(50);
    EXPECT_EQ(memory_->TakeFreed(), Numbers({1}));
    EXPECT_EQ(memory_->TakeFreed(), Numbers());
    Free(a);
    EXPECT_EQ(TakeAndFree(50), b);
    EXPECT_EQ(memory_->TakeFreed(), Numbers({0, 2}));
    memory_->Repeat();
  }
  // A tensor of an earlier run is deleted, or that of this run.
  void* a = Take(1000);
  memory_->Repeat();
  EXPECT_EQ(Take(1000), a);
  Free(a);
  EXPECT_EQ(memory_->TakeFreed(), Numbers());
  Free(a);
  EXPECT_EQ(memory_->TakeFreed(), Numbers());
  Free(input);
}

TEST_F(RecordingMemoryTest, AllocationsThatAreKeptApartGetMemoryOfTheirOwn) {
  void* input = Take(100);
  memory_->Start();
  void* first = TakeAndFree(1000);
  EXPECT_EQ(TakeAndFree(1000), first);
  EXPECT_EQ(TakeAndFree(600), first);
  ASSERT_TRUE(memory_->KeepApart({1}));
  std::vector<void*> seen;
  for (int run = 0; run < 2; ++run) {
    memory_->Repeat();
    EXPECT_EQ(TakeAndFree(1000), first);
    seen.push_back(TakeAndFree(1000));
    EXPECT_NE(seen.back(), first);
    EXPECT_TRUE(memory_->IsDevice(seen.back(), 1000));
    EXPECT_EQ(TakeAndFree(600), first);
    EXPECT_TRUE(memory_->Check().ok());
  }
  EXPECT_EQ(seen[0], seen[1]);
  Free(input);
}

TEST_F(RecordingMemoryTest, WithTooLittleMemoryNoneIsKeptApart) {
  memory_->Start();
  void* first = TakeAndFree(1000);
  EXPECT_EQ(TakeAndFree(1000), first);
  EXPECT_EQ(TakeAndFree(1000), first);
  few_.left = 1;
  EXPECT_FALSE(memory_->KeepApart({1, 2}));
  memory_->Repeat();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(TakeAndFree(1000), first);
  EXPECT_TRUE(memory_->Check().ok());
}

TEST_F(RecordingMemoryTest, MemoryThatIsStillUsedIsNotFreed) {
  memory_->Start();
  Allocator* device = memory_->device();
  void* a = Take(100);
  memory_ = nullptr;
  static_cast<char*>(a)[99] = 1;
  device->DeallocateRaw(a);
}

}  // namespace
}  // namespace tensorflow::multistream
