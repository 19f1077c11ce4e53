// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/stream_order.h"

#include <utility>

#include "tensorflow/core/common_runtime/multistream/base/rules.h"

namespace tensorflow::multistream {

StreamOrder::StreamOrder(GpuGroups* gpu, bool reduce)
    : gpu_(gpu), reduce_(reduce), positions_(gpu->size()), spare_(gpu->size()) {
  for (int i = 0; i < gpu->size(); ++i) known_.emplace_back(gpu->size());
}

bool StreamOrder::MayLeaveOut(int group, int other, int64_t position) {
  if (group == other) return true;
  if (!reduce_ || !Knows(group, other, position)) return false;
  left_out_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void StreamOrder::Learn(int group, int other, int64_t position,
                        const VectorClock& known) {
  known_[group].Join(known);
  known_[group].Raise(other, position);
}

std::unique_ptr<StreamOrder::RecordedEvent> StreamOrder::Record(int group) {
  std::unique_ptr<RecordedEvent> recorded;
  {
    absl::MutexLock lock(&mu_);
    if (!spare_[group].empty()) {
      recorded = std::move(spare_[group].back());
      spare_[group].pop_back();
    }
  }
  if (recorded == nullptr) {
    recorded = std::make_unique<RecordedEvent>();
    recorded->group = group;
    recorded->event = gpu_->group(group)->NewEvent();
  }
  // Read position and clock before the event is recorded. Then all counted work
  // is enqueued, and all known positions are waited for, before the event.
  const bool in_order = IsKept(Rule::kPositionIsReadBeforeTheEvent);
  if (!in_order) gpu_->group(group)->RecordEvent(recorded->event.get());
  recorded->position = positions_[group].load(std::memory_order_acquire);
  recorded->known = known_[group].Read();
  if (in_order) gpu_->group(group)->RecordEvent(recorded->event.get());
  recorded_.fetch_add(1, std::memory_order_relaxed);
  return recorded;
}

void StreamOrder::Recycle(std::unique_ptr<RecordedEvent> recorded) {
  if (recorded == nullptr) return;
  absl::MutexLock lock(&mu_);
  spare_[recorded->group].push_back(std::move(recorded));
}

void StreamOrder::WaitFor(int group, const RecordedEvent& recorded) {
  if (MayLeaveOut(group, recorded.group, recorded.position)) return;
  gpu_->group(group)->OrderAfterEvent(gpu_->group(recorded.group),
                                      recorded.event.get());
  waited_.fetch_add(1, std::memory_order_relaxed);
  Learn(group, recorded.group, recorded.position, recorded.known);
}

void StreamOrder::WaitForTail(int group, int other, int64_t position) {
  if (MayLeaveOut(group, other, position)) return;
  std::unique_ptr<RecordedEvent> recorded = Record(other);
  const bool in_order = IsKept(Rule::kKnownAfterTheWait);
  if (!in_order) Learn(group, other, recorded->position, recorded->known);
  gpu_->group(group)->OrderAfterEvent(gpu_->group(other),
                                      recorded->event.get());
  waited_.fetch_add(1, std::memory_order_relaxed);
  if (in_order) Learn(group, other, recorded->position, recorded->known);
  // The wait is enqueued, so the event may be recorded again.
  Recycle(std::move(recorded));
}

void StreamOrder::WaitForAll(int group, int other) {
  if (group != other) WaitForTail(group, other, Launched(other));
}

StreamOrder::Counts StreamOrder::counts() const {
  return {recorded_.load(), waited_.load(), left_out_.load()};
}

}  // namespace tensorflow::multistream
