// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/process_options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tensorflow::multistream {
namespace {

using Variables = std::map<std::string, std::string>;

// Each test runs in a new process, because options are process-wide.

class ProcessOptionsDeathTest : public ::testing::Test {
 protected:
  static void InNewProcess(const Variables& variables,
                           const std::function<void()>& check) {
    auto run = [&] {
      for (const char* name :
           {kGroupCountVariable, kNodeLevelVariable, kPolicyVariable,
            kThreadModeVariable, kCaptureVariable}) {
        unsetenv(name);
      }
      for (const auto& [name, value] : variables) {
        setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
      }
      check();
      _exit(HasFailure());
    };
    EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
  }
  static std::vector<int> Counts() { return ProcessOptions()->group_counts; }
};

TEST_F(ProcessOptionsDeathTest, EachGpuHasAtLeastAsManyGroupsAsASessionWants) {
  InNewProcess({{kGroupCountVariable, "2,8"}}, [] {
    EXPECT_EQ(RequestNodeLevel(4), absl::OkStatus());
    EXPECT_EQ(Counts(), (std::vector<int>{4, 8}));
    EXPECT_EQ(RequestNodeLevel(3), absl::OkStatus());
    EXPECT_EQ(Counts(), (std::vector<int>{4, 8}));
    EXPECT_EQ(RequestNodeLevel(9), absl::OkStatus());
    EXPECT_EQ(Counts(), (std::vector<int>{9, 9}));
    EXPECT_EQ(ProcessOptions()->default_group_counts, (std::vector<int>{2, 8}));
  });
}

// As is requested once the groups are made.
TEST_F(ProcessOptionsDeathTest, ARequestOfOneGroupChangesNoCounts) {
  InNewProcess({{kGroupCountVariable, "2"}}, [] {
    EXPECT_FALSE(ProcessOptions()->any_node_level);
    EXPECT_EQ(RequestNodeLevel(1), absl::OkStatus());
    EXPECT_EQ(Counts(), std::vector<int>{2});
    EXPECT_TRUE(ProcessOptions()->any_node_level);
    EXPECT_FALSE(ProcessOptions()->node_level);
  });
}

// A reader may keep using options that a request has replaced. A request is
// taken back when the session cannot be made.
TEST_F(ProcessOptionsDeathTest, OptionsThatHaveBeenReadStayAndCanBeRestored) {
  InNewProcess({{kGroupCountVariable, "2"}}, [] {
    const absl::StatusOr<Options>& before = ProcessOptions();
    std::set<const void*> made;
    for (int i = 0; i < 1000; ++i) {
      EXPECT_EQ(RequestNodeLevel(3 + i % 2), absl::OkStatus());
      EXPECT_EQ(Counts(), std::vector<int>{3 + i % 2});
      EXPECT_EQ(before->group_counts, std::vector<int>{2});
      EXPECT_FALSE(before->any_node_level);
      // An equal request changes nothing.
      made.insert(&ProcessOptions());
      EXPECT_EQ(RequestNodeLevel(3 + i % 2), absl::OkStatus());
      made.insert(&ProcessOptions());
      RestoreOptions(before);
      EXPECT_EQ(Counts(), std::vector<int>{2});
      EXPECT_FALSE(ProcessOptions()->any_node_level);
    }
    EXPECT_EQ(made.size(), 2);
    // The environment counts as it is now.
    setenv(kPolicyVariable, "cost", /*overwrite=*/1);
    EXPECT_EQ(RequestNodeLevel(3), absl::OkStatus());
    EXPECT_EQ(ProcessOptions()->policy, Policy::kCost);
  });
}

TEST_F(ProcessOptionsDeathTest, CaptureCanBeRequested) {
  InNewProcess({{kEmulatedGpusVariable, "1"},
                {kGroupCountVariable, "1"},
                {kCaptureMegabytesVariable, "7"}},
               [] {
                 EXPECT_FALSE(ProcessOptions()->captures());
                 EXPECT_EQ(RequestCapture(), absl::OkStatus());
                 EXPECT_TRUE(ProcessOptions()->captures());
                 EXPECT_EQ(ProcessOptions()->capture, CaptureMode::kMarked);
                 EXPECT_EQ(ProcessOptions()->capture_mb, 7);
                 EXPECT_EQ(Counts(), std::vector<int>{1});
                 // Neither request takes the other one back.
                 EXPECT_EQ(RequestNodeLevel(4), absl::OkStatus());
                 EXPECT_TRUE(ProcessOptions()->captures());
                 const absl::StatusOr<Options>* after = &ProcessOptions();
                 EXPECT_EQ(RequestCapture(), absl::OkStatus());
                 EXPECT_EQ(&ProcessOptions(), after);
                 EXPECT_EQ(Counts(), std::vector<int>{4});
               });
  for (const auto& [name, value] :
       {std::pair{kCaptureVariable, "off"}, {kNodeLevelVariable, "true"}}) {
    InNewProcess({{name, value}}, [name = name] {
      const absl::Status status = RequestCapture();
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      EXPECT_NE(status.message().find(name), std::string::npos) << status;
      EXPECT_FALSE(ProcessOptions()->captures());
    });
  }
}

TEST_F(ProcessOptionsDeathTest, GroupsOfOneSessionDoNotCaptureTheOthersSteps) {
  InNewProcess({}, [] {
    EXPECT_EQ(RequestNodeLevel(4), absl::OkStatus());
    EXPECT_EQ(ProcessOptions()->capture, CaptureMode::kUnset);
    EXPECT_FALSE(ProcessOptions()->captures());
  });
  InNewProcess({{kGroupCountVariable, "2"}}, [] {
    EXPECT_EQ(RequestNodeLevel(4), absl::OkStatus());
    EXPECT_EQ(ProcessOptions()->capture, CaptureMode::kInference);
    EXPECT_TRUE(ProcessOptions()->capture_is_default);
  });
}

TEST_F(ProcessOptionsDeathTest, NoEnvironmentIsReadAgainAfterARequest) {
  InNewProcess({}, [] {
    EXPECT_EQ(RequestNodeLevel(4), absl::OkStatus());
    EXPECT_TRUE(absl::IsFailedPrecondition(ReadEnvironmentAgain()));
    EXPECT_EQ(Counts(), std::vector<int>{4});
  });
}

TEST_F(ProcessOptionsDeathTest, ARequestThatTheEnvironmentContradictsIsNamed) {
  // Without groups only stock TensorFlow checks the variable.
  InNewProcess({{kThreadModeVariable, "anything"}}, [] {
    EXPECT_TRUE(ProcessOptions().ok());
    const absl::Status status = RequestNodeLevel(4);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(status.message().find("TF_GPU_THREAD_MODE=\"anything\""),
              std::string::npos)
        << status;
    EXPECT_TRUE(ProcessOptions().ok());
    EXPECT_FALSE(IsEnabled());
  });
  InNewProcess({{kGroupCountVariable, "many"}}, [] {
    EXPECT_EQ(RequestNodeLevel(4), ProcessOptions().status());
  });
}

}  // namespace
}  // namespace tensorflow::multistream
