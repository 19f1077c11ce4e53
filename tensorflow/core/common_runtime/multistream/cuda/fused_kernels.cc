// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/fused_kernels.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/cuda/graph_memory.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {
namespace {

// A block's threads, and the elements of each.
constexpr int kThreads = 256;
constexpr int kElements = 4;
constexpr int kElementsOfBlock = kThreads * kElements;

// TensorFlow's kernels flush denormal numbers to zero.
const char* InstructionOf(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kAdd:
      return "add.rn.ftz.f32";
    case Arithmetic::kSubtract:
    case Arithmetic::kSquaredDifference:
      return "sub.rn.ftz.f32";
    case Arithmetic::kMultiply:
    case Arithmetic::kSquare:
      return "mul.rn.ftz.f32";
    case Arithmetic::kDivide:
      return "div.rn.ftz.f32";
    case Arithmetic::kNegate:
      return "neg.ftz.f32";
    case Arithmetic::kSquareRoot:
      return "sqrt.approx.ftz.f32";
    case Arithmetic::kCopy:
      return "mov.f32";
    case Arithmetic::kGreaterEqual:
      return "setp.ge.ftz.f32";
    case Arithmetic::kSelect:
      return "selp.f32";
  }
}

// The instructions of a step for one element, whose values are in these
// registers. A bool is 1 or 0 in a register of 32 bits.
std::string InstructionsOf(Arithmetic arithmetic, const std::string& result,
                           const std::vector<std::string>& operands) {
  const std::string instruction =
      absl::StrCat("  ", InstructionOf(arithmetic), " ");
  const std::string& first = operands.front();
  const std::string& last = operands.back();
  switch (arithmetic) {
    case Arithmetic::kSquareRoot:
    case Arithmetic::kNegate:
    case Arithmetic::kCopy:
      return absl::StrCat(instruction, result, ", ", first, ";\n");
    case Arithmetic::kSquaredDifference:
      return absl::StrCat(instruction, "%part, ", first, ", ", last,
                          ";\n  mul.rn.ftz.f32 ", result, ", %part, %part;\n");
    case Arithmetic::kGreaterEqual:
      return absl::StrCat(instruction, "%p, ", first, ", ", last,
                          ";\n  selp.u32 ", result, ", 1, 0, %p;\n");
    case Arithmetic::kSelect:
      return absl::StrCat("  setp.ne.u32 %p, ", first, ", 0;\n", instruction,
                          result, ", ", operands[1], ", ", last, ", %p;\n");
    default:
      break;
  }
  const size_t count = operands.size();
  std::string all = absl::StrCat(instruction, count > 2 ? "%part" : result,
                                 ", ", first, ", ", operands[count > 1], ";\n");
  // The result's register may be that of an operand.
  for (size_t i = 2; i < count; ++i) {
    absl::StrAppend(&all, instruction, i + 1 < count ? "%part" : result,
                    ", %part, ", operands[i], ";\n");
  }
  return all;
}

// Sets %index to the operand's element for an element of the result, as
// Broadcast::Index does.
std::string IndexOf(const Broadcast& broadcast, const std::string& element) {
  const auto& [inner, kept, times, elements] = broadcast;
  std::string all =
      absl::Substitute("  div.u32 %index, $0, $1;\n", element, inner);
  if (kept == Broadcast::kAny) return all;
  if (times != Broadcast::kAny) {
    absl::SubstituteAndAppend(&all, "  div.u32 %row, %index, $0;\n",
                              kept * times);
  }
  absl::SubstituteAndAppend(&all, "  rem.u32 %index, %index, $0;\n", kept);
  if (times != Broadcast::kAny) {
    absl::SubstituteAndAppend(&all, "  mad.lo.u32 %index, %row, $0, %index;\n",
                              kept);
  }
  return all;
}

const char* TypeOf(const FusedProgram::Slot& slot) {
  return slot.is_bool ? "u8" : "f32";
}

// Finds the block's call: the last one whose first block is not after it. %call
// is the address of its part of the parameter.
constexpr char kHead[] = R"(.version 7.0
.target sm_60
.address_size 64

.visible .entry fused(.param .align 8 .b8 calls[$0]) {
  .reg .pred %p, %in<$1>;
  .reg .b32 %block, %count, %low, %high, %middle, %first, %n, %thread;
  .reg .b32 %element<$1>, %flag<$3>, %row, %index;
  .reg .b64 %calls, %call, %wide, %slot<$2>, %at;
  .reg .f32 %value<$3>, %part;
  mov.u32 %block, %ctaid.x;
  mov.u32 %thread, %tid.x;
  mov.b64 %calls, calls;
  ld.param.u32 %high, [calls];
  mov.u32 %low, 0;
search:
  add.u32 %middle, %low, 1;
  setp.ge.u32 %p, %middle, %high;
  @%p bra found;
  add.u32 %middle, %low, %high;
  shr.u32 %middle, %middle, 1;
  mul.wide.u32 %wide, %middle, $4;
  add.u64 %call, %calls, %wide;
  ld.param.u32 %first, [%call+8];
  setp.le.u32 %p, %first, %block;
  @%p mov.u32 %low, %middle;
  @!%p mov.u32 %high, %middle;
  bra search;
found:
  mul.wide.u32 %wide, %low, $4;
  add.u64 %call, %calls, %wide;
  ld.param.u32 %first, [%call+8];
  ld.param.u32 %n, [%call+12];
  sub.u32 %first, %block, %first;
  mad.lo.u32 %first, %first, $5, %thread;
)";

// The kernels of the process, by context and program. Never unloaded: graphs
// use them.
class Kernels {
 public:
  absl::StatusOr<CUfunction> Get(const FusedProgram& program) {
    CUcontext context = nullptr;
    TF_RETURN_IF_ERROR(Checked("cuCtxGetCurrent", cuCtxGetCurrent(&context)));
    absl::MutexLock lock(&mu_);
    CUfunction& kernel = kernels_[{context, program.Key()}];
    if (kernel != nullptr) return kernel;
    CUmodule module = nullptr;
    TF_RETURN_IF_ERROR(Checked(
        "cuModuleLoadData", cuModuleLoadData(&module, PtxOf(program).c_str())));
    TF_RETURN_IF_ERROR(Checked("cuModuleGetFunction",
                               cuModuleGetFunction(&kernel, module, "fused")));
    return kernel;
  }

 private:
  absl::Mutex mu_;
  std::map<std::pair<CUcontext, std::string>, CUfunction> kernels_
      ABSL_GUARDED_BY(mu_);
};

Kernels* AllKernels() {
  static auto* all = new Kernels;
  return all;
}

}  // namespace

std::string PtxOf(const FusedProgram& program) {
  const int slots = static_cast<int>(program.slots.size());
  std::string ptx = absl::Substitute(kHead, kFusedArgumentBytes, kElements,
                                     slots, slots * kElements,
                                     BytesOfCall(program), kElementsOfBlock);
  const auto value = [&](int slot, int element) {
    const FusedProgram::Slot& it = program.slots[slot];
    const int number = slot * kElements + (it.is_scalar ? 0 : element);
    return absl::StrCat(it.is_bool ? "%flag" : "%value", number);
  };
  for (int slot = 0; slot < slots; ++slot) {
    const FusedProgram::Slot& it = program.slots[slot];
    if (!it.is_read && !it.is_written) continue;
    absl::StrAppend(&ptx, "  ld.param.u64 %slot", slot, ", [%call+",
                    16 + 8 * slot, "];\n");
    if (it.is_scalar) {
      absl::StrAppend(&ptx, "  ld.global.", TypeOf(it), " ", value(slot, 0),
                      ", [%slot", slot, "];\n");
    }
  }
  // All loads come before all stores.
  const auto access = [&](bool writes) {
    for (int element = 0; element < kElements; ++element) {
      for (int slot = 0; slot < slots; ++slot) {
        const FusedProgram::Slot& it = program.slots[slot];
        if (it.is_scalar || !(writes ? it.is_written : it.is_read)) continue;
        std::string index = absl::StrCat("%element", element);
        if (it.broadcast) {
          absl::StrAppend(&ptx, IndexOf(*it.broadcast, index));
          index = "%index";
        }
        absl::StrAppend(&ptx, "  mad.wide.u32 %at, ", index, ", ",
                        BytesOfElement(it.is_bool), ", %slot", slot,
                        ";\n  @%in", element);
        if (writes) {
          absl::StrAppend(&ptx, " st.global.", TypeOf(it), " [%at], ",
                          value(slot, element), ";\n");
        } else {
          absl::StrAppend(&ptx, " ld.global.", TypeOf(it), " ",
                          value(slot, element), ", [%at];\n");
        }
      }
    }
  };
  for (int element = 0; element < kElements; ++element) {
    absl::StrAppend(&ptx, "  add.u32 %element", element, ", %first, ",
                    element * kThreads, ";\n  setp.lt.u32 %in", element,
                    ", %element", element, ", %n;\n");
  }
  access(/*writes=*/false);
  for (const auto& [arithmetic, operands, result] : program.steps) {
    for (int element = 0; element < kElements; ++element) {
      std::vector<std::string> values;
      for (const int operand : operands) {
        values.push_back(value(operand, element));
      }
      absl::StrAppend(
          &ptx, InstructionsOf(arithmetic, value(result, element), values));
    }
  }
  access(/*writes=*/true);
  absl::StrAppend(&ptx, "  ret;\n}\n");
  return ptx;
}

absl::Status LoadFused(const FusedProgram& program) {
  return AllKernels()->Get(program).status();
}

absl::Status LaunchFused(const FusedProgram& program,
                         absl::Span<const FusedCall> calls, CUstream stream) {
  TF_ASSIGN_OR_RETURN(const CUfunction kernel, AllKernels()->Get(program));
  std::array<char, kFusedArgumentBytes> parameter = {};
  char* at = parameter.data();
  const auto put = [&at](auto number) {
    std::memcpy(at, &number, sizeof(number));
    at += sizeof(number);
  };
  put(static_cast<uint64_t>(calls.size()));
  uint32_t blocks = 0;
  for (const FusedCall& call : calls) {
    put(blocks);
    put(static_cast<uint32_t>(call.elements));
    for (const uint64_t address : call.addresses) put(address);
    blocks += static_cast<uint32_t>((call.elements + kElementsOfBlock - 1) /
                                    kElementsOfBlock);
  }
  void* parameters[] = {parameter.data()};
  return Checked("cuLaunchKernel",
                 cuLaunchKernel(kernel, blocks, 1, 1, kThreads, 1, 1,
                                /*sharedMemBytes=*/0, stream, parameters,
                                /*extra=*/nullptr));
}

}  // namespace tensorflow::multistream
