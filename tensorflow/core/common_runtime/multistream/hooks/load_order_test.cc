// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// A C++ program that is linked with TensorFlow's libraries before ours. Other
// orders, and other libraries, are in the Python test of the same name.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow::multistream {
namespace {

// Ends the process, with 0 if the error `said` names the function that is not
// ours, and both libraries.
void EndWith(absl::string_view said) {
  for (const char* part :
       {"tensorflow::NewExecutor", "libtensorflow_framework.so",
        "libtensorflow_multistream.so"}) {
    EXPECT_TRUE(absl::StrContains(said, part)) << said;
  }
  _exit(::testing::Test::HasFailure());
}

std::string ErrorOfSession() {
  Session* session = nullptr;
  return std::string(NewSession(SessionOptions(), &session).message());
}

// Each death test is a new process with these variables.
TEST(LoadOrderDeathTest, ASessionOnGroupsNamesTheFunctionThatIsNotOurs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv("TF_GPU_STREAM_GROUP_COUNT", "4", /*overwrite=*/1);
  setenv("TF_MULTI_STREAM_EMULATED_GPUS", "1", /*overwrite=*/1);
  EXPECT_EXIT(EndWith(ErrorOfSession()), ::testing::ExitedWithCode(0), "");
  // A program can ask before its first session.
  EXPECT_EXIT(EndWith(CheckEnvironment()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tensorflow::multistream
