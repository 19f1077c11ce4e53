// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/stock_threads.h"

#include <algorithm>
#include <atomic>

#include "tensorflow/core/common_runtime/multistream/base/raise_to.h"
#include "tensorflow/core/common_runtime/process_util.h"

namespace tensorflow {
namespace multistream {
namespace {

std::atomic<int> in_process{0};

}  // namespace

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

}  // namespace multistream
}  // namespace tensorflow
