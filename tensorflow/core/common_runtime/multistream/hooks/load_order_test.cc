// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The same program is linked with its libraries in different orders. WHOSE is
// part of the path of the library that calls of NewExecutor reach; empty if
// they reach ours.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr absl::string_view kWhose = WHOSE;

absl::Status RunSession(const SessionOptions& options) {
  Scope root = Scope::NewRootScope();
  ops::Const(root.WithOpName("c"), 1.0f);
  GraphDef graph;
  TF_RETURN_IF_ERROR(root.ToGraphDef(&graph));
  Session* made = nullptr;
  TF_RETURN_IF_ERROR(NewSession(options, &made));
  std::unique_ptr<Session> session(made);
  TF_RETURN_IF_ERROR(session->Create(graph));
  std::vector<Tensor> got;
  return session->Run({}, {"c:0"}, {}, &got);
}

// Each death test is a new process with these variables.
class LoadOrderDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    setenv("TF_GPU_STREAM_GROUP_COUNT", "", /*overwrite=*/1);
    setenv("TF_MULTI_STREAM_EMULATED_GPUS", "", /*overwrite=*/1);
  }

  // Ends the process, with 0 if the error `said` is as expected.
  static void EndWith(absl::string_view said) {
    for (const absl::string_view part :
         {absl::string_view("tensorflow::NewExecutor"), kWhose,
          absl::string_view("libtensorflow_multistream.so")}) {
      EXPECT_TRUE(said.empty() || absl::StrContains(said, part)) << said;
    }
    EXPECT_EQ(said.empty(), kWhose.empty()) << said;
    _exit(HasFailure());
  }
};

// A program can ask before its first session, too.
TEST_F(LoadOrderDeathTest, ASessionOnGroupsNamesTheFunctionThatIsNotOurs) {
  setenv("TF_GPU_STREAM_GROUP_COUNT", "4", 1);
  setenv("TF_MULTI_STREAM_EMULATED_GPUS", "1", 1);
  EXPECT_EXIT(EndWith(RunSession(SessionOptions()).message()),
              ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(EndWith(CheckEnvironment()), ::testing::ExitedWithCode(0), "");
}

// The session's configuration asks for streams. Without a GPU it would run
// without streams, but a wrong library order is still an error.
TEST_F(LoadOrderDeathTest, SoDoesASessionWhoseConfigurationAsks) {
  SessionOptions options;
  SetMultiStream(4, MultiStreamPartitionPolicy::kNoPartition, &options.config);
  EXPECT_EXIT(EndWith(RunSession(options).message()),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(LoadOrderDeathTest, WithoutGroupsTheOrderDoesNotMatter) {
  EXPECT_EXIT(
      {
        EXPECT_EQ(CheckEnvironment(), "");
        // The other library's function only returns an error that it was
        // called.
        if (!absl::StrContains(kWhose, "another_executor")) {
          EXPECT_EQ(RunSession(SessionOptions()), absl::OkStatus());
        }
        _exit(HasFailure());
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
