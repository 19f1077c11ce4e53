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

// Its handles of contexts and partitions of SMs are numbers, from 1.
struct FakeDriver {
  intptr_t current = 0;
  intptr_t made = 0;  // the last context made
  unsigned int flags_of_made = 0;
  int result = 0;  // CUDA's result of making a context
  int mps = 0;
  int gpus = 2;
  int device = 0;  // of the current context
  // SMs of the GPU, and the number of which it gives multiples.
  unsigned int sms = 132;
  unsigned int sm_step = 8;
  unsigned int partitions[16] = {};  // their SMs, by handle
  int last_partition = 0;
  // Of the last stream made in a partition.
  int stream_partition = 0;
  int stream_priority = 0;
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
