/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/
// Interleavings of threads that call captured functions, on late streams: each
// update counts once, whoever records, replays, assigns, reads, or has memory
// given back meanwhile.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/expect_finds.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/late_steps.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"

namespace tensorflow {
namespace multistream {
namespace {

using search::Body;
using search::Expect;
using search::LateFunction;
using search::LateLeader;
using search::Limits;
using search::Op;
using search::Program;
using search::SearchAll;
using search::SearchAtRandom;

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

  // What is in a variable's memory. Once all streams have completed.
  int64_t Value(int i) {
    Var* variable = search::VariableOf(leader_.group_device(0), i);
    const auto halves = variable->tensor()->flat<int64_t>();
    Expect(halves(0) == halves(1), "a variable is left half changed");
    return halves(0);
  }
  // That nothing is left of the functions.
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

// Calls that add to variable 0: so many numbers in, and how much it adds.
struct Calls {
  int function = 0;
  int numbers = 1;
  int times = 2;
};

// One thread for each of the calls. `before`: each function has been called so
// often in each shape, before the threads begin: the third call records.
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
      // Each thread adds another number, so that a mixed up one shows.
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

Limits Of(int deviations, double seconds) {
  Limits limits;
  limits.deviations = deviations;
  limits.seconds = seconds;
  return limits;
}

Body TwoShapes(int before) { return Training(before, {{0, 1}, {0, 2}}); }

TEST(CaptureSearchTest, OneThread) {
  SearchAll(Training(0, {{0, 1, 5}}), Of(2, 5));
}

TEST(CaptureSearchTest, TwoShapesOfOneFunction) {
  SearchAll(TwoShapes(2), Of(1, 5));
  SearchAtRandom(TwoShapes(2), Of(0, 5));
  SearchAtRandom(TwoShapes(3), Of(0, 5));
}

TEST(CaptureSearchTest, MoversThatTakeEachOthersStandInAreFound) {
  EXPECT_FINDS(
      Rule::kMoversExcludeMovers,
      {
        also_broken_rule = Rule::kHomeKnowsItsOwnBuffer;
        SearchAtRandom(TwoShapes(2));
      },
      "were added|half changed|blocks of memory");
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
