// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/device_choice.h"

namespace tensorflow::multistream {

int DeviceChoice::Begin() {
  absl::MutexLock lock(&mutex_);
  const int count = static_cast<int>(running_.size());
  int chosen = next_;
  for (int i = 1; i < count; ++i) {
    const int other = (next_ + i) % count;
    if (running_[other] < running_[chosen]) chosen = other;
  }
  next_ = (chosen + 1) % count;
  ++running_[chosen];
  return chosen;
}

void DeviceChoice::End(int device) {
  absl::MutexLock lock(&mutex_);
  --running_[device];
}

}  // namespace tensorflow::multistream
