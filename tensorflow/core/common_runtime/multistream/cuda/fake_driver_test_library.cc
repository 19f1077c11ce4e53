// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// The library of fake_driver.h.

#include <cstdint>
#include <thread>

#include "tensorflow/core/common_runtime/multistream/cuda/fake_driver.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace {

FakeDriver driver;
// Loads the library. What other threads make current is not kept.
const std::thread::id tests_thread = std::this_thread::get_id();

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
  if (std::this_thread::get_id() != tests_thread) return CUDA_SUCCESS;
  driver.current = reinterpret_cast<intptr_t>(context);
  return CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode*) {
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
  return ordinal < driver.gpus ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  *device = driver.device;
  return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 12050
CUresult cuDeviceGetDevResource(CUdevice, CUdevResource* all,
                                CUdevResourceType type) {
  *all = {};
  all->type = type;
  all->sm.smCount = driver.sms;
  return static_cast<CUresult>(driver.result);
}
CUresult cuDevSmResourceSplitByCount(CUdevResource* parts, unsigned int* count,
                                     const CUdevResource* all,
                                     CUdevResource* rest, unsigned int flags,
                                     unsigned int asked) {
  const unsigned int sms =
      (asked + driver.sm_step - 1) / driver.sm_step * driver.sm_step;
  if (flags != 0 || *count != 1 || all->type != CU_DEV_RESOURCE_TYPE_SM) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (sms > all->sm.smCount) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *parts = *rest = *all;
  parts->sm.smCount = sms;
  rest->sm.smCount = all->sm.smCount - sms;
  if (rest->sm.smCount == 0) {  // nothing in it counts
    rest->type = CU_DEV_RESOURCE_TYPE_INVALID;
    rest->sm.smCount = 77;
  }
  return CUDA_SUCCESS;
}
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description,
                                   CUdevResource* sms, unsigned int) {
  *description = reinterpret_cast<CUdevResourceDesc>(
      static_cast<intptr_t>(sms->sm.smCount));
  return CUDA_SUCCESS;
}
CUresult cuGreenCtxCreate(CUgreenCtx* partition, CUdevResourceDesc description,
                          CUdevice, unsigned int) {
  driver.partitions[++driver.last_partition] =
      static_cast<unsigned int>(reinterpret_cast<intptr_t>(description));
  *partition = reinterpret_cast<CUgreenCtx>(
      static_cast<intptr_t>(driver.last_partition));
  return CUDA_SUCCESS;
}
CUresult cuGreenCtxStreamCreate(CUstream*, CUgreenCtx partition, unsigned int,
                                int priority) {
  driver.stream_partition =
      static_cast<int>(reinterpret_cast<intptr_t>(partition));
  driver.stream_priority = priority;
  return CUDA_SUCCESS;
}
#endif
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  *value = driver.mps;
  return CUDA_SUCCESS;
}
}
