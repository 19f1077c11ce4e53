// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which of several plans of a graph makes its steps shortest? The estimate of a
// plan may be wrong, so they are measured, and one stream (plan 0) stays unless
// another one is clearly faster. All have the same results. The executor's
// PlanVariants ask at the beginning of each step.
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

namespace tensorflow {
namespace multistream {

// Thread-safe.
class PlanTuner {
 public:
  // `make_plans` is called once the steps have been profiled, by a thread that
  // begins a step and may plan; it returns how many plans there are, plan 0
  // included. It may take long, and no lock is held meanwhile: steps that
  // others begin have plan 0, and what tells of the end of steps never waits.
  explicit PlanTuner(std::function<int()> make_plans);

  // One step.
  struct Run {
    int plan = 0;
    // Its ops are to be timed.
    bool profiled = false;
    // Done and Completed are to be called with it; not so once it is decided.
    bool watched = false;
    int64_t number = 0;
    double begun_us = 0;
    bool timed = false;
  };

  // A step begins; `now_us` is the time in microseconds. If plans are to be
  // made and this thread may not, none begins, and the run's plan is kMustPlan.
  Run Begin(double now_us, bool may_plan = true);
  static constexpr int kMustPlan = -1;
  // It is done on the host.
  void Done(const Run& run);
  // Its streams have completed it. `ok`: it ended without an error.
  void Completed(const Run& run, double now_us, bool ok);

  // The plan to stay with, or -1.
  int decided() const { return decided_.load(std::memory_order_acquire); }

  // Of each plan, the median time of a step in microseconds; 0 if none has been
  // timed.
  std::vector<double> Medians() const;

 private:
  struct Turn {
    int plan;
    bool profiled;
    bool timed;
  };

  // To be called with the lock, which it releases while plans are made.
  void MakePlans() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DecideIfKnown() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<double> MediansOf() const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const std::function<int()> make_plans_;
  std::atomic<int> decided_{-1};
  mutable absl::Mutex mu_;
  std::deque<Turn> turns_ ABSL_GUARDED_BY(mu_);
  bool planning_ ABSL_GUARDED_BY(mu_) = false;
  int rounds_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t begun_ ABSL_GUARDED_BY(mu_) = 0;
  int running_ ABSL_GUARDED_BY(mu_) = 0;  // on the host
  int timed_ ABSL_GUARDED_BY(mu_) = 0;    // until their streams completed them
  // Runs up to this number had others beside them.
  int64_t disturbed_ ABSL_GUARDED_BY(mu_) = 0;
  double last_completed_us_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::vector<double>> times_us_ ABSL_GUARDED_BY(mu_);  // by plan
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PLAN_TUNER_H_
