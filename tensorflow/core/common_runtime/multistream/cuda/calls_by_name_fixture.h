// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The two libraries of captured_launches_test_library.cc, for tests that
// redirect the calls of the one to the fakes of the other.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CALLS_BY_NAME_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CALLS_BY_NAME_FIXTURE_H_

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

namespace tensorflow::multistream {

inline constexpr char kLibrary[] = "libtest_launches.so";
inline constexpr char kCuda[] = "libtest_cuda.so";

class CallsOfLibraryTest : public ::testing::Test {
 protected:
  static void* Load(const std::string& name) {
    const std::string folder =
        "tensorflow/core/common_runtime/multistream/cuda/";
    void* library = dlopen((folder + name).c_str(), RTLD_LAZY | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    return library;
  }
  // A variable of the library that replaces CUDA's.
  int& Cuda(const char* name) { return *static_cast<int*>(dlsym(cuda_, name)); }
  int Call(const char* function, int value = 5) {
    return reinterpret_cast<int (*)(int)>(dlsym(library_, function))(value);
  }

 private:
  void* const cuda_ = Load(kCuda);
  void* const library_ = Load(kLibrary);
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CALLS_BY_NAME_FIXTURE_H_
