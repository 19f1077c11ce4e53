// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which StreamExecutor do a group's streams belong to? TensorFlow makes one for
// each GPU, whose cuBLAS, cuDNN and cuFFT handles have one lock each. A matrix
// product holds its lock for 10 microseconds, so groups that launch at the same
// time would queue. Here each group has its own executor, on the GPU's one CUDA
// context unless groups are spread over several (group_contexts.h). TensorFlow
// looks executors up in a cache; hooks/ asks here instead.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_STREAM_EXECUTORS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_STREAM_EXECUTORS_H_

#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#include "tensorflow/core/platform/stream_executor.h"
#include "xla/stream_executor/executor_cache.h"

namespace tensorflow::multistream {

// From now on this thread's lookups of the executor of the GPU with CUDA's
// number `gpu` return that of group `group`; 0: TensorFlow's own executor. A
// group's executor is made when it is first chosen, on context `context` of the
// GPU, and never deleted.
void ChooseExecutor(int gpu, int group, int context = 0);

// Replaces ExecutorCache::GetOrCreate, which is `stock`.
absl::StatusOr<se::StreamExecutor*> GetOrCreateExecutor(
    const se::ExecutorCache* cache, int ordinal,
    const se::ExecutorCache::ExecutorFactory& factory,
    absl::FunctionRef<absl::StatusOr<se::StreamExecutor*>()> stock);

// Replaces EventMgrFactory::GetEventMgr, which is `stock`. All groups of a
// context share one event manager, because each has a polling thread.
EventMgr* GetEventManager(
    se::StreamExecutor* executor,
    absl::FunctionRef<EventMgr*(se::StreamExecutor*)> stock);

// Replaces EventMgr::ThenExecute, which is `stock`. TensorFlow calls the
// visible device's manager, whose events cannot be recorded on a stream of
// another context; and it takes an event that was not recorded as completed.
void ThenExecute(
    EventMgr* events, se::Stream* stream, std::function<void()> f,
    absl::FunctionRef<void(EventMgr*, std::function<void()>)> stock);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_STREAM_EXECUTORS_H_
