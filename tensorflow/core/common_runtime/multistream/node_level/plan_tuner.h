// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which of several plans of a graph makes its steps shortest? Estimates may be
// wrong, so plans are measured. Plan 0, one stream, stays unless another plan
// is clearly faster. All plans have the same results. The executor's
// PlanVariants asks at the beginning of each step.
//
//   steps:  0 0 0 0 0   p p p   1 1 2 2   0 0 0 0 1 1 1 1 2 2 2 2  ...   1 1 1
//           warm-up  profiled ^ warm-up   each in turn, some rounds decided
//                            make_plans

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PLAN_TUNER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PLAN_TUNER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tensorflow::multistream {

// Thread-safe.
class PlanTuner {
 public:
  // `make_plans` is called after the profiled steps, on a thread that begins a
  // step and may plan. It returns the number of plans, plan 0 included. It may
  // take long, so no lock is held: steps that begin meanwhile get plan 0, and
  // Done and Completed never wait.
  explicit PlanTuner(std::function<int()> make_plans);

  // One step.
  struct Run {
    int plan = 0;
    // Each op of the step is to be timed.
    bool profiled = false;
    bool timed = false;
    // Done and Completed must be called. False once a plan is decided.
    bool watched = false;
    int64_t number = 0;
    double begun_us = 0;
  };

  // A step begins; `now_us` is the time in microseconds. If plans have to be
  // made and `may_plan` is false, no step begins: the plan is kMustPlan.
  Run Begin(double now_us, bool may_plan = true);
  static constexpr int kMustPlan = -1;
  // The step is done on the host.
  void Done(const Run& run);
  // The streams have completed the step. `ok`: without an error.
  void Completed(const Run& run, double now_us, bool ok);

  // The chosen plan, or -1 if undecided.
  int decided() const { return decided_.load(std::memory_order_acquire); }

  // The median step time of each plan in microseconds; 0 if none was timed.
  std::vector<double> Medians() const;

 private:
  // Releases mu_ while make_plans_ runs.
  void MakePlans() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DecideIfKnown() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<double> MediansOf() const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const std::function<int()> make_plans_;
  std::atomic<int> decided_{-1};
  mutable absl::Mutex mu_;
  std::deque<Run> turns_ ABSL_GUARDED_BY(mu_);
  bool planning_ ABSL_GUARDED_BY(mu_) = false;
  int rounds_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t begun_ ABSL_GUARDED_BY(mu_) = 0;
  int running_ ABSL_GUARDED_BY(mu_) = 0;  // on the host
  int timed_ ABSL_GUARDED_BY(mu_) = 0;    // not yet completed by the streams
  // Runs up to this number overlapped with others: their times do not count.
  int64_t disturbed_ ABSL_GUARDED_BY(mu_) = 0;
  double last_completed_us_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::vector<double>> times_us_ ABSL_GUARDED_BY(mu_);  // by plan
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PLAN_TUNER_H_
