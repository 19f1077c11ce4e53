// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How long does each op of a graph keep its stream group busy? In some steps a
// NodeLevelRun measures its ops one by one; the LaunchPlanner uses the times.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_STEP_PROFILE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_STEP_PROFILE_H_

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {
namespace multistream {

// Thread-safe.
class StepProfile {
 public:
  // Runs `launch`, which launches `kernel` on `group`, and waits until the
  // stream has completed it.
  void Measure(const OpKernel* kernel, StreamGroup* group,
               const std::function<void()>& launch) {
    const std::function<double()> stop = group->StartTimer();
    const auto started = std::chrono::steady_clock::now();
    launch();
    const std::chrono::duration<double, std::micro> launching =
        std::chrono::steady_clock::now() - started;
    // Without the time that the stream was idle while the host launched.
    const double running = stop() - launching.count();
    Add(kernel, std::max(launching.count(), running));
  }

  void Add(const OpKernel* kernel, double us) {
    absl::MutexLock lock(&mu_);
    auto [known, added] = us_.try_emplace(kernel, us);
    // Disturbances only make times longer.
    if (!added) known->second = std::min(known->second, us);
  }

  // Microseconds to launch or to run, whichever is longer.
  std::optional<double> CostOf(const OpKernel* kernel) const {
    absl::MutexLock lock(&mu_);
    auto known = us_.find(kernel);
    if (known == us_.end()) return std::nullopt;
    return known->second;
  }

 private:
  mutable absl::Mutex mu_;
  absl::flat_hash_map<const OpKernel*, double> us_ ABSL_GUARDED_BY(mu_);
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_STEP_PROFILE_H_
