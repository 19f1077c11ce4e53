// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// After reading its environment again a process behaves as if the variables had
// been set from the start. Only a process that had none of them, and has made
// no devices, may do so.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"

// Part of libtensorflow_multistream.so's interface.
extern "C" int TFMS_LookAtEnvironmentAgain(char* message, int size);

namespace tensorflow {
namespace multistream {
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

  // Runs `check` in a new process, with the current environment.
  static void InNewProcess(const std::function<void()>& check) {
    auto run = [&] {
      check();
      _exit(::testing::Test::HasFailure());
    };
    EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
  }

 private:
  static constexpr const char* kNames[] = {
      kGroupCountVariable, kEmulatedGpusVariable, kTestFaultsVariable};
};

TEST_F(EnvironmentAgainDeathTest, GivesTheProcessGroups) {
  InNewProcess([] {
    EXPECT_FALSE(MultiStreamIsEnabled());
    Set(kGroupCountVariable, "3");
    Set(kEmulatedGpusVariable, "2");
    Set(kTestFaultsVariable, "true");
    EXPECT_FALSE(MultiStreamIsEnabled());
    EXPECT_EQ(LookAgain(), "");
    EXPECT_TRUE(MultiStreamIsEnabled());
    EXPECT_EQ(CheckEnvironment(), "");
    EXPECT_EQ(StreamGroupCount(), 3);
    EXPECT_TRUE(test_faults_allowed.load());
    EXPECT_TRUE(MakesSession());
    EXPECT_EQ(StreamStats().size(), 6);
  });
}

TEST_F(EnvironmentAgainDeathTest, WithoutVariablesTheProcessStaysStock) {
  InNewProcess([] {
    EXPECT_EQ(LookAgain(), "");
    EXPECT_FALSE(MultiStreamIsEnabled());
    EXPECT_TRUE(MakesSession());
    EXPECT_TRUE(StreamStats().empty());
  });
}

TEST_F(EnvironmentAgainDeathTest, AWrongValueIsTheErrorThatItIsFromTheStart) {
  InNewProcess([] {
    Set(kGroupCountVariable, "many");
    EXPECT_EQ(LookAgain(), "");
    EXPECT_TRUE(absl::StrContains(CheckEnvironment(),
                                  "TF_GPU_STREAM_GROUP_COUNT=\"many\""))
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
  });
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
