// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/emulated/emulated_device_info.h"

#include "tensorflow/core/common_runtime/multistream/base/process_options.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow {
namespace multistream {

DeviceProperties DeviceInfo(const DeviceNameUtils::ParsedName& device,
                            absl::FunctionRef<DeviceProperties()> stock) {
  const auto& options = ProcessOptions();
  if (device.type == DEVICE_GPU && options.ok() && options->emulated_gpus > 0) {
    DeviceProperties unknown;
    unknown.set_type("UNKNOWN");
    return unknown;
  }
  return stock();
}

}  // namespace multistream
}  // namespace tensorflow
