// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What the graph optimizer is told about an emulated GPU: nothing, as of any
// device that it does not know, and without an error in the log.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_DEVICE_INFO_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_DEVICE_INFO_H_

#include "absl/functional/function_ref.h"
#include "tensorflow/core/protobuf/device_properties.pb.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow {
namespace multistream {

// In the place of grappler::GetDeviceInfo, which is `stock` and looks for the
// CUDA device of that number.
DeviceProperties DeviceInfo(const DeviceNameUtils::ParsedName& device,
                            absl::FunctionRef<DeviceProperties()> stock);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_DEVICE_INFO_H_
