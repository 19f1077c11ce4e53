// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/generated_kernels.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/cuda/fake_driver.h"
#include "tensorflow/core/common_runtime/multistream/cuda/group_contexts.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/public/version.h"
#include "third_party/gpus/cuda/include/cuda.h"
#include "xla/stream_executor/host/host_executor.h"
#include "xla/stream_executor/host/host_stream.h"

namespace {

// A driver whose handles are numbers. A module's is its context's times 100,
// plus the count of modules loaded before.
struct Driver {
  intptr_t context = 1;
  int loads = 0;
  int unloads = 0;
  int look_ups = 0;
  CUresult result = CUDA_SUCCESS;
  struct Launch {
    CUfunction kernel;
    unsigned threads;
    void** parameters;
  };
  std::vector<Launch> launches;
} driver;

// For the names of errors.
[[maybe_unused]] const FakeDriver* const fake_driver = LoadFakeDriver();

}  // namespace

// Replaces the driver's functions.
extern "C" {
CUresult cuModuleLoadData(CUmodule* module, const void*) {
  if (driver.result != CUDA_SUCCESS) return driver.result;
  *module = reinterpret_cast<CUmodule>(driver.context * 100 + driver.loads++);
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule) {
  ++driver.unloads;
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* kernel, CUmodule module,
                             const char* name) {
  ++driver.look_ups;
  if (driver.result != CUDA_SUCCESS) return driver.result;
  *kernel = reinterpret_cast<CUfunction>(
      reinterpret_cast<intptr_t>(module) * 1000 + (name[0] - 'a'));
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction kernel, unsigned grid_x, unsigned grid_y,
                        unsigned grid_z, unsigned block_x, unsigned block_y,
                        unsigned block_z, unsigned, CUstream, void** parameters,
                        void**) {
  driver.launches.push_back(
      {kernel, grid_x * grid_y * grid_z * block_x * block_y * block_z,
       parameters});
  return driver.result;
}

void _mlir_ciface_tf_launch_kernel(void* context, void* module, char* name,
                                   intptr_t grid_x, intptr_t grid_y,
                                   intptr_t grid_z, intptr_t block_x,
                                   intptr_t block_y, intptr_t block_z,
                                   void** params);
}

namespace tensorflow::multistream {
namespace {

char module_a, module_b;  // identified by address

// Tests LaunchKernel, which TensorFlow's generated code calls.
class GeneratedKernelsTest : public ::testing::Test {
 protected:
  class StreamOfTest : public DeviceContext {
   public:
    se::Stream* stream() const override { return &stream_; }

   private:
    mutable se::host::HostExecutor executor_{/*platform=*/nullptr, 0};
    mutable se::host::HostStream stream_{&executor_};
  };

  GeneratedKernelsTest() : stream_(new StreamOfTest), device_(Env::Default()) {
    driver = Driver();
    NodeDef node;
    node.set_name("test");
    node.set_op("NoOp");
    absl::Status status;
    kernel_ = CreateOpKernel(DEVICE_CPU, &device_, /*allocator=*/nullptr, node,
                             TF_GRAPH_DEF_VERSION, &status);
    EXPECT_TRUE(status.ok()) << status;
    params_.op_kernel = kernel_.get();
    params_.device = &device_;
    params_.resource_manager = &resources_;
    params_.op_device_context = stream_.get();
  }

  // Launches from an op of a group in `context`; returns the op's status.
  absl::Status Launch(int context, int blocks, void* module = &module_a,
                      std::string name = "c") {
    driver.context = context;
    info_.gpu_id = NumberOfContext(/*gpu=*/1, context);
    device_.set_tensorflow_accelerator_device_info(&info_);
    OpKernelContext op(&params_, /*num_outputs=*/0);
    _mlir_ciface_tf_launch_kernel(&op, module, name.data(), blocks, 2, 3, 4, 5,
                                  6, arguments_);
    return op.status();
  }
  // The kernel that such a launch has launched.
  intptr_t Launched(int context, void* module, const std::string& name) {
    const absl::Status status = Launch(context, 7, module, name);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(driver.launches.back().threads, 7 * 2 * 3 * 4 * 5 * 6);
    EXPECT_EQ(driver.launches.back().parameters, arguments_);
    return reinterpret_cast<intptr_t>(driver.launches.back().kernel);
  }
  static void ExpectError(const absl::Status& status, const std::string& call) {
    for (const std::string& part :
         {call + " failed", std::string("CUDA_ERROR_OF_THE_TEST")}) {
      EXPECT_NE(status.message().find(part), std::string::npos) << status;
    }
  }

  core::RefCountPtr<StreamOfTest> stream_;
  DeviceBase::AcceleratorDeviceInfo info_;
  DeviceBase device_;
  ResourceMgr resources_;
  std::unique_ptr<OpKernel> kernel_;
  OpKernelContext::Params params_;
  void* arguments_[1] = {nullptr};
};

TEST_F(GeneratedKernelsTest, EachContextLaunchesItsOwnKernel) {
  EXPECT_TRUE(Launch(1, 0).ok());  // an empty grid
  EXPECT_TRUE(driver.launches.empty());
  EXPECT_EQ(driver.loads, 0);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(Launched(1, &module_a, "a"), 100000);
    EXPECT_EQ(Launched(1, &module_a, "b"), 100001);
    EXPECT_EQ(Launched(1, &module_b, "a"), 101000);
    EXPECT_EQ(Launched(2, &module_a, "a"), 202000);
  }
  // A module is loaded once and a kernel looked up once.
  EXPECT_EQ(driver.loads, 3);
  EXPECT_EQ(driver.look_ups, 4);
  EXPECT_EQ(driver.unloads, 0);
  // The kernels are deleted with the device's resources.
  resources_.Clear();
  EXPECT_EQ(driver.unloads, 3);
}

TEST_F(GeneratedKernelsTest, TheOpFailsWithTheDriversErrorWhichIsNotKept) {
  driver.result = CUDA_ERROR_INVALID_HANDLE;
  ExpectError(Launch(1, 1), "cuModuleLoadData");
  driver.result = CUDA_SUCCESS;
  EXPECT_EQ(Launched(1, &module_a, "a"), 100000);
  driver.result = CUDA_ERROR_NOT_FOUND;
  ExpectError(Launch(1, 1, &module_a, "b"), "cuModuleGetFunction");
  ExpectError(Launch(1, 1, &module_a, "a"), "cuLaunchKernel");
  driver.result = CUDA_SUCCESS;
  EXPECT_EQ(Launched(1, &module_a, "b"), 100001);
  EXPECT_EQ(driver.loads, 1);
}

}  // namespace
}  // namespace tensorflow::multistream
