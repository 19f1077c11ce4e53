// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How is memory kept until a stream has completed the work that uses it?
// OpScopes, copies on a device and the rendezvous add holds; a step has a
// StepHolds, which keeps them.
//
// A hold is a reference. A host callback drops it, and a callback runs when the
// stream has completed what was enqueued before it. So a hold has two lives:
// pending, until the work is enqueued, and enqueued. A pending hold belongs to
// who enqueues the work, and nobody else can drop it, whatever other threads do
// meanwhile for the same step and group. Only Enqueued makes it one that a
// callback may take.
//
//   Holds holds(group, step);
//   holds.Add(input);      also stops the op from writing its output there
//   ...                    the work is enqueued
//   holds.Enqueued();      or the end of `holds`
//
//   stream   --- work --- ... --- callback ---
//                 |                  |
//   input    =====x==================x dropped

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_HOLDS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_HOLDS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/base/rules.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_order.h"
#include "tensorflow/core/common_runtime/multistream/trace/trace.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {

class Step;

// A hold that is enqueued. Counts while it has a tensor
// (StreamGroup::NoteHeld), and is in a trace.
class EnqueuedHold {
 public:
  EnqueuedHold() = default;
  EnqueuedHold(StreamGroup* group, Tensor tensor)
      : group_(group), tensor_(std::move(tensor)) {
    group_->counters()->NoteHeld(1, bytes());
    since_ = Trace::Begin();
  }
  EnqueuedHold(EnqueuedHold&& other) { *this = std::move(other); }
  EnqueuedHold& operator=(EnqueuedHold&& other) {
    std::swap(position, other.position);
    std::swap(counted, other.counted);
    std::swap(since_, other.since_);
    std::swap(group_, other.group_);
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~EnqueuedHold() {
    if (group_ == nullptr) return;
    group_->counters()->NoteHeld(-1, -bytes());
    if (since_ != 0) Record();
  }
  int64_t bytes() const { return tensor_.TotalBytes(); }

  int64_t position = 0;  // in the step's StreamOrder, of the last work
  int64_t counted = 0;   // of the bytes, toward StepHolds::kMostBytes

 private:
  void Record() const;

  int64_t since_ = 0;  // as of Trace::Begin
  StreamGroup* group_ = nullptr;
  Tensor tensor_;
};

// The holds of one piece of work, pending. For one thread at a time.
class Holds {
 public:
  // For work on `group`'s stream. Once enqueued, they are `step`'s, which drops
  // them in a callback of the stream at its end or before; without one, a
  // callback drops them once the stream has completed the work. `step` outlives
  // this.
  //
  // `counts`: what is dropped is free then, so it counts toward
  // StepHolds::kMostBytes.
  Holds(StreamGroup* group, Step* step, bool counts = true)
      : group_(group), step_(step), counts_(counts) {}
  Holds(Holds&& other)
      : group_(other.group_),
        step_(other.step_),
        counts_(other.counts_),
        tensors_(std::move(other.tensors_)) {
    other.tensors_.clear();
  }
  // Who ends has enqueued the work, or never will.
  ~Holds() { Enqueued(); }

  // Keeps `tensor`'s memory from being reused, and from being written to by an
  // op that would take it for its output.
  void Add(const Tensor& tensor) {
    if (tensor.data() != nullptr) tensors_.push_back(tensor);
    if (!IsKept(Rule::kHeldByOneUntilEnqueued)) Enqueued();
  }
  bool empty() const { return tensors_.empty(); }

  // All work that uses what is held is enqueued.
  void Enqueued();

 private:
  StreamGroup* const group_;
  Step* const step_;
  const bool counts_;
  absl::InlinedVector<Tensor, 2> tensors_;
};

// What is held for the groups of one step. Thread-safe.
class StepHolds {
 public:
  // `order`: of a step whose ops have groups of their own, or nullptr.
  // `finished`: whether all ops of the step are done on the host.
  StepHolds(GpuGroups* gpu, StreamOrder* order,
            const std::atomic<bool>* finished)
      : gpu_(gpu), order_(order), finished_(finished), held_by_(gpu->size()) {}
  ~StepHolds();

  // Keeps `tensor` until the step's end: what later ops of the step, on
  // `group`, use without having it for an input.
  void HoldToEnd(StreamGroup* group, const Tensor& tensor);
  // The leader is about to change the variable whose memory `data` is: makes
  // its stream wait for what other groups hold it for, and drops those holds,
  // or the change would have to make a copy. Only if the step has a
  // StreamOrder.
  void Release(const void* data);
  // How many groups `data` is held for, by work that has been enqueued.
  int HoldsOf(const void* data);
  bool HasHolds(StreamGroup* group);
  // At the step's end: a host callback releases what is held for `group`, once
  // its stream has completed all that is enqueued. No callback if nothing is.
  void ReleaseWhenCompleted(StreamGroup* group);
  // The same, and then runs `then`, which uses what the stream made.
  void ReleaseWhenCompleted(StreamGroup* group, std::function<void()> then);

  // Beyond this, all holds whose work is enqueued are dropped as soon as the
  // group's stream has completed it, before the step's end.
  static constexpr int64_t kMostBytes = int64_t{64} << 20;

 private:
  friend class Holds;

  using ByData = absl::flat_hash_map<const void*, EnqueuedHold>;
  struct Held {
    ByData by_data;
    ByData to_end;
    int64_t bytes = 0;  // that count toward kMostBytes

    bool empty() const { return by_data.empty() && to_end.empty(); }
  };

  // Takes over `tensors`: all work on `group` that uses them has been enqueued.
  void Keep(StreamGroup* group, absl::Span<Tensor> tensors, bool counts);
  Held TakeHeld(StreamGroup* group);

  GpuGroups* const gpu_;
  StreamOrder* const order_;
  const std::atomic<bool>* const finished_;
  absl::Mutex mu_;
  std::vector<Held> held_by_ ABSL_GUARDED_BY(mu_);  // groups
};

// Drops `holds`, which has EnqueuedHolds in it, once `group`'s stream has
// completed all that is enqueued so far, and then runs `then`, which may be
// nullptr. `host_waits`: as for StreamGroup::WhenCompleted.
template <typename H>
void ReleaseHoldsWhenCompleted(StreamGroup* group, H holds,
                               std::function<void()> then = nullptr,
                               bool host_waits = false) {
  // A function that is copied keeps what it has until the last copy is gone.
  auto held = std::make_shared<H>(std::move(holds));
  if (!IsKept(Rule::kHeldUntilCompleted)) *held = H();
  group->WhenCompleted(
      [held = std::move(held), then = std::move(then)] {
        *held = H();
        if (then) then();
      },
      host_waits);
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_HOLDS_H_
