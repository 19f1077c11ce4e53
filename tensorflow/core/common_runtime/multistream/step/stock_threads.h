// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How many threads does TensorFlow itself have for the steps of this process?
// So many of its closures can be blocked at the same time before it stands
// still, so StepThreads may have as many. The device factories count each
// session, and the eager context, for as long as it has its devices.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STOCK_THREADS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STOCK_THREADS_H_

#include <memory>

#include "tensorflow/core/public/session_options.h"

namespace tensorflow {
namespace multistream {

// The threads of one session: counted while this lives.
class StockThreads {
 public:
  // Those of the session's pools. Sessions without pools of their own share one
  // that the first of them made, so none counts for less than one before it.
  static std::shared_ptr<const StockThreads> Of(const SessionOptions& options);

  explicit StockThreads(int count);
  ~StockThreads();
  StockThreads(const StockThreads&) = delete;
  StockThreads& operator=(const StockThreads&) = delete;

  // Of all sessions.
  static int InProcess();

 private:
  const int count_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STOCK_THREADS_H_
