// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Faults can be injected only if the process was started with the variable set.

#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "tensorflow/core/common_runtime/multistream/base/options.h"

// Part of libtensorflow_multistream.so's interface.
extern "C" int TFMS_InjectTestFault(int fault, int times);

namespace tensorflow {
namespace multistream {
namespace {

class TestFaultsDeathTest : public ::testing::Test {
 protected:
  // Each death test below is a new process.
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    unsetenv(kTestFaultsVariable);
  }
  void TearDown() override { unsetenv(kTestFaultsVariable); }

  // Exits with the number of faults, of three, that happen.
  static void InjectAndTake() {
    const int injected =
        TFMS_InjectTestFault(static_cast<int>(TestFault::kDropHold), 3);
    int taken = 0;
    for (int i = 0; i < 4; ++i) taken += TakeTestFault(TestFault::kDropHold);
    _exit(10 * injected + taken);
  }
};

TEST_F(TestFaultsDeathTest, AProcessThatDidNotAskForFaultsHasNone) {
  EXPECT_EXIT(InjectAndTake(), ::testing::ExitedWithCode(0), "");
  setenv(kTestFaultsVariable, "false", /*overwrite=*/1);
  EXPECT_EXIT(InjectAndTake(), ::testing::ExitedWithCode(0), "");
}

TEST_F(TestFaultsDeathTest, AProcessThatAsksForFaultsIsToldSo) {
  setenv(kTestFaultsVariable, "true", /*overwrite=*/1);
  EXPECT_EXIT(InjectAndTake(), ::testing::ExitedWithCode(13),
              "with TF_MULTI_STREAM_TEST_FAULTS=true, tests can make steps of "
              "this process read wrong data");
}

// Setting the variable after the start has no effect.
TEST_F(TestFaultsDeathTest, FaultsCannotBeAskedForLater) {
  EXPECT_EXIT(
      {
        setenv(kTestFaultsVariable, "true", /*overwrite=*/1);
        InjectAndTake();
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(TestFaultsDeathTest, AFaultThatDoesNotExistIsRefused) {
  setenv(kTestFaultsVariable, "true", /*overwrite=*/1);
  EXPECT_EXIT(
      _exit(TFMS_InjectTestFault(-1, 1) + TFMS_InjectTestFault(kTestFaults, 1)),
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
