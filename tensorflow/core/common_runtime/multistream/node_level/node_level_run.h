// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does one run of a graph launch each op on its group's device, after the
// group's stream waits for the op's inputs? The node-level executor makes a
// NodeLevelRun for each step, and the leader's device hands the ops to it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_LEVEL_RUN_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_LEVEL_RUN_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/common_runtime/multistream/step/shared_kernels.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_order.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/lib/core/refcount.h"

namespace tensorflow::multistream {

// How long does each op of a graph keep its stream group busy? In some steps a
// NodeLevelRun measures its ops one by one; the LaunchPlanner uses the times.
// Thread-safe.
class StepProfile {
 public:
  // Runs `launch`, which launches `kernel` on `group`, and waits until the
  // stream has completed it.
  void Measure(const OpKernel* kernel, StreamGroup* group,
               const std::function<void()>& launch) {
    const std::function<double()> stop = group->StartTimer();
    const auto started = std::chrono::steady_clock::now();
    launch();
    const std::chrono::duration<double, std::micro> launching =
        std::chrono::steady_clock::now() - started;
    // Without the time that the stream was idle while the host launched.
    const double running = stop() - launching.count();
    Add(kernel, std::max(launching.count(), running));
  }

  void Add(const OpKernel* kernel, double us) {
    absl::MutexLock lock(&mu_);
    auto [known, added] = us_.try_emplace(kernel, us);
    // Disturbances only make times longer.
    if (!added) known->second = std::min(known->second, us);
  }

  // Microseconds to launch or to run, whichever is longer.
  std::optional<double> CostOf(const OpKernel* kernel) const {
    absl::MutexLock lock(&mu_);
    auto known = us_.find(kernel);
    if (known == us_.end()) return std::nullopt;
    return known->second;
  }

 private:
  mutable absl::Mutex mu_;
  absl::flat_hash_map<const OpKernel*, double> us_ ABSL_GUARDED_BY(mu_);
};

// A node's part of the plan, whose waits have slots in place of nodes' ids.
struct Launch : NodePlan::Node {
  OpTraits traits;
  int slot = -1;  // where to record
};

struct Launches {
  absl::flat_hash_map<const OpKernel*, Launch> by_kernel;
  int slots = 0;            // one for each node that another waits for
  std::vector<int> groups;  // that are used
};

// Shared by all runs of a graph, whatever their callers' groups. Outlives them.
struct RunShared {
  std::vector<GroupMember*> members;  // of the groups
  std::vector<Device*> devices;       // of the groups
  GpuGroups* gpu;
  StreamOrder* order;
  std::vector<core::RefCountPtr<DeviceContext>> contexts;  // of the groups
  std::shared_ptr<SharedKernels> kernels;
};

class NodeLevelRun : public NodeRun,
                     public std::enable_shared_from_this<NodeLevelRun> {
 public:
  // `profile`: nullptr, or where to note how long each op takes. With a
  // profile, ops run one by one.
  NodeLevelRun(std::shared_ptr<const RunShared> shared,
               std::shared_ptr<const Launches> launches,
               StreamGroup* caller_group, std::shared_ptr<Step> step,
               Executor::Args::Runner run, StepProfile* profile);
  ~NodeLevelRun() override;

  // Returns a runner of the step's closures for an op on `group`.
  Executor::Args::Runner Runner(StreamGroup* group);

  void Compute(OpKernel* kernel, OpKernelContext* context) override;
  void ComputeAsync(AsyncOpKernel* kernel, OpKernelContext* context,
                    AsyncOpKernel::DoneCallback done) override;

  // The caller's stream waits for all of the run's work.
  void Join();

 private:
  struct Slot {
    // Of the node's last launch (a loop has many), or 0 before the first.
    std::atomic<int64_t> position{0};
    absl::Mutex mu;
    std::unique_ptr<StreamOrder::RecordedEvent> recorded ABSL_GUARDED_BY(mu);
  };
  struct RunnerSlot {
    absl::once_flag made;
    Executor::Args::Runner runner;
  };

  const Launch& LaunchOf(const OpKernel* kernel) const;
  // Makes the stream of the launch's group wait as planned.
  void Order(const Launch& launch);
  // Gives the op the group's memory, stream and runner of nested calls.
  absl::Status Move(int group, OpKernelContext* context);
  Executor::Args::Runner* RunnerOf(int group);
  // Call when the op has been launched or, if asynchronous, is done.
  void Note(const Launch& launch);

  const std::shared_ptr<const RunShared> shared_;
  const std::shared_ptr<const Launches> launches_;
  StreamGroup* const caller_group_;
  Launch unplanned_;  // on the caller's group
  const std::shared_ptr<Step> step_;
  const Executor::Args::Runner run_;
  StepProfile* const profile_;
  std::vector<Slot> slots_;
  std::vector<RunnerSlot> runners_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_LEVEL_RUN_H_
