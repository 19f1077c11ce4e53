// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// When memory of a group is reclaimed, each owner is asked for it, by group.

#include "tensorflow/core/common_runtime/multistream/stream/reclaimable_memory.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"

namespace tensorflow {
namespace multistream {
namespace {

class Owner final : public ReclaimableMemory::Owner {
 public:
  void GiveBack(StreamGroup* group) override { asked.push_back(group); }

  std::vector<StreamGroup*> asked;
};

TEST(ReclaimableMemoryTest, AsksAllOwnersForTheGroup) {
  StreamRecord record;
  FakeStreamGroup group(0, 1, &record);
  ReclaimableMemory* memory = group.reclaimable();
  Owner first, second;
  memory->Add(&first);
  memory->Add(&second);
  memory->Reclaim(&group);
  EXPECT_EQ(first.asked, std::vector<StreamGroup*>{&group});
  EXPECT_EQ(second.asked, std::vector<StreamGroup*>{&group});
  memory->Remove(&first);
  memory->Reclaim(&group);
  EXPECT_EQ(first.asked.size(), 1);
  EXPECT_EQ(second.asked.size(), 2);
  memory->Remove(&second);
}

TEST(ReclaimableMemoryTest, IsHeldWhileAnyHolderLives) {
  ReclaimableMemory memory;
  EXPECT_FALSE(memory.IsHeld());
  std::optional<ReclaimableMemory::Holder> first(&memory);
  std::optional<ReclaimableMemory::Holder> second(&memory);
  first.reset();
  EXPECT_TRUE(memory.IsHeld());
  second.reset();
  EXPECT_FALSE(memory.IsHeld());
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
