// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/direct_function.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/tfe_tensorhandle_internal.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/eager/tensor_handle.h"
#include "tensorflow/core/common_runtime/threadpool_device.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow::multistream {
namespace {

std::atomic<int> pinned{0};
std::atomic<int> pageable{0};

// A host that notes which memory is asked for.
class WatchedHost : public ThreadPoolDevice {
 public:
  using ThreadPoolDevice::ThreadPoolDevice;

  Allocator* GetAllocator(AllocatorAttributes attributes) override {
    ++(attributes.gpu_compatible() ? pinned : pageable);
    return ThreadPoolDevice::GetAllocator(attributes);
  }
};

class WatchedHostFactory : public DeviceFactory {
 public:
  absl::Status ListPhysicalDevices(std::vector<std::string>* devices) override {
    devices->push_back("/physical_device:CPU:0");
    return absl::OkStatus();
  }
  absl::Status CreateDevices(
      const SessionOptions& options, const std::string& prefix,
      std::vector<std::unique_ptr<Device>>* devices) override {
    devices->push_back(std::make_unique<WatchedHost>(
        options, prefix + "/device:CPU:0", Bytes(1 << 28), DeviceLocality(),
        cpu_allocator()));
    return absl::OkStatus();
  }
};
REGISTER_LOCAL_DEVICE_FACTORY("CPU", WatchedHostFactory, 1000);

class DirectFunctionTest : public ::testing::Test {
 protected:
  DirectFunctionTest() {
    TFE_ContextOptions* const options = TFE_NewContextOptions();
    context_ = TFE_NewContext(options, status_);
    TFE_DeleteContextOptions(options);
    Check();
  }
  ~DirectFunctionTest() override {
    TFE_DeleteContext(context_);
    TF_DeleteStatus(status_);
  }

  void Check() const {
    ASSERT_EQ(TF_GetCode(status_), TF_OK) << TF_Message(status_);
  }

  // Defines a function, and calls it once, which instantiates it.
  std::unique_ptr<DirectFunction> Make(const FunctionDef& function,
                                       const Tensor& argument) {
    const std::string text = function.SerializeAsString();
    const std::string& name = function.signature().name();
    TFE_ContextAddFunctionDef(context_, text.data(), text.size(), status_);
    Check();
    TFE_Op* const op = TFE_NewOp(context_, name.c_str(), status_);
    Check();
    TFE_TensorHandle* const handle =
        wrap(TensorHandle::CreateLocalHandle(argument));
    TFE_OpAddInput(op, handle, status_);
    TFE_TensorHandle* result = nullptr;
    int results = 1;
    TFE_Execute(op, &result, &results, status_);
    Check();
    TFE_DeleteOp(op);
    TFE_DeleteTensorHandle(handle);
    TFE_DeleteTensorHandle(result);
    const auto found = DirectFunction::InstantiationsOf(context_, name);
    if (found.empty()) return nullptr;
    auto made = DirectFunction::Make(context_, found[0].handle, 1, {});
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *std::move(made) : nullptr;
  }

 private:
  TF_Status* const status_ = TF_NewStatus();
  TFE_Context* context_ = nullptr;
};

// A copy to other memory blocks the calling thread, and with it threads that
// need something of the driver.
TEST_F(DirectFunctionTest, ResultsAreCopiedToPinnedMemory) {
  const FunctionDef square = FunctionDefHelper::Create(
      "F", {"x: float"}, {"y: float"}, {},
      {{{"square"}, "Square", {"x"}, {{"T", DT_FLOAT}}, {}, "/device:GPU:0"},
       {{"on_host"},
        "Identity",
        {"square:y:0"},
        {{"T", DT_FLOAT}},
        {},
        "/device:CPU:0"}},
      {{"y", "on_host:output:0"}});
  Tensor argument(DT_FLOAT, {2});
  argument.flat<float>().setValues({3, 4});
  const std::unique_ptr<DirectFunction> function = Make(square, argument);
  ASSERT_NE(function, nullptr);
  std::vector<Tensor> results;
  pinned = pageable = 0;
  const absl::Status status = function->Call({argument}, &results);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(results.size(), 1);
  EXPECT_EQ(results[0].flat<float>()(0), 9);
  EXPECT_EQ(results[0].flat<float>()(1), 16);
  EXPECT_EQ(pinned, 1);
  EXPECT_EQ(pageable, 0);
}

}  // namespace
}  // namespace tensorflow::multistream
