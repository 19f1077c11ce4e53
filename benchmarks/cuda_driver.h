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
// CUDA's driver, for programs that measure what it can do. It is looked up when
// the program starts, so that it builds where there is none.

#ifndef BENCHMARKS_CUDA_DRIVER_H_
#define BENCHMARKS_CUDA_DRIVER_H_

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "third_party/gpus/cuda/include/cuda.h"

namespace cuda_driver {

#define TFMS_DRIVER_FUNCTIONS(F) \
  F(cuInit)                      \
  F(cuCtxSetCurrent)             \
  F(cuCtxSynchronize)            \
  F(cuDeviceGet)                 \
  F(cuDevicePrimaryCtxRetain)    \
  F(cuGraphAddKernelNode)        \
  F(cuGraphAddMemcpyNode)        \
  F(cuGraphCreate)               \
  F(cuGraphDestroy)              \
  F(cuGraphInstantiateWithFlags) \
  F(cuGraphLaunch)               \
  F(cuLaunchKernel)              \
  F(cuMemAlloc)                  \
  F(cuMemGetInfo)                \
  F(cuMemHostAlloc)              \
  F(cuMemcpyDtoHAsync)           \
  F(cuMemcpyHtoDAsync)           \
  F(cuModuleGetFunction)         \
  F(cuModuleLoadData)            \
  F(cuStreamCreate)              \
  F(cuStreamSynchronize)

struct Driver {
#define TFMS_MEMBER(name) decltype(&::name) name;
  TFMS_DRIVER_FUNCTIONS(TFMS_MEMBER)
};
inline Driver driver;

// Ends the program where a call fails.
inline void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "error: %s failed with CUDA's error %d\n", what,
               static_cast<int>(result));
  std::exit(1);
}

#define TFMS_CHECK(call) ::cuda_driver::Check(::cuda_driver::driver.call, #call)

inline void* Symbol(void* library, const char* name) {
  void* function = dlsym(library, name);
  if (function == nullptr) {
    std::fprintf(stderr, "error: the driver has no %s\n", name);
    std::exit(1);
  }
  return function;
}

// A macro's value as text: newer versions of functions have other names.
#define TFMS_TEXT_OF(x) #x
#define TFMS_TEXT(x) TFMS_TEXT_OF(x)
#define TFMS_LOAD(name)                                  \
  driver.name = reinterpret_cast<decltype(driver.name)>( \
      Symbol(library, TFMS_TEXT(name)));

// Loads the driver. The calling thread has the first GPU's context then.
inline CUcontext Start() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "error: no CUDA driver: %s\n", dlerror());
    std::exit(1);
  }
  TFMS_DRIVER_FUNCTIONS(TFMS_LOAD)
  TFMS_CHECK(cuInit(0));
  CUdevice device;
  TFMS_CHECK(cuDeviceGet(&device, 0));
  CUcontext context;
  TFMS_CHECK(cuDevicePrimaryCtxRetain(&context, device));
  TFMS_CHECK(cuCtxSetCurrent(context));
  return context;
}

// A function of a program in PTX.
inline CUfunction LoadKernel(const char* ptx, const char* name) {
  CUmodule module;
  TFMS_CHECK(cuModuleLoadData(&module, ptx));
  CUfunction kernel;
  TFMS_CHECK(cuModuleGetFunction(&kernel, module, name));
  return kernel;
}

// A node that launches one block of `kernel`.
inline CUgraphNode AddKernel(CUgraph graph, CUfunction kernel, int threads,
                             void** arguments, const CUgraphNode* after) {
  CUDA_KERNEL_NODE_PARAMS launch = {};
  launch.func = kernel;
  launch.gridDimX = launch.gridDimY = launch.gridDimZ = 1;
  launch.blockDimX = threads;
  launch.blockDimY = launch.blockDimZ = 1;
  launch.kernelParams = arguments;
  CUgraphNode node;
  TFMS_CHECK(cuGraphAddKernelNode(&node, graph, after, after == nullptr ? 0 : 1,
                                  &launch));
  return node;
}

}  // namespace cuda_driver

#endif  // BENCHMARKS_CUDA_DRIVER_H_
