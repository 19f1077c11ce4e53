// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// For tests of the whole runtime: variables and their memory.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_VARIABLES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_VARIABLES_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow::multistream {

// A session's variable on the first GPU, by its shared name; nullptr if there
// is none.
inline core::RefCountPtr<Var> FindVariable(Session* session,
                                           const std::string& name) {
  const DeviceMgr* devices = nullptr;
  EXPECT_TRUE(session->LocalDeviceManager(&devices).ok());
  Device* gpu = nullptr;
  EXPECT_TRUE(devices->LookupDevice("/device:GPU:0", &gpu).ok());
  ResourceMgr* resources = gpu->resource_manager();
  Var* variable = nullptr;
  const absl::Status status =
      resources->Lookup(resources->default_container(), name, &variable);
  EXPECT_TRUE(status.ok()) << status;
  return core::RefCountPtr<Var>(status.ok() ? variable : nullptr);
}

// Host memory that no TensorFlow allocator gave. The caller owns the memory,
// and keeps it for as long as this buffer lives.
class HostBuffer : public TensorBuffer {
 public:
  // `owns`: what OwnsMemory returns.
  HostBuffer(float* values, int64_t count, bool owns)
      : TensorBuffer(values), count_(count), owns_(owns) {}
  size_t size() const override { return count_ * sizeof(float); }
  TensorBuffer* root_buffer() override { return this; }
  void FillAllocationDescription(AllocationDescription*) const override {}
  bool OwnsMemory() const override { return owns_; }

 private:
  const int64_t count_;
  const bool owns_;
};

inline Tensor HostTensor(float* values, int64_t count, bool owns = true) {
  auto* buffer = new HostBuffer(values, count, owns);
  Tensor tensor(DT_FLOAT, TensorShape({count}), buffer);
  buffer->Unref();  // the tensor has its own reference
  return tensor;
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_VARIABLES_H_
