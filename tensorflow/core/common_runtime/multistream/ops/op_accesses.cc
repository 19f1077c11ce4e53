// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/ops/op_accesses.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/memory/group_allocator.h"
#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_state.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
namespace {

const char* DataOf(const Tensor& tensor) {
  return static_cast<const char*>(tensor.data());
}

}  // namespace

bool IsGroupMemory(const Tensor& tensor) {
  return MemoryOwner::Get()->Find(tensor.data()) != nullptr;
}

OpAccesses::OpAccesses(StreamGroup* group, const OpKernel* kernel,
                       OpKernelContext* context, const KernelTraits* traits,
                       bool changes_state)
    : group_(group),
      sanitizer_(group->sanitizer()),
      kernel_(kernel),
      context_(context),
      traits_(traits),
      changes_state_(changes_state) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    const TensorValue& value = OpParams(context)->inputs[i];
    Input& input = inputs_.emplace_back();
    if (value.tensor == nullptr || Skips(*value.tensor)) continue;
    input.data = DataOf(*value.tensor);
    input.bytes = value.tensor->TotalBytes();
    if (value.is_ref() || !value.tensor->RefCountIsOne()) continue;
    TensorBuffer* block = DMAHelper::buffer(value.tensor)->root_buffer();
    input.block = static_cast<const char*>(block->data());
    input.block_bytes = block->size();
  }
  FreshMemory()->clear();
}

// Skips memory of no group, constants (complete before any op could use them),
// and strings and lists, which are host memory in several pieces.
bool OpAccesses::Skips(const Tensor& tensor) const {
  const void* data = tensor.data();
  return data == nullptr || !DataTypeCanUseMemcpy(tensor.dtype()) ||
         tensor.TotalBytes() == 0 || !IsGroupMemory(tensor) ||
         (traits_ != nullptr && traits_->constants.contains(data));
}

void OpAccesses::Launched() {
  if (!context_->status().ok()) return;
  std::vector<Access> accesses;
  for (int i = 0; i < static_cast<int>(inputs_.size()); ++i) {
    if (inputs_[i].data == nullptr) continue;
    accesses.push_back(
        {inputs_[i].data, inputs_[i].bytes, false, absl::StrCat("input ", i)});
  }
  for (int i = 0; i < context_->num_outputs(); ++i) {
    const Tensor* output = context_->mutable_output(i);
    if (output == nullptr || Skips(*output)) continue;
    const char* data = DataOf(*output);
    const auto& fresh = *FreshMemory();
    bool is_write = std::find(fresh.begin(), fresh.end(), data) != fresh.end();
    for (const Input& input : inputs_) {
      if (data < input.data || data >= input.data + input.bytes) continue;
      // The op wrote its output in place of the input, or passes the input on.
      is_write = input.block != nullptr && data == input.data;
      if (is_write && MemoryOwner::Get()->Find(data) == group_) {
        Renew(input.block, input.block_bytes);
      }
      break;
    }
    // Otherwise the op passes the output on, as a call passes on results.
    if (!is_write) continue;
    accesses.push_back(
        {data, output->TotalBytes(), true, absl::StrCat("output ", i)});
  }
  if (!accesses.empty()) {
    sanitizer_->Launch(group_->index(), kernel_->name(), accesses);
  }
  LogVariables();
}

void OpAccesses::Renew(const void* address, size_t bytes) const {
  sanitizer_->Renew(group_->index(), address, bytes);
}

void OpAccesses::LogVariables() const {
  // Other ops only pass the variable on. The leader's reads are not reported:
  // its stream orders them with its changes, whatever the host does meanwhile.
  if (!changes_state_ && (group_->is_leader() || traits_ == nullptr ||
                          !traits_->readers.contains(kernel_))) {
    return;
  }
  ForEachVariable(context_, [this](const ResourceHandle& handle, Var* var) {
    // Until logged: another op of the leader may change the variable, too.
    tf_shared_lock lock(*var->mu());
    const Tensor& tensor = *var->tensor();
    if (Skips(tensor)) return;
    // A shared buffer was replaced, not written in place, except in
    // copy-on-read mode.
    const bool is_write = changes_state_ && (tensor.RefCountIsOne() ||
                                             var->copy_on_read_mode.load());
    if (is_write) Renew(tensor.data(), tensor.TotalBytes());
    sanitizer_->Launch(group_->index(), kernel_->name(),
                       {{tensor.data(), tensor.TotalBytes(), is_write,
                         absl::StrCat("variable ", handle.name())}});
  });
}

}  // namespace tensorflow::multistream
