// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/fused_kernels.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

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
  }
}

// Finds the block's call: the last one whose first block is not after it. %call
// is the address of its part of the parameter.
constexpr char kHead[] = R"(.version 7.0
.target sm_60
.address_size 64

.visible .entry fused(.param .align 8 .b8 calls[$0]) {
  .reg .pred %p, %in<$1>;
  .reg .b32 %block, %count, %low, %high, %middle, %first, %n, %thread;
  .reg .b32 %element<$1>;
  .reg .b64 %calls, %call, %wide, %slot<$2>, %at;
  .reg .f32 %scalar<$2>, %value<$3>;
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
    return program.slots[slot].is_scalar
               ? absl::StrCat("%scalar", slot)
               : absl::StrCat("%value", slot * kElements + element);
  };
  for (int slot = 0; slot < slots; ++slot) {
    const FusedProgram::Slot& it = program.slots[slot];
    if (!it.is_read && !it.is_written) continue;
    absl::StrAppend(&ptx, "  ld.param.u64 %slot", slot, ", [%call+",
                    16 + 8 * slot, "];\n");
    if (it.is_scalar) {
      absl::StrAppend(&ptx, "  ld.global.f32 %scalar", slot, ", [%slot", slot,
                      "];\n");
    }
  }
  // All loads come before all stores.
  const auto access = [&](bool writes) {
    for (int element = 0; element < kElements; ++element) {
      for (int slot = 0; slot < slots; ++slot) {
        const FusedProgram::Slot& it = program.slots[slot];
        if (it.is_scalar || !(writes ? it.is_written : it.is_read)) continue;
        absl::StrAppend(&ptx, "  mad.wide.u32 %at, %element", element,
                        ", 4, %slot", slot, ";\n  @%in", element);
        if (writes) {
          absl::StrAppend(&ptx, " st.global.f32 [%at], ", value(slot, element),
                          ";\n");
        } else {
          absl::StrAppend(&ptx, " ld.global.f32 ", value(slot, element),
                          ", [%at];\n");
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
      absl::StrAppend(&ptx, "  ", InstructionOf(arithmetic), " ",
                      value(result, element), ", ",
                      value(operands.front(), element));
      if (arithmetic != Arithmetic::kSquareRoot &&
          arithmetic != Arithmetic::kNegate) {
        absl::StrAppend(&ptx, ", ", value(operands.back(), element));
      }
      absl::StrAppend(&ptx, ";\n");
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
