// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/variables/variable_home.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "absl/time/clock.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/common_runtime/multistream/testing/variables.h"
#include "tensorflow/core/platform/refcount.h"

namespace tensorflow::multistream {
namespace {

constexpr GpuGroups::StateKey kKey = 5;
constexpr absl::Duration kOneLook = absl::Microseconds(100);

// Tests with a variable in the memory of an emulated GPU's leader.
class VariableHomeTest : public ::testing::Test {
 protected:
  VariableHomeTest() : session_(MakeSession()), gpu_(FindGpuGroups(0)) {
    *variable_->tensor() = Value(1);
    home_ = Of(variable_);
  }

  static std::unique_ptr<Session> MakeSession() {
    Scope root = Scope::NewRootScope();
    ops::Const(root.WithDevice("/device:GPU:0"), 1.0f);
    std::unique_ptr<Session> session = SessionOf(root);
    std::vector<Tensor> results;
    EXPECT_TRUE(session->Run({}, {"Const"}, {}, &results).ok());
    return session;
  }

  Tensor Value(float value, int64_t size = 100) {
    Tensor tensor(gpu_->leader()->allocator(), DT_FLOAT, {size});
    tensor.flat<float>().setConstant(value);
    return tensor;
  }
  std::shared_ptr<VariableHome> Of(const core::RefCountPtr<Var>& variable) {
    return VariableHome::Of(variable.get(), gpu_->leader()->allocator());
  }
  absl::Status PutBack() { return home_->PutBack(gpu_, variable_.get(), kKey); }
  float value() {
    EXPECT_TRUE(gpu_->leader()->Block().ok());
    return variable_->tensor()->flat<float>()(99);
  }

  const std::unique_ptr<Session> session_;
  GpuGroups* const gpu_;
  const core::RefCountPtr<Var> variable_{new Var(DT_FLOAT)};
  std::shared_ptr<VariableHome> home_;
};

// The owner of borrowed memory may read it.
TEST_F(VariableHomeTest, BorrowedMemoryIsNoHome) {
  std::vector<float> values(100, 5.0f);
  const core::RefCountPtr<Var> variable(new Var(DT_FLOAT));
  *variable->tensor() = HostTensor(values.data(), 100, /*owns=*/false);
  EXPECT_EQ(Of(variable), nullptr);
  *variable->tensor() = Value(1);
  EXPECT_NE(Of(variable), nullptr);
}

TEST_F(VariableHomeTest, AValueElsewhereIsPutBack) {
  const void* const place = variable_->tensor()->data();
  EXPECT_TRUE(PutBack().ok());
  *variable_->tensor() = Value(2);
  EXPECT_FALSE(home_->Has(*variable_->tensor()));
  EXPECT_TRUE(PutBack().ok());
  EXPECT_EQ(variable_->tensor()->data(), place);
  EXPECT_EQ(value(), 2);
  EXPECT_EQ(Of(variable_), home_);
}

// A kernel may already have the address that it will write to, after releasing
// the variable's mutex. Another mover may have put a stand-in into the
// variable.
TEST_F(VariableHomeTest, NothingIsMovedWhileAThreadReadsWritesOrMoves) {
  const GpuGroups::StateKey keys[] = {kKey};
  using Change = std::function<void()>;
  for (const auto& [begin, end] : std::vector<std::pair<Change, Change>>{
           {[&] { gpu_->BeginRead(gpu_->group(1), keys); },
            [&] { gpu_->EndRead(gpu_->group(1), keys); }},
           {[&] { gpu_->BeginWrite(keys); }, [&] { gpu_->EndWrite(keys); }},
           {[&] { gpu_->BeginMove(keys); }, [&] { gpu_->EndMove(keys); }}}) {
    *variable_->tensor() = Value(3);
    begin();
    std::atomic<bool> moved{false};
    std::thread mover([&] {
      EXPECT_TRUE(PutBack().ok());
      moved = true;
    });
    while (gpu_->threads_that_wait_for_state() == 0) absl::SleepFor(kOneLook);
    EXPECT_FALSE(moved);
    variable_->tensor()->flat<float>().setConstant(4);
    end();
    mover.join();
    EXPECT_EQ(value(), 4);
  }
}

// While ops change a variable, it holds a stand-in.
TEST_F(VariableHomeTest, AStandInIsNotAtHomeAndDoesNotBecomeTheHome) {
  const Tensor own = *variable_->tensor();
  {
    ChangedVariables changed(/*device=*/nullptr);  // no op runs
    changed.Take(variable_.get());
    EXPECT_EQ(variable_->tensor()->data(), own.data());
    EXPECT_FALSE(home_->Has(*variable_->tensor()));
    EXPECT_TRUE(absl::IsUnavailable(home_->CheckIsItsOwn(variable_.get())));
  }
  // The home still keeps the memory itself: nothing else gets it.
  EXPECT_TRUE(home_->Has(*variable_->tensor()));
  *variable_->tensor() = Value(9);
  EXPECT_FALSE(own.RefCountIsOne());
}

// A piece's arguments may have been read from a variable that it changes.
TEST_F(VariableHomeTest, AVariableIsItsOwnIfOnlyTheCallerHasItsValue) {
  const auto is_its_own = [this](int own) {
    return home_->CheckIsItsOwn(variable_.get(), own).ok();
  };
  EXPECT_TRUE(is_its_own(0));
  const Tensor argument = *variable_->tensor(), copy = argument;
  EXPECT_FALSE(is_its_own(0));
  EXPECT_TRUE(is_its_own(2));
  EXPECT_FALSE(is_its_own(3));
  const Tensor of_another_op = argument;
  EXPECT_FALSE(is_its_own(2));
}

TEST_F(VariableHomeTest, MemoryInUseIsLeftAloneAndTheHomeIsThenGivenUp) {
  const Tensor kept = *variable_->tensor();
  *variable_->tensor() = Value(5);
  for (int i = 1; i < VariableHome::kLooksAtLeast; ++i) {
    EXPECT_TRUE(absl::IsUnavailable(PutBack()));
  }
  absl::SleepFor(VariableHome::kLongestUse + absl::Milliseconds(10));
  EXPECT_TRUE(absl::IsAborted(PutBack()));
  EXPECT_EQ(value(), 5);
  EXPECT_EQ(kept.flat<float>()(99), 1);
  EXPECT_TRUE(kept.RefCountIsOne());
  EXPECT_NE(Of(variable_), home_);
}

TEST_F(VariableHomeTest, ALargerValueThatAnotherHasIsNotCopied) {
  const core::RefCountPtr<Var> variable(new Var(DT_FLOAT));
  const Tensor kept =
      Value(3, VariableHome::kMostCopiedBytes / sizeof(float) + 1);
  *variable->tensor() = kept;
  EXPECT_TRUE(Of(variable)->Has(kept));
}

TEST_F(VariableHomeTest, ShortUsesFarApartDoNotCountAsOneLongUse) {
  for (int i = 0; i < 2 * VariableHome::kLooksAtLeast; ++i) {
    const Tensor kept = *variable_->tensor();
    *variable_->tensor() = Value(5);
    EXPECT_TRUE(absl::IsUnavailable(PutBack()));
    if (i % VariableHome::kLooksAtLeast == 0) {
      absl::SleepFor(VariableHome::kLongestUse + absl::Milliseconds(10));
    }
    *variable_->tensor() = kept;
    EXPECT_TRUE(PutBack().ok());  // a look that finds it free
  }
}

TEST_F(VariableHomeTest, AnotherShapeHasAnotherHome) {
  *variable_->tensor() = Value(6, 200);
  EXPECT_TRUE(absl::IsAborted(PutBack()));
  const auto other = Of(variable_);
  EXPECT_NE(other, home_);
  EXPECT_TRUE(other->Has(*variable_->tensor()));
}

TEST_F(VariableHomeTest, LargeOnesAndPartsOfLargeOnesHaveNone) {
  const int64_t most = VariableHome::kMostBytes / sizeof(float);
  Tensor large = Value(7, most + 1);
  for (const Tensor& value : {large, large.Slice(0, 100), Tensor(DT_FLOAT)}) {
    const core::RefCountPtr<Var> variable(new Var(DT_FLOAT));
    *variable->tensor() = value;
    EXPECT_EQ(Of(variable), nullptr);
  }
}

}  // namespace
}  // namespace tensorflow::multistream
