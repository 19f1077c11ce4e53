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

#include "tensorflow/core/common_runtime/multistream/group_executors.h"

#include <dlfcn.h>

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
#include "tensorflow/core/platform/stream_executor.h"
#include "xla/stream_executor/executor_cache.h"
#include "xla/stream_executor/gpu/gpu_init.h"
#include "xla/stream_executor/stream_executor.h"

namespace tensorflow {
namespace multistream {
namespace {

// What this thread's next question for an executor means.
struct Chosen {
  bool learn = false;  // which cache is asked for a GPU's executor?
  std::optional<std::pair<int, int>> group;  // GPU and group
};
thread_local Chosen chosen;

struct GroupExecutors {
  absl::Mutex mu;
  // That of the GPUs' platform: others have one, too.
  const se::ExecutorCache* cache ABSL_GUARDED_BY(mu) = nullptr;
  std::map<std::pair<int, int>, std::unique_ptr<se::StreamExecutor>> by_group
      ABSL_GUARDED_BY(mu);
  // TensorFlow's executor of the same GPU.
  absl::flat_hash_map<const se::StreamExecutor*, se::StreamExecutor*> stock
      ABSL_GUARDED_BY(mu);
};

GroupExecutors* All() {
  static auto* all = new GroupExecutors;
  return all;
}

}  // namespace

void ChooseExecutor(int gpu, int group) {
  chosen = Chosen();
  if (group == 0) return;
  chosen.learn = true;
  auto stock = se::GPUMachineManager()->ExecutorForDevice(gpu);
  chosen.learn = false;
  // Whoever asks next is told.
  if (!stock.ok()) return;
  chosen.group = std::make_pair(gpu, group);
  auto own = se::GPUMachineManager()->ExecutorForDevice(gpu);
  if (!own.ok()) return;
  absl::MutexLock lock(&All()->mu);
  All()->stock[*own] = *stock;
}

// Not in the anonymous namespace: for the functions below.
absl::StatusOr<se::StreamExecutor*> ExecutorOfGroup(
    const se::ExecutorCache* cache, int ordinal,
    const se::ExecutorCache::ExecutorFactory& factory, bool* is_ours) {
  *is_ours = false;
  if (!chosen.learn && !chosen.group) return nullptr;
  GroupExecutors* all = All();
  absl::MutexLock lock(&all->mu);
  if (chosen.learn) {
    all->cache = cache;
    chosen.learn = false;  // the factory may ask other caches
  }
  if (!chosen.group || cache != all->cache || ordinal != chosen.group->first) {
    return nullptr;
  }
  *is_ours = true;
  std::unique_ptr<se::StreamExecutor>& own = all->by_group[*chosen.group];
  if (own == nullptr) {
    // It may ask for executors itself.
    const Chosen before = std::exchange(chosen, Chosen());
    auto made = factory();
    chosen = before;
    if (!made.ok()) return made.status();
    own = *std::move(made);
  }
  return own.get();
}

se::StreamExecutor* StockExecutorOf(se::StreamExecutor* executor) {
  GroupExecutors* all = All();
  absl::MutexLock lock(&all->mu);
  auto found = all->stock.find(executor);
  return found == all->stock.end() ? executor : found->second;
}

}  // namespace multistream

// In TensorFlow's place. Each event manager polls in a thread of its own, and
// one is enough for all groups of a GPU.
EventMgr* EventMgrFactory::GetEventMgr(se::StreamExecutor* executor,
                                       const GPUOptions& options) {
  static const auto stock = reinterpret_cast<
      EventMgr* (*)(EventMgrFactory*, se::StreamExecutor*, const GPUOptions&)>(
      dlsym(
          RTLD_NEXT,
          "_ZN10tensorflow15EventMgrFactory11GetEventMgrEPN15stream_executor14"
          "StreamExecutorERKNS_10GPUOptionsE"));
  return stock(this, multistream::StockExecutorOf(executor), options);
}

}  // namespace tensorflow

namespace stream_executor {

// In TensorFlow's place.
absl::StatusOr<StreamExecutor*> ExecutorCache::GetOrCreate(
    int ordinal, const ExecutorFactory& factory) {
  bool is_ours;
  absl::StatusOr<StreamExecutor*> own =
      tensorflow::multistream::ExecutorOfGroup(this, ordinal, factory,
                                               &is_ours);
  if (is_ours) return own;
  static const auto stock =
      reinterpret_cast<absl::StatusOr<StreamExecutor*> (*)(
          ExecutorCache*, int, const ExecutorFactory&)>(
          dlsym(RTLD_NEXT,
                "_ZN15stream_executor13ExecutorCache11GetOrCreateEiRKSt8functi"
                "onIFN4absl12lts_202508148StatusOrISt10unique_ptrINS_14StreamEx"
                "ecutorESt14default_deleteIS6_EEEEvEE"));
  return stock(this, ordinal, factory);
}

}  // namespace stream_executor
