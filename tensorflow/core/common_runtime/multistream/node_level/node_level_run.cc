// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/node_level_run.h"

#include <utility>

#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/base/raise_to.h"

namespace tensorflow::multistream {

NodeLevelRun::NodeLevelRun(std::shared_ptr<const RunShared> shared,
                           std::shared_ptr<const Launches> launches,
                           StreamGroup* caller_group,
                           std::shared_ptr<Step> step,
                           Executor::Args::Runner run, StepProfile* profile)
    : shared_(std::move(shared)),
      launches_(std::move(launches)),
      caller_group_(caller_group),
      step_(std::move(step)),
      run_(std::move(run)),
      profile_(profile),
      slots_(launches_->slots),
      runners_(shared_->gpu->size()) {
  unplanned_.group = caller_group_->index();
}

NodeLevelRun::~NodeLevelRun() {
  for (Slot& slot : slots_) shared_->order->Recycle(std::move(slot.recorded));
}

Executor::Args::Runner NodeLevelRun::Runner(StreamGroup* group) {
  return StepRunner{step_, &shared_->kernels->traits(), run_,
                    shared_from_this(), group};
}

void NodeLevelRun::Compute(OpKernel* kernel, OpKernelContext* context) {
  const Launch& launch = LaunchOf(kernel);
  Order(launch);
  GroupMember* member = shared_->members[launch.group];
  OpKernelContext::Params* params = OpParams(context);
  DeviceBase* const device = params->device;
  DeviceContext* const device_context = params->op_device_context;
  auto* const runner = params->runner;
  absl::Status status = Move(launch.group, context);
  if (!status.ok()) {
    context->SetStatus(status);
  } else {
    const auto compute = [&] {
      member->ComputeHere(kernel, context, &launch.traits);
    };
    if (profile_ == nullptr) {
      compute();
    } else {
      profile_->Measure(kernel, shared_->gpu->group(launch.group), compute);
    }
  }
  params->device = device;
  params->op_device_context = device_context;
  params->runner = runner;
  Note(launch);
}

void NodeLevelRun::ComputeAsync(AsyncOpKernel* kernel, OpKernelContext* context,
                                AsyncOpKernel::DoneCallback done) {
  const Launch& launch = LaunchOf(kernel);
  Order(launch);
  GroupMember* member = shared_->members[launch.group];
  // No need to restore the parameters: an asynchronous op has its own.
  absl::Status status = Move(launch.group, context);
  if (!status.ok()) {
    context->SetStatus(status);
    done();
    return;
  }
  member->ComputeAsyncHere(
      kernel, context, &launch.traits,
      [self = shared_from_this(), &launch, done = std::move(done)] {
        self->Note(launch);
        done();
      });
}

void NodeLevelRun::Join() {
  for (int group : launches_->groups) {
    shared_->order->WaitForAll(caller_group_->index(), group);
  }
}

const Launch& NodeLevelRun::LaunchOf(const OpKernel* kernel) const {
  auto found = launches_->by_kernel.find(kernel);
  return found == launches_->by_kernel.end() ? unplanned_ : found->second;
}

void NodeLevelRun::Order(const Launch& launch) {
  StreamOrder* order = shared_->order;
  bool all = launch.after_all;
  for (const NodePlan::Wait& wait : launch.waits) {
    int64_t last = 0;
    for (int i : wait.nodes) {
      const int64_t position =
          slots_[i].position.load(std::memory_order_acquire);
      // The node was dead, so not launched: waiting for it orders nothing.
      all |= position == 0;
      last = std::max(last, position);
    }
    if (last == 0) continue;
    if (wait.by_event) {
      Slot& slot = slots_[wait.nodes[0]];
      absl::MutexLock lock(&slot.mu);
      order->WaitFor(launch.group, *slot.recorded);
    } else {
      order->WaitForTail(launch.group, wait.group, last);
    }
  }
  if (!all) return;
  for (int group : launches_->groups) {
    order->WaitForAll(launch.group, group);
  }
}

absl::Status NodeLevelRun::Move(int group, OpKernelContext* context) {
  OpKernelContext::Params* params = OpParams(context);
  params->runner = RunnerOf(group);
  if (group == 0) return absl::OkStatus();
  Device* device = shared_->devices[group];
  params->device = device;
  params->op_device_context = shared_->contexts[group].get();
  if (params->eigen_gpu_device == nullptr) return absl::OkStatus();
  return device->ReinitializeGpuDevice(
      context, params->eigen_gpu_device, params->op_device_context,
      device->GetAllocator(AllocatorAttributes()));
}

Executor::Args::Runner* NodeLevelRun::RunnerOf(int group) {
  RunnerSlot& slot = runners_[group];
  absl::call_once(slot.made, [&] {
    // The run owns this runner, so the runner must not own the run (a cycle).
    slot.runner =
        StepRunner{step_, &shared_->kernels->traits(), run_,
                   std::shared_ptr<NodeRun>(std::shared_ptr<NodeRun>(), this),
                   shared_->gpu->group(group)};
  });
  return &slot.runner;
}

void NodeLevelRun::Note(const Launch& launch) {
  if (launch.slot < 0) return;
  Slot& slot = slots_[launch.slot];
  const int64_t position = shared_->order->Launched(launch.group);
  if (launch.record == NodePlan::Record::kEvent) {
    std::unique_ptr<StreamOrder::RecordedEvent> recorded =
        shared_->order->Record(launch.group);
    absl::MutexLock lock(&slot.mu);
    if (slot.recorded == nullptr ||
        slot.recorded->position < recorded->position) {
      slot.recorded.swap(recorded);
    }
    shared_->order->Recycle(std::move(recorded));
  }
  // Two threads may launch a node of a loop at the same time.
  RaiseTo(position, &slot.position);
}

}  // namespace tensorflow::multistream
