// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_program.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/denormal.h"

namespace tensorflow::multistream {
namespace {

float Compute(Arithmetic arithmetic, float a, float b) {
  switch (arithmetic) {
    case Arithmetic::kAdd:
      return a + b;
    case Arithmetic::kSubtract:
      return a - b;
    case Arithmetic::kMultiply:
      return a * b;
    case Arithmetic::kDivide:
      return a / b;
    case Arithmetic::kNegate:
      return -a;
    case Arithmetic::kSquare:
      return a * a;
    case Arithmetic::kSquareRoot:
      return std::sqrt(a);
  }
}

}  // namespace

std::string FusedProgram::Key() const {
  std::string key;
  for (const Slot& slot : slots) {
    absl::StrAppend(&key, slot.is_scalar ? "s" : "v", slot.is_read ? "r" : "",
                    slot.is_written ? "w" : "", " ");
  }
  for (const auto& [arithmetic, operands, result] : steps) {
    absl::StrAppend(&key, ";", static_cast<int>(arithmetic));
    for (const int operand : operands) absl::StrAppend(&key, " ", operand);
    absl::StrAppend(&key, ">", result);
  }
  return key;
}

FusedProgram ProgramOf(absl::Span<const FusedOp> ops) {
  FusedProgram program;
  std::vector<std::pair<int, bool>> memory;  // of each slot: id, is_scalar
  std::vector<bool> has_value;               // by slot
  // Few slots: a search is faster than a map.
  const auto slot_of = [&](int id, bool is_scalar) {
    const auto known =
        std::find(memory.begin(), memory.end(), std::pair(id, is_scalar));
    const int slot = static_cast<int>(known - memory.begin());
    if (known == memory.end()) {
      memory.emplace_back(id, is_scalar);
      program.slots.push_back({is_scalar});
      has_value.push_back(false);
    }
    return slot;
  };
  for (const auto& [op, ids, is_stored] : ops) {
    FusedProgram::Step step{op->arithmetic, {}, -1};
    for (size_t i = 0; i < op->operands.size(); ++i) {
      const int slot = slot_of(ids[i], op->operands[i].is_scalar);
      if (!has_value[slot]) program.slots[slot].is_read = true;
      has_value[slot] = true;
      step.operands.push_back(slot);
    }
    step.result = slot_of(ids.back(), /*is_scalar=*/false);
    has_value[step.result] = true;
    if (is_stored) program.slots[step.result].is_written = true;
    program.steps.push_back(std::move(step));
  }
  return program;
}

absl::StatusOr<FusedCall> CallOf(const FusedProgram& program,
                                 absl::Span<const ElementwiseOp> ops) {
  const absl::Status other =
      absl::UnimplementedError("ops that were to be one kernel are others now");
  FusedCall call;
  call.addresses.resize(program.slots.size());
  if (ops.size() != program.steps.size()) return other;
  const auto bind = [&call](int slot, uint64_t address) {
    uint64_t& known = call.addresses[slot];
    if (known == 0) known = address;
    return known == address;
  };
  for (size_t i = 0; i < ops.size(); ++i) {
    const ElementwiseOp& op = ops[i];
    const auto& [arithmetic, operands, result] = program.steps[i];
    if (op.arithmetic != arithmetic || op.elements != ops[0].elements ||
        op.operands.size() != operands.size() || !bind(result, op.result)) {
      return other;
    }
    for (size_t k = 0; k < operands.size(); ++k) {
      if (op.operands[k].is_scalar != program.slots[operands[k]].is_scalar ||
          !bind(operands[k], op.operands[k].address)) {
        return other;
      }
    }
    call.elements = op.elements;
  }
  return call;
}

void RunFused(const FusedProgram& program, const FusedCall& call) {
  // As GPU kernels and TensorFlow's threads do.
  const port::ScopedFlushDenormal flush;
  std::vector<float> values(program.slots.size());
  const auto at = [&](size_t slot, int64_t i) {
    return reinterpret_cast<float*>(call.addresses[slot]) +
           (program.slots[slot].is_scalar ? 0 : i);
  };
  for (int64_t i = 0; i < call.elements; ++i) {
    for (size_t slot = 0; slot < values.size(); ++slot) {
      if (program.slots[slot].is_read) values[slot] = *at(slot, i);
    }
    for (const auto& [arithmetic, operands, result] : program.steps) {
      values[result] = Compute(arithmetic, values[operands.front()],
                               values[operands.back()]);
    }
    for (size_t slot = 0; slot < values.size(); ++slot) {
      if (program.slots[slot].is_written) *at(slot, i) = values[slot];
    }
  }
}

}  // namespace tensorflow::multistream
