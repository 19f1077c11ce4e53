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

#include "tensorflow/core/common_runtime/multistream/group_device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/fake_stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow {
namespace multistream {
namespace {

class FakeContext : public DeviceContext {};

// In host memory. Like a GPU's device it copies on the stream of a context.
class FakeDevice : public Device {
 public:
  explicit FakeDevice(DeviceContext* context)
      : Device(Env::Default(),
               BuildDeviceAttributes("/device:GPU:0", "GPU", Bytes(1 << 20),
                                     DeviceLocality())) {
    info_.default_context = context;
    set_tensorflow_accelerator_device_info(&info_);
    workers_.num_threads = 1;
    workers_.workers = &pool_;
    set_tensorflow_cpu_worker_threads(&workers_);
  }

  absl::Status Sync() override { return absl::OkStatus(); }
  Allocator* GetAllocator(AllocatorAttributes) override {
    return cpu_allocator();
  }
  void CopyTensorInSameDevice(const Tensor* from, Tensor* to,
                              const DeviceContext* context,
                              StatusCallback done) override {
    contexts_.push_back(context);
    if (context == nullptr) {
      done(absl::InternalError("no context"));
      return;
    }
    std::memcpy(to->data(), from->data(), from->TotalBytes());
    done(absl::OkStatus());
  }

  // Of the copies.
  const std::vector<const DeviceContext*>& contexts() const {
    return contexts_;
  }

 private:
  DeviceBase::AcceleratorDeviceInfo info_;
  thread::ThreadPool pool_{Env::Default(), "worker", 1};
  DeviceBase::CpuWorkerThreads workers_;  // of CPU kernels
  std::vector<const DeviceContext*> contexts_;
};

using Member = GroupDevice<FakeDevice>;

class GroupDeviceTest : public ::testing::Test {
 protected:
  GroupDeviceTest()
      : groups_(NewFakeGroups(0, 2, &record_)),
        leader_(std::make_unique<Member>(groups_.get(), groups_->group(0),
                                         &contexts_[0])) {
    leader_->AddHidden(std::make_unique<Member>(
        groups_.get(), groups_->group(1), &contexts_[1]));
  }

  Member* Device(int group) {
    return static_cast<Member*>(leader_->group_device(group));
  }

  // Row 1 of the variable "var", rows of one number, gathered on `group`.
  absl::Status Gather(int group, float* row) {
    NodeDef node;
    absl::Status status = NodeDefBuilder("gather", "ResourceGather")
                              .Input("var", 0, DT_RESOURCE)
                              .Input("indices", 0, DT_INT32)
                              .Attr("dtype", DT_FLOAT)
                              .Finalize(&node);
    if (!status.ok()) return status;
    std::unique_ptr<OpKernel> kernel =
        CreateOpKernel(DEVICE_CPU, Device(group), cpu_allocator(), node,
                       TF_GRAPH_DEF_VERSION, &status);
    if (!status.ok()) return status;
    OpKernelContext::Params params;
    params.device = Device(group);
    params.op_kernel = kernel.get();
    params.resource_manager = Device(group)->resource_manager();
    Tensor handle(DT_RESOURCE, TensorShape({}));
    handle.scalar<ResourceHandle>()() =
        MakeResourceHandle(params.resource_manager->default_container(), "var",
                           *Device(group), TypeIndex::Make<Var>());
    Tensor index(DT_INT32, TensorShape({1}));
    index.flat<int>()(0) = 1;
    const TensorValue inputs[] = {TensorValue(&handle), TensorValue(&index)};
    const AllocatorAttributes output;
    params.inputs = inputs;
    params.output_attr_array = &output;
    OpKernelContext context(&params);
    Device(group)->Compute(kernel.get(), &context);
    if (context.status().ok()) {
      *row = context.mutable_output(0)->flat<float>()(0);
    }
    return context.status();
  }

  FakeContext contexts_[2];
  StreamRecord record_;
  std::unique_ptr<GpuGroups> groups_;
  std::unique_ptr<Member> leader_;
};

// Gathers make a variable one whose readers get copies. What it shares with a
// constant has to be copied for that.
TEST_F(GroupDeviceTest, AGatherOfAnotherGroupCopiesOnTheLeadersStream) {
  Tensor constant(DT_FLOAT, TensorShape({2, 1}));
  constant.flat<float>()(0) = 3;
  constant.flat<float>()(1) = 4;
  auto* var = new Var(DT_FLOAT);
  *var->tensor() = constant;
  var->is_initialized = true;
  ResourceMgr* resources = Device(0)->resource_manager();
  ASSERT_TRUE(
      resources->Create(resources->default_container(), "var", var).ok());
  for (int i = 0; i < 2; ++i) {
    float row = 0;
    const absl::Status status = Gather(1, &row);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(row, 4);
  }
  EXPECT_TRUE(var->copy_on_read_mode.load());
  EXPECT_NE(var->tensor()->data(), constant.data());
  EXPECT_EQ(Device(0)->contexts(),
            std::vector<const DeviceContext*>{&contexts_[0]});
  EXPECT_TRUE(Device(1)->contexts().empty());
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
