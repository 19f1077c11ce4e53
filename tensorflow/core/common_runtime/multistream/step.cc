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
  Held& held = held_by_[group_->index()];
  if (held.data.insert(data).second) held.tensors.push_back(tensor);
}

void Step::Keep(StreamGroup* group, std::vector<Tensor> held) {
  if (held.empty()) return;
  std::vector<Tensor> passed;
  {
    absl::MutexLock lock(&mu_);
    Held& ours = held_by_[group->index()];
    for (Tensor& tensor : held) {
      if (!ours.data.insert(tensor.data()).second) continue;
      ours.bytes += tensor.TotalBytes();
      ours.tensors.push_back(std::move(tensor));
    }
    if (ours.bytes > kMostBytesKept) {
      passed.swap(ours.tensors);
      ours.data.clear();
      ours.bytes = 0;
    }
  }
  // A function that is copied keeps what it has until the last copy is gone.
  if (!passed.empty()) {
    group->WhenPassed([passed = std::make_shared<std::vector<Tensor>>(
                           std::move(passed))] { passed->clear(); });
  }
}

bool Step::HasHolds(StreamGroup* group) {
  absl::MutexLock lock(&mu_);
  return !held_by_[group->index()].tensors.empty();
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
