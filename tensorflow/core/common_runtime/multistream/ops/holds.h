// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How is memory kept until a stream has completed the work that uses it?
// OpScopes, copies on a device and the rendezvous add holds; each step keeps
// its holds in a StepHolds.
//
// A hold is a reference to a tensor's memory. A host callback drops the hold;
// the callback runs when the stream has completed the work enqueued before the
// callback. So a hold has two states. Until its work is enqueued the hold is
// pending: only the thread that enqueues the work can drop the hold, whatever
// other threads do meanwhile for the same step and group. After Enqueued(), a
// callback may drop it.
//
//   Holds holds(group, step);
//   holds.Add(input);      also stops the op from writing its output there
//   ...                    the work is enqueued
//   holds.Enqueued();      or the destructor of `holds`
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

namespace tensorflow::multistream {

class Step;

// A hold that is enqueued. While it has a tensor, it counts in the group's
// statistics (GroupCounters::NoteHeld). Its lifetime is recorded in a trace.
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

  int64_t position = 0;  // of the last work that uses it, in StreamOrder
  int64_t counted = 0;   // bytes that count toward StepHolds::kMostBytes

 private:
  void Record() const;

  int64_t since_ = 0;  // see Trace::Begin
  StreamGroup* group_ = nullptr;
  Tensor tensor_;
};

// The pending holds of one piece of work. Not thread-safe.
class Holds {
 public:
  // Holds for work on `group`'s stream. Once enqueued, the holds move to
  // `step`, which drops them in a host callback at the step's end or earlier.
  // Without a step, a callback drops them once the stream has completed the
  // work. `step` outlives this object.
  //
  // `counts`: dropping the holds frees their memory, so the memory counts
  // toward StepHolds::kMostBytes.
  Holds(StreamGroup* group, Step* step, bool counts = true)
      : group_(group), step_(step), counts_(counts) {}
  Holds(Holds&& other)
      : group_(other.group_),
        step_(other.step_),
        counts_(other.counts_),
        tensors_(std::move(other.tensors_)) {
    other.tensors_.clear();
  }
  // By now the work has been enqueued, or never will be.
  ~Holds() { Enqueued(); }

  // Keeps `tensor`'s memory from being reused, and keeps ops from writing their
  // output in place there.
  void Add(const Tensor& tensor) {
    if (tensor.data() != nullptr) tensors_.push_back(tensor);
    if (!IsKept(Rule::kHeldByOneUntilEnqueued)) Enqueued();
  }
  bool empty() const { return tensors_.empty(); }

  // Call when all work that uses the held tensors is enqueued.
  void Enqueued();

 private:
  StreamGroup* const group_;
  Step* const step_;
  const bool counts_;
  absl::InlinedVector<Tensor, 2> tensors_;
};

// The enqueued holds of one step, for each group. Thread-safe.
class StepHolds {
 public:
  // `order`: at node level; otherwise nullptr. `finished`: whether all ops of
  // the step are done on the host.
  StepHolds(GpuGroups* gpu, StreamOrder* order,
            const std::atomic<bool>* finished)
      : gpu_(gpu), order_(order), finished_(finished), held_by_(gpu->size()) {}
  ~StepHolds();

  // Keeps `tensor` until the step's end, for later ops of the step on `group`
  // that use the tensor although it is none of their inputs.
  void HoldToEnd(StreamGroup* group, const Tensor& tensor);
  // Call before the leader changes the variable with memory `data`. Makes the
  // leader's stream wait for the work that other groups hold the memory for,
  // and drops these holds: a held variable could not be changed in place. Does
  // nothing unless the step has a StreamOrder.
  void Release(const void* data);
  // For how many groups enqueued holds keep `data`.
  int HoldsOf(const void* data);
  // Call at the step's end. A host callback drops the holds for `group` once
  // its stream has completed all that is enqueued. Without holds, no callback.
  void ReleaseWhenCompleted(StreamGroup* group);
  // Always enqueues a callback, which drops the holds and then runs `then`.
  // `then` may use the stream's results.
  void ReleaseWhenCompleted(StreamGroup* group, std::function<void()> then);

  // Beyond this, a group's enqueued holds that count are dropped as soon as the
  // stream has completed their work.
  static constexpr int64_t kMostBytes = int64_t{64} << 20;

 private:
  friend class Holds;

  using ByData = absl::flat_hash_map<const void*, EnqueuedHold>;
  struct Held {
    ByData by_data;
    ByData to_end;
    int64_t bytes = 0;  // counted toward kMostBytes

    bool empty() const { return by_data.empty() && to_end.empty(); }
  };

  // Takes over `tensors`. All work on `group` that uses them is enqueued.
  void Keep(StreamGroup* group, absl::Span<Tensor> tensors, bool counts);
  Held TakeHeld(StreamGroup* group);

  GpuGroups* const gpu_;
  StreamOrder* const order_;
  const std::atomic<bool>* const finished_;
  absl::Mutex mu_;
  std::vector<Held> held_by_ ABSL_GUARDED_BY(mu_);  // by group
};

// Drops `holds`, a container of EnqueuedHolds, once `group`'s stream has
// completed all that is enqueued so far. Then runs `then`, unless nullptr.
// `host_waits`: see StreamGroup::WhenCompleted.
template <typename H>
void ReleaseHoldsWhenCompleted(StreamGroup* group, H holds,
                               std::function<void()> then = nullptr,
                               bool host_waits = false) {
  // Shared: each copy of a std::function would keep holds until destroyed.
  auto held = std::make_shared<H>(std::move(holds));
  if (!IsKept(Rule::kHeldUntilCompleted)) *held = H();
  group->WhenCompleted(
      [held = std::move(held), then = std::move(then)] {
        *held = H();
        if (then) then();
      },
      host_waits);
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_HOLDS_H_
