// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/recorded_callbacks.h"

#include <atomic>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace tensorflow::multistream {
namespace {

struct Streams {
  absl::Mutex mu;
  // Key: CUDA's stream handle.
  absl::flat_hash_map<void*, Callbacks*> kept ABSL_GUARDED_BY(mu);
  std::atomic<int> count{0};
};

Streams* All() {
  static auto* streams = new Streams;
  return streams;
}

void* HandleOf(se::Stream* stream) {
  return stream->platform_specific_handle().stream;
}

bool Keep(void* handle, absl::FunctionRef<std::function<void()>()> callback) {
  Streams* all = All();
  // Fast path without the lock. The recording thread enqueues callbacks on the
  // thread that made KeepCallbacks, so it sees its own increment.
  if (all->count.load(std::memory_order_acquire) == 0) return false;
  absl::MutexLock lock(&all->mu);
  auto found = all->kept.find(handle);
  if (found == all->kept.end()) return false;
  found->second->push_back(callback());
  return true;
}

}  // namespace

KeepCallbacks::KeepCallbacks(se::Stream* stream, Callbacks* callbacks)
    : stream_(stream) {
  absl::MutexLock lock(&All()->mu);
  All()->kept[HandleOf(stream)] = callbacks;
  All()->count.fetch_add(1, std::memory_order_release);
}

KeepCallbacks::~KeepCallbacks() {
  absl::MutexLock lock(&All()->mu);
  All()->kept.erase(HandleOf(stream_));
  All()->count.fetch_sub(1, std::memory_order_release);
}

bool KeptCallback(se::Stream* stream, std::function<void()>* callback) {
  return Keep(HandleOf(stream),
              [callback] { return std::exchange(*callback, nullptr); });
}

bool KeptCallback(void* stream, void (*callback)(void*, int, void*),
                  void* data) {
  return Keep(stream, [=] {
    return [=] { callback(stream, /*cudaSuccess=*/0, data); };
  });
}

}  // namespace tensorflow::multistream
