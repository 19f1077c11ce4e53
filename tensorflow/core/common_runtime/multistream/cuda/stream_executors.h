// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which StreamExecutor has a group's streams?
//
// TensorFlow makes one for each GPU, with one cuBLAS, cuDNN and cuFFT handle
// behind one lock each: a matrix product holds it for 10 microseconds, so that
// groups which launch at the same time queue for it. Here each group has its
// own, all on the GPU's one CUDA context unless they are spread over several
// (group_contexts.h). TensorFlow asks a cache for the executor; `attach` asks
// here in its place.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_STREAM_EXECUTORS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_STREAM_EXECUTORS_H_

#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#include "tensorflow/core/platform/stream_executor.h"
#include "xla/stream_executor/executor_cache.h"

namespace tensorflow {
namespace multistream {

// From now on, who asks for a GPU's executor in this thread gets that of group
// `group`, if it is the GPU with CUDA's number `gpu`. 0: TensorFlow's own
// executor. It is made when it is chosen first, on context `context` of the
// GPU, and never deleted.
void ChooseExecutor(int gpu, int group, int context = 0);

// In the place of ExecutorCache::GetOrCreate, which is `stock`.
absl::StatusOr<se::StreamExecutor*> GetOrCreateExecutor(
    const se::ExecutorCache* cache, int ordinal,
    const se::ExecutorCache::ExecutorFactory& factory,
    absl::FunctionRef<absl::StatusOr<se::StreamExecutor*>()> stock);

// In the place of EventMgrFactory::GetEventMgr, which is `stock`. Each event
// manager polls in a thread of its own, and one is enough for all groups of a
// context.
EventMgr* GetEventManager(
    se::StreamExecutor* executor,
    absl::FunctionRef<EventMgr*(se::StreamExecutor*)> stock);

// In the place of EventMgr::ThenExecute, which is `stock`. TensorFlow asks the
// manager of the visible device, whose events cannot be recorded on a stream of
// another context, and takes an event that was not recorded for one that has
// happened.
void ThenExecute(
    EventMgr* events, se::Stream* stream, std::function<void()> f,
    absl::FunctionRef<void(EventMgr*, std::function<void()>)> stock);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_STREAM_EXECUTORS_H_
