// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// If a process already uses its GPUs without stream groups, a session that asks
// for streams gets an error.

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
