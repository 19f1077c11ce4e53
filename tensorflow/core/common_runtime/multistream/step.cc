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

#include "tensorflow/core/common_runtime/multistream/step.h"

#include <algorithm>
#include <utility>

#include "tensorflow/core/common_runtime/multistream/test_faults.h"

namespace tensorflow {
namespace multistream {

Step::~Step() {
  for (int i = 0; i < gpu_->size(); ++i) ReleaseHolds(gpu_->group(i));
}

void Step::Hold(const Tensor& tensor) {
  const void* data = tensor.data();
  if (data == nullptr) return;
  absl::MutexLock lock(&mu_);
  auto& by_data = held_by_[group_->index()].by_data;
  if (!by_data.contains(data)) by_data.emplace(data, Kept(group_, tensor));
}

void Step::Keep(StreamGroup* group, std::vector<Tensor> held) {
  if (held.empty()) return;
  const int64_t position =
      order_ == nullptr ? 0 : order_->Launched(group->index());
  absl::flat_hash_map<const void*, Kept> passed;
  {
    absl::MutexLock lock(&mu_);
    Held& ours = held_by_[group->index()];
    for (Tensor& tensor : held) {
      const void* data = tensor.data();
      auto kept = ours.by_data.find(data);
      if (kept == ours.by_data.end()) {
        kept = ours.by_data.emplace(data, Kept(group, std::move(tensor))).first;
        ours.bytes += kept->second.bytes();
      }
      kept->second.position = std::max(kept->second.position, position);
    }
    if (ours.bytes > kMostBytesKept) {
      passed.swap(ours.by_data);
      ours.bytes = 0;
    }
  }
  // A function that is copied keeps what it has until the last copy is gone.
  if (!passed.empty()) {
    group->WhenPassed(
        [passed = std::make_shared<absl::flat_hash_map<const void*, Kept>>(
             std::move(passed))] { passed->clear(); });
  }
}

void Step::LetGo(const void* data) {
  if (data == nullptr || order_ == nullptr) return;
  for (int i = 1; i < gpu_->size(); ++i) {
    auto& by_data = held_by_[i].by_data;
    for (int64_t waited_for = -1;;) {
      Kept kept;  // let go of without the lock
      absl::MutexLock lock(&mu_);
      auto found = by_data.find(data);
      if (found == by_data.end()) break;
      if (found->second.position == waited_for) {
        kept = std::move(found->second);
        held_by_[i].bytes -= kept.bytes();
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

int Step::HoldsOf(const void* data) {
  absl::MutexLock lock(&mu_);
  return static_cast<int>(std::count_if(
      held_by_.begin(), held_by_.end(),
      [data](const Held& held) { return held.by_data.contains(data); }));
}

bool Step::HasHolds(StreamGroup* group) {
  absl::MutexLock lock(&mu_);
  return !held_by_[group->index()].by_data.empty();
}

void Step::ReleaseWhenPassed(const std::shared_ptr<Step>& step,
                             StreamGroup* group) {
  if (!step->HasHolds(group)) return;
  if (TakeTestFault(TestFault::kReleaseTooEarly)) step->ReleaseHolds(group);
  group->WhenPassed([step, group] { step->ReleaseHolds(group); });
}

void Step::ReleaseHolds(StreamGroup* group) {
  Held held;
  {
    absl::MutexLock lock(&mu_);
    std::swap(held, held_by_[group->index()]);
  }
}

}  // namespace multistream
}  // namespace tensorflow
