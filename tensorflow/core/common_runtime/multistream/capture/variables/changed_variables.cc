// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/variables/changed_variables.h"

#include <utility>

#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow {
namespace multistream {
namespace {

// The memory of another tensor with a separate reference count. The other
// tensor must outlive this buffer.
class Borrowed : public TensorBuffer {
 public:
  explicit Borrowed(const Tensor& of)
      : TensorBuffer(of.data()), bytes_(of.TotalBytes()) {}

  size_t size() const override { return bytes_; }
  TensorBuffer* root_buffer() override { return this; }
  void FillAllocationDescription(AllocationDescription*) const override {}

 private:
  const size_t bytes_;
};

// A tensor with the same memory and a reference count of one.
Tensor StandInOf(const Tensor& own) {
  auto* buffer = new Borrowed(own);
  Tensor stand_in(own.dtype(), own.shape(), buffer);
  buffer->Unref();  // the tensor has its own reference
  return stand_in;
}

bool IsWithin(const Tensor& value, const Tensor& memory) {
  const char* at = static_cast<const char*>(value.data());
  const char* begin = static_cast<const char*>(memory.data());
  return at >= begin && at < begin + memory.TotalBytes();
}

}  // namespace

ChangedVariables::~ChangedVariables() {
  for (Taken& it : taken_) {
    mutex_lock lock(*it.variable->mu());
    *it.variable->tensor() = it.own;
  }
}

void ChangedVariables::Take(Var* variable) {
  mutex_lock lock(*variable->mu());
  Tensor* value = variable->tensor();
  taken_.push_back({variable, *value});
  *value = StandInOf(taken_.back().own);
}

bool ChangedVariables::IsOfVariable(const Tensor& value) const {
  for (const Taken& it : taken_) {
    if (IsWithin(value, it.own)) return true;
  }
  return false;
}

absl::StatusOr<Tensor> ChangedVariables::Apart(const Tensor& value) {
  if (!IsOfVariable(value)) return value;
  Tensor copy(device_->GetAllocator(AllocatorAttributes()), value.dtype(),
              value.shape());
  if (!copy.IsInitialized()) {
    return absl::ResourceExhaustedError("there is no memory for its results");
  }
  TF_RETURN_IF_ERROR(Copy(value, &copy));
  return copy;
}

absl::Status ChangedVariables::PutBack() {
  std::vector<Tensor> values;
  for (Taken& it : taken_) {
    mutex_lock lock(*it.variable->mu());
    values.push_back(std::exchange(*it.variable->tensor(), it.own));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor& own = taken_[i].own;
    if (!values[i].IsInitialized() || values[i].dtype() != own.dtype() ||
        values[i].shape() != own.shape()) {
      return absl::FailedPreconditionError(
          "it gives a variable a value of another type or shape");
    }
    if (values[i].data() == own.data()) continue;
    // Copy a value in another variable's memory before that memory is written.
    TF_ASSIGN_OR_RETURN(values[i], Apart(values[i]));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor& own = taken_[i].own;
    if (values[i].data() == own.data()) continue;
    Tensor to = StandInOf(own);
    TF_RETURN_IF_ERROR(Copy(values[i], &to));
  }
  return absl::OkStatus();
}

absl::Status ChangedVariables::Copy(const Tensor& from, Tensor* to) {
  const DeviceBase::AcceleratorDeviceInfo* info =
      device_->tensorflow_accelerator_device_info();
  absl::Status status = absl::InternalError("a copy was not enqueued");
  device_->CopyTensorInSameDevice(
      &from, to, info == nullptr ? nullptr : info->default_context,
      [&status](const absl::Status& copied) { status = copied; });
  return status;
}

absl::Status SavedVariables::Save(const Tensor& value) {
  // The variable is locked, so a failed allocation must not block.
  AllocationAttributes no_retry;
  no_retry.retry_on_failure = false;
  Tensor copy(allocator_, value.dtype(), value.shape(), no_retry);
  if (!copy.IsInitialized()) {
    return absl::ResourceExhaustedError(
        "there is no memory for what its variables were");
  }
  TF_RETURN_IF_ERROR(
      group_->CopyOnDevice(value.data(), copy.data(), value.TotalBytes()));
  saved_.push_back({value.data(), std::move(copy)});
  return absl::OkStatus();
}

absl::Status SavedVariables::Restore() {
  absl::Status status;
  for (const auto& [memory, copy] : saved_) {
    status.Update(group_->CopyOnDevice(copy.data(), memory, copy.TotalBytes()));
  }
  group_->WhenCompleted([saved = std::move(saved_)] {});
  return status;
}

}  // namespace multistream
}  // namespace tensorflow
