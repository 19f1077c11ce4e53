// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// On emulated GPUs all memory is the host's, and TensorFlow makes no copies
// between the host and the device. Here the test sends what a GPU's ops would.

#include "tensorflow/core/common_runtime/multistream/step/group_rendezvous.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/manual_stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_attributes.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant.h"

namespace tensorflow::multistream {
namespace {

constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr char kGpu[] = "/job:localhost/replica:0/task:0/device:GPU:0";
constexpr char kOtherGpu[] = "/job:localhost/replica:0/task:0/device:GPU:1";

// Notes the last allocation.
class NotingAllocator : public WatchedMemory {
 public:
  using WatchedMemory::AllocateRaw;
  void* AllocateRaw(size_t alignment, size_t bytes) override {
    return last = WatchedMemory::AllocateRaw(alignment, bytes);
  }
  void* last = nullptr;
};

class FakeDevice : public Device {
 public:
  FakeDevice() : Device(Env::Default(), Attributes()) {}
  absl::Status Sync() override { return absl::OkStatus(); }
  Allocator* GetAllocator(AllocatorAttributes attributes) override {
    return attributes.on_host() ? &host : &memory;
  }
  NotingAllocator memory;
  NotingAllocator host;

 private:
  static DeviceAttributes Attributes() {
    DeviceAttributes attributes;
    attributes.set_name(kGpu);
    attributes.set_device_type("CPU");  // as an emulated GPU's is
    return attributes;
  }
};

// A rendezvous with one tensor. Like TensorFlow's, it copies the tensor to the
// visible device's memory if the receiver wants it on the device.
class OneTensor : public RendezvousInterface {
 public:
  OneTensor(Device* leader, Tensor tensor)
      : leader_(leader), tensor_(std::move(tensor)) {}

  absl::Status Send(const ParsedKey&, const Args&, const Tensor&,
                    bool) override {
    return absl::OkStatus();
  }
  void RecvAsync(const ParsedKey&, const Args& args,
                 DoneCallback done) override {
    Tensor out = tensor_;
    if (!args.alloc_attrs.on_host()) {
      out = Tensor(leader_->GetAllocator(args.alloc_attrs), tensor_.dtype(),
                   tensor_.shape());
      out.flat<float>() = tensor_.flat<float>();
    }
    done(status, Args(), args, out, is_dead);
  }
  void StartAbort(const absl::Status&) override {}

  absl::Status status;
  bool is_dead = false;

 private:
  Device* const leader_;
  const Tensor tensor_;
};

class GroupRendezvousTest : public ::testing::Test {
 protected:
  struct Received {
    absl::Status status;
    Tensor tensor;
    bool is_dead;
  };

  // On group 2, from `wrapped`; with `copy`, if any.
  Received Receive(OneTensor* wrapped, const std::string& from,
                   const std::string& to, bool on_host,
                   GroupRendezvous::HostToDevice copy = nullptr) {
    StreamGroup* group = gpu_->group(2);
    GroupRendezvous rendezvous =
        copy ? GroupRendezvous(wrapped, &step_, group, &leader_, &device_, copy)
             : GroupRendezvous(wrapped, &step_, group, &leader_, &device_);
    RendezvousInterface::ParsedKey key;
    absl::Status parsed = Rendezvous::ParseKey(
        Rendezvous::CreateKey(from, 1, to, "edge", FrameAndIter(0, 0)), &key);
    EXPECT_TRUE(parsed.ok()) << parsed;
    RendezvousInterface::Args args;
    args.alloc_attrs.set_on_host(on_host);
    std::vector<Received> received;
    rendezvous.RecvAsync(
        key, args,
        [&](const absl::Status& status, const RendezvousInterface::Args&,
            const RendezvousInterface::Args& recv_args, const Tensor& tensor,
            bool is_dead) {
          // The callback gets the attributes that the receiving op asked for.
          EXPECT_EQ(recv_args.alloc_attrs.on_host(), on_host);
          received.push_back({status, tensor, is_dead});
        });
    EXPECT_EQ(received.size(), 1);
    return received[0];
  }

  // `tensor` of the host, copied by group 2's stream when it gets there.
  Received ReceiveOnStream(Tensor tensor) {
    OneTensor wrapped(&leader_, std::move(tensor));
    return Receive(&wrapped, kCpu, kGpu, /*on_host=*/false,
                   [this](se::Stream*, const void* from, void*, size_t) {
                     streams_[2]->Use(&device_.host, from);
                     return absl::OkStatus();
                   });
  }

  FakeDevice leader_;
  FakeDevice device_;  // of group 2
  StreamRecord record_;
  std::vector<ManualStreamGroup*> streams_;
  std::unique_ptr<GpuGroups> gpu_ = NewManualGroups(4, &record_, &streams_);
  Step step_{gpu_.get(), gpu_->group(2), /*changes_state=*/false};
  Tensor sent_ = Tensor(7.0f);
  OneTensor wrapped_{&leader_, sent_};
};

// From the host, or the host's side of the GPU (an int32 op's result), into
// memory of the group, by way of the group's pinned memory: a copy to the
// leader's memory would overtake the leader's last use. From another GPU into
// memory of the leader. To the host as it is.
TEST_F(GroupRendezvousTest, IntoMemoryOfTheGroupOrTheLeaderOrAsItIs) {
  struct Case {
    const char* from;
    const char* to;
    NotingAllocator* memory;  // nullptr: on the host
  };
  for (const Case& c : {Case{kCpu, kGpu, &device_.memory},
                        {kGpu, kGpu, &device_.memory},
                        {kOtherGpu, kGpu, &leader_.memory},
                        {kCpu, kGpu, nullptr},
                        {kGpu, kGpu, nullptr},
                        {kOtherGpu, kGpu, nullptr},
                        {kGpu, kCpu, nullptr}}) {
    SCOPED_TRACE(absl::StrCat(c.from, " ", c.to));
    for (FakeDevice* device : {&leader_, &device_}) {
      device->memory.last = device->host.last = nullptr;
    }
    const Received received = Receive(&wrapped_, c.from, c.to, !c.memory);
    ASSERT_TRUE(received.status.ok());
    EXPECT_EQ(received.tensor.scalar<float>()(), 7.0f);
    EXPECT_EQ(received.tensor.data(), c.memory ? c.memory->last : sent_.data());
    for (FakeDevice* device : {&leader_, &device_}) {
      EXPECT_EQ(device->memory.last != nullptr, &device->memory == c.memory);
    }
    EXPECT_EQ(device_.host.last != nullptr, c.memory == &device_.memory);
    EXPECT_EQ(leader_.host.last, nullptr);
  }
}

// More elements than the step holds to its end.
constexpr int64_t kMany = StepHolds::kMostBytes / sizeof(float) + 1;

TEST_F(GroupRendezvousTest, PinnedMemoryIsHeldUntilTheStreamHasCopiedIt) {
  // Small ones to the step's end.
  for (int i = 0; i < 3; ++i) ReceiveOnStream(sent_);
  streams_[2]->Complete();
  EXPECT_EQ(device_.host.in_use(), 3);
  EXPECT_EQ(streams_[2]->callbacks(), 0);
  step_.holds().ReleaseWhenCompleted(gpu_->group(2));
  for (int i = 2; i <= 3; ++i) {
    EXPECT_TRUE(
        ReceiveOnStream(Tensor(DT_FLOAT, TensorShape({kMany}))).status.ok());
    EXPECT_EQ(streams_[2]->callbacks(), i);
  }
  EXPECT_EQ(device_.host.in_use(), 5);
  streams_[2]->Complete();
  EXPECT_EQ(streams_[2]->used_too_late(), 0);
  EXPECT_EQ(device_.host.in_use(), 0);
}

// Ops may use the list's elements until the end of the step, unseen by holds.
TEST_F(GroupRendezvousTest, AListIsHeldToTheStepsEnd) {
  WatchedMemory memory;
  const void* data;
  {
    Tensor element(&memory, DT_FLOAT, TensorShape({1}));
    data = element.data();
    Tensor list(DT_VARIANT, TensorShape({}));
    list.scalar<Variant>()() = std::move(element);
    ASSERT_TRUE(ReceiveOnStream(std::move(list)).status.ok());
  }
  ReceiveOnStream(Tensor(DT_FLOAT, TensorShape({kMany})));
  EXPECT_EQ(streams_[2]->callbacks(), 1);
  streams_[2]->Complete();
  streams_[2]->Use(&memory, data);
  step_.holds().ReleaseWhenCompleted(gpu_->group(2));
  streams_[2]->Complete();
  EXPECT_EQ(streams_[2]->used_too_late(), 0);
  EXPECT_EQ(memory.in_use(), 0);
}

TEST_F(GroupRendezvousTest, ErrorsAndDeadTensorsAreHandedOn) {
  wrapped_.is_dead = true;
  EXPECT_TRUE(Receive(&wrapped_, kGpu, kGpu, /*on_host=*/false).is_dead);
  wrapped_.is_dead = false;
  wrapped_.status = absl::CancelledError("the step ended");
  EXPECT_EQ(Receive(&wrapped_, kCpu, kGpu, /*on_host=*/false).status,
            wrapped_.status);
  EXPECT_EQ(device_.memory.last, nullptr);
}

}  // namespace
}  // namespace tensorflow::multistream
