// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// For tests: a base class for GroupDevice that needs no GPU.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_FAKE_DEVICE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_FAKE_DEVICE_H_

#include <cstring>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace tensorflow::multistream {

class FakeContext : public DeviceContext {};

// A device in host memory. Like a GPU device it copies on the stream of the
// given context.
class FakeDevice : public Device {
 public:
  explicit FakeDevice(DeviceContext* context,
                      Allocator* allocator = cpu_allocator())
      : Device(Env::Default(),
               BuildDeviceAttributes("/device:GPU:0", "GPU", Bytes(1 << 20),
                                     DeviceLocality())),
        allocator_(allocator) {
    info_.default_context = context;
    set_tensorflow_accelerator_device_info(&info_);
    workers_.num_threads = 1;
    workers_.workers = &pool_;
    set_tensorflow_cpu_worker_threads(&workers_);
  }

  absl::Status Sync() override {
    ++syncs_;
    return absl::OkStatus();
  }
  Allocator* GetAllocator(AllocatorAttributes) override { return allocator_; }
  void CopyTensorInSameDevice(const Tensor* from, Tensor* to,
                              const DeviceContext* context,
                              StatusCallback done) override {
    contexts_.push_back(context);
    if (context == nullptr) {
      done(absl::InternalError("no context"));
      return;
    }
    std::memcpy(to->data(), from->data(), from->TotalBytes());
    if (on_copy) on_copy(from->data());
    done(absl::OkStatus());
  }

  // Called for each copy, as if it enqueued the copy.
  std::function<void(const void* from)> on_copy;

  // The contexts of the copies, in order.
  const std::vector<const DeviceContext*>& contexts() const {
    return contexts_;
  }
  // Calls of Sync.
  int syncs() const { return syncs_; }

 private:
  Allocator* const allocator_;
  DeviceBase::AcceleratorDeviceInfo info_;
  thread::ThreadPool pool_{Env::Default(), "worker", 1};
  DeviceBase::CpuWorkerThreads workers_;  // for CPU kernels
  std::vector<const DeviceContext*> contexts_;
  int syncs_ = 0;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_FAKE_DEVICE_H_
