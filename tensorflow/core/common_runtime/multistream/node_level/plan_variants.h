// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// With which plan of its graph, and which executor of it, does the next step
// run? With the only one, or with those that a PlanTuner compares. The
// node-level executor asks at the beginning of each step.

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

namespace tensorflow {
namespace multistream {

// Thread-safe.
class PlanVariants {
 public:
  // An executor whose kernels are as the last plan of the leader left them.
  using NewExecutorOf =
      std::function<absl::Status(const Graph&, std::unique_ptr<Executor>*)>;

  // `groups`: that the session has. `planner` outlives this, and has its graph
  // when Initialize is called.
  PlanVariants(LaunchPlanner* planner, int groups)
      : planner_(planner), groups_(groups) {}

  // Makes the first plan.
  absl::Status Initialize(NewExecutorOf new_executor);

  // A step begins. `is_nested`: it runs within another, and is not worth a
  // search. If plans are to be made and this thread may not, none begins, and
  // LaunchesOf returns nullptr.
  PlanTuner::Run Begin(bool is_nested, bool may_plan);
  // It is done on the host.
  void Done(const PlanTuner::Run& turn);
  // The same, and `caller_group`'s stream completes it later. `ok`: without an
  // error.
  void DoneAndCompletesOn(StreamGroup* caller_group, const PlanTuner::Run& turn,
                          bool ok);

  // The plan `number` for `caller_group`, the caller's group. Makes it without
  // the lock, as no step shall wait for a plan that is not its own. Two threads
  // that do so at once have the same plan, of which the first one stays.
  // nullptr: it has to be made, and this thread may not.
  absl::StatusOr<std::shared_ptr<const Launches>> LaunchesOf(int number,
                                                             int caller_group,
                                                             bool may_plan,
                                                             Executor** runs)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A plan of the graph, and what runs it.
  struct Variant {
    PlanGuess guess;
    std::vector<std::shared_ptr<const Launches>>
        launches;  // by the caller's group; see mu_
    std::unique_ptr<Executor> executor;
  };

  // By one thread at a time: it changes the kernels for the executor.
  absl::StatusOr<std::unique_ptr<Variant>> NewVariant(
      const PlanGuess& guess) const ABSL_LOCKS_EXCLUDED(mu_);
  // Plans to try beside that of one stream. Returns how many there are with it.
  int MakeVariants() ABSL_LOCKS_EXCLUDED(mu_);

  LaunchPlanner* const planner_;
  const int groups_;
  NewExecutorOf new_executor_;
  std::shared_ptr<PlanTuner> tuner_;  // or nullptr

  // Never held while a plan is made: steps begin and end meanwhile.
  absl::Mutex mu_;
  // The first one splits nothing, if the fastest is to be found.
  std::vector<std::unique_ptr<Variant>> variants_ ABSL_GUARDED_BY(mu_);
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PLAN_VARIANTS_H_
