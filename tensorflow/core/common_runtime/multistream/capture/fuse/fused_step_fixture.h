// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Steps for tests of fused_ops.h, which can be run with and without fusion.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_FUSE_FUSED_STEP_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_FUSE_FUSED_STEP_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_ops.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/elementwise_watch.h"

namespace tensorflow::multistream {

inline constexpr int kElements = 5;
inline constexpr uint64_t kBlock = 8 * sizeof(float);

// A step of ops on memory that is given out again as soon as it is free, as a
// recording's is. Each op is elementwise, or an "other" op: it adds up all
// elements of its operands, so no element stands for itself.
class FusedStep {
 public:
  // `variables`: memory that outlives the step.
  explicit FusedStep(int variables) {
    for (int i = 0; i < variables; ++i) {
      values_.push_back({NewBlock(), 1 << 20});
    }
    for (float& x : memory_) x = 1 + static_cast<float>(&x - memory_) / 64;
  }

  // A scalar, made by no op of the step.
  int Scalar() {
    values_.push_back({NewBlock(), 1 << 20, true});
    return static_cast<int>(values_.size()) - 1;
  }

  // An op's result, which is used `uses` times and then freed. `in_place`: it
  // takes the memory of the first operand, if that is not needed any more.
  int Elementwise(Arithmetic arithmetic, std::vector<int> operands, int uses,
                  bool in_place = false) {
    Value& first = values_[operands[0]];
    const bool takes = in_place && first.uses == 1 && first.allocation >= 0;
    if (takes) ++first.uses;  // is not freed
    int result = static_cast<int>(values_.size());
    if (takes) {
      values_.push_back({first.address, uses, false, first.allocation});
    } else {
      result = Take(uses);
    }
    Add(arithmetic, operands, result);
    return result;
  }
  // A part of a value that was made with room for it: other elements of the
  // same block.
  int View(int of) {
    const Value whole = values_[of];
    values_[of].uses += 1 << 20;
    values_.push_back({whole.address + sizeof(float) * (1 + of % 3), 1 << 20,
                       false, whole.allocation});
    return static_cast<int>(values_.size()) - 1;
  }
  // The first element of a value, as a scalar.
  int FirstOf(int of) {
    Value first = values_[of];
    values_[of].uses += 1 << 20;
    first.uses = 1 << 20;
    first.is_scalar = true;
    values_.push_back(first);
    return static_cast<int>(values_.size()) - 1;
  }
  // The first elements of a value, broadcast.
  int Repeated(int of, bool each) {
    const int first = FirstOf(of);
    values_[first].is_scalar = false;
    values_[first].broadcast =
        each ? Broadcast{2, Broadcast::kAny, Broadcast::kAny, 3}
             : Broadcast{1, 2, Broadcast::kAny, 2};
    return first;
  }
  // The last op is said to use the next block, too, as one of which the memory
  // is not known exactly.
  void UseNextBlockOf(int value) {
    const uint64_t begin = values_[value].address / kBlock * kBlock;
    ops_.back().uses.push_back({begin, begin + 2 * kBlock, false});
  }
  // Changes a variable.
  void Assign(Arithmetic arithmetic, int variable, int value) {
    Add(arithmetic, {variable, value}, variable);
  }
  int Other(std::vector<int> operands, int uses) {
    const int result = Take(uses);
    Add(std::nullopt, operands, result);
    return result;
  }
  // An op of which nothing is known: it copies a value, for which that may be
  // the last use, into a variable or new memory.
  void Alone(int to = 0, int value = 0) {
    RecordedOp& op = ops_.emplace_back();
    op.alone = true;
    op.launches = 1;
    op.made = std::exchange(made_, {});
    op.freed = std::exchange(freed_, {});
    does_.push_back({std::nullopt, {values_[value]}, values_[to]});
    Release(value);
  }
  int MadeAlone(int value, int uses) {
    const int result = Take(uses);
    Alone(result, value);
    return result;
  }

  const std::vector<RecordedOp>& ops() const { return ops_; }

  // The memory after the step, run as recorded.
  std::vector<float> Run() {
    std::vector<float> had(memory_, memory_ + kFloats);
    for (size_t i = 0; i < ops_.size(); ++i) RunOp(static_cast<int>(i), {});
    std::vector<float> result = Results();
    std::copy(had.begin(), had.end(), memory_);
    return result;
  }

  // The same with the kernels of `fused`, launched in an order that their waits
  // allow: a later op first where there is a choice.
  std::vector<float> Run(const FusedOps& fused, uint32_t seed) {
    std::vector<float> had(memory_, memory_ + kFloats);
    // Blocks of their own for what is to be apart, and rubbish where a value
    // needs no memory.
    std::map<uint64_t, uint64_t> moved;  // allocation -> address
    for (const size_t number : fused.apart) moved[number] = NewBlock();
    FusedCalls calls(fused);
    for (size_t i = 0; i < ops_.size(); ++i) {
      const int g = fused.kernel_of[i];
      if (g < 0) continue;
      calls.Add(static_cast<int>(i), Moved(static_cast<int>(i), moved));
    }
    const std::vector<std::vector<int>> waits = OrderOf(fused.launched, 4, 4);
    std::vector<int> op_of(fused.launched.size());
    for (size_t i = 0; i < ops_.size(); ++i) {
      const int launched = fused.launched_as[i];
      if (launched >= 0) op_of[launched] = static_cast<int>(i);
    }
    std::minstd_rand random(seed);
    std::vector<bool> done(waits.size());
    for (size_t count = 0; count < waits.size(); ++count) {
      std::vector<int> ready;
      for (size_t i = 0; i < waits.size(); ++i) {
        if (!done[i] && std::all_of(waits[i].begin(), waits[i].end(),
                                    [&](int before) { return done[before]; })) {
          ready.push_back(static_cast<int>(i));
        }
      }
      const int next = ready[random() % ready.size()];
      done[next] = true;
      const int op = op_of[next];
      const int g = fused.kernel_of[op];
      if (g < 0) {
        RunOp(op, moved);
        continue;
      }
      const auto all = calls.CallsOf(fused.kernels[g]);
      EXPECT_TRUE(all.ok()) << all.status();
      for (const FusedCall& call : *all) {
        RunFused(fused.kernels[g].program, call);
      }
    }
    std::vector<float> result = Results();
    std::copy(had.begin(), had.end(), memory_);
    return result;
  }

 private:
  static constexpr int kFloats = 1 << 14;

  struct Value {
    uint64_t address;
    int uses;
    bool is_scalar = false;
    int64_t allocation = -1;
    std::optional<Broadcast> broadcast = std::nullopt;
  };
  struct Does {
    std::optional<Arithmetic> arithmetic;
    std::vector<Value> operands;
    Value result;
  };

  uint64_t NewBlock() {
    EXPECT_LT(next_ + 8, kFloats);
    return reinterpret_cast<uint64_t>(memory_ +
                                      std::exchange(next_, next_ + 8));
  }

  int Take(int uses) {
    uint64_t address;
    if (free_.empty()) {
      address = NewBlock();
    } else {
      address = *free_.begin();
      free_.erase(free_.begin());
    }
    values_.push_back({address, uses, false, allocations_});
    made_.push_back(
        {address, address + kBlock, static_cast<size_t>(allocations_++)});
    return static_cast<int>(values_.size()) - 1;
  }

  void Add(std::optional<Arithmetic> arithmetic,
           const std::vector<int>& operands, int result) {
    RecordedOp& op = ops_.emplace_back();
    Does& does = does_.emplace_back(Does{arithmetic, {}, values_[result]});
    op.launches = 1;
    op.made = std::exchange(made_, {});
    op.freed = std::exchange(freed_, {});
    for (const int operand : operands) {
      does.operands.push_back(values_[operand]);
    }
    const ElementwiseOp all = AsOp(does);
    op.uses = UsesOf(all);
    if (arithmetic) op.elementwise = all;
    for (const int operand : operands) Release(operand);
    if (values_[result].uses == 0) {
      results_.push_back(values_[result].address);  // is an output
      values_[result].uses = 1 << 20;
    }
  }

  // A use of the value less.
  void Release(int i) {
    Value& value = values_[i];
    if (--value.uses != 0) return;
    free_.insert(value.address);
    freed_.push_back(static_cast<size_t>(value.allocation));
  }

  static ElementwiseOp AsOp(const Does& does) {
    ElementwiseOp op{does.arithmetic.value_or(Arithmetic::kAdd), kElements};
    for (const Value& operand : does.operands) {
      op.operands.push_back(
          {operand.address, operand.is_scalar, operand.broadcast});
    }
    op.result = does.result.address;
    return op;
  }

  ElementwiseOp Moved(int i, const std::map<uint64_t, uint64_t>& moved) const {
    Does does = does_[i];
    const auto move = [&](Value* value) {
      const auto found = moved.find(static_cast<uint64_t>(value->allocation));
      if (value->allocation >= 0 && found != moved.end()) {
        value->address = found->second + value->address % kBlock;
      }
    };
    for (Value& operand : does.operands) move(&operand);
    move(&does.result);
    return AsOp(does);
  }

  void RunOp(int i, const std::map<uint64_t, uint64_t>& moved) {
    const ElementwiseOp op = Moved(i, moved);
    if (does_[i].arithmetic) {
      // The same memory is the same id.
      FusedOp named{&op, {}, /*is_stored=*/true};
      std::vector<uint64_t> seen;
      for (size_t k = 0; k <= op.operands.size(); ++k) {
        const uint64_t address =
            k < op.operands.size() ? op.operands[k].address : op.result;
        named.ids.push_back(static_cast<int>(
            std::find(seen.begin(), seen.end(), address) - seen.begin()));
        if (named.ids.back() == static_cast<int>(seen.size())) {
          seen.push_back(address);
        }
      }
      const FusedProgram program = ProgramOf({named});
      RunFused(program, *CallOf(program, {op}));
      return;
    }
    float sum = 0;
    for (const auto& [address, is_scalar, broadcast] : op.operands) {
      for (int k = 0; k < (is_scalar ? 1 : kElements); ++k) {
        sum += reinterpret_cast<const float*>(address)[k];
      }
    }
    // Stays near 1.
    sum = 1 + sum / 1024;
    for (int k = 0; k < kElements; ++k) {
      reinterpret_cast<float*>(op.result)[k] = sum + static_cast<float>(k) / 8;
    }
  }

  // What the step leaves: its outputs and variables.
  std::vector<float> Results() const {
    std::vector<float> all;
    const auto add = [&](uint64_t address) {
      const auto* at = reinterpret_cast<const float*>(address);
      all.insert(all.end(), at, at + kElements);
    };
    for (const uint64_t output : results_) add(output);
    for (const Value& value : values_) {
      if (value.allocation < 0) add(value.address);
    }
    return all;
  }

  alignas(kBlock) float memory_[kFloats];
  int next_ = 0;
  std::set<uint64_t> free_;
  std::vector<Value> values_;
  std::vector<uint64_t> results_;
  std::vector<Allocation> made_;
  std::vector<size_t> freed_;
  int64_t allocations_ = 0;
  std::vector<RecordedOp> ops_;
  std::vector<Does> does_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_FUSE_FUSED_STEP_FIXTURE_H_
