// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which devices does a CUDA GPU with stream groups have with TensorFlow 2.13?
// None: the code that orders the groups' streams needs the StreamExecutor
// interface of newer releases. Listing or making devices returns an error that
// says so.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/base/process_options.h"
#include "tensorflow/core/common_runtime/multistream/cuda/cuda_gpu_factory.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow::multistream {
namespace {

class NoCudaGpus : public DeviceFactory {
 public:
  absl::Status ListPhysicalDevices(std::vector<std::string>*) override {
    return Refusal();
  }
  absl::Status CreateDevices(const SessionOptions&, const std::string&,
                             std::vector<std::unique_ptr<Device>>*) override {
    return Refusal();
  }

 private:
  static absl::Status Refusal() {
    const Options& options = *ProcessOptions();
    const std::string asked =
        !options.group_counts.empty()
            ? absl::StrCat(kGroupCountVariable, "=",
                           absl::StrJoin(options.group_counts, ","))
            : absl::StrCat(kCaptureVariable, "=", NameOf(options.capture));
    return absl::UnimplementedError(absl::StrCat(
        asked, " asks for stream groups of a GPU. With TensorFlow ",
        TF_MAJOR_VERSION, ".", TF_MINOR_VERSION, ".", TF_PATCH_VERSION,
        " there are only those of emulated GPUs: set ", kEmulatedGpusVariable,
        "=1, unset the variable, or take the multi-stream wheel of a newer "
        "release."));
  }
};

}  // namespace

std::unique_ptr<DeviceFactory> NewCudaGpuFactory() {
  return std::make_unique<NoCudaGpus>();
}

}  // namespace tensorflow::multistream
