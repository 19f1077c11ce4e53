// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/plan_tuner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_join.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {
namespace {

constexpr int kWarmUp = 5;  // allocators grow, libraries choose algorithms
constexpr int kProfiled = 3;
constexpr int kWarmUpOfPlan = 2;
constexpr int kRounds = 3;
constexpr int kTimedInTurn = 3;  // after one untimed step
constexpr size_t kFewestTimes = 5;
// Limits: steps that overlap are not timed, so measuring might never end.
constexpr int kMostRounds = 10;
constexpr int64_t kMostSteps = 1000;
// A plan replaces one stream if its steps take less than this share.
constexpr double kGain = 0.97;

double Median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

double NowUs() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A wait's cost depends on the machine: less if the waiting threads are awake,
// more if they have to be woken.
constexpr double kWaitWithThreadUs = 15;
constexpr double kSlowWaitUs = 45;

bool SameGroups(const Launches& a, const Launches& b) {
  for (const auto& [kernel, launch] : a.by_kernel) {
    auto other = b.by_kernel.find(kernel);
    if (other == b.by_kernel.end() || other->second.group != launch.group) {
      return false;
    }
  }
  return true;
}

}  // namespace

PlanTuner::PlanTuner(std::function<int()> make_plans)
    : make_plans_(std::move(make_plans)), times_us_(1) {
  for (int i = 0; i < kWarmUp; ++i) turns_.push_back({0, false, false});
  for (int i = 0; i < kProfiled; ++i) turns_.push_back({0, true, false});
}

void PlanTuner::MakePlans() {
  planning_ = true;
  mu_.Unlock();
  const int plans = std::max(make_plans_(), 1);
  mu_.Lock();
  planning_ = false;
  times_us_.resize(plans);
  if (plans == 1) decided_.store(0, std::memory_order_release);
}

void PlanTuner::AddRound() {
  const int plans = static_cast<int>(times_us_.size());
  if (rounds_++ == 0) {
    for (int plan = 1; plan < plans; ++plan) {
      for (int i = 0; i < kWarmUpOfPlan; ++i) {
        turns_.push_back({plan, false, false});
      }
    }
  }
  for (int plan = 0; plan < plans; ++plan) {
    for (int i = 0; i <= kTimedInTurn; ++i) {
      turns_.push_back({plan, false, i > 0});
    }
  }
}

PlanTuner::Run PlanTuner::Begin(double now_us, bool may_plan) {
  if (decided() >= 0) return {decided()};
  absl::MutexLock lock(&mu_);
  if (turns_.empty() && !planning_) {
    if (rounds_ == 0) {
      if (!may_plan) return {/*plan=*/kMustPlan};
      MakePlans();
    }
    if (rounds_ < kRounds) AddRound();
  }
  Run run = {std::max(decided(), 0)};
  if (++begun_ >= kMostSteps && decided() < 0) {
    decided_.store(0, std::memory_order_release);
  }
  if (running_++ > 0) {
    disturbed_ = begun_;
  } else if (!turns_.empty() && decided() < 0) {
    run = turns_.front();
    turns_.pop_front();
    timed_ += run.timed;
  }
  run.watched = true;
  run.number = begun_;
  run.begun_us = now_us;
  return run;
}

void PlanTuner::Done(const Run& run) {
  absl::MutexLock lock(&mu_);
  --running_;
}

void PlanTuner::Completed(const Run& run, double now_us, bool ok) {
  absl::MutexLock lock(&mu_);
  if (run.timed) --timed_;
  // Until then, earlier steps kept the streams busy.
  const double us = now_us - std::max(run.begun_us, last_completed_us_);
  last_completed_us_ = std::max(last_completed_us_, now_us);
  if (run.timed && ok && disturbed_ < run.number) {
    times_us_[run.plan].push_back(us);
  }
  if (turns_.empty() && rounds_ >= kRounds && timed_ == 0) DecideIfKnown();
}

void PlanTuner::DecideIfKnown() {
  if (decided() >= 0) return;
  for (const std::vector<double>& times : times_us_) {
    if (times.size() >= kFewestTimes) continue;
    if (rounds_ < kMostRounds) {
      AddRound();
    } else {
      decided_.store(0, std::memory_order_release);
    }
    return;
  }
  const std::vector<double> medians = MediansOf();
  const int best = static_cast<int>(
      std::min_element(medians.begin(), medians.end()) - medians.begin());
  const int decision = medians[best] < kGain * medians[0] ? best : 0;
  decided_.store(decision, std::memory_order_release);
  VLOG(1) << "Plan " << decision << " of " << medians.size()
          << "; microseconds a step: " << absl::StrJoin(medians, ", ");
}

std::vector<double> PlanTuner::Medians() const {
  absl::MutexLock lock(&mu_);
  return MediansOf();
}

std::vector<double> PlanTuner::MediansOf() const {
  std::vector<double> medians;
  for (const std::vector<double>& times : times_us_) {
    medians.push_back(Median(times));
  }
  return medians;
}

absl::Status PlanVariants::Initialize(NewExecutorOf new_executor) {
  new_executor_ = std::move(new_executor);
  TF_ASSIGN_OR_RETURN(const bool tuned, planner_->HasNodesToTune());
  TF_ASSIGN_OR_RETURN(auto variant, NewVariant({/*split=*/!tuned}));
  absl::MutexLock lock(&mu_);
  variants_.push_back(std::move(variant));
  if (tuned) {
    tuner_ = std::make_shared<PlanTuner>([this] { return MakeVariants(); });
  }
  return absl::OkStatus();
}

PlanTuner::Run PlanVariants::Begin(bool is_nested, bool may_plan) {
  if (tuner_ == nullptr || is_nested) return {};
  return tuner_->Begin(NowUs(), may_plan);
}

void PlanVariants::Done(const PlanTuner::Run& turn) {
  if (turn.watched) tuner_->Done(turn);
}

void PlanVariants::DoneAndCompletesOn(StreamGroup* caller_group,
                                      const PlanTuner::Run& turn, bool ok) {
  if (!turn.watched) return;
  tuner_->Done(turn);
  caller_group->WhenCompleted(
      [tuner = tuner_, turn, ok] { tuner->Completed(turn, NowUs(), ok); });
}

absl::StatusOr<std::unique_ptr<PlanVariants::Variant>> PlanVariants::NewVariant(
    const PlanGuess& guess) const {
  auto variant = std::make_unique<Variant>();
  variant->guess = guess;
  variant->launches.resize(groups_);
  TF_ASSIGN_OR_RETURN(variant->launches[0], planner_->Plan(0, guess));
  TF_RETURN_IF_ERROR(new_executor_(planner_->graph(), &variant->executor));
  return variant;
}

int PlanVariants::MakeVariants() {
  for (const PlanGuess& guess :
       {PlanGuess{}, PlanGuess{true, Policy::kCost, kWaitWithThreadUs},
        PlanGuess{true, Policy::kCost, kSlowWaitUs},
        PlanGuess{true, Policy::kFullGraph},
        PlanGuess{true, Policy::kEmbedding}}) {
    absl::StatusOr<std::unique_ptr<Variant>> variant = NewVariant(guess);
    if (!variant.ok()) {
      LOG(WARNING) << "A plan cannot be tried: " << variant.status();
      continue;
    }
    absl::MutexLock lock(&mu_);
    const bool known =
        std::any_of(variants_.begin(), variants_.end(), [&](const auto& v) {
          return SameGroups(*v->launches[0], *(*variant)->launches[0]);
        });
    if (!known) variants_.push_back(*std::move(variant));
  }
  absl::MutexLock lock(&mu_);
  return static_cast<int>(variants_.size());
}

absl::StatusOr<std::shared_ptr<const Launches>> PlanVariants::LaunchesOf(
    int number, int caller_group, bool may_plan, Executor** runs) {
  if (number == PlanTuner::kMustPlan) return nullptr;
  PlanGuess guess;
  {
    absl::MutexLock lock(&mu_);
    const Variant& variant = *variants_[number];
    *runs = variant.executor.get();
    if (variant.launches[caller_group] != nullptr)
      return variant.launches[caller_group];
    if (!may_plan) return nullptr;
    guess = variant.guess;
  }
  TF_ASSIGN_OR_RETURN(auto made, planner_->Plan(caller_group, guess));
  absl::MutexLock lock(&mu_);
  auto& launches = variants_[number]->launches[caller_group];
  if (launches == nullptr) launches = std::move(made);
  return launches;
}

}  // namespace tensorflow::multistream
