// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Does source_hooks.cc set the hooks? session_streams_test.cc, in the same
// program, tests their use.

#include <gtest/gtest.h>

#include <memory>

#include "tensorflow/core/common_runtime/copy_tensor.h"
#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/eager/context.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/executor_factory.h"
#include "tensorflow/core/common_runtime/multistream/base/executor_compat.h"
#include "tensorflow/core/common_runtime/multistream/cuda/conv_runners.h"
#include "tensorflow/core/common_runtime/multistream/hooks/hook.h"
#include "tensorflow/core/common_runtime/multistream/hooks/replaced_symbols.h"
#include "tensorflow/core/grappler/clusters/utils.h"
#include "third_party/gpus/cuda/include/cuda_runtime_api.h"
#include "xla/stream_executor/executor_cache.h"
#include "xla/stream_executor/host/host_executor.h"

namespace tensorflow::multistream {
namespace {

TEST(SourceHooksTest, AllAreSet) {
  EXPECT_NE(Hook<&NewExecutor>::Take(), nullptr);
  EXPECT_NE(Hook<&NewLocalExecutor>::Take(), nullptr);
  EXPECT_NE(Hook<&DeviceFactory::AddDevices>::Take(), nullptr);
  EXPECT_NE(Hook<&EagerContext::RunEagerOpAsFunction>::Take(), nullptr);
  EXPECT_NE(Hook<&CopyTensor::ViaDMA>::Take(), nullptr);
  EXPECT_NE(Hook<&grappler::GetDeviceInfo>::Take(), nullptr);
  EXPECT_NE(Hook<&EventMgrFactory::GetEventMgr>::Take(), nullptr);
  EXPECT_NE(Hook<&EventMgr::ThenExecute>::Take(), nullptr);
  EXPECT_NE(Hook<&se::ExecutorCache::GetOrCreate>::Take(), nullptr);
  EXPECT_NE(Hook<kCreateContext>::Take(), nullptr);
  EXPECT_NE(Hook<&cudaStreamAddCallback>::Take(), nullptr);
  using se::dnn::ConvOp;
  using se::dnn::FusedConvOp;
  using se::dnn::FusedMatmulOp;
  EXPECT_NE((Hook<&AutotuneTable<ConvParameters, ConvOp>::Find>::Take()),
            nullptr);
  EXPECT_NE((Hook<&AutotuneTable<ConvParameters, FusedConvOp>::Find>::Take()),
            nullptr);
  EXPECT_NE(
      (Hook<&AutotuneTable<MatmulParameters, FusedMatmulOp>::Find>::Take()),
      nullptr);
}

TEST(SourceHooksTest, NothingComesBeforeTensorFlow) {
  EXPECT_TRUE(CheckReplacedSymbols().ok());
}

TEST(SourceHooksTest, AnEmulatedGpusPropertiesAreUnknown) {
  DeviceNameUtils::ParsedName gpu;
  gpu.type = "GPU";
  gpu.has_id = true;
  EXPECT_EQ(grappler::GetDeviceInfo(gpu).type(), "UNKNOWN");
  DeviceNameUtils::ParsedName cpu;
  cpu.type = "CPU";
  EXPECT_EQ(grappler::GetDeviceInfo(cpu).type(), "CPU");
}

TEST(SourceHooksTest, AnExecutorThatNoGroupAskedForIsTheCaches) {
  se::ExecutorCache cache;
  int made = 0;
  for (int i = 0; i < 2; ++i) {
    auto executor = cache.GetOrCreate(
        0, [&]() -> absl::StatusOr<std::unique_ptr<se::StreamExecutor>> {
          ++made;
          return std::make_unique<se::host::HostExecutor>(/*platform=*/nullptr,
                                                          0);
        });
    ASSERT_TRUE(executor.ok());
    EXPECT_EQ(*executor, *cache.Get(0));
  }
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace tensorflow::multistream
