// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// A driver of CUDA's without a GPU, for tests of one thread. Each of
// TensorFlow's libraries may have its own functions that look for those of the
// driver, so that a test cannot define them in their place: this is a library
// of the driver's name.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FAKE_DRIVER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FAKE_DRIVER_H_

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

// Its handles are numbers.
struct FakeDriver {
  intptr_t current = 0;
  intptr_t made = 0;  // the last one
  unsigned int flags_of_made = 0;
  int result = 0;  // CUDA's, of making one
  int mps = 0;
};

// The process's, from the first call on.
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
