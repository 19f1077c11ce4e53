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

// A process that uses its GPUs without stream groups already cannot give a
// session some, and says so.

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {
namespace multistream {
namespace {

TEST(StockGpusTest, RefuseStreamsWhereDevicesWereListedBefore) {
  SessionOptions options = PlainOptions();
  SetMultiStream(4, MultiStreamPartitionPolicy::kNoPartition, &options.config);
  // As a device's constructor does, when TensorFlow's own AddDevices makes it.
  GPUProcessState::singleton()->EnableGPUDevice();
  Session* session = nullptr;
  const absl::Status status = NewSession(options, &session);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "multi_stream_num"))
      << status;
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
