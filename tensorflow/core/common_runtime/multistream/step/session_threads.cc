// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/session_threads.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/base/raise_to.h"
#include "tensorflow/core/common_runtime/multistream/stream/forked_process.h"
#include "tensorflow/core/common_runtime/process_util.h"
#include "tensorflow/core/platform/cpu_info.h"
#include "tensorflow/core/platform/env.h"

namespace tensorflow::multistream {
namespace {

std::atomic<int> in_process{0};

// One of `threads` may drop the last reference, at the end of a step. A thread
// cannot join itself.
void Delete(StepThreads* threads) {
  // A fork()ed child does not have these threads, so it cannot join them.
  if (GroupsAreOfParent()) return;
  if (threads->RunThisThread()) {
    Env::Default()->SchedClosure([threads] { delete threads; });
  } else {
    delete threads;
  }
}

std::shared_ptr<StepThreads> NewPool(int count) {
  if (count <= 0) count = port::MaxParallelism();
  return {new StepThreads(count, 1, StepThreads::kMostOfGroup), &Delete};
}

std::shared_ptr<StepThreads> NamedPool(const std::string& name, int count) {
  struct Pools {
    absl::Mutex mu;
    absl::flat_hash_map<std::string, std::shared_ptr<StepThreads>> by_name
        ABSL_GUARDED_BY(mu);
  };
  static auto* pools = new Pools;
  absl::MutexLock lock(&pools->mu);
  std::shared_ptr<StepThreads>& pool = pools->by_name[name];
  if (pool == nullptr) pool = NewPool(count);
  return pool;
}

}  // namespace

std::shared_ptr<const SessionThreads> SessionThreads::Of(
    const ConfigProto& config) {
  const auto& listed = config.session_inter_op_thread_pool();
  if (listed.empty()) return nullptr;
  if (listed.size() == 1 && listed[0].num_threads() <= 0 &&
      listed[0].global_name().empty()) {
    return nullptr;
  }
  auto threads = std::make_shared<SessionThreads>();
  for (const ThreadPoolOptionProto& pool : listed) {
    threads->pools_.push_back(
        pool.global_name().empty()
            ? NewPool(pool.num_threads())
            : NamedPool(pool.global_name(), pool.num_threads()));
  }
  return threads;
}

std::shared_ptr<const StockThreads> StockThreads::Of(
    const SessionOptions& options) {
  static std::atomic<int> most{0};
  const int by_default = NumInterOpThreadsFromSessionOptions(options);
  int count = 0;
  for (const auto& pool : options.config.session_inter_op_thread_pool()) {
    count += pool.num_threads() > 0 ? pool.num_threads() : by_default;
  }
  RaiseTo(std::max(count, by_default), &most);
  return std::make_shared<StockThreads>(most);
}

StockThreads::StockThreads(int count) : count_(count) { in_process += count; }

StockThreads::~StockThreads() { in_process -= count_; }

int StockThreads::InProcess() {
  return in_process.load(std::memory_order_relaxed);
}

}  // namespace tensorflow::multistream
