// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/emulated/emulated_fusing.h"

#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_program.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/elementwise.h"

namespace tensorflow::multistream {
namespace {

// What no op may read.
constexpr char kRubbish = static_cast<char>(0xB9);

}  // namespace

int EmulatedFusing::Fused() const {
  if (call_ >= op_of_call_.size()) return -1;
  const int op = op_of_call_[call_];
  return op >= 0 && fused_.kernel_of[op] >= 0 ? op : -1;
}

void EmulatedFusing::Begins(const LaunchedOp& op) {
  before_.clear();
  const int fused = Fused();
  if (fused < 0 || !op.elementwise) return;
  const auto& [arithmetic, elements, operands, result] = *op.elementwise;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].IsWhole()) continue;
    Save(operands[i].address,
         elements * BytesOfElement(TakesBools(arithmetic, i)));
  }
  for (const Allocation& made : recorded_[fused].made) {
    Save(made.begin, made.end - made.begin);
  }
  Save(recorded_[fused].elementwise->result,
       elements * BytesOfElement(GivesBools(arithmetic)));
}

void EmulatedFusing::Launched(LaunchedOp op) {
  const int fused = Fused();
  ++call_;
  if (fused < 0 || !status_.ok()) return;
  if (op.elementwise) {
    const uint64_t result = op.elementwise->result;
    auto* at = reinterpret_cast<char*>(result);
    const size_t bytes = op.elementwise->elements *
                         BytesOfElement(GivesBools(op.elementwise->arithmetic));
    // Memory that is kept apart from all other.
    if (before_.find(result) == before_.end()) {
      std::memset(at, kRubbish, bytes);
    }
    for (const auto& [begin, was] : before_) {
      std::memcpy(reinterpret_cast<char*>(begin), was.data(), was.size());
    }
  }
  const FusedKernel* kernel = calls_.Add(fused, std::move(op.elementwise));
  if (kernel == nullptr) return;
  const absl::StatusOr<std::vector<FusedCall>> calls = calls_.CallsOf(*kernel);
  status_ = calls.status();
  if (!calls.ok()) return;
  for (const FusedCall& call : *calls) RunFused(kernel->program, call);
}

}  // namespace tensorflow::multistream
