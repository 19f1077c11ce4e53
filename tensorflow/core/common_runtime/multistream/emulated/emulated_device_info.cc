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

// What the graph optimizer is told about an emulated GPU: nothing, as of any
// device that it does not know, and without an error in the log.

#include <dlfcn.h>

#include "tensorflow/core/common_runtime/multistream/config/process_options.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/protobuf/device_properties.pb.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow {
namespace grappler {

// In TensorFlow's place, which looks for the CUDA device of that number.
DeviceProperties GetDeviceInfo(const DeviceNameUtils::ParsedName& device) {
  const auto& options = multistream::ProcessOptions();
  if (device.type == DEVICE_GPU && options.ok() && options->emulated_gpus > 0) {
    DeviceProperties unknown;
    unknown.set_type("UNKNOWN");
    return unknown;
  }
  using Stock = DeviceProperties (*)(const DeviceNameUtils::ParsedName&);
  static const auto stock = reinterpret_cast<Stock>(
      dlsym(RTLD_NEXT,
            "_ZN10tensorflow8grappler13GetDeviceInfoERKN3tsl15DeviceNameUtils"
            "10ParsedNameE"));
  return stock(device);
}

}  // namespace grappler
}  // namespace tensorflow
