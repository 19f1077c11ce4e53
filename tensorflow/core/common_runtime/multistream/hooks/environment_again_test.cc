// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// After reading its environment again a process behaves as if the variables had
// been set from the start. Only a process that had none of them, and has made
// no devices, may do so.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"

// Parts of libtensorflow_multistream.so's interface.
extern "C" int TFMS_LookAtEnvironmentAgain(char* message, int size);
extern "C" int TFMS_InjectTestFault(int fault, int times);

namespace tensorflow::multistream {
namespace {

void Set(const char* name, const char* value) {
  setenv(name, value, /*overwrite=*/1);
}

std::string LookAgain() {
  char message[1024] = "";
  TFMS_LookAtEnvironmentAgain(message, sizeof(message));
  return message;
}

bool MakesSession() {
  return SessionOf(Scope::NewRootScope(), PlainOptions()) != nullptr;
}

class EnvironmentAgainDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    for (const char* name : kNames) unsetenv(name);
  }
  void TearDown() override {
    for (const char* name : kNames) unsetenv(name);
  }

  // Runs `check` in a new process, with the current environment, which writes
  // `text` to stderr.
  static void InNewProcess(const std::function<void()>& check,
                           const std::string& text = "") {
    auto run = [&] {
      check();
      _exit(::testing::Test::HasFailure());
    };
    EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), text);
  }

 private:
  static constexpr const char* kNames[] = {
      kGroupCountVariable, kEmulatedGpusVariable, kTestFaultsVariable};
};

TEST_F(EnvironmentAgainDeathTest, AWrongValueIsTheErrorThatItIsFromTheStart) {
  InNewProcess([] {
    Set(kGroupCountVariable, "many");
    EXPECT_EQ(LookAgain(), "");
    EXPECT_TRUE(absl::StrContains(CheckEnvironment(), "=\"many\""))
        << CheckEnvironment();
    Session* session = nullptr;
    const absl::Status status = NewSession(PlainOptions(), &session);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  });
}

TEST_F(EnvironmentAgainDeathTest, IsRefusedWhereVariablesWereThereBefore) {
  InNewProcess([] {
    Set(kGroupCountVariable, "2");
    EXPECT_EQ(LookAgain(), "");
    Set(kGroupCountVariable, "4");
    EXPECT_TRUE(absl::StrContains(LookAgain(), "variables")) << LookAgain();
    EXPECT_EQ(StreamGroupCount(), 2);
  });
  for (const char* value : {"2", "many"}) {  // from the start
    Set(kGroupCountVariable, value);
    InNewProcess([] {
      const std::string before = CheckEnvironment();
      Set(kGroupCountVariable, "4");
      EXPECT_TRUE(absl::StrContains(LookAgain(), "variables")) << LookAgain();
      EXPECT_NE(StreamGroupCount(), 4);
      EXPECT_EQ(CheckEnvironment(), before);
    });
  }
}

TEST_F(EnvironmentAgainDeathTest, IsRefusedWhereDevicesHaveBeenMade) {
  InNewProcess([] {
    EXPECT_TRUE(MakesSession());
    Set(kGroupCountVariable, "4");
    EXPECT_TRUE(absl::StrContains(LookAgain(), "devices")) << LookAgain();
    EXPECT_FALSE(MultiStreamIsEnabled());
  });
  InNewProcess([] {
    // As a device's constructor does, when TensorFlow's own AddDevices makes
    // it.
    GPUProcessState::singleton()->EnableGPUDevice();
    Set(kGroupCountVariable, "4");
    EXPECT_TRUE(absl::StrContains(LookAgain(), "devices")) << LookAgain();
    EXPECT_FALSE(MultiStreamIsEnabled());
    // A session that asks for streams gets an error, too.
    SessionOptions options = PlainOptions();
    SetMultiStream(4, MultiStreamPartitionPolicy::kNoPartition,
                   &options.config);
    Session* session = nullptr;
    const absl::Status status = NewSession(options, &session);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "multi_stream_num"))
        << status;
  });
}

// Faults can be injected only if the process was started with the variable set,
// and then the log says so.
TEST_F(EnvironmentAgainDeathTest, OnlyAProcessThatAsksForTestFaultsHasThem) {
  const auto inject = [](TestFault fault) {
    return TFMS_InjectTestFault(static_cast<int>(fault), 3) != 0;
  };
  const auto has_none = [&inject] {
    Set(kTestFaultsVariable, "true");  // too late
    EXPECT_FALSE(inject(TestFault::kDropHold));
    EXPECT_FALSE(TakeTestFault(TestFault::kDropHold));
  };
  InNewProcess(has_none);
  Set(kTestFaultsVariable, "false");
  InNewProcess(has_none);
  Set(kTestFaultsVariable, "true");
  InNewProcess(
      [&inject] {
        EXPECT_FALSE(inject(static_cast<TestFault>(-1)));
        EXPECT_FALSE(inject(static_cast<TestFault>(kTestFaults)));
        EXPECT_TRUE(inject(TestFault::kDropHold));
        int taken = 0;
        for (int i = 0; i < 4; ++i) {
          taken += TakeTestFault(TestFault::kDropHold);
        }
        EXPECT_EQ(taken, 3);
      },
      "with TF_MULTI_STREAM_TEST_FAULTS=true, tests can make steps of "
      "this process read wrong data");
}

}  // namespace
}  // namespace tensorflow::multistream
