// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/plan_variants.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {
namespace {

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
