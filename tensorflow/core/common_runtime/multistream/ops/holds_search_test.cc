// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Interleavings of ops of one step that use another group's memory: the memory
// is not reused until the ops' stream has completed them.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/ops/holds.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/expect_finds.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/late_memory.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/late_streams.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"

namespace tensorflow::multistream::search {
namespace {

struct World {
  LateMemory memory;  // of group 0
  LateGpu late{2};
  std::unique_ptr<Step> step;
};

Tensor Made(World* world, int64_t value) {
  Tensor made(&world->memory, DT_INT64, TensorShape({2}));
  auto* to = static_cast<int64_t*>(made.data());
  world->late.streams[0]->Enqueue("writes one half", [=] { to[0] = value; });
  world->late.streams[0]->Enqueue("writes the other half",
                                  [=] { to[1] = value; });
  return made;
}

// An op of group 1 that uses `input` and drops its reference at the launch.
void Use(World* world, Tensor input, int64_t value) {
  LateStreamGroup* stream = world->late.streams[1];
  Holds holds(stream, world->step.get());
  holds.Add(input);
  const auto* from = static_cast<const int64_t*>(input.data());
  input = Tensor();
  stream->Enqueue("reads", [=] {
    Expect(from[0] == value && from[1] == value,
           absl::StrCat("another's value: ", from[0], " and ", from[1],
                        ", not ", value));
  });
  holds.Enqueued();
}

// Two ops of a step, and an op of group 0 that reuses any free memory.
// `finished`: the ops belong to an input pipeline that outlives its step.
Body TwoOps(bool finished) {
  return [finished](Program* program) {
    auto world = std::make_shared<World>();
    world->step =
        std::make_unique<Step>(world->late.gpu.get(), world->late.streams[1],
                               /*changes_state=*/false);
    if (finished) world->step->Finish();
    Tensor inputs[] = {Made(world.get(), 1), Made(world.get(), 2)};
    world->late.AddTo(program);
    for (int i : {0, 1}) {
      program->Thread(absl::StrCat("op ", i),
                      [world, input = std::move(inputs[i]), i]() mutable {
                        Use(world.get(), std::move(input), i + 1);
                      });
    }
    program->Thread("ends the step", [=] {
      if (finished) return;
      world->step->Finish();
      world->step->holds().ReleaseWhenCompleted(world->late.streams[1]);
    });
    program->Thread("other step", [world] {
      Made(world.get(), 10);
      Made(world.get(), 11);
    });
    program->Run();
    world->step = nullptr;
    Expect(world->memory.in_use() == 0, "memory is left");
  };
}

TEST(HoldsSearchTest, MemoryIsKeptUntilTheStreamHasUsedIt) {
  SearchAtRandom(TwoOps(/*finished=*/true), Seconds(2));
  SearchAtRandom(TwoOps(/*finished=*/false), Seconds(2));
}

TEST(HoldsSearchTest, HoldsThatAreLetGoEarlyAreFound) {
  EXPECT_FINDS(Rule::kHeldByOneUntilEnqueued, SearchAtRandom(TwoOps(true)),
               "another's value");
  EXPECT_FINDS(Rule::kHeldUntilCompleted, SearchAtRandom(TwoOps(true)),
               "another's value");
}

}  // namespace
}  // namespace tensorflow::multistream::search
