// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/ops/holds.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"

namespace tensorflow::multistream {

void EnqueuedHold::Record() const {
  const StreamGroup* owner = MemoryOwner::Get()->Find(tensor_.data());
  Trace::Get()->Record(
      {TraceKind::kHold, group_->gpu(), group_->index(), since_, 0, bytes(), "",
       owner == nullptr ? "memory of the host"
                        : absl::StrCat("memory of group ", owner->index())});
}

void Holds::Enqueued() {
  if (tensors_.empty()) return;
  if (step_ != nullptr) {
    step_->holds().Keep(group_, absl::MakeSpan(tensors_), counts_);
  } else {
    std::vector<EnqueuedHold> holds;
    holds.reserve(tensors_.size());
    for (Tensor& tensor : tensors_) {
      holds.emplace_back(group_, std::move(tensor));
    }
    ReleaseHoldsWhenCompleted(group_, std::move(holds));
  }
  tensors_.clear();
}

// Drops holds added after the step's end by an input pipeline of the step.
StepHolds::~StepHolds() {
  for (int i = 0; i < gpu_->size(); ++i) {
    Held held = TakeHeld(gpu_->group(i));
    if (!held.empty())
      ReleaseHoldsWhenCompleted(gpu_->group(i), std::move(held));
  }
}

void StepHolds::HoldToEnd(StreamGroup* group, const Tensor& tensor) {
  const void* data = tensor.data();
  if (data == nullptr) return;
  absl::MutexLock lock(&mu_);
  ByData& to_end = held_by_[group->index()].to_end;
  if (!to_end.contains(data)) to_end.emplace(data, EnqueuedHold(group, tensor));
}

void StepHolds::Keep(StreamGroup* group, absl::Span<Tensor> tensors,
                     bool counts) {
  const int64_t position =
      order_ == nullptr ? 0 : order_->Launched(group->index());
  ByData completed;
  {
    absl::MutexLock lock(&mu_);
    Held& ours = held_by_[group->index()];
    for (Tensor& tensor : tensors) {
      const void* data = tensor.data();
      auto kept = ours.by_data.find(data);
      if (kept == ours.by_data.end()) {
        EnqueuedHold hold(group, std::move(tensor));
        if (counts) ours.bytes += hold.counted = hold.bytes();
        kept = ours.by_data.emplace(data, std::move(hold)).first;
      }
      kept->second.position = std::max(kept->second.position, position);
    }
    // After the step's end no other call drops the holds.
    if (finished_->load(std::memory_order_acquire)) {
      completed.swap(ours.by_data);
      ours.bytes = 0;
    } else if (ours.bytes > kMostBytes) {
      // Not those that do not count: what they hold may be in a list, whose
      // later users rely on them.
      for (auto it = ours.by_data.begin(); it != ours.by_data.end();) {
        const auto one = it++;
        if (one->second.counted == 0) continue;
        completed.emplace(one->first, std::move(one->second));
        ours.by_data.erase(one);
      }
      ours.bytes = 0;
    }
  }
  if (!completed.empty())
    ReleaseHoldsWhenCompleted(group, std::move(completed));
}

void StepHolds::Release(const void* data) {
  if (data == nullptr || order_ == nullptr) return;
  for (int i = 1; i < gpu_->size(); ++i) {
    for (int64_t waited_for = -1;;) {
      EnqueuedHold kept;  // destroyed after the lock is released
      absl::MutexLock lock(&mu_);
      auto& by_data = held_by_[i].by_data;
      auto found = by_data.find(data);
      if (found == by_data.end()) break;
      if (found->second.position == waited_for) {
        kept = std::move(found->second);
        held_by_[i].bytes -= kept.counted;
        by_data.erase(found);
        break;
      }
      waited_for = found->second.position;
      mu_.Unlock();
      order_->WaitForTail(0, i, waited_for);
      mu_.Lock();
    }
  }
}

int StepHolds::HoldsOf(const void* data) {
  absl::MutexLock lock(&mu_);
  return static_cast<int>(std::count_if(
      held_by_.begin(), held_by_.end(),
      [data](const Held& held) { return held.by_data.contains(data); }));
}

StepHolds::Held StepHolds::TakeHeld(StreamGroup* group) {
  absl::MutexLock lock(&mu_);
  return std::exchange(held_by_[group->index()], {});
}

void StepHolds::ReleaseWhenCompleted(StreamGroup* group) {
  Held held = TakeHeld(group);
  if (held.empty() || TakeTestFault(TestFault::kReleaseTooEarly)) return;
  ReleaseHoldsWhenCompleted(group, std::move(held));
}

void StepHolds::ReleaseWhenCompleted(StreamGroup* group,
                                     std::function<void()> then) {
  ReleaseHoldsWhenCompleted(group, TakeHeld(group), std::move(then),
                            /*host_waits=*/true);
}

}  // namespace tensorflow::multistream
