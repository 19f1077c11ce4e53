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

#include "tensorflow/core/common_runtime/multistream/step/holds.h"

#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/step/step.h"

namespace tensorflow {
namespace multistream {

void Holds::Enqueued() {
  if (tensors_.empty()) return;
  if (step_ != nullptr) {
    step_->Keep(group_, absl::MakeSpan(tensors_), counts_);
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

}  // namespace multistream
}  // namespace tensorflow
