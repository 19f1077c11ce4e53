/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

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
