// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which threads does a session have for each stream group? The device factories
// ask for a session's, and StepThreads::RunnerFor runs its steps there.
//
// Those of the pools that its ConfigProto lists (session_inter_op_thread_pool),
// group i those of pool i mod n. TensorFlow's own pools are its own: these have
// as many threads, and run closures as StepThreads do.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_SESSION_THREADS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_SESSION_THREADS_H_

#include <memory>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/step/step_threads.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {
namespace multistream {

class SessionThreads {
 public:
  // nullptr if `config` lists no pool, or one pool without a number of threads,
  // which stands for the threads of the process. Pools of a global_name are
  // those of all sessions that name it, with the threads that the first of them
  // asked for (TensorFlow sees to it that they agree); they are never deleted.
  static std::shared_ptr<const SessionThreads> Of(const ConfigProto& config);

  std::shared_ptr<StepThreads> OfGroup(int i) const {
    return pools_[i % pools_.size()];
  }

 private:
  std::vector<std::shared_ptr<StepThreads>> pools_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_SESSION_THREADS_H_
