// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Interleavings of threads that call captured functions, on late streams. Each
// update counts once, even if other threads record, replay, assign, read or
// reclaim memory meanwhile.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/expect_finds.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/late_steps.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"

namespace tensorflow::multistream {
namespace {

using search::Body;
using search::Expect;
using search::LateFunction;
using search::LateLeader;
using search::Of;
using search::Op;
using search::Program;
using search::SearchAll;
using search::SearchAtRandom;
using search::Seconds;

// A GPU with variables of value 0, and functions.
class World {
 public:
  World(int groups, int variables) : leader_(groups), variables_(variables) {
    Device* device = leader_.group_device(0);
    ResourceMgr* resources = device->resource_manager();
    for (int i = 0; i < variables; ++i) {
      auto* variable = new Var(DT_INT64);
      Tensor value(device->GetAllocator(AllocatorAttributes()), DT_INT64,
                   TensorShape({2}));
      value.flat<int64_t>().setZero();
      *variable->tensor() = value;
      variable->is_initialized = true;
      TF_CHECK_OK(resources->Create(resources->default_container(),
                                    search::VariableName(i), variable));
    }
  }

  LateFunction* Add(std::vector<Op> ops) {
    functions_.push_back(std::make_unique<LateFunction>(
        &leader_, options_, absl::StrCat("f", functions_.size()), ops));
    return functions_.back().get();
  }
  Options* options() { return &options_; }
  LateLeader* leader() { return &leader_; }

  // A variable's value. Call only once all streams have completed.
  int64_t Value(int i) {
    Var* variable = search::VariableOf(leader_.group_device(0), i);
    const auto halves = variable->tensor()->flat<int64_t>();
    Expect(halves(0) == halves(1), "a variable is left half changed");
    return halves(0);
  }
  // Deletes the functions and checks that nothing of them is left.
  void End() {
    functions_.clear();
    Expect(leader_.in_use() == variables_,
           absl::StrCat(leader_.in_use() - variables_,
                        " blocks of memory are left"));
  }

 private:
  LateLeader leader_;
  const int variables_;
  Options options_;
  std::vector<std::unique_ptr<LateFunction>> functions_;
};

void ExpectValue(World* world, int variable, int64_t expected) {
  const int64_t value = world->Value(variable);
  Expect(value == expected, absl::StrCat("variable ", variable, " is ", value,
                                         ", and ", expected, " were added"));
}

void ExpectOk(const LateFunction::Result& result) {
  Expect(result.status.ok(), result.status.ToString());
}

// `times` calls of a function that adds to variable 0, with an input of
// `numbers` elements.
struct Calls {
  int function = 0;
  int numbers = 1;
  int times = 2;
};

// One thread for each element of `threads`. Before they begin, each function is
// called `before` times in each shape; the third call records.
Body Training(int before, std::vector<Calls> threads,
              std::vector<std::vector<Op>> functions = {{{Op::kAdd}}},
              int capture_mb = 1024) {
  return [=](Program* program) {
    auto world = std::make_shared<World>(1, 2);
    world->options()->capture_mb = capture_mb;
    std::vector<LateFunction*> made;
    for (const auto& ops : functions) made.push_back(world->Add(ops));
    world->leader()->AddTo(program);
    int64_t expected = 0;
    for (size_t i = 0; i < threads.size(); ++i) {
      const Calls& calls = threads[i];
      LateFunction* function = made[calls.function];
      for (int j = 0; j < before; ++j) {
        ExpectOk(function->Call(0, calls.numbers, 1));
      }
      // Each thread adds a different number, so that mixed-up inputs are
      // noticed.
      const int64_t x = i == 0 ? 1 : 100 * i;
      expected += before + calls.times * x;
      program->Thread(absl::StrCat("calls ", i), [function, calls, x] {
        for (int j = 0; j < calls.times; ++j) {
          ExpectOk(function->Call(0, calls.numbers, x));
        }
      });
    }
    program->Run();
    ExpectValue(world.get(), 0, expected);
    world->End();
  };
}

Body TwoShapes(int before) { return Training(before, {{0, 1}, {0, 2}}); }
// With the same shape all threads launch one recording.
Body OneShape() { return Training(3, {{0, 1}, {0, 1}}); }
// The limit has room for one of two recordings.
Body Evicted() {
  return Training(2, {{0, 1}, {0, 2}}, {{{Op::kAdd}}}, /*capture_mb=*/1);
}
Body TwoFunctions() {
  return Training(2, {{0, 1}, {1, 1}}, {{{Op::kAdd}}, {{Op::kAdd}}});
}

// One thread trains on the leader while another thread runs `other`.
Body TrainingBeside(int before, std::string name,
                    std::function<void(World*)> other) {
  return [=](Program* program) {
    auto world = std::make_shared<World>(2, 2);
    LateFunction* train = world->Add({{Op::kAdd, 0}, {Op::kAdd, 1}});
    world->leader()->AddTo(program);
    for (int i = 0; i < before; ++i) ExpectOk(train->Call(0, 1, 1));
    program->Thread("trains", [=] {
      for (int i = 0; i < 2; ++i) ExpectOk(train->Call(0, 1, 1));
    });
    program->Thread(name, [world, other] { other(world.get()); });
    program->Run();
    ExpectValue(world.get(), 0, before + 2);
    world->End();
  };
}

Body GivenBack() {
  return TrainingBeside(3, "gives memory back", [](World* world) {
    StreamGroup* group = world->leader()->stream(0);
    group->reclaimable()->Reclaim(group);
    group->reclaimable()->Reclaim(group);
  });
}

// Reads on group 1, first without capture and then captured, while another
// thread assigns to variable 1, which moves it into other memory.
Body ReadersAndAssignments(int reads_before) {
  return [=](Program* program) {
    auto world = std::make_shared<World>(2, 2);
    LateFunction* train = world->Add({{Op::kAdd, 0}, {Op::kAdd, 1}});
    LateFunction* read = world->Add({{Op::kRead, 1}});
    LateFunction* assign = world->Add({{Op::kAssign, 1}});
    world->leader()->AddTo(program);
    for (int i = 0; i < 3; ++i) ExpectOk(train->Call(0, 1, 1));
    for (int i = 0; i < reads_before; ++i) ExpectOk(read->Call(1, 1, 0));
    program->Thread("trains", [=] { ExpectOk(train->Call(0, 1, 1)); });
    program->Thread("assigns", [=] { ExpectOk(assign->Call(0, 1, 1000)); });
    program->Thread("reads", [=] {
      int64_t before = 3;
      for (int i = 0; i < 2; ++i) {
        const auto result = read->Call(1, 1, 0);
        ExpectOk(result);
        Expect(result.value >= before,
               absl::StrCat(result.value, " is read after ", before));
        before = result.value;
      }
    });
    program->Run();
    ExpectValue(world.get(), 0, 4);
    const int64_t value = world->Value(1);
    Expect(value == 1000 || value == 1001,
           absl::StrCat("an assignment is lost: ", value));
    world->End();
  };
}

// The value of a tensor read from a variable must not change.
void KeepsAValue(World* world) {
  LateLeader* leader = world->leader();
  Device* device = leader->group_device(0);
  Var* variable = search::VariableOf(device, 0);
  const GpuGroups::StateKey keys[] = {search::KeyOf(device, 0)};
  leader->gpu_groups()->BeginRead(leader->stream(0), keys);
  Tensor kept;
  {
    tf_shared_lock lock(*variable->mu());
    kept = *variable->tensor();
  }
  leader->gpu_groups()->EndRead(leader->stream(0), keys);
  const auto* value = static_cast<const int64_t*>(kept.data());
  auto first = std::make_shared<int64_t>();
  leader->stream(0)->Enqueue("reads", [=] { *first = value[0]; });
  leader->stream(0)->Synchronize().IgnoreError();
  leader->stream(0)->Enqueue("reads again", [=] {
    Expect(value[0] == *first && value[1] == *first,
           "a value is changed that somebody has");
  });
  leader->stream(0)->Synchronize().IgnoreError();
}

// Two threads on one group call one or two functions that return their input.
Body Serving(int before, int functions) {
  return [=](Program* program) {
    auto world = std::make_shared<World>(2, 1);
    std::vector<LateFunction*> made;
    for (int i = 0; i < functions; ++i) {
      made.push_back(world->Add({{Op::kSum, 0}}));
      for (int j = 0; j < before; ++j) ExpectOk(made[i]->Call(1, 1, 1));
    }
    world->leader()->AddTo(program);
    for (int i = 0; i < 2; ++i) {
      LateFunction* function = made[i % functions];
      program->Thread(absl::StrCat("serves ", i), [function, i] {
        for (int64_t x : {10 + i, 20 + i}) {
          const auto result = function->Call(1, 1, x);
          ExpectOk(result);
          Expect(result.value == x,
                 absl::StrCat("another's result: ", result.value));
        }
      });
    }
    program->Run();
    world->End();
  };
}

TEST(CaptureSearchTest, OneThread) {
  EXPECT_TRUE(SearchAll(Training(0, {{0, 1, 4}}), Of(1, 10)).all);
}

TEST(CaptureSearchTest, UpdatesOfTwoThreads) {
  SearchAll(TwoShapes(2), Of(1, 5));
  SearchAtRandom(TwoShapes(2), Seconds(4));
  SearchAtRandom(TwoShapes(3), Seconds(2));
  SearchAtRandom(OneShape(), Seconds(2));
  SearchAtRandom(TwoFunctions(), Seconds(2));
}

TEST(CaptureSearchTest, RecordingsThatEndMeanwhile) {
  SearchAtRandom(Evicted(), Seconds(3));
  SearchAtRandom(GivenBack(), Seconds(2));
}

TEST(CaptureSearchTest, ReadersAndAssignments) {
  SearchAtRandom(ReadersAndAssignments(0), Seconds(2));
  SearchAtRandom(ReadersAndAssignments(3), Seconds(3));
  SearchAtRandom(TrainingBeside(3, "keeps a value", KeepsAValue), Seconds(2));
}

TEST(CaptureSearchTest, Serving) {
  SearchAtRandom(Serving(2, 1), Seconds(2));
  SearchAtRandom(Serving(3, 1), Seconds(2));
  SearchAtRandom(Serving(2, 2), Seconds(2));
}

const char* const kLost =
    "were added|half changed|blocks of memory|is read after|is lost";

// Each mover mistakes the other mover's stand-in for the variable's own tensor.
TEST(CaptureSearchTest, MoversThatDoNotExcludeEachOtherAreFound) {
  EXPECT_FINDS(
      Rule::kMoversExcludeMovers,
      {
        also_broken_rule = Rule::kHomeKnowsItsOwnBuffer;
        SearchAtRandom(TwoShapes(2));
      },
      kLost);
  EXPECT_FINDS(Rule::kWhoChangesIsAMover,
               SearchAtRandom(ReadersAndAssignments(3)), kLost);
}

TEST(CaptureSearchTest, AHomeThatIsUsedTooEarlyIsFound) {
  EXPECT_FINDS(Rule::kWhoPutsBackIsAMover,
               SearchAtRandom(ReadersAndAssignments(3)), kLost);
  EXPECT_FINDS(Rule::kHomeIsFreeWhenItIsWrittenTo,
               SearchAtRandom(TrainingBeside(3, "keeps a value", KeepsAValue)),
               "that somebody has");
  EXPECT_FINDS(Rule::kChangedIsItsOwn,
               SearchAtRandom(TrainingBeside(3, "keeps a value", KeepsAValue)),
               "that somebody has");
}

TEST(CaptureSearchTest, ALaunchBesideAnotherIsFound) {
  EXPECT_FINDS(Rule::kOneLaunchAtATime, SearchAtRandom(Serving(3, 1)),
               "another's result|half changed");
  EXPECT_FINDS(Rule::kOneRecordsAtATime, SearchAtRandom(Serving(2, 2)),
               "used by two at once");
}

TEST(CaptureSearchTest, MemoryThatIsLetGoTooEarlyIsFound) {
  EXPECT_FINDS(Rule::kEndsAfterItsStream, SearchAtRandom(GivenBack()),
               "whose recording has ended");
  EXPECT_FINDS(Rule::kStagedUntilCompleted, SearchAtRandom(OneShape()), kLost);
}

}  // namespace
}  // namespace tensorflow::multistream
