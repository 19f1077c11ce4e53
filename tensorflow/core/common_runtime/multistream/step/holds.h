/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

// How is memory kept until a stream has completed the work that uses it?
// OpScopes, copies on a device and the rendezvous add holds; steps keep them.
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

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_HOLDS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_HOLDS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {

class Step;

// A hold that is enqueued. Counts while it has a tensor
// (StreamGroup::NoteHeld).
class EnqueuedHold {
 public:
  EnqueuedHold() = default;
  EnqueuedHold(StreamGroup* group, Tensor tensor)
      : group_(group), tensor_(std::move(tensor)) {
    group_->NoteHeld(1, bytes());
  }
  EnqueuedHold(EnqueuedHold&& other) { *this = std::move(other); }
  EnqueuedHold& operator=(EnqueuedHold&& other) {
    std::swap(position, other.position);
    std::swap(counted, other.counted);
    std::swap(group_, other.group_);
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~EnqueuedHold() {
    if (group_ != nullptr) group_->NoteHeld(-1, -bytes());
  }
  int64_t bytes() const { return tensor_.TotalBytes(); }

  int64_t position = 0;  // in the step's StreamOrder, of the last work
  int64_t counted = 0;   // of the bytes, toward Step::kMostBytesKept

 private:
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
  // Step::kMostBytesKept.
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

// Drops `holds`, which has EnqueuedHolds in it, once `group`'s stream has
// completed all that is enqueued so far, and then runs `then`, which may be
// nullptr. `host_waits`: as for StreamGroup::WhenCompleted.
template <typename H>
void ReleaseHoldsWhenCompleted(StreamGroup* group, H holds,
                               std::function<void()> then = nullptr,
                               bool host_waits = false) {
  // A function that is copied keeps what it has until the last copy is gone.
  auto held = std::make_shared<H>(std::move(holds));
  group->WhenCompleted(
      [held = std::move(held), then = std::move(then)] {
        *held = H();
        if (then) then();
      },
      host_waits);
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_HOLDS_H_
