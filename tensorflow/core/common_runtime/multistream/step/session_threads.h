// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which threads does a session have for each stream group? For each pool in the
// session's ConfigProto (session_inter_op_thread_pool) there is a StepThreads
// with as many threads; group i uses pool i mod n. The device factories ask,
// and StepThreads::RunnerFor runs the session's steps there. Stock TensorFlow's
// pools, made from the same list, are left alone.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_SESSION_THREADS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_SESSION_THREADS_H_

#include <memory>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/step/step_threads.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow::multistream {

class SessionThreads {
 public:
  // nullptr if `config` lists no pool, or a single pool without a number of
  // threads, which means the process-wide threads. Sessions with the same
  // global_name share one pool, which the first session sizes (TensorFlow
  // refuses other sizes) and which is never deleted.
  static std::shared_ptr<const SessionThreads> Of(const ConfigProto& config);

  std::shared_ptr<StepThreads> OfGroup(int i) const {
    return pools_[i % pools_.size()];
  }

 private:
  std::vector<std::shared_ptr<StepThreads>> pools_;
};

// How many threads would stock TensorFlow have for the steps of this process?
// That many closures can block at the same time before stock deadlocks, so
// StepThreads may grow to as many threads. The device factories count each
// session and the eager context for as long as its devices exist: an object
// counts the threads of one session.
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

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_SESSION_THREADS_H_
