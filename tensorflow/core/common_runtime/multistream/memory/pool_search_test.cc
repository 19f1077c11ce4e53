// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Interleavings of groups that take each other's memory in a shared
// pool: data that a stream has written stays until the stream has freed it.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/memory/stream_aware_pool.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/expect_finds.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/late_streams.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"
#include "tensorflow/core/platform/mem.h"

namespace tensorflow::multistream::search {
namespace {

// All memory of the GPU. Not from the system's allocator, whose addresses
// differ from run to run.
class FixedMemory : public SubAllocator {
 public:
  explicit FixedMemory(size_t bytes) : SubAllocator({}, {}), bytes_(bytes) {}
  void* Alloc(size_t, size_t bytes, size_t* received) override {
    if (bytes > bytes_ || memory_ != nullptr) return nullptr;
    *received = bytes;
    return memory_ = port::AlignedMalloc(bytes, 4096);
  }
  void Free(void* memory, size_t) override {
    port::AlignedFree(memory);
    memory_ = nullptr;
  }
  bool SupportsCoalescing() const override { return false; }

 private:
  const size_t bytes_;
  void* memory_ = nullptr;
};

constexpr int64_t kBlock = 512;

struct World {
  // Room for `blocks` only, so that groups take each other's blocks.
  World(int groups, int blocks) : late(groups) {
    StreamAwarePool::Options options;
    options.limit = blocks * kBlock;
    pool = std::make_unique<StreamAwarePool>(
        std::make_unique<FixedMemory>(options.limit),
        std::vector<StreamGroup*>(late.streams.begin(), late.streams.end()),
        options);
  }

  LateGpu late;
  std::unique_ptr<StreamAwarePool> pool;
};

// Tensors of an op: writes and reads are enqueued, then the tensors are freed.
void UseBlocks(World* world, int group, int64_t value, int count) {
  LateStreamGroup* stream = world->late.streams[group];
  std::vector<void*> blocks;
  for (int i = 0; i < count; ++i) {
    auto* memory =
        static_cast<Halves*>(world->pool->Allocate(group, kBlock, false));
    if (memory == nullptr) break;  // other groups use all of it
    blocks.push_back(memory);
    stream->Enqueue("writes one half", [=] { memory->first = value; });
    stream->Enqueue("writes the other half", [=] { memory->second = value; });
    stream->Enqueue("reads", [=] {
      Expect(memory->first == value && memory->second == value,
             absl::StrCat("another's value: ", memory->first, " and ",
                          memory->second, ", not ", value));
    });
  }
  for (void* block : blocks) world->pool->Free(block);
}

// A thread of `group`: the blocks that it uses at once, and how often.
struct Uses {
  int group;
  int blocks;
  int times;
};

Body Groups(int groups, int blocks, std::vector<Uses> threads) {
  return [=](Program* program) {
    auto world = std::make_shared<World>(groups, blocks);
    world->late.AddTo(program);
    for (size_t i = 0; i < threads.size(); ++i) {
      const Uses uses = threads[i];
      program->Thread(absl::StrCat("group ", uses.group), [=] {
        for (int j = 0; j < uses.times; ++j) {
          UseBlocks(world.get(), uses.group, 10 * i + j + 1, uses.blocks);
        }
      });
    }
    program->Run();
  };
}

Body OneBlock() { return Groups(2, 1, {{0, 1, 3}, {1, 1, 3}}); }
Body TwoBlocks() { return Groups(2, 2, {{0, 1, 1}, {0, 1, 1}, {1, 2, 1}}); }

TEST(PoolSearchTest, GroupsThatTakeEachOthersMemory) {
  SearchAtRandom(OneBlock(), Seconds(1));
  SearchAtRandom(TwoBlocks(), Seconds(2));
  SearchAtRandom(Groups(3, 2, {{0, 1, 2}, {1, 1, 2}, {2, 1, 2}}), Seconds(2));
}

TEST(PoolSearchTest, WaitsThatAreLeftOutAreFound) {
  EXPECT_FINDS(Rule::kWhoTakesAnothersMemoryWaits, SearchAtRandom(OneBlock()),
               "another's value");
  EXPECT_FINDS(Rule::kFreesAreReadBeforeTheWait, SearchAtRandom(TwoBlocks()),
               "another's value");
}

}  // namespace
}  // namespace tensorflow::multistream::search
