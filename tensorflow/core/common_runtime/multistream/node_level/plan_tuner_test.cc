// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/plan_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/barrier.h"

namespace tensorflow::multistream {
namespace {

using StepRun = PlanTuner::Run;
using Times = std::vector<double>;

// More steps than any search that ends takes.
constexpr int kManySteps = 2000;
// Steps before the first turn of another plan.
constexpr int kStepsBeforePlans = 8;

// Steps on a fake clock, which advances by the plan's step time.
class PlanTunerTest : public ::testing::Test {
 protected:
  // Makes a plan for each of the step times.
  void UsePlans(Times step_us) {
    step_us_ = std::move(step_us);
    made_ = 0;
    now_us_ = 1000;
    tuner_ = std::make_unique<PlanTuner>([this] {
      ++made_;
      return static_cast<int>(step_us_.size());
    });
  }
  StepRun Begin() { return tuner_->Begin(now_us_); }
  void End(const StepRun& run, bool ok = true) {
    if (!run.watched) return;
    tuner_->Done(run);
    tuner_->Completed(run, now_us_, ok);
  }
  // A step that overlaps with no other.
  StepRun Step() {
    const StepRun run = Begin();
    now_us_ += step_us_[run.plan];
    End(run);
    return run;
  }
  // "0 p 1": the plans of the next steps; p is profiled.
  std::string Steps(int count) {
    std::vector<std::string> plans;
    for (int i = 0; i < count; ++i) {
      const StepRun run = Step();
      EXPECT_TRUE(run.plan == 0 || !run.profiled);
      plans.push_back(run.profiled ? "p" : absl::StrCat(run.plan));
    }
    return absl::StrJoin(plans, " ");
  }
  // Steps until a plan is decided. `after` is called after each, with how often
  // its plan has run, and returns whether the step ends without an error.
  int Decide(const std::function<bool(const StepRun&, int)>& after =
                 [](const StepRun&, int) { return true; }) {
    std::map<int, int> times;
    for (int i = 0; i < kManySteps && tuner_->decided() < 0; ++i) {
      const StepRun run = Begin();
      now_us_ += step_us_[run.plan];
      End(run, after(run, ++times[run.plan]));
    }
    return tuner_->decided();
  }

  Times step_us_;
  int made_ = 0;
  double now_us_ = 0;
  std::unique_ptr<PlanTuner> tuner_;
};

// Memory and caches are still warm for the previous plan at the first step of a
// turn, so that step is not timed.
TEST_F(PlanTunerTest, EachPlanHasItsTurnAndThenTheFastestStays) {
  UsePlans({100, 80, 120});
  EXPECT_EQ(Steps(8), "0 0 0 0 0 p p p");
  EXPECT_EQ(made_, 0);
  EXPECT_EQ(Steps(4), "1 1 2 2");
  EXPECT_EQ(made_, 1);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(tuner_->decided(), -1);
    EXPECT_EQ(Steps(1), "0");
    EXPECT_EQ(tuner_->Medians(),
              round == 0 ? (Times{0, 0, 0}) : (Times{100, 80, 120}));
    EXPECT_EQ(Steps(11), "0 0 0 1 1 1 1 2 2 2 2");
  }
  EXPECT_EQ(tuner_->decided(), 1);
  EXPECT_EQ(tuner_->Medians(), (Times{100, 80, 120}));
  for (int i = 0; i < 100; ++i) {
    const StepRun run = Step();
    EXPECT_EQ(run.plan, 1);
    EXPECT_FALSE(run.watched);
    EXPECT_FALSE(run.profiled);
  }
  EXPECT_EQ(made_, 1);
}

TEST_F(PlanTunerTest, AThreadThatMayNotPlanDoesNot) {
  UsePlans({100, 80});
  Steps(kStepsBeforePlans);
  EXPECT_EQ(tuner_->Begin(now_us_, /*may_plan=*/false).plan,
            PlanTuner::kMustPlan);
  EXPECT_EQ(made_, 0);
  // The refused Begin has changed nothing.
  EXPECT_EQ(Steps(6), "1 1 0 0 0 0");
  EXPECT_EQ(made_, 1);
  EXPECT_NE(tuner_->Begin(now_us_, /*may_plan=*/false).plan,
            PlanTuner::kMustPlan);
}

TEST_F(PlanTunerTest, OnlyAPlanThatIsClearlyFasterReplacesOneStream) {
  const std::pair<Times, int> cases[] = {
      {{100, 50}, 1},        {{100, 96}, 1},
      {{100, 99}, 0},        {{100, 100}, 0},
      {{100, 150}, 0},       {{100, 150, 60}, 2},
      {{100, 60, 150}, 1},   {{100, 90, 80, 85}, 2},
      {{100, 150, 200}, 0},  {{100, 99, 98.5, 150}, 0},
      {{100, 80, 99, 1}, 3}, {{1, 100, 100, 100}, 0}};
  for (const auto& [step_us, fastest] : cases) {
    UsePlans(step_us);
    EXPECT_EQ(Decide(), fastest) << absl::StrJoin(step_us, ", ");
  }
}

TEST_F(PlanTunerTest, OnePlanNeedsNoSearch) {
  UsePlans({100});
  Steps(kStepsBeforePlans);
  EXPECT_EQ(tuner_->decided(), -1);
  Step();
  EXPECT_EQ(tuner_->decided(), 0);
  EXPECT_EQ(made_, 1);
  EXPECT_FALSE(Step().watched);
}

// The last two turns come, and one more step begins before they have completed.
TEST_F(PlanTunerTest, TheDecisionWaitsForTheTimesOfAllTurnsAndStays) {
  UsePlans({100, 80});
  Steps(kStepsBeforePlans + 2 + 3 * 8 - 2);
  const StepRun first = Begin();
  tuner_->Done(first);
  const StepRun second = Begin();
  tuner_->Done(second);
  const StepRun late = Begin();
  EXPECT_TRUE(late.watched);
  EXPECT_EQ(late.plan, 0);
  now_us_ += 80;
  tuner_->Completed(first, now_us_, true);
  EXPECT_EQ(tuner_->decided(), -1);
  now_us_ += 80;
  tuner_->Completed(second, now_us_, true);
  EXPECT_EQ(tuner_->decided(), 1);
  End(late);
  EXPECT_EQ(tuner_->decided(), 1);
  EXPECT_EQ(tuner_->Medians(), (Times{100, 80}));
}

TEST_F(PlanTunerTest, FewStepsThatTakeLongDoNotDecide) {
  UsePlans({100, 80});
  EXPECT_EQ(Decide([this](const StepRun& run, int times) {
              if (run.plan == 1 && times % 4 == 0) now_us_ += 100000;
              return true;
            }),
            1);
  EXPECT_EQ(tuner_->Medians(), (Times{100, 80}));
}

TEST_F(PlanTunerTest, AStepWithAnErrorDoesNotCount) {
  UsePlans({100, 120});
  EXPECT_EQ(Decide([this](const StepRun& run, int times) {
              // Two of three timed ones of plan 1 end early.
              const bool fails = run.plan == 1 && times % 3 != 0;
              if (fails) now_us_ += 1 - step_us_[1];
              return !fails;
            }),
            0);
  EXPECT_EQ(tuner_->Medians(), (Times{100, 120}));
  // A plan that always fails is not chosen.
  UsePlans({100, 120, 50});
  EXPECT_EQ(Decide([](const StepRun& run, int) { return run.plan != 2; }), 0);
  EXPECT_EQ(tuner_->Medians(), (Times{100, 120, 0}));
}

//   Begin ------------ Done
//          Begin ------------ Done
//                       Begin ------------ Done  ...
TEST_F(PlanTunerTest, ASearchEndsThoughAStepIsNeverAlone) {
  UsePlans({100, 10});
  StepRun before = Begin();
  for (int i = 0; i < kManySteps && tuner_->decided() < 0; ++i) {
    const StepRun next = Begin();
    now_us_ += 50;
    End(before);
    before = next;
  }
  EXPECT_EQ(tuner_->decided(), 0);
}

TEST_F(PlanTunerTest, StepsThatAreAloneInBetweenCount) {
  UsePlans({100, 80});
  for (int i = 0; i < kManySteps && tuner_->decided() < 0; ++i) {
    if (i % 3 == 0) {
      const StepRun one = Begin();
      const StepRun other = Begin();
      now_us_ += 1;  // which would be very fast
      End(other);
      End(one);
    } else {
      Step();
    }
  }
  EXPECT_EQ(tuner_->decided(), 1);
  EXPECT_EQ(tuner_->Medians(), (Times{100, 80}));
}

//   long:   Begin ------------------------------------- Done
//   others:   Begin - Done   Begin - Done
TEST_F(PlanTunerTest, TurnsWaitUntilALongStepIsDone) {
  UsePlans({100, 80});
  Steps(4);
  const StepRun long_one = Begin();
  EXPECT_EQ(Steps(10), "0 0 0 0 0 0 0 0 0 0");
  End(long_one);
  EXPECT_EQ(Steps(5), "p p p 1 1");
}

// All steps take `host_us` of the host, which runs ahead by up to `depth`
// steps, and then their plan's time of one stream.
//
//   host:     1 2 3 . . . 4 . . . 5
//   stream:     111111222222333333444444555555
TEST_F(PlanTunerTest, StepsAreMeasuredFromTheEndOfTheOneBeforeOrTheirBegin) {
  for (const auto& [depth, host_us] : std::vector<std::pair<size_t, double>>{
           {1, 1}, {2, 1}, {5, 1}, {20, 1}, {5, 500}}) {
    UsePlans({100, 80, 120});
    std::deque<std::pair<StepRun, double>> pending;  // with their end's time
    double stream_us = now_us_;  // when it has completed all enqueued steps
    while (tuner_->decided() < 0 || !pending.empty()) {
      if (tuner_->decided() < 0) {
        const StepRun run = Begin();
        stream_us = std::max(stream_us, now_us_) + step_us_[run.plan];
        now_us_ += host_us;
        if (run.watched) tuner_->Done(run);
        pending.emplace_back(run, stream_us);
      }
      while (!pending.empty() &&
             (pending.size() > depth || tuner_->decided() >= 0 ||
              pending.front().second < now_us_)) {
        const auto [run, completed_us] = pending.front();
        pending.pop_front();
        now_us_ = std::max(now_us_, completed_us);
        if (run.watched) tuner_->Completed(run, completed_us, true);
      }
    }
    EXPECT_EQ(tuner_->Medians(), (Times{100, 80, 120})) << depth;
    EXPECT_EQ(tuner_->decided(), 1) << depth;
  }
}

// Threads that watch streams may be late by different times.
TEST_F(PlanTunerTest, APassThatIsToldLateDoesNotTurnTheTimeBack) {
  UsePlans({100, 80});
  Steps(kStepsBeforePlans + 2);
  const StepRun first = Begin();
  tuner_->Done(first);
  const StepRun second = Begin();
  tuner_->Done(second);
  const double begun_us = now_us_;
  tuner_->Completed(second, begun_us + 200, true);
  tuner_->Completed(first, begun_us + 100, true);
  EXPECT_EQ(tuner_->Medians()[0], 200);
  now_us_ = begun_us + 150;
  const StepRun third = Begin();
  tuner_->Done(third);
  tuner_->Completed(third, begun_us + 300, true);
  now_us_ = begun_us + 300;
  Step();
  // The second step takes 200, the third and the last take 100. The first step
  // of a turn is not timed.
  EXPECT_EQ(tuner_->Medians()[0], 100);
}

TEST_F(PlanTunerTest, ThreadsThatCallItAtOnceReachOneDecision) {
  constexpr int kThreads = 4;
  constexpr int kPlans = 3;
  std::atomic<int> made{0};
  PlanTuner tuner([&made] {
    ++made;
    return kPlans;
  });
  std::atomic<int64_t> clock_us{0};
  std::atomic<bool> bad{false};
  auto step = [&] {
    const StepRun run = tuner.Begin(clock_us++);
    if (run.plan < 0 || run.plan >= kPlans) bad = true;
    if (!run.watched) return;
    tuner.Medians();
    std::this_thread::yield();  // to one that begins or ends a step
    tuner.Done(run);
    std::this_thread::yield();
    tuner.Completed(run, clock_us++, true);
  };
  absl::Barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      start.Block();
      for (int j = 0; j < 20000 && tuner.decided() < 0; ++j) step();
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Go on with single steps, in case all steps of the threads overlapped.
  for (int i = 0; i < kManySteps && tuner.decided() < 0; ++i) step();
  EXPECT_FALSE(bad);
  // 0: the search was given up, as all steps overlapped.
  EXPECT_LE(made, 1);
  EXPECT_GE(tuner.decided(), 0);
  EXPECT_LT(tuner.decided(), kPlans);
  EXPECT_EQ(tuner.Begin(clock_us++).plan, tuner.decided());
}

}  // namespace
}  // namespace tensorflow::multistream
