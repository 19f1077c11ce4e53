// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/replay/recorded_variables.h"

#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/common_runtime/multistream/base/rules.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow::multistream {
namespace {

// How many times each buffer is there.
using Buffers = absl::flat_hash_map<const TensorBuffer*, int>;

// The buffers of a call's arguments that are no handles.
Buffers BuffersOf(const CapturedCall& call) {
  Buffers buffers;
  for (const Tensor& it : call.inputs().arguments) {
    if (it.dtype() != DT_RESOURCE) ++buffers[DMAHelper::buffer(&it)];
  }
  return buffers;
}

// How many of a piece's tensors have the buffer of `value`: of each argument
// that was read from a variable, the op's input and the call's copy. Nobody
// else takes references to these.
int TensorsOfPiece(const Buffers& arguments, const Tensor& value) {
  const auto found = arguments.find(DMAHelper::buffer(&value));
  return found == arguments.end() ? 0 : 2 * found->second;
}

}  // namespace

absl::Status VariableWasChanged() {
  return absl::UnavailableError("a variable was changed meanwhile");
}

void RecordedVariables::FindHomes(const CapturedCall& call,
                                  Allocator* leaders) {
  for (const auto& variable : call.variables()) {
    homes_.push_back(VariableHome::Of(variable.get(), leaders));
    used_.emplace_back(variable.get());
  }
}

absl::Status RecordedVariables::CheckDistinct(const CapturedCall& call) const {
  if (!IsKept(Rule::kChangedIsItsOwn)) return absl::OkStatus();
  absl::flat_hash_map<const Var*, int> times;
  for (const auto& variable : call.variables()) ++times[variable.get()];
  for (size_t i = 0; i < step_.variables.size(); ++i) {
    if (step_.variables[i].changed && times[call.variables()[i].get()] > 1) {
      return absl::FailedPreconditionError(
          "it takes a variable that it changes twice");
    }
  }
  return absl::OkStatus();
}

absl::Status RecordedVariables::NotePlaces(const CapturedCall& call,
                                           const std::vector<Tensor>& held) {
  for (size_t i = 0; i < held.size(); ++i) {
    if (homes_[i] != nullptr && !homes_[i]->Has(held[i])) {
      return VariableWasChanged();
    }
    // Otherwise a gather, which turns on copy-on-read mode, would copy the
    // variable into the recording's memory.
    if (step_.variables[i].gathered &&
        !call.variables()[i]->copy_on_read_mode.load()) {
      return absl::UnavailableError("a variable was not gathered from yet");
    }
    places_.push_back({held[i].data(), held[i].dtype(), held[i].shape(),
                       call.variables()[i]->copy_on_read_mode.load()});
  }
  return absl::OkStatus();
}

bool RecordedVariables::Fit(const Padding& padding) const {
  for (size_t i = 0; i < places_.size(); ++i) {
    const auto& [type, shape] = padding.variables[i];
    if (places_[i].type != type || places_[i].shape != shape) return false;
  }
  return true;
}

absl::Status RecordedVariables::PutBack(const CapturedCall& call) const {
  for (size_t i = 0; i < homes_.size(); ++i) {
    if (homes_[i] == nullptr) continue;
    TF_RETURN_IF_ERROR(
        homes_[i]->PutBack(gpu_, call.variables()[i].get(), call.state()[i]));
  }
  return absl::OkStatus();
}

absl::Status RecordedVariables::Hold(const CapturedCall& call,
                                     std::vector<Tensor>* held) const {
  held->reserve(call.variables().size());
  for (const auto& variable : call.variables()) {
    tf_shared_lock lock(*variable->mu());
    if (!variable->tensor()->IsInitialized()) {
      return absl::UnavailableError("a variable has no value");
    }
    held->push_back(*variable->tensor());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RecordedVariables::AreInPlace(
    const std::vector<Tensor>& held) const {
  bool are = true;
  for (size_t i = 0; i < held.size(); ++i) {
    const Place& place = places_[i];
    if (held[i].data() == place.address && held[i].dtype() == place.type &&
        held[i].shape() == place.shape) {
      continue;
    }
    if (homes_[i] == nullptr) return absl::AbortedError("a variable has moved");
    are = false;
  }
  return are;
}

absl::Status RecordedVariables::CheckChanged(const CapturedCall& call) const {
  if (!step_.changes_variables || !IsKept(Rule::kChangedIsItsOwn)) {
    return absl::OkStatus();
  }
  for (size_t i = 0; i < places_.size(); ++i) {
    if (call.variables()[i]->copy_on_read_mode.load() !=
        places_[i].copied_on_read) {
      return absl::AbortedError("a variable is copied when it is read, now");
    }
  }
  const Buffers arguments = step_.is_piece ? BuffersOf(call) : Buffers();
  for (size_t i = 0; i < step_.variables.size(); ++i) {
    if (!step_.variables[i].changed) continue;
    Var* variable = call.variables()[i].get();
    int own;
    {
      tf_shared_lock lock(*variable->mu());
      own = TensorsOfPiece(arguments, *variable->tensor());
      if (homes_[i] == nullptr &&
          !VariableHome::IsAllThatRefers(*variable->tensor(), own)) {
        return VariableHome::InUse();
      }
    }
    if (homes_[i] != nullptr) {
      TF_RETURN_IF_ERROR(homes_[i]->CheckIsItsOwn(variable, own));
    }
  }
  return absl::OkStatus();
}

bool RecordedVariables::IsOrphaned() const {
  for (const core::WeakPtr<Var>& variable : used_) {
    if (variable.GetNewRef() == nullptr) return true;
  }
  return false;
}

}  // namespace tensorflow::multistream
