// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which kernel has a constant of this value already? With TF_SEGMENT_OWN_CONST,
// constants of equal value exist once on a GPU, shared by all executors (one
// for each set of feeds and fetches), sessions and functions; without the
// variable, once in each executor. SharedKernels asks.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_CONSTANT_CACHE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_CONSTANT_CACHE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {
namespace multistream {

class ConstantCache {
 public:
  using MakeKernel = std::function<absl::Status(
      const std::shared_ptr<const NodeProperties>&, OpKernel**)>;

  // The process-wide cache. Never deleted.
  static ConstantCache* Get();

  // A Const kernel on /device:GPU:`gpu` with the value of `node`, made by
  // `make` if the cache has none. Each Acquire needs one Release.
  absl::Status Acquire(int gpu,
                       const std::shared_ptr<const NodeProperties>& node,
                       const MakeKernel& make, OpKernel** kernel);
  // False if `kernel` is not from this cache.
  bool Release(const OpKernel* kernel);

 private:
  // The GPU, the serialized value's size, and two independent hashes of it.
  using Key = std::tuple<int, uint64_t, uint64_t, uint64_t>;
  struct Entry {
    std::unique_ptr<OpKernel> kernel;
    int uses;
  };

  absl::Mutex mu_;
  absl::flat_hash_map<Key, Entry> entries_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<const OpKernel*, Key> keys_ ABSL_GUARDED_BY(mu_);
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_CONSTANT_CACHE_H_
