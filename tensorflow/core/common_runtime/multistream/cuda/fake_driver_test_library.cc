// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// The library of fake_driver.h.

#include <cstdint>

#include "tensorflow/core/common_runtime/multistream/cuda/fake_driver.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace {

FakeDriver driver;

CUcontext Handle(intptr_t number) {
  return reinterpret_cast<CUcontext>(number);
}

}  // namespace

extern "C" {
FakeDriver* TheFakeDriver() { return &driver; }

CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned int* flags,
                                    int* active) {
  *flags = CU_CTX_SCHED_YIELD;
  *active = 1;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = Handle(driver.current);
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  driver.current = reinterpret_cast<intptr_t>(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice) {
  if (driver.result != 0) return static_cast<CUresult>(driver.result);
  driver.current = ++driver.made;
  driver.flags_of_made = flags;
  *context = Handle(driver.current);
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult, const char** name) {
  *name = "CUDA_ERROR_OF_THE_TEST";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal < 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  *value = driver.mps;
  return CUDA_SUCCESS;
}
}
