// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which waits for the GPU go through the gate that keeps them out of captures
// (capture_gate.h)? All calls of the driver's cuCtxSynchronize, from any
// library. Other libraries hold its address, so its code must stay in place.
// But that code is only a stub, which calls the real function through a table
// in the driver's data:
//
//   cuCtxSynchronize:  cmp   [state], 0x321cba00    has the driver ended?
//                      je    ...
//                      jmp   [table + n]            or, within a frame: call
//
// We replace the table entry. If the stub looks different, nothing is changed.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_DRIVER_WAITS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_DRIVER_WAITS_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/cuda/capture_gate.h"

namespace tensorflow::multistream {

// Bytes of a stub's code that are examined.
inline constexpr size_t kEntryBytes = 48;

// The table entry through which the stub `entry` calls its function; nullptr if
// its first `kEntryBytes` bytes are not those of a stub.
void** PlaceOfFunction(const unsigned char* entry);

// From now on the waits of the loaded library whose file name begins with
// `library` ("libcuda.so") go through `gate`, whose guards() is then true. The
// waits are cuCtxSynchronize, and cuCtxSynchronize_v2 if the library has it.
// NotFound if no library of that name is loaded; Unimplemented, with nothing
// changed, if its stubs are not understood. Call once in a process for each
// library.
absl::Status GateWaitsOf(const std::string& library, CaptureGate* gate);

// The same for the CUDA driver, once it is loaded. Logs failures. Returns
// whether the driver's waits go through the gate.
bool GateWaitsOfCudaDriver();

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_DRIVER_WAITS_H_
