// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Two libraries for captured_launches_test, events_ahead_test and
// sm_partitions_test: one calls CUDA functions by name, the other exports fakes
// of them.

#include <atomic>
#include <cstddef>

#include "third_party/gpus/cuda/include/cuda.h"
#include "third_party/gpus/cuda/include/cuda_runtime_api.h"

extern "C" {

#ifdef TFMS_LAUNCHES
int LaunchOfRuntime(int value) {
  return cudaLaunchKernel(nullptr, dim3{1, 2, 3}, dim3{4, 5, 6}, nullptr, value,
                          nullptr);
}
int LaunchOfDriver(int value) {
  return cuLaunchKernel(nullptr, 1, 2, 3, 4, 5, 6, value, nullptr, nullptr,
                        nullptr);
}
int CopyOfDriver(int value) {
  return cuMemcpyHtoDAsync(0, nullptr, value, nullptr);
}
int QueryOfDriver(int value) {
  return cuEventQuery(reinterpret_cast<CUevent>(static_cast<size_t>(value)));
}
int EventOfDriver(int flags) {
  CUevent event = nullptr;
  cuEventCreate(&event, flags);
  return static_cast<int>(reinterpret_cast<size_t>(event));
}
int StreamOfDriver(int flags) { return cuStreamCreate(nullptr, flags); }
int PriorityStreamOfDriver(int priority) {
  return cuStreamCreateWithPriority(nullptr, CU_STREAM_NON_BLOCKING, priority);
}
int AllocationOfRuntime(int value) { return cudaMalloc(nullptr, value); }
#else
// The result of each launch, and the last launch's argument.
int result = 0;
int last_error = 0;
int given = 0;

cudaError_t cudaLaunchKernel(const void*, dim3 grid, dim3 block, void**,
                             size_t value, cudaStream_t) {
  const bool right = grid.x == 1 && grid.y == 2 && grid.z == 3 &&
                     block.x == 4 && block.y == 5 && block.z == 6;
  given = right ? static_cast<int>(value) : -1;
  last_error = result;
  return static_cast<cudaError_t>(result);
}
cudaError_t cudaGetLastError() {
  const int error = last_error;
  last_error = 0;
  return static_cast<cudaError_t>(error);
}
CUresult cuLaunchKernel(CUfunction, unsigned int, unsigned int, unsigned int,
                        unsigned int, unsigned int, unsigned int,
                        unsigned int value, CUstream, void**, void**) {
  given = static_cast<int>(value);
  return static_cast<CUresult>(result);
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr, const void*, size_t value, CUstream) {
  given = static_cast<int>(value);
  return static_cast<CUresult>(result);
}

// The thread's capture mode, and its value at the last call.
int mode = 0;
int mode_of_call = 0;
int exchange_result = 0;
int exchanges = 0;

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* exchanged) {
  ++exchanges;
  if (exchange_result != 0) return static_cast<CUresult>(exchange_result);
  const int before = mode;
  mode = *exchanged;
  *exchanged = static_cast<CUstreamCaptureMode>(before);
  return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent value) {
  given = static_cast<int>(reinterpret_cast<size_t>(value));
  mode_of_call = mode;
  return static_cast<CUresult>(result);
}
// Events are numbers from 1.
std::atomic<size_t> events_made{0};

CUresult cuEventCreate(CUevent* event, unsigned int) {
  *event = reinterpret_cast<CUevent>(++events_made);
  return static_cast<CUresult>(result);
}
CUresult cuStreamCreate(CUstream*, unsigned int flags) {
  given = static_cast<int>(flags);
  mode_of_call = mode;
  return static_cast<CUresult>(result);
}
CUresult cuStreamCreateWithPriority(CUstream*, unsigned int, int priority) {
  given = priority;
  mode_of_call = mode;
  return static_cast<CUresult>(result);
}
cudaError_t cudaMalloc(void**, size_t value) {
  given = static_cast<int>(value);
  mode_of_call = mode;
  return static_cast<cudaError_t>(result);
}
#endif
}
