// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

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
