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

// Bools are 1 and 0.
float Compute(Arithmetic arithmetic, const std::vector<float>& values,
              const std::vector<int>& operands) {
  const float a = values[operands.front()], b = values[operands.back()];
  switch (arithmetic) {
    case Arithmetic::kAdd: {
      float sum = a;
      for (size_t i = 1; i < operands.size(); ++i) sum += values[operands[i]];
      return sum;
    }
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
    case Arithmetic::kSquaredDifference:
      return (a - b) * (a - b);
    case Arithmetic::kCopy:
      return a;
    case Arithmetic::kGreaterEqual:
      return a >= b ? 1 : 0;
    case Arithmetic::kSelect:
      return a != 0 ? values[operands[1]] : b;
  }
}

bool AreEqual(const std::optional<Broadcast>& a,
              const std::optional<Broadcast>& b) {
  if (!a || !b) return !a && !b;
  return a->inner == b->inner && a->kept == b->kept && a->times == b->times;
}

}  // namespace

std::string FusedProgram::Key() const {
  std::string key;
  for (const Slot& slot : slots) {
    absl::StrAppend(&key, slot.is_scalar ? "s" : "v", slot.is_read ? "r" : "",
                    slot.is_written ? "w" : "", slot.is_bool ? "b" : "");
    if (const auto& it = slot.broadcast) {
      absl::StrAppend(&key, it->inner, ",", it->kept, ",", it->times);
    }
    key += " ";
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
  std::vector<int> memory;      // by slot: id
  std::vector<bool> has_value;  // by slot
  const auto slot_of = [&](int id, const ElementwiseOp::Operand& operand,
                           bool is_bool) {
    // Few slots: a search is faster than a map.
    size_t slot = 0;
    while (slot < memory.size() &&
           (memory[slot] != id ||
            program.slots[slot].is_scalar != operand.is_scalar ||
            !AreEqual(program.slots[slot].broadcast, operand.broadcast))) {
      ++slot;
    }
    if (slot == memory.size()) {
      memory.push_back(id);
      program.slots.push_back(
          {operand.is_scalar, false, false, is_bool, operand.broadcast});
      has_value.push_back(false);
    }
    return static_cast<int>(slot);
  };
  for (const auto& [op, ids, is_stored] : ops) {
    FusedProgram::Step step{op->arithmetic, {}, -1};
    for (size_t i = 0; i < op->operands.size(); ++i) {
      const int slot =
          slot_of(ids[i], op->operands[i], TakesBools(op->arithmetic, i));
      if (!has_value[slot]) program.slots[slot].is_read = true;
      has_value[slot] = true;
      step.operands.push_back(slot);
    }
    step.result = slot_of(ids.back(), {op->result}, GivesBools(op->arithmetic));
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
      const FusedProgram::Slot& slot = program.slots[operands[k]];
      if (op.operands[k].is_scalar != slot.is_scalar ||
          !AreEqual(op.operands[k].broadcast, slot.broadcast) ||
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
  const auto access = [&](size_t slot, uint64_t i, bool writes) {
    const FusedProgram::Slot& it = program.slots[slot];
    if (it.is_scalar) i = 0;
    if (it.broadcast) i = it.broadcast->Index(i);
    if (it.is_bool) {
      bool& place = reinterpret_cast<bool*>(call.addresses[slot])[i];
      writes ? void(place = values[slot] != 0) : void(values[slot] = place);
    } else {
      float& place = reinterpret_cast<float*>(call.addresses[slot])[i];
      writes ? void(place = values[slot]) : void(values[slot] = place);
    }
  };
  for (int64_t i = 0; i < call.elements; ++i) {
    for (size_t slot = 0; slot < values.size(); ++slot) {
      if (program.slots[slot].is_read) access(slot, i, /*writes=*/false);
    }
    for (const auto& [arithmetic, operands, result] : program.steps) {
      values[result] = Compute(arithmetic, values, operands);
    }
    for (size_t slot = 0; slot < values.size(); ++slot) {
      if (program.slots[slot].is_written) access(slot, i, /*writes=*/true);
    }
  }
}

}  // namespace tensorflow::multistream
