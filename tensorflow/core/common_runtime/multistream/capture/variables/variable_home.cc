// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/variables/variable_home.h"

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/common_runtime/multistream/base/device_context.h"
#include "tensorflow/core/common_runtime/multistream/ops/known_variable.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_accesses.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow::multistream {
namespace {

// All homes, by variable.
struct Homes {
  absl::Mutex mu;
  absl::flat_hash_map<const Var*, std::weak_ptr<VariableHome>> of
      ABSL_GUARDED_BY(mu);
  size_t next_look ABSL_GUARDED_BY(mu) = 64;

  // Removes expired entries once the map is twice as large as after the last
  // removal.
  void Tidy() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (of.size() < next_look) return;
    absl::erase_if(of,
                   [](const auto& entry) { return entry.second.expired(); });
    next_look = 2 * of.size() + 64;
  }
};

Homes& AllHomes() {
  static auto* homes = new Homes;
  return *homes;
}

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

bool IsWithin(const Tensor& value, const Tensor& memory) {
  const char* at = static_cast<const char*>(value.data());
  const char* begin = static_cast<const char*>(memory.data());
  return at >= begin && at < begin + memory.TotalBytes();
}

}  // namespace

Tensor StandInOf(const Tensor& own) {
  auto* buffer = new Borrowed(own);
  Tensor stand_in(own.dtype(), own.shape(), buffer);
  buffer->Unref();  // the tensor has its own reference
  return stand_in;
}

std::shared_ptr<VariableHome> VariableHome::Of(Var* variable,
                                               Allocator* allocator) {
  Tensor value;
  bool is_shared;
  {
    tf_shared_lock lock(*variable->mu());
    is_shared = !variable->tensor()->RefCountIsOne();
    value = *variable->tensor();
  }
  if (!value.IsInitialized() || !DataTypeCanUseMemcpy(value.dtype()) ||
      value.NumElements() == 0) {
    return nullptr;
  }
  const TensorBuffer* memory = DMAHelper::buffer(&value);
  // On an emulated GPU the value may lie in a NumPy array, whose owner reads
  // it.
  if (!const_cast<TensorBuffer*>(memory)->root_buffer()->OwnsMemory()) {
    return nullptr;
  }
  // The value may be a slice of a larger buffer, which the home would keep
  // whole.
  if (const_cast<TensorBuffer*>(memory)->root_buffer()->size() > kMostBytes) {
    return nullptr;
  }
  Homes& homes = AllHomes();
  absl::MutexLock lock(&homes.mu);
  homes.Tidy();
  std::weak_ptr<VariableHome>& known = homes.of[variable];
  std::shared_ptr<VariableHome> home = known.lock();
  // Also replaces the home of a deleted variable that had the same address.
  if (home == nullptr || !home->Suits(value) || home->IsGivenUp()) {
    if (is_shared && value.TotalBytes() <= kMostCopiedBytes) {
      // Recording a step holds locks, so a failed allocation must not block.
      AllocationAttributes no_retry;
      no_retry.retry_on_failure = false;
      Tensor own(allocator, value.dtype(), value.shape(), no_retry);
      if (own.IsInitialized()) value = std::move(own);
    }
    home = std::shared_ptr<VariableHome>(new VariableHome(value));
    known = home;
  }
  return home;
}

absl::Status VariableHome::PutBack(GpuGroups* gpu, Var* variable,
                                   GpuGroups::StateKey state) {
  bool is_at_home;
  {
    tf_shared_lock lock(*variable->mu());
    is_at_home = Has(*variable->tensor());
  }
  {
    // Check first whether the move can succeed: a move locks other threads out,
    // and makes the leader wait for all groups.
    absl::MutexLock lock(&mu_);
    if (is_at_home) {
      NoteFree();
      return absl::OkStatus();
    }
    if (place_.has_value() && !IsAllThatRefers(*place_, 0) &&
        IsKept(Rule::kHomeIsFreeWhenItIsWrittenTo) && !IsInUseForLong()) {
      return absl::UnavailableError("a variable's memory is still in use");
    }
  }
  const GpuGroups::StateKey keys[] = {state};
  const bool moves = IsKept(Rule::kWhoPutsBackIsAMover);
  if (moves) gpu->BeginMove(keys);
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    status = PutBackLocked(gpu, variable);
  }
  if (moves) gpu->EndMove(keys);
  return status;
}

absl::Status VariableHome::CheckIsItsOwn(Var* variable, int own) {
  absl::MutexLock lock(&mu_);
  mutex_lock variable_lock(*variable->mu());
  if (!place_.has_value()) {
    return absl::AbortedError("a variable has moved for good");
  }
  const Tensor& value = *variable->tensor();
  if (!Has(value)) return InUse();
  NoteFree();
  // Drop the home's own reference while counting.
  place_ = Tensor();
  const bool is_its_own = IsAllThatRefers(value, own);
  place_ = value;
  return is_its_own ? absl::OkStatus() : InUse();
}

const TensorBuffer* VariableHome::RootOf(const Tensor& value) {
  TensorBuffer* buffer = const_cast<TensorBuffer*>(DMAHelper::buffer(&value));
  return buffer == nullptr ? nullptr : buffer->root_buffer();
}

bool VariableHome::IsAllThatRefers(const Tensor& value, int others) {
  const auto is_all = [&] {
    if (others == 0) return value.RefCountIsOne();
    const TensorBuffer* buffer = DMAHelper::buffer(&value);
    return buffer != nullptr && buffer == RootOf(value) &&
           buffer->OwnsMemory() && buffer->RefCount() == 1 + others;
  };
  return is_all() || (KnownVariable::Forget(value) && is_all());
}

absl::Status VariableHome::InUse() {
  return absl::UnavailableError(
      "the value of a variable that it changes is still in use");
}

bool VariableHome::IsGivenUp() {
  absl::MutexLock lock(&mu_);
  return !place_.has_value();
}

bool VariableHome::IsInUseForLong() {
  const absl::Time now = absl::Now();
  if (looks_in_use_++ == 0) in_use_since_ = now;
  return looks_in_use_ >= kLooksAtLeast && now - in_use_since_ > kLongestUse;
}

absl::Status VariableHome::PutBackLocked(GpuGroups* gpu, Var* variable) {
  mutex_lock lock(*variable->mu());
  Tensor* value = variable->tensor();
  if (Has(*value)) return absl::OkStatus();
  const bool may_return = place_.has_value() && Suits(*value);
  const bool is_free =
      may_return && (IsAllThatRefers(*place_, 0) ||
                     !IsKept(Rule::kHomeIsFreeWhenItIsWrittenTo));
  if (may_return && !is_free && !IsInUseForLong()) {
    return absl::UnavailableError("a variable's memory is still in use");
  }
  if (!is_free) {
    // By now the leader's stream waits for all readers of the memory.
    place_.reset();
    return absl::AbortedError("a variable has moved for good");
  }
  NoteFree();
  StreamGroup* leader = gpu->leader();
  if (Sanitizer* sanitizer = leader->sanitizer(); sanitizer != nullptr) {
    std::vector<Access> uses;
    if (IsGroupMemory(*value)) {
      uses.push_back({value->data(), value->TotalBytes(), false, "variable"});
    }
    if (IsGroupMemory(*place_)) {
      // All earlier users of the memory have released it.
      sanitizer->Renew(leader->index(), place_->data(), place_->TotalBytes());
      uses.push_back(
          {place_->data(), place_->TotalBytes(), true, "variable's home"});
    }
    sanitizer->Launch(leader->index(), "a variable is put back", uses);
  }
  TF_RETURN_IF_ERROR(leader->CopyOnDevice(value->data(), place_->data(),
                                          place_->TotalBytes()));
  // Keep the home alive, not its memory alone: a further reference would count
  // as a use.
  leader->WhenCompleted(
      [old = std::exchange(*value, *place_), self = shared_from_this()] {});
  return absl::OkStatus();
}

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
  absl::Status status = absl::InternalError("a copy was not enqueued");
  device_->CopyTensorInSameDevice(
      &from, to, ContextOf(device_),
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

}  // namespace tensorflow::multistream
