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

// What does a thread do that finds a lock of the CUDA driver taken?
//
// Mutexes. Stock: it sleeps. Launches take about one microsecond of that lock,
// a wake-up takes several, and the thread that wakes another pays for it,
// partly within a further lock of the driver. So as soon as enough threads
// launch, all of them sleep once a launch and stay so: a lock convoy, a quarter
// of the throughput and idle cores, for as long as the load lasts. Here: it
// spins for a while first.
//
// Read-write locks. Stock: readers go first. Each launch reads, making an event
// writes (and TensorFlow makes one whenever it has none to spare), so under
// load there is always a reader, and the step that wants an event stands still
// until the load ends. Here: a reader that comes while a writer waits lets it
// go first.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_DRIVER_LOCKS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_DRIVER_LOCKS_H_

#include <string>

#include "absl/status/statusor.h"

namespace tensorflow {
namespace multistream {

// From now on the calls of pthread_mutex_lock and pthread_rwlock_{rd,wr}lock in
// the loaded shared library whose file name begins with `library`
// ("libcuda.so") do as said above; no other library's do. Returns how many
// entries of its import table are so: 0 if it has none. NotFound if no such
// library is loaded, Unimplemented on machines other than x86-64 with glibc.
// Idempotent.
absl::StatusOr<int> ReplaceLocksIn(const std::string& library);

// The same for the CUDA driver, once it is loaded. Logs what it cannot do:
// without it all is right, and slower under load.
void ReplaceLocksInCudaDriver();

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_DRIVER_LOCKS_H_
