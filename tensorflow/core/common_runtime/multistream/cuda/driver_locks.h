// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which locks does the CUDA driver wait for as spinning_locks.h says?
//
// Those of the calls in its import table. Each launch takes one read-write lock
// of the context (making an event writes it), within it the stream's mutex, and
// within both another read-write lock and two mutexes that all streams share,
// each for about a microsecond. With its own waiting, threads that launch on
// many streams fall into a convoy (a quarter of the throughput, with idle
// cores), and one that makes an event waits until the load ends.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_DRIVER_LOCKS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_DRIVER_LOCKS_H_

#include <string>

#include "absl/status/statusor.h"

namespace tensorflow {
namespace multistream {

// From now on the calls of pthread_mutex_lock and pthread_rwlock_{rd,wr}lock in
// the loaded shared library whose file name begins with `library`
// ("libcuda.so") wait as spinning_locks.h says; no other library's do. Returns
// how many entries of its import table are so: 0 if it has none. NotFound if no
// such library is loaded, Unimplemented on machines other than x86-64 with
// glibc. Idempotent.
absl::StatusOr<int> ReplaceLocksIn(const std::string& library);

// The same for the CUDA driver, once it is loaded. Logs what it cannot do:
// without it all is right, and slower under load.
void ReplaceLocksInCudaDriver();

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_DRIVER_LOCKS_H_
