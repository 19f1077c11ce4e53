// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/session_config.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/message_fields.h"

namespace tensorflow::multistream {
namespace {

// A configuration with use_multi_stream and the fields of multi_stream_opts.
ConfigProto FromText(const std::string& use, const std::string& options = "") {
  ConfigProto config;
  EXPECT_EQ(
      ParseConfigText(absl::StrCat("graph_options { rewrite_options { ", use,
                                   " multi_stream_opts { ", options, " } } }"),
                      &config),
      "");
  return config;
}
const char kOn[] = "use_multi_stream: ON";
const char kOff[] = "use_multi_stream: OFF";

SessionConfig Asked(const ConfigProto& config) {
  auto asked = ReadSessionConfig(config);
  EXPECT_TRUE(asked.ok()) << asked.status();
  EXPECT_TRUE(asked->has_value());
  return asked->value_or(SessionConfig());
}

void ExpectError(const ConfigProto& config, const std::string& part) {
  auto asked = ReadSessionConfig(config);
  EXPECT_TRUE(absl::IsInvalidArgument(asked.status()));
  EXPECT_TRUE(absl::StrContains(asked.status().message(), part))
      << asked.status();
}

TEST(ReadFieldsTest, AreKnownOnesAndUnknownOnesAlike) {
  GPUOptions options;
  options.set_allow_growth(true);
  options.GetReflection()->MutableUnknownFields(&options)->AddVarint(
      kCudaGraphEnableJit, 1);
  google::protobuf::UnknownFieldSet fields;
  ReadFields(options, &fields);
  ASSERT_EQ(fields.field_count(), 2);
  EXPECT_EQ(fields.field(0).number(), GPUOptions::kAllowGrowthFieldNumber);
  EXPECT_EQ(fields.field(1).number(), kCudaGraphEnableJit);
}

TEST(SessionConfigTest, AConfigThatDoesNotSaySaysNothing) {
  for (const char* text :
       {"", "use_multi_stream: DEFAULT", "min_graph_nodes: 1"}) {
    auto asked = ReadSessionConfig(FromText(text, "multi_stream_num: 4"));
    ASSERT_TRUE(asked.ok()) << asked.status();
    EXPECT_FALSE(asked->has_value()) << text;
  }
  EXPECT_FALSE(ReadSessionConfig(ConfigProto())->has_value());
}

TEST(SessionConfigTest, TheTextAndTheProgramSayTheSame) {
  const struct {
    const char* name;
    MultiStreamPartitionPolicy value;
    Policy policy;
  } policies[] = {
      {"NO_PARTITION", MultiStreamPartitionPolicy::kNoPartition, Policy::kNone},
      {"USER_DEFINED_PARTITION",
       MultiStreamPartitionPolicy::kUserDefinedPartition, Policy::kNone},
      {"EMBEDDING_GRAPH_PARTITION",
       MultiStreamPartitionPolicy::kEmbeddingGraphPartition,
       Policy::kEmbedding},
      {"FULL_GRAPH_PARTITION", MultiStreamPartitionPolicy::kFullGraphPartition,
       Policy::kFullGraph},
      {"COST_PARTITION", MultiStreamPartitionPolicy::kCostPartition,
       Policy::kCost}};
  ConfigProto program;
  for (const auto& it : policies) {
    SetMultiStream(7, it.value, &program);  // again and again
    const ConfigProto text = FromText(
        kOn, absl::StrCat("multi_stream_num: 7 partition_policy: ", it.name));
    for (const ConfigProto& config : {program, text}) {
      EXPECT_EQ(Asked(config).streams, 7);
      EXPECT_EQ(Asked(config).policy, it.policy) << it.name;
    }
  }
  // The last of several values counts.
  ConfigProto more;
  SetMultiStream(5, MultiStreamPartitionPolicy::kNoPartition, &more);
  program.MergeFrom(more);
  EXPECT_EQ(Asked(program).streams, 5);
  EXPECT_EQ(Asked(program).policy, Policy::kNone);
}

TEST(SessionConfigTest, OffIsOneStreamAndOnWithoutANumberTheEnvironments) {
  EXPECT_EQ(Asked(FromText(kOff, "multi_stream_num: 4")).streams, 1);
  EXPECT_EQ(Asked(FromText(kOn)).streams, std::nullopt);
}

TEST(SessionConfigTest, ASessionMayAskForCapturedSteps) {
  ConfigProto config;
  EXPECT_FALSE(AsksForCapture(config));
  for (bool enable : {true, false, true}) {
    SetCudaGraph(enable, &config);
    EXPECT_EQ(AsksForCapture(config), enable);
    ConfigProto text;
    EXPECT_EQ(
        ParseConfigText(absl::StrCat("gpu_options { cuda_graph_enable_jit: ",
                                     enable ? "true" : "false", " }"),
                        &text),
        "");
    EXPECT_EQ(AsksForCapture(text), enable);
  }
  const auto mode = [&config](CaptureMode environment) {
    Options options;
    options.capture = environment;
    return StreamsOfSession(config, options, 0, 0, 1)->capture;
  };
  EXPECT_EQ(mode(CaptureMode::kMarked), CaptureMode::kAuto);
  EXPECT_EQ(mode(CaptureMode::kInference), CaptureMode::kAuto);
  EXPECT_EQ(mode(CaptureMode::kRequire), CaptureMode::kRequire);
  EXPECT_EQ(mode(CaptureMode::kOff), CaptureMode::kOff);
  SetCudaGraph(false, &config);
  EXPECT_EQ(mode(CaptureMode::kMarked), CaptureMode::kMarked);
  EXPECT_EQ(mode(CaptureMode::kInference), CaptureMode::kInference);
}

TEST(SessionConfigTest, AWrongValueIsNamed) {
  for (const char* value : {"0", "-1", "65", "2147483647"}) {
    ExpectError(FromText(kOn, absl::StrCat("multi_stream_num: ", value)),
                absl::StrCat("multi_stream_num=", value));
  }
  ConfigProto config;
  SetMultiStream(2, static_cast<MultiStreamPartitionPolicy>(9), &config);
  ExpectError(config, "partition_policy=9");
  EXPECT_EQ(ParseConfigText("graph_options {\n rewrite_options {\n"
                            "  use_multi_stream: PERHAPS } }",
                            &config)
                .substr(0, 6),
            "line 3");
}

}  // namespace
}  // namespace tensorflow::multistream
