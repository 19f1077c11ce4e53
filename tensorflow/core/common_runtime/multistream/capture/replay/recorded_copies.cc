// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/replay/recorded_copies.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {

namespace {

// A part of a block, which holds a reference to the block.
class Part : public TensorBuffer {
 public:
  Part(const Tensor& block, size_t at, size_t bytes)
      : TensorBuffer(static_cast<char*>(block.data()) + at),
        block_(block),
        bytes_(bytes) {}

  size_t size() const override { return bytes_; }
  TensorBuffer* root_buffer() override {
    return DMAHelper::buffer(&block_)->root_buffer();
  }
  void FillAllocationDescription(AllocationDescription*) const override {}

 private:
  Tensor block_;
  const size_t bytes_;
};

// Other work may wait for the thread, so a failed allocation must not block.
Tensor NewTensor(Allocator* allocator, DataType type,
                 const TensorShape& shape) {
  const AllocationAttributes no_retry(/*retry_on_failure=*/false,
                                      /*allocation_will_be_logged=*/false,
                                      /*freed_by_func=*/nullptr);
  return Tensor(allocator, type, shape, no_retry);
}

}  // namespace

InputBlock::InputBlock(const std::vector<Tensor>& values) {
  for (const Tensor& it : values) {
    bytes_ = (bytes_ + kAlignment - 1) / kAlignment * kAlignment;
    places_.push_back({bytes_, it.TotalBytes(), it.dtype(), it.shape()});
    bytes_ += it.TotalBytes();
  }
}

std::vector<Tensor> InputBlock::In(const Tensor& block) const {
  DCHECK_GE(block.TotalBytes(), bytes_);
  std::vector<Tensor> values;
  for (const Place& place : places_) {
    if (place.bytes == 0) {
      values.emplace_back(place.type, place.shape);
      continue;
    }
    auto* part = new Part(block, place.at, place.bytes);
    values.emplace_back(place.type, place.shape, part);
    part->Unref();  // the tensor has its own reference
  }
  return values;
}

void InputBlock::Fill(const std::vector<Tensor>& values, Tensor* block) const {
  char* begin = static_cast<char*>(block->data());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t bytes = values[i].TotalBytes();
    DCHECK_LE(bytes, places_[i].bytes);
    if (bytes > 0) std::memcpy(begin + places_[i].at, values[i].data(), bytes);
  }
}

std::vector<InputBlock::Span> InputBlock::Spans(
    const std::vector<Tensor>& values) const {
  std::vector<Span> spans;
  bool goes_on = false;  // the last span ends where the next value begins
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [at, most, type, shape] = places_[i];
    const size_t bytes = values[i].TotalBytes();
    if (most == 0) continue;
    if (goes_on) {
      spans.back().bytes = at + bytes - spans.back().at;
    } else if (bytes > 0) {
      spans.push_back({at, bytes});
    }
    goes_on = bytes == most;
  }
  return spans;
}

bool RecordedCopies::Allocate(const StepInputs& inputs, Recording* recording) {
  block_ = InputBlock(inputs.received);
  received_ = Tensor(recording->memory(), DT_UINT8, block_.shape());
  if (!received_.IsInitialized()) return false;
  const std::vector<Tensor> from_host = block_.In(received_);
  auto next = from_host.begin() + step_.receives.size();
  inputs_.assign(from_host.begin(), next);
  for (size_t i = 0; i < inputs.arguments.size(); ++i) {
    const Tensor& it = inputs.arguments[i];
    if (step_.arguments[i].decides) {
      inputs_.push_back(tensor::DeepCopy(it));
      continue;
    }
    if (step_.arguments[i].on_host) {
      inputs_.push_back(*next++);
      continue;
    }
    if (it.dtype() == DT_RESOURCE) {
      inputs_.push_back(it);
      continue;
    }
    inputs_.emplace_back(recording->memory(), it.dtype(), it.shape());
    if (!inputs_.back().IsInitialized()) return false;
  }
  if (!step_.draw_states.empty()) {
    draw_states_.assign(next, from_host.end());
  } else if (next != from_host.end()) {
    mask_ = *next;
  }
  return true;
}

Tensor RecordedCopies::NewPinned(DataType type,
                                 const TensorShape& shape) const {
  return Tensor(device_->GetAllocator(PinnedMemory()), type, shape);
}

bool RecordedCopies::Stage(const StepInputs& inputs, Tensor* staged) const {
  *staged = NewPinned(DT_UINT8, block_.shape());
  if (!staged->IsInitialized()) return false;
  block_.Fill(inputs.received, staged);
  return true;
}

void RecordedCopies::Draw(Tensor* staged) const {
  // As TensorFlow's kernels reserve: enough for every distribution.
  constexpr int kNumbersOfAnOutput = 256;
  char* const block = static_cast<char*>(staged->data());
  size_t at = block_.size() - draw_states_.size();
  for (size_t i = 0; i < drawn_.size(); ++i) {
    const random::PhiloxRandom state =
        generators_[i]->ReserveRandomOutputs(drawn_[i], kNumbersOfAnOutput);
    std::memcpy(block + block_.At(at++), &state.key()[0], sizeof(state.key()));
    std::memcpy(block + block_.At(at++), &state.counter()[0],
                sizeof(state.counter()));
  }
}

bool RecordedCopies::NewOutputs(const CapturedCall& call,
                                std::vector<Tensor>* outputs) const {
  for (size_t i = 0; i < places_.size(); ++i) {
    const ResultPlace& made = places_[i];
    const TensorShape& shape = call.padding() == nullptr
                                   ? made.shape
                                   : call.padding()->results[i].shape;
    outputs->push_back(step_.GoesToHost(i) ? NewPinned(made.type, shape)
                                           : Tensor(device_->GetAllocator(
                                                        AllocatorAttributes()),
                                                    made.type, shape));
    if (!outputs->back().IsInitialized()) return false;
    // A result on the host is the same in each replay, so it is copied here.
    if (made.on_host) {
      std::memcpy(outputs->back().data(), made.address,
                  outputs->back().TotalBytes());
    }
  }
  return true;
}

absl::Status RecordedCopies::CopyIn(const StepInputs& inputs,
                                    const Tensor& staged) {
  const char* from = static_cast<const char*>(staged.data());
  char* to = static_cast<char*>(received_.data());
  for (const auto& [at, bytes] : block_.Spans(inputs.received)) {
    TF_RETURN_IF_ERROR(group_->CopyToDevice(from + at, to + at, bytes));
  }
  for (size_t i = 0; i < inputs.arguments.size(); ++i) {
    const Tensor& argument = inputs.arguments[i];
    if (step_.arguments[i].is_variable || step_.arguments[i].on_host) continue;
    TF_RETURN_IF_ERROR(group_->CopyOnDevice(
        argument.data(), inputs_[step_.receives.size() + i].data(),
        argument.TotalBytes()));
  }
  return absl::OkStatus();
}

absl::Status RecordedCopies::CopyOut(const CapturedCall& call,
                                     const std::vector<Tensor>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ResultPlace& made = places_[i];
    if (made.on_host) continue;
    const PaddedResult* padded =
        call.padding() == nullptr ? nullptr : &call.padding()->results[i];
    const int64_t blocks = padded == nullptr ? 1 : padded->blocks;
    const size_t bytes = outputs[i].TotalBytes() / blocks;
    const size_t stride = padded == nullptr ? bytes : padded->Stride(bytes);
    for (int64_t k = 0; k < blocks; ++k) {
      const char* from = static_cast<const char*>(made.address) + k * stride;
      char* to = static_cast<char*>(outputs[i].data()) + k * bytes;
      TF_RETURN_IF_ERROR(step_.GoesToHost(i)
                             ? group_->CopyToHost(from, to, bytes)
                             : group_->CopyOnDevice(from, to, bytes));
    }
  }
  return absl::OkStatus();
}

bool RecordedCopies::CopiesToHost() const {
  for (size_t i = 0; i < places_.size(); ++i) {
    if (step_.GoesToHost(i) && !places_[i].on_host) return true;
  }
  return false;
}

absl::Status RecordedCopies::CheckPadding(const Padding& padding) const {
  for (size_t i = 0; i < places_.size(); ++i) {
    const ResultPlace& made = places_[i];
    const PaddedResult& result = padding.results[i];
    // What is on the host would not be updated by a replay.
    if (made.shape != result.padded || (result.is_padded && made.on_host)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "a padded step has made a result of shape ", made.shape.DebugString(),
          ", and ", result.padded.DebugString(), " was expected"));
    }
  }
  return absl::OkStatus();
}

absl::Status CopyOnHost(const void* from, void* to, size_t bytes) {
  std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

absl::Status PadRows(int64_t rows, Allocator* allocator, CopyBytes copy,
                     Tensor* tensor) {
  if (tensor->dims() == 0 || rows == 0) return absl::OkStatus();
  TensorShape shape = tensor->shape();
  shape.set_dim(0, rows);
  Tensor padded = NewTensor(allocator, tensor->dtype(), shape);
  if (!padded.IsInitialized()) {
    return absl::ResourceExhaustedError("there is no memory for more rows");
  }
  char* const begin = static_cast<char*>(padded.data());
  const size_t all = padded.TotalBytes();
  size_t done = tensor->TotalBytes();
  TF_RETURN_IF_ERROR(copy(tensor->data(), begin, done));
  while (done < all) {
    const size_t more = std::min(done, all - done);
    TF_RETURN_IF_ERROR(copy(begin, begin + done, more));
    done += more;
  }
  *tensor = std::move(padded);
  return absl::OkStatus();
}

absl::Status PadEntries(int64_t length, Allocator* allocator, CopyBytes copy,
                        Tensor* tensor) {
  TensorShape shape = tensor->shape();
  const int64_t rows = shape.dim_size(0);
  shape.set_dim(1, length);
  Tensor padded = NewTensor(allocator, tensor->dtype(), shape);
  if (!padded.IsInitialized()) {
    return absl::ResourceExhaustedError("there is no memory for more entries");
  }
  if (padded.NumElements() == 0) {
    *tensor = std::move(padded);
    return absl::OkStatus();
  }
  const size_t all = padded.TotalBytes() / rows, entry = all / length;
  const size_t given = tensor->TotalBytes() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    const char* from = static_cast<const char*>(tensor->data()) + row * given;
    char* to = static_cast<char*>(padded.data()) + row * all;
    TF_RETURN_IF_ERROR(copy(from, to, given));
    size_t done = given;
    while (done < all) {
      // Whole entries, of which the last is the last of the row.
      const size_t more =
          done == given ? entry : std::min(done - given, all - done);
      TF_RETURN_IF_ERROR(copy(to + done - more, to + done, more));
      done += more;
    }
  }
  *tensor = std::move(padded);
  return absl::OkStatus();
}

}  // namespace tensorflow::multistream
