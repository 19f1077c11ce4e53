// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/plan_tuner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "tensorflow/core/platform/logging.h"

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

}  // namespace tensorflow::multistream
