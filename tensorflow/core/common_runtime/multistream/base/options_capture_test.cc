// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The options of the variables for captured steps, and of XLA's variables that
// affect capture.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/base/options_fixture.h"

namespace tensorflow {
namespace multistream {
namespace {

TEST(OptionsTest, Capture) {
  const auto parse = [](Variables variables) {
    variables["TF_GPU_STREAM_GROUP_COUNT"] = "4";
    return *Parse(variables);
  };
  EXPECT_EQ(parse({}).capture, CaptureMode::kUnset);
  EXPECT_EQ(parse({{kCaptureVariable, "off"}}).capture, CaptureMode::kOff);
  EXPECT_EQ(parse({{kCaptureVariable, "Auto"}}).capture, CaptureMode::kAuto);
  const Options required =
      parse({{kCaptureVariable, "require"}, {kCaptureMegabytesVariable, "7"}});
  EXPECT_EQ(required.capture, CaptureMode::kRequire);
  EXPECT_EQ(required.capture_mb, 7);
  EXPECT_TRUE(required.without_effect.empty());
  EXPECT_EQ(parse({{kCaptureMegabytesVariable, "7"}}).without_effect.size(), 1);
  const Variables at_node_level = {{kCaptureVariable, "auto"},
                                   {kNodeLevelVariable, "true"}};
  EXPECT_EQ(parse(at_node_level).without_effect.size(), 1);
  // One group is enough.
  const Options one = *Parse({{kCaptureVariable, "auto"}});
  EXPECT_TRUE(one.without_effect.empty());
  EXPECT_TRUE(one.Enabled());
  EXPECT_FALSE(one.HasSeveralGroups());
  EXPECT_FALSE(Parse({{kCaptureVariable, "off"}})->Enabled());
  EXPECT_TRUE(Parse({{kCaptureVariable, "marked"}})->Enabled());
  ExpectRefused(kCaptureVariable, "yes", "off, marked, auto, require");
  EXPECT_EQ(parse({}).capture_verify, 0);
  EXPECT_EQ(parse({{kCaptureVariable, "auto"}, {kCaptureVerifyVariable, "9"}})
                .capture_verify,
            9);
  EXPECT_EQ(parse({}).capture_branches, 4);
  for (const auto& [value, count] : {std::pair{"1", 1}, {"8", 8}, {"64", 64}}) {
    const Options branches =
        parse({{kCaptureVariable, "auto"}, {kCaptureBranchesVariable, value}});
    EXPECT_EQ(branches.capture_branches, count);
    EXPECT_TRUE(branches.without_effect.empty());
  }
  EXPECT_EQ(parse({{kCaptureBranchesVariable, "8"}}).without_effect.size(), 1);
  EXPECT_TRUE(parse({}).capture_batches.empty());
  const Variables batches = {{kCaptureVariable, "auto"},
                             {kCaptureBatchesVariable, "16, 1,4"}};
  EXPECT_EQ(parse(batches).capture_batches, std::vector<int>({1, 4, 16}));
  EXPECT_TRUE(parse(batches).without_effect.empty());
  EXPECT_FALSE(
      parse({{kTfXlaFlagsVariable, "--tf_xla_auto_jit=2"}}).xla_has_streams);
  EXPECT_TRUE(
      parse({{kTfXlaFlagsVariable, "--tf_xla_enable_device_api_for_gpu"}})
          .xla_has_streams);
  for (const auto& [flags, launches] :
       {std::pair{"", true},
        {"--xla_gpu_enable_command_buffer=", false},
        {"--a=b --xla_gpu_enable_command_buffer= --c", false},
        {"--xla_gpu_enable_command_buffer=FUSION", true},
        {"--xla_gpu_enable_command_buffer= "
         "--xla_gpu_enable_command_buffer=FUSION",
         true}}) {
    EXPECT_EQ(parse({{kXlaFlagsVariable, flags}}).xla_launches_graphs, launches)
        << flags;
  }
  ExpectRefused(kCaptureBatchesVariable, "4,0", "from 1 to 1048576");
  ExpectRefused(kCaptureBatchesVariable, "4 8", "one for each batch");
  ExpectRefused(kCaptureMegabytesVariable, "0", "from 1 to 1048576");
  ExpectRefused(kCaptureVerifyVariable, "-1", "at least 0");
  ExpectRefused(kCaptureBranchesVariable, "0", "from 1 to 64");
  ExpectRefused(kCaptureBranchesVariable, "65", "from 1 to 64");
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
