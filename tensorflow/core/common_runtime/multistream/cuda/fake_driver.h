// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// A fake CUDA driver without a GPU, for single-threaded tests. It is a library
// with the driver's name, because each of TensorFlow's libraries may look up
// the driver's functions by itself: a test cannot define them instead.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FAKE_DRIVER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FAKE_DRIVER_H_

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

// Its context handles are numbers.
struct FakeDriver {
  intptr_t current = 0;
  intptr_t made = 0;  // the last context made
  unsigned int flags_of_made = 0;
  int result = 0;  // CUDA's result of making a context
  int mps = 0;
};

// Loads the driver at the first call; one for the process.
inline FakeDriver* LoadFakeDriver() {
  void* library = dlopen(
      "tensorflow/core/common_runtime/multistream/cuda/libfake_driver.so",
      RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::abort();
  }
  return reinterpret_cast<FakeDriver* (*)()>(dlsym(library, "TheFakeDriver"))();
}

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FAKE_DRIVER_H_
