// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/pinned_group.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/base/compat.h"

namespace tensorflow {
namespace multistream {
namespace {

int PinnedGroupInAnotherThread(const Executor::Args& args) {
  int group = kAnyGroup;
  std::thread([&] { group = PinnedGroup(args); }).join();
  return group;
}

TEST(PinnedGroupTest, CountsForItsThread) {
  const Executor::Args args;
  EXPECT_EQ(PinnedGroup(args), kAnyGroup);
  EXPECT_EQ(PinThread(3), kAnyGroup);
  EXPECT_EQ(PinnedGroup(args), 3);
  EXPECT_EQ(PinnedGroupInAnotherThread(args), kAnyGroup);
  EXPECT_EQ(PinThread(0), 3);
  EXPECT_EQ(PinnedGroup(args), 0);
  EXPECT_EQ(PinThread(kAnyGroup), 0);
  EXPECT_EQ(PinnedGroup(args), kAnyGroup);
}

// Keeps the arguments of its steps, as a step's ops see them.
class KeepingExecutor : public Executor {
 public:
  explicit KeepingExecutor(std::vector<Args>* steps) : steps_(steps) {}

 private:
  void TFMS_RUN_ASYNC(const Args& args, DoneCallback done) override {
    steps_->push_back(args);
    done(absl::CancelledError("the test's"));
  }

  std::vector<Args>* const steps_;
};

class KeptTest : public ::testing::Test {
 protected:
  // A thread pinned to `group` begins a step. Returns the arguments that the
  // step's ops pass on.
  Executor::Args Begin(int group, Executor::Args args) {
    const int before = PinThread(group);
    absl::Status ended;
    executor_->RunAsync(args,
                        [&](const absl::Status& status) { ended = status; });
    PinThread(before);
    EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
    EXPECT_FALSE(steps_.empty());
    return std::exchange(steps_, {}).back();
  }
  Executor::Args WithRunner() {
    Executor::Args args;
    args.runner = [this](Executor::Args::Closure closure) {
      ++runs_;
      closure();
    };
    return args;
  }

  int runs_ = 0;

 private:
  std::vector<Executor::Args> steps_;
  const std::unique_ptr<Executor> executor_ =
      KeepPinnedGroup(std::make_unique<KeepingExecutor>(&steps_));
};

TEST_F(KeptTest, CountsForWhatTheStepCallsInAllThreads) {
  EXPECT_EQ(PinnedGroup(Begin(kAnyGroup, WithRunner())), kAnyGroup);
  const Executor::Args passed_on = Begin(2, WithRunner());
  EXPECT_EQ(PinnedGroup(passed_on), 2);
  EXPECT_EQ(PinnedGroupInAnotherThread(passed_on), 2);
  // And for nested calls of that step.
  EXPECT_EQ(PinnedGroup(Begin(kAnyGroup, passed_on)), 2);
  // The thread comes first.
  PinThread(1);
  EXPECT_EQ(PinnedGroup(passed_on), 1);
  PinThread(kAnyGroup);
}

TEST_F(KeptTest, StepsRunTheirClosuresWhereTheyWould) {
  for (int group : {kAnyGroup, 2}) {
    const Executor::Args passed_on = Begin(group, WithRunner());
    bool ran = false;
    passed_on.runner([&] { ran = true; });
    EXPECT_TRUE(ran);
  }
  EXPECT_EQ(runs_, 2);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
