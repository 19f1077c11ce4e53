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

namespace tensorflow {
namespace multistream {

void Step::Hold(const Tensor& tensor) {
  const void* data = tensor.data();
  if (data == nullptr) return;
  absl::MutexLock lock(&mu_);
  if (held_.insert(data).second) holds_.emplace_back(tensor);
}

bool Step::HasHolds() {
  absl::MutexLock lock(&mu_);
  return !holds_.empty();
}

void Step::ReleaseHolds() {
  std::vector<TensorReference> holds;
  {
    absl::MutexLock lock(&mu_);
    holds.swap(holds_);
    held_.clear();
  }
  for (const TensorReference& hold : holds) hold.Unref();
}

}  // namespace multistream
}  // namespace tensorflow
