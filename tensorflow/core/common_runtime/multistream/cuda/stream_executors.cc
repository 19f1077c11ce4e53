// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/stream_executors.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#include "tensorflow/core/common_runtime/multistream/cuda/group_contexts.h"
#include "tensorflow/core/common_runtime/multistream/cuda/recorded_callbacks.h"
#include "tensorflow/core/platform/stream_executor.h"
#include "xla/stream_executor/executor_cache.h"
#include "xla/stream_executor/gpu/gpu_init.h"
#include "xla/stream_executor/stream.h"
#include "xla/stream_executor/stream_executor.h"

namespace tensorflow::multistream {
namespace {

// How to answer this thread's next executor lookup.
struct Chosen {
  bool learn = false;                        // note which cache serves GPUs
  std::optional<std::pair<int, int>> group;  // GPU and group
  int context = 0;                           // the group's context
};
thread_local Chosen chosen;

struct GroupExecutors {
  absl::Mutex mu;
  // The GPU platform's cache; other platforms have their own.
  const se::ExecutorCache* cache ABSL_GUARDED_BY(mu) = nullptr;
  std::map<std::pair<int, int>, std::unique_ptr<se::StreamExecutor>> by_group
      ABSL_GUARDED_BY(mu);
  // The executor whose event manager an executor uses: TensorFlow's own for the
  // GPU or, since events belong to a context, the first executor of another
  // context.
  absl::flat_hash_map<const se::StreamExecutor*, se::StreamExecutor*> events_of
      ABSL_GUARDED_BY(mu);
  std::map<std::pair<int, int>, se::StreamExecutor*> first_of_context
      ABSL_GUARDED_BY(mu);
  absl::flat_hash_map<const se::StreamExecutor*, EventMgr*> events
      ABSL_GUARDED_BY(mu);
  // Whether any group has a context other than its GPU's first.
  std::atomic<bool> contexts{false};
};

GroupExecutors* All() {
  static auto* all = new GroupExecutors;
  return all;
}

// The event manager for `stream`: `asked`, unless the context differs.
EventMgr* EventsOf(se::Stream* stream, EventMgr* asked) {
  GroupExecutors* all = All();
  if (!all->contexts.load(std::memory_order_acquire)) return asked;
  absl::MutexLock lock(&all->mu);
  auto executor = all->events_of.find(stream->parent());
  if (executor == all->events_of.end()) return asked;
  auto events = all->events.find(executor->second);
  return events == all->events.end() ? asked : events->second;
}

}  // namespace

void ChooseExecutor(int gpu, int group, int context) {
  chosen = Chosen();
  if (group == 0) return;
  chosen.learn = true;
  auto stock = se::GPUMachineManager()->ExecutorForDevice(gpu);
  chosen.learn = false;
  // The next lookup returns this error.
  if (!stock.ok()) return;
  chosen.group = std::make_pair(gpu, group);
  chosen.context = context;
  if (context != 0) All()->contexts.store(true, std::memory_order_release);
  auto own = se::GPUMachineManager()->ExecutorForDevice(gpu);
  if (!own.ok()) return;
  GroupExecutors* all = All();
  absl::MutexLock lock(&all->mu);
  auto first = all->first_of_context.try_emplace({gpu, context},
                                                 context == 0 ? *stock : *own);
  all->events_of[*own] = first.first->second;
}

absl::StatusOr<se::StreamExecutor*> GetOrCreateExecutor(
    const se::ExecutorCache* cache, int ordinal,
    const se::ExecutorCache::ExecutorFactory& factory,
    absl::FunctionRef<absl::StatusOr<se::StreamExecutor*>()> stock) {
  if (!chosen.learn && !chosen.group) return stock();
  {
    GroupExecutors* all = All();
    absl::MutexLock lock(&all->mu);
    if (chosen.learn) {
      all->cache = cache;
      chosen.learn = false;  // the factory may look in other caches
    }
    if (chosen.group && cache == all->cache && ordinal == chosen.group->first) {
      std::unique_ptr<se::StreamExecutor>& own = all->by_group[*chosen.group];
      if (own == nullptr) {
        // The factory may look up executors itself.
        const Chosen before = std::exchange(chosen, Chosen());
        auto made = [&] {
          ContextOnThread on(before.context);
          return factory();
        }();
        chosen = before;
        if (!made.ok()) return made.status();
        own = *std::move(made);
      }
      return own.get();
    }
  }
  return stock();
}

EventMgr* GetEventManager(
    se::StreamExecutor* executor,
    absl::FunctionRef<EventMgr*(se::StreamExecutor*)> stock) {
  GroupExecutors* all = All();
  {
    absl::MutexLock lock(&all->mu);
    auto found = all->events_of.find(executor);
    if (found != all->events_of.end()) executor = found->second;
  }
  EventMgr* events = stock(executor);
  absl::MutexLock lock(&all->mu);
  all->events[executor] = events;
  return events;
}

void ThenExecute(
    EventMgr* events, se::Stream* stream, std::function<void()> f,
    absl::FunctionRef<void(EventMgr*, std::function<void()>)> stock) {
  if (KeptCallback(stream, &f)) return;
  stock(EventsOf(stream, events), std::move(f));
}

}  // namespace tensorflow::multistream
