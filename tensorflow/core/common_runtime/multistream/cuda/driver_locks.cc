// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/driver_locks.h"

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/spinning_locks.h"
#include "tensorflow/core/common_runtime/multistream/cuda/loaded_library.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {

absl::StatusOr<int> ReplaceLocksIn(const std::string& library) {
  const LoadedLibrary::Import imports[] = {
      {"pthread_mutex_lock", reinterpret_cast<void*>(&SpinningLock)},
      {"pthread_rwlock_rdlock", reinterpret_cast<void*>(&SpinningReadLock)},
      {"pthread_rwlock_wrlock", reinterpret_cast<void*>(&SpinningWriteLock)},
  };
  TF_ASSIGN_OR_RETURN(const LoadedLibrary found, LoadedLibrary::Find(library));
  return found.Replace(imports);
}

void ReplaceLocksInCudaDriver() {
  const absl::StatusOr<int> entries = ReplaceLocksIn("libcuda.so");
  if (entries.ok() && *entries > 0) {
    VLOG(1) << "Multi-stream: the CUDA driver's locks spin and serve writers";
    return;
  }
  LOG(INFO) << "Multi-stream: the CUDA driver's locks stay as they are, which "
               "can cost throughput under load: "
            << (entries.ok() ? "it takes none that can be changed"
                             : entries.status().message());
}

}  // namespace tensorflow::multistream
