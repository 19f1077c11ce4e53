// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/core/common_runtime/multistream/cuda/group_contexts.h"

#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/base/executor_compat.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/platform/stream_executor.h"
#include "third_party/gpus/cuda/include/cuda.h"
#include "xla/stream_executor/cuda/cuda_status.h"

namespace tensorflow::multistream {
namespace {

constexpr int kMoreThanGpus = 1 << 16;

struct Contexts {
  absl::Mutex mu;
  // Never destroyed, as TensorFlow's are not.
  std::map<std::pair<int, int>, CUcontext> by_gpu_and_number
      ABSL_GUARDED_BY(mu);
};

absl::Status Checked(const char* call, CUresult result) {
  return se::cuda::ToStatus(
      result, absl::StrCat("TF_GPU_CONTEXT_COUNT: ", call, " failed"));
}

absl::StatusOr<CUcontext> CudaContextOf(int gpu, int number, CUdevice device) {
  static auto* contexts = new Contexts;
  absl::MutexLock lock(&contexts->mu);
  CUcontext& context = contexts->by_gpu_and_number[{gpu, number}];
  if (context != nullptr) return context;
  // Use the primary context's flags, which TensorFlow's options have set.
  unsigned int flags = 0;
  int active = 0;
  TF_RETURN_IF_ERROR(
      Checked("cuDevicePrimaryCtxGetState",
              cuDevicePrimaryCtxGetState(device, &flags, &active)));
  // cuCtxCreate makes the new context current; the thread must keep its own.
  CUcontext before = nullptr;
  TF_RETURN_IF_ERROR(Checked("cuCtxGetCurrent", cuCtxGetCurrent(&before)));
  CUcontext made = nullptr;
  TF_RETURN_IF_ERROR(Checked("cuCtxCreate", cuCtxCreate(&made, flags, device)));
  context = made;
  TF_RETURN_IF_ERROR(Checked("cuCtxSetCurrent", cuCtxSetCurrent(before)));
  return context;
}

}  // namespace

int NumberOfContext(int gpu, int context) {
  return gpu + context * kMoreThanGpus;
}
int ContextOf(int number) { return number / kMoreThanGpus; }

std::optional<bool> ContextsRunSideBySide(int gpu) {
  CUdevice device;
  int enabled = 0;
  // CU_DEVICE_ATTRIBUTE_MPS_ENABLED, which older headers do not have.
  constexpr auto kMpsEnabled = static_cast<CUdevice_attribute>(133);
  if (cuDeviceGet(&device, gpu) != CUDA_SUCCESS ||
      cuDeviceGetAttribute(&enabled, kMpsEnabled, device) != CUDA_SUCCESS) {
    return std::nullopt;
  }
  return enabled != 0;
}

absl::StatusOr<se::gpu::CudaContext*> CreateContext(
    int gpu, int device,
    absl::FunctionRef<absl::StatusOr<se::gpu::CudaContext*>()> stock) {
  const int number = ContextOnThread::Get();
  if (number == 0) return stock();
  TF_ASSIGN_OR_RETURN(const CUcontext context,
                      CudaContextOf(gpu, number, device));
  // The number must be unique: in nested scopes TensorFlow switches contexts
  // only if their numbers differ.
  return AddContext(context, NumberOfContext(gpu, number));
}

}  // namespace tensorflow::multistream
