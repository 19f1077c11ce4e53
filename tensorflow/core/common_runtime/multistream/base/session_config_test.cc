// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/session_config.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "tensorflow/core/common_runtime/multistream/base/message_fields.h"

namespace tensorflow {
namespace multistream {
namespace {

ConfigProto FromText(const std::string& rewrite_options) {
  ConfigProto config;
  EXPECT_EQ(ParseConfigText(
                "graph_options { rewrite_options { " + rewrite_options + " } }",
                &config),
            "");
  return config;
}

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
       {"", "use_multi_stream: DEFAULT", "min_graph_nodes: 1",
        "multi_stream_opts { multi_stream_num: 4 }"}) {
    auto asked = ReadSessionConfig(FromText(text));
    ASSERT_TRUE(asked.ok()) << asked.status();
    EXPECT_FALSE(asked->has_value()) << text;
  }
}

TEST(SessionConfigTest, ReadsWhatTheTextSays) {
  const SessionConfig asked = Asked(
      FromText("use_multi_stream: ON multi_stream_opts { multi_stream_num: 4 "
               "partition_policy: FULL_GRAPH_PARTITION }"));
  EXPECT_EQ(asked.streams, 4);
  EXPECT_EQ(asked.policy, Policy::kFullGraph);
}

TEST(SessionConfigTest, ReadsWhatAProgramSays) {
  const std::pair<MultiStreamPartitionPolicy, Policy> policies[] = {
      {MultiStreamPartitionPolicy::kNoPartition, Policy::kNone},
      {MultiStreamPartitionPolicy::kUserDefinedPartition, Policy::kNone},
      {MultiStreamPartitionPolicy::kEmbeddingGraphPartition,
       Policy::kEmbedding},
      {MultiStreamPartitionPolicy::kFullGraphPartition, Policy::kFullGraph},
      {MultiStreamPartitionPolicy::kCostPartition, Policy::kCost}};
  ConfigProto config;
  for (const auto& [value, policy] : policies) {
    SetMultiStream(7, value, &config);  // again and again
    EXPECT_EQ(Asked(config).streams, 7);
    EXPECT_EQ(Asked(config).policy, policy);
  }
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
  EXPECT_EQ(mode(CaptureMode::kRequire), CaptureMode::kRequire);
  EXPECT_EQ(mode(CaptureMode::kOff), CaptureMode::kOff);
  SetCudaGraph(false, &config);
  EXPECT_EQ(mode(CaptureMode::kMarked), CaptureMode::kMarked);
}

TEST(SessionConfigTest, TheTextAndTheProgramAreTheSame) {
  const char* const names[] = {"NO_PARTITION", "USER_DEFINED_PARTITION",
                               "EMBEDDING_GRAPH_PARTITION",
                               "FULL_GRAPH_PARTITION", "COST_PARTITION"};
  for (int i = 0; i < 5; ++i) {
    ConfigProto config;
    SetMultiStream(3, static_cast<MultiStreamPartitionPolicy>(i), &config);
    const SessionConfig text = Asked(FromText(
        std::string("use_multi_stream: ON multi_stream_opts { multi_stream_num:"
                    " 3 partition_policy: ") +
        names[i] + " }"));
    EXPECT_EQ(text.streams, Asked(config).streams);
    EXPECT_EQ(text.policy, Asked(config).policy) << names[i];
  }
}

TEST(SessionConfigTest, TheLastOfSeveralValuesCounts) {
  ConfigProto config;
  SetMultiStream(2, MultiStreamPartitionPolicy::kFullGraphPartition, &config);
  ConfigProto more;
  SetMultiStream(5, MultiStreamPartitionPolicy::kNoPartition, &more);
  config.MergeFrom(more);
  EXPECT_EQ(Asked(config).streams, 5);
  EXPECT_EQ(Asked(config).policy, Policy::kNone);
}

TEST(SessionConfigTest, OffIsOneStream) {
  EXPECT_EQ(Asked(FromText("use_multi_stream: OFF multi_stream_opts { "
                           "multi_stream_num: 4 }"))
                .streams,
            1);
}

TEST(SessionConfigTest, WithoutANumberTheEnvironmentHasIt) {
  EXPECT_EQ(Asked(FromText("use_multi_stream: ON")).streams, std::nullopt);
}

TEST(SessionConfigTest, AWrongValueIsNamed) {
  for (const char* value : {"0", "-1", "65", "2147483647"}) {
    ExpectError(FromText(std::string("use_multi_stream: ON multi_stream_opts { "
                                     "multi_stream_num: ") +
                         value + " }"),
                std::string("multi_stream_num=") + value);
  }
  ConfigProto config;
  SetMultiStream(2, static_cast<MultiStreamPartitionPolicy>(9), &config);
  ExpectError(config, "partition_policy=9");
}

TEST(SessionConfigTest, TextWithAnErrorSaysWhere) {
  ConfigProto config;
  EXPECT_EQ(ParseConfigText("graph_options {\n rewrite_options {\n"
                            "  use_multi_stream: PERHAPS } }",
                            &config)
                .substr(0, 6),
            "line 3");
}

Options OptionsOf(const std::string& groups, bool node_level) {
  auto options =
      ParseOptions([&](const std::string& name) -> std::optional<std::string> {
        if (name == kGroupCountVariable) return groups;
        if (name == kNodeLevelVariable) return node_level ? "true" : "false";
        return std::nullopt;
      });
  EXPECT_TRUE(options.ok()) << options.status();
  return *options;
}

SessionStreams Streams(const ConfigProto& config, const Options& options, int k,
                       int made) {
  auto streams = StreamsOfSession(config, options, k, /*gpu=*/k, made);
  EXPECT_TRUE(streams.ok()) << streams.status();
  return streams.value_or(SessionStreams());
}

TEST(SessionConfigTest, WithoutAConfigTheEnvironmentCounts) {
  const SessionStreams streams =
      Streams(ConfigProto(), OptionsOf("4,2", false), /*k=*/1, /*made=*/4);
  EXPECT_EQ(streams.groups, 2);
  EXPECT_FALSE(streams.node_level);
  EXPECT_TRUE(Streams(ConfigProto(), OptionsOf("4", true), 0, 4).node_level);
}

TEST(SessionConfigTest, AConfigBeatsTheEnvironment) {
  const SessionStreams streams =
      Streams(FromText("use_multi_stream: ON multi_stream_opts { "
                       "multi_stream_num: 3 }"),
              OptionsOf("8", false), 0, 8);
  EXPECT_EQ(streams.groups, 3);
  EXPECT_TRUE(streams.node_level);
  EXPECT_EQ(
      Streams(FromText("use_multi_stream: OFF"), OptionsOf("8", true), 0, 8)
          .groups,
      1);
  EXPECT_EQ(
      Streams(FromText("use_multi_stream: ON"), OptionsOf("8", false), 0, 8)
          .groups,
      8);
}

TEST(SessionConfigTest, MoreThanThereAreIsAnErrorThatSaysBoth) {
  auto streams = StreamsOfSession(
      FromText(
          "use_multi_stream: ON multi_stream_opts { multi_stream_num: 5 }"),
      OptionsOf("4", false), /*k=*/0, /*gpu=*/3, /*made=*/4);
  EXPECT_TRUE(absl::IsFailedPrecondition(streams.status()));
  EXPECT_TRUE(absl::StrContains(streams.status().message(),
                                "multi_stream_num is 5, and GPU 3 has 4"))
      << streams.status();
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
