// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which locks of the CUDA driver are taken by spinning (spinning_locks.h)? All
// that it takes through its import table. Each launch takes a reader-writer
// lock of the context (making an event takes it as writer), within it the
// stream's mutex, and within both another reader-writer lock and two mutexes
// that all streams share, each for about a microsecond. With the driver's own
// waiting, threads that launch on many streams form a lock convoy (a quarter of
// the throughput, with idle cores), and a thread that makes an event waits
// until the load ends.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_DRIVER_LOCKS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_DRIVER_LOCKS_H_

#include <string>

#include "absl/status/statusor.h"

namespace tensorflow::multistream {

// From now on pthread_mutex_lock and pthread_rwlock_{rd,wr}lock, as called by
// the loaded library whose file name begins with `library` ("libcuda.so"), wait
// as in spinning_locks.h. Other libraries keep theirs. Returns how many import
// table entries were replaced, 0 if there are none. NotFound if no library of
// that name is loaded, Unimplemented on machines other than x86-64 with glibc.
// Idempotent.
absl::StatusOr<int> ReplaceLocksIn(const std::string& library);

// The same for the CUDA driver, once it is loaded. A failure is only logged:
// results are right without it, and slower under load.
void ReplaceLocksInCudaDriver();

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_DRIVER_LOCKS_H_
