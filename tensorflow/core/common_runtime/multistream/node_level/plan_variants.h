// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which plan and executor of a graph does the next step use? The only ones, or
// those that a PlanTuner compares. The node-level executor asks at the
// beginning of each step.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PLAN_VARIANTS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PLAN_VARIANTS_H_

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
#include "tensorflow/core/common_runtime/multistream/node_level/plan_tuner.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"

namespace tensorflow::multistream {

// Thread-safe.
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

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PLAN_VARIANTS_H_
