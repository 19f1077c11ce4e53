// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/captured_launches.h"

#include "absl/base/call_once.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/cuda/loaded_library.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"
#include "third_party/gpus/cuda/include/cuda.h"
#include "third_party/gpus/cuda/include/cuda_runtime_api.h"

namespace tensorflow::multistream {
namespace {

thread_local CapturedLaunches* on_this_thread = nullptr;
thread_local bool are_skipped = false;

using GetLastError = decltype(&cudaGetLastError);
GetLastError get_last_error = nullptr;

// The result that a launch's caller sees. The runtime's and the driver's error
// codes have the same numbers.
cudaError_t Told(const char* function, cudaError_t result) {
  if (result == cudaSuccess || on_this_thread == nullptr) return result;
  // Clear the last error: kernels query it after a launch, and a later kernel
  // would find this one.
  get_last_error();
  on_this_thread->Note(function, result);
  return cudaSuccess;
}
CUresult Told(const char* function, CUresult result) {
  if (result == CUDA_SUCCESS || on_this_thread == nullptr) return result;
  on_this_thread->Note(function, result);
  return CUDA_SUCCESS;
}

template <typename Name, typename Function>
struct Launch;
template <typename Name, typename Result, typename... Args>
struct Launch<Name, Result (*)(Args...)> {
  static inline Result (*stock)(Args...) = nullptr;
  static Result Call(Args... args) {
    if (are_skipped) return Result{};
    return Told(Name::Text(), stock(args...));
  }
};

}  // namespace

CapturedLaunches::CapturedLaunches() { on_this_thread = this; }

CapturedLaunches::~CapturedLaunches() { on_this_thread = nullptr; }

SkippedLaunches::SkippedLaunches() { are_skipped = true; }

SkippedLaunches::~SkippedLaunches() { are_skipped = false; }

void CapturedLaunches::Note(const char* function, int error) {
  if (!failure_.ok()) return;
  failure_ = absl::InternalError(
      absl::StrCat(function, " has failed with CUDA's error ", error));
}

absl::StatusOr<int> NoteFailedLaunchesOf(const std::string& library,
                                         const std::string& cuda) {
  // All enqueuing functions that TensorFlow's libraries call by name.
  static const CallByName kLaunches[] = {
      TFMS_CALL_BY_NAME(Launch, cudaEventRecord),
      TFMS_CALL_BY_NAME(Launch, cudaLaunchKernel),
      TFMS_CALL_BY_NAME(Launch, cudaMemcpyAsync),
      TFMS_CALL_BY_NAME(Launch, cudaMemset2DAsync),
      TFMS_CALL_BY_NAME(Launch, cudaMemsetAsync),
      TFMS_CALL_BY_NAME(Launch, cuEventRecord),
      TFMS_CALL_BY_NAME(Launch, cuLaunchHostFunc),
      TFMS_CALL_BY_NAME(Launch, cuLaunchKernel),
      TFMS_CALL_BY_NAME(Launch, cuLaunchKernelEx),
      TFMS_CALL_BY_NAME(Launch, cuMemcpyDtoDAsync),
      TFMS_CALL_BY_NAME(Launch, cuMemcpyDtoHAsync),
      TFMS_CALL_BY_NAME(Launch, cuMemcpyHtoDAsync),
      TFMS_CALL_BY_NAME(Launch, cuMemcpyPeerAsync),
      TFMS_CALL_BY_NAME(Launch, cuMemsetD32Async),
      TFMS_CALL_BY_NAME(Launch, cuMemsetD8Async),
      TFMS_CALL_BY_NAME(Launch, cuStreamWaitEvent),
  };
  TF_ASSIGN_OR_RETURN(const LoadedLibrary from, LoadedLibrary::Find(cuda));
  get_last_error =
      reinterpret_cast<GetLastError>(from.Exported("cudaGetLastError"));
  if (get_last_error == nullptr) {
    return absl::NotFoundError(absl::StrCat(cuda, " has no cudaGetLastError"));
  }
  return ReplaceCalls(library, cuda, kLaunches);
}

void NoteFailedLaunchesOfTensorFlow() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    constexpr char kFramework[] = "libtensorflow_framework.so";
    for (const char* library : {kFramework, "libtensorflow_cc.so"}) {
      const absl::StatusOr<int> launches =
          NoteFailedLaunchesOf(library, kFramework);
      if (launches.ok() && *launches > 0) continue;
      LOG(INFO) << "Multi-stream: a kernel of " << library
                << " ends the process if its launch fails while a step is "
                   "captured: "
                << (launches.ok() ? "it calls none that can be replaced"
                                  : launches.status().message());
    }
  });
}

}  // namespace tensorflow::multistream
