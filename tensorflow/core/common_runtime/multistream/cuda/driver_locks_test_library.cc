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

// A library that takes locks, for driver_locks_test.

#include <pthread.h>

extern "C" int LockInLibrary(pthread_mutex_t* mutex) {
  return pthread_mutex_lock(mutex);
}

extern "C" int ReadLockInLibrary(pthread_rwlock_t* lock) {
  return pthread_rwlock_rdlock(lock);
}

extern "C" int WriteLockInLibrary(pthread_rwlock_t* lock) {
  return pthread_rwlock_wrlock(lock);
}
