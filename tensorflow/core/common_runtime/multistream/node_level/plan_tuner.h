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
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/multistream/node_level/launch_planner.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_level_run.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"

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

// Which plan and executor of a graph does the next step use? The only ones, or
// those that a PlanTuner compares. The node-level executor asks at the
// beginning of each step. Thread-safe.
class PlanVariants {
 public:
  // Makes an executor of the kernels as the leader's last plan marked them.
  using NewExecutorOf =
      std::function<absl::Status(const Graph&, std::unique_ptr<Executor>*)>;

  // `groups`: the session's number of groups. `planner` must outlive this
  // object and have its graph before Initialize.
  PlanVariants(LaunchPlanner* planner, int groups)
      : planner_(planner), groups_(groups) {}

  // Makes the first plan.
  absl::Status Initialize(NewExecutorOf new_executor);

  // A step begins. `is_nested`: the step runs within another, and is not worth
  // a search. If plans have to be made and `may_plan` is false, no step begins,
  // and LaunchesOf returns nullptr.
  PlanTuner::Run Begin(bool is_nested, bool may_plan);
  // The step is done on the host.
  void Done(const PlanTuner::Run& turn);
  // Like Done, and tells the tuner when `caller_group`'s stream has completed
  // the step. `ok`: without an error.
  void DoneAndCompletesOn(StreamGroup* caller_group, const PlanTuner::Run& turn,
                          bool ok);

  // Plan `number` for `caller_group`, the caller's group; `runs` gets its
  // executor. Makes the plan without the lock, so that no step waits for
  // another step's plan. If two threads make one plan at once, the first result
  // stays. nullptr: the plan has to be made and `may_plan` is false.
  absl::StatusOr<std::shared_ptr<const Launches>> LaunchesOf(int number,
                                                             int caller_group,
                                                             bool may_plan,
                                                             Executor** runs)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A plan of the graph and its executor.
  struct Variant {
    PlanGuess guess;
    std::vector<std::shared_ptr<const Launches>>
        launches;  // by the caller's group; see mu_
    std::unique_ptr<Executor> executor;
  };

  // Called by one thread at a time: planning marks the executor's kernels.
  absl::StatusOr<std::unique_ptr<Variant>> NewVariant(
      const PlanGuess& guess) const ABSL_LOCKS_EXCLUDED(mu_);
  // Adds plans to compare with one stream. Returns the number of all plans.
  int MakeVariants() ABSL_LOCKS_EXCLUDED(mu_);

  LaunchPlanner* const planner_;
  const int groups_;
  NewExecutorOf new_executor_;
  std::shared_ptr<PlanTuner> tuner_;  // or nullptr

  // Never held while a plan is made: steps begin and end meanwhile.
  absl::Mutex mu_;
  // If plans are compared, the first one splits nothing.
  std::vector<std::unique_ptr<Variant>> variants_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PLAN_TUNER_H_
