// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How many threads would stock TensorFlow have for the steps of this process?
// That many closures can block at the same time before stock deadlocks, so
// StepThreads may grow to as many threads. The device factories count each
// session and the eager context for as long as its devices exist.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STOCK_THREADS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STOCK_THREADS_H_

#include <memory>

#include "tensorflow/core/public/session_options.h"

namespace tensorflow {
namespace multistream {

// Counts the threads of one session for as long as the object lives.
class StockThreads {
 public:
  // The threads of the session's pools. Sessions without pools of their own
  // share the pool that the first such session made, so a later session counts
  // for no less than an earlier one.
  static std::shared_ptr<const StockThreads> Of(const SessionOptions& options);

  explicit StockThreads(int count);
  ~StockThreads();
  StockThreads(const StockThreads&) = delete;
  StockThreads& operator=(const StockThreads&) = delete;

  // The sum for all sessions.
  static int InProcess();

 private:
  const int count_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STOCK_THREADS_H_
