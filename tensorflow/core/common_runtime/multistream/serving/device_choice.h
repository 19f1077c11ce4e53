// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which of several devices does a call run on? On the one that runs the fewest
// calls; those that run equally many take turns. A model server has one choice
// for the calls of all its models, C++'s and Python's.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_DEVICE_CHOICE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_DEVICE_CHOICE_H_

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tensorflow::multistream {

// Thread-safe.
class DeviceChoice {
 public:
  explicit DeviceChoice(int devices) : running_(devices) {}

  // Begins a call; returns its device, which End takes when the call has ended.
  int Begin();
  void End(int device);

 private:
  // Held for a moment: counts that change during a choice would send two calls
  // to one device while another one has none.
  absl::Mutex mutex_;
  std::vector<int> running_ ABSL_GUARDED_BY(mutex_);  // by device
  int next_ ABSL_GUARDED_BY(mutex_) = 0;              // has the next turn
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_DEVICE_CHOICE_H_
