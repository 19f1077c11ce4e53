// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which waits for the GPU go through the gate that keeps them out of captures
// (capture_gate.h)? Those of the driver's cuCtxSynchronize, whoever calls it.
// Other libraries have its address, so that it must stay where it is. But it is
// only an entry, that calls the function itself by an address in the driver's
// data:
//
//   cuCtxSynchronize:  cmp   [state], 0x321cba00    has the driver ended?
//                      je    ...
//                      jmp   [table + n]            or, within a frame: call
//
// A function of ours takes that place in the table. Where the entry looks
// otherwise nothing is changed.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_DRIVER_WAITS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_DRIVER_WAITS_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/cuda/capture_gate.h"

namespace tensorflow {
namespace multistream {

// The most of an entry's code that is looked at.
inline constexpr size_t kEntryBytes = 48;

// The place in a table by which an entry calls its function, or nullptr if its
// `kEntryBytes` bytes are no such entry's.
void** PlaceOfFunction(const unsigned char* entry);

// From now on the waits of the loaded library whose file name begins with
// `library` ("libcuda.so") go through `gate`, which guards() then: its
// cuCtxSynchronize, and cuCtxSynchronize_v2 if it has that. NotFound if no such
// library is loaded, Unimplemented if it is one that is not known: it is as
// before. Once a process for a library.
absl::Status GateWaitsOf(const std::string& library, CaptureGate* gate);

// The same for the CUDA driver, once it is loaded. Logs what it cannot do.
void GateWaitsOfCudaDriver();

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_DRIVER_WAITS_H_
