// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What is the graph optimizer told about an emulated GPU? It is an unknown
// device, without the error in the log that a missing CUDA device would cause.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_DEVICE_INFO_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_DEVICE_INFO_H_

#include "absl/functional/function_ref.h"
#include "tensorflow/core/protobuf/device_properties.pb.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow {
namespace multistream {

// Replaces grappler::GetDeviceInfo, which is `stock`, and queries the CUDA
// device with the device's number.
DeviceProperties DeviceInfo(const DeviceNameUtils::ParsedName& device,
                            absl::FunctionRef<DeviceProperties()> stock);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_DEVICE_INFO_H_
