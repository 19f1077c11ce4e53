// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/options.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/options_fixture.h"

namespace tensorflow {
namespace multistream {
namespace {

TEST(OptionsTest, WithoutGroupsStockVariablesAreNotOurs) {
  const absl::StatusOr<Options> options = Parse(
      {{"TF_GPU_THREAD_MODE", "anything"}, {"TF_GPU_THREAD_COUNT", "-7"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->without_effect.empty());
}

TEST(OptionsTest, UnsetMeansStock) {
  const absl::StatusOr<Options> options = Parse({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->Enabled());
  EXPECT_TRUE(options->group_counts.empty());
  EXPECT_EQ(options->emulated_gpus, 0);
  EXPECT_FALSE(options->segment_own_const);
  EXPECT_TRUE(options->spin_locks);
  EXPECT_FALSE(options->test_faults);
  EXPECT_TRUE(options->without_effect.empty());
  EXPECT_EQ(options->GroupCount(0), 1);
  EXPECT_EQ(options->GroupCount(7), 1);
}

TEST(OptionsTest, EmptyValuesCountAsUnset) {
  const absl::StatusOr<Options> options =
      Parse({{kGroupCountVariable, ""},
             {kEmulatedGpusVariable, ""},
             {"TF_SEGMENT_OWN_CONST", ""},
             {"TF_NODE_LEVEL_MULTISTREAM", ""},
             {"TF_MULTI_STREAM_SANITIZER", ""},
             {"TF_STREAM_FROM_FILE", ""},
             {"TF_MULTI_STREAM_POLICY", ""},
             {"TF_GPU_CONTEXT_COUNT", ""}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->Enabled());
  EXPECT_TRUE(options->group_counts.empty());
  EXPECT_TRUE(options->without_effect.empty());
}

TEST(OptionsTest, PythonTurns) {
  EXPECT_EQ(Parse({})->python_turns, std::nullopt);
  EXPECT_EQ(Parse({{kPythonTurnsVariable, "0"}})->python_turns, 0);
  EXPECT_EQ(Parse({{kPythonTurnsVariable, "64"}})->python_turns, 64);
  for (const char* value : {"-1", "65", "2,2", "yes"}) {
    ExpectRefused(kPythonTurnsVariable, value, "a whole number from 0 to 64");
  }
}

TEST(OptionsTest, GroupCountRefusesWhatIsNoNumberFrom1To64) {
  for (const char* value : {"abc", "0", "-1", "65", "4,x", "4,", ",4", "4,,4",
                            "4,0", "4,65", "4.5", "0x4", "4 4", "4;4", " ",
                            "99999999999999999999", "-99999999999999999999"}) {
    ExpectRefused(kGroupCountVariable, value, "a whole number from 1 to 64");
    ExpectRefused(kGroupCountVariable, value, "comma list");
  }
}

TEST(OptionsTest, GroupCountTakesOneNumberForEveryGpu) {
  for (const int n : {1, 4, 64}) {
    const absl::StatusOr<Options> options =
        Parse({{kGroupCountVariable, std::to_string(n)}});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->group_counts, std::vector<int>{n});
    EXPECT_EQ(options->GroupCount(0), n);
    EXPECT_EQ(options->GroupCount(15), n);
  }
}

TEST(OptionsTest, GroupCountTakesAListWithOneNumberForEachGpu) {
  for (const char* value : {"4,1,8", " 4, 1 ,8 "}) {
    const absl::StatusOr<Options> options =
        Parse({{kGroupCountVariable, value}});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->GroupCount(0), 4);
    EXPECT_EQ(options->GroupCount(1), 1);
    EXPECT_EQ(options->GroupCount(2), 8);
  }
}

TEST(OptionsTest, EnabledByMoreThanOneGroupOrByEmulation) {
  EXPECT_FALSE(Parse({{kGroupCountVariable, "1"}})->Enabled());
  EXPECT_FALSE(Parse({{kGroupCountVariable, "1,1"}})->Enabled());
  EXPECT_TRUE(Parse({{kGroupCountVariable, "2"}})->Enabled());
  EXPECT_TRUE(Parse({{kGroupCountVariable, "1,2"}})->Enabled());
  EXPECT_TRUE(Parse({{kEmulatedGpusVariable, "1"}})->Enabled());
  EXPECT_FALSE(Parse({{kEmulatedGpusVariable, "0"}})->Enabled());
}

TEST(OptionsTest, EmulatedGpusRefusesWhatIsNoNumberFrom0To16) {
  for (const char* value : {"abc", "-1", "17", "1,1", "1.5", "99999999999"}) {
    ExpectRefused(kEmulatedGpusVariable, value, "a whole number from 0 to 16");
  }
  EXPECT_EQ(Parse({{kEmulatedGpusVariable, "16"}})->emulated_gpus, 16);
}

TEST(OptionsTest, BooleansTakeTrueFalse1And0) {
  for (const char* value : {"true", "True", "TRUE", "1"}) {
    const absl::StatusOr<Options> options =
        Parse({{"TF_SEGMENT_OWN_CONST", value}});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_TRUE(options->segment_own_const) << value;
    EXPECT_TRUE(Parse({{kSpinLocksVariable, value}})->spin_locks) << value;
    EXPECT_TRUE(Parse({{kTestFaultsVariable, value}})->test_faults) << value;
  }
  for (const char* value : {"false", "False", "0"}) {
    const absl::StatusOr<Options> options =
        Parse({{"TF_SEGMENT_OWN_CONST", value}});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_FALSE(options->segment_own_const) << value;
    EXPECT_FALSE(Parse({{kSpinLocksVariable, value}})->spin_locks) << value;
  }
}

TEST(OptionsTest, BooleansRefuseAnythingElse) {
  for (const char* name :
       {"TF_SEGMENT_OWN_CONST", kSpinLocksVariable, kTestFaultsVariable,
        "TF_NODE_LEVEL_MULTISTREAM", "TF_REDUCE_STREAM_WAIT",
        "TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION", "TF_GPU_STREAM_MERGE",
        "TF_PER_STREAM_HOST_ALLOCATOR", "TF_GPU_STREAM_GROUP_SHARE_MEM_POOL",
        "TF_GPU_STREAM_AWARE_BFC"}) {
    for (const char* value : {"yes", "2", "-1", "truee", "1,0", " "}) {
      ExpectRefused(name, value, "true, false, 1 or 0");
    }
  }
}

TEST(OptionsTest, WordsRefuseAnythingElse) {
  for (const char* value : {"on", "logs", "1", "log,abort"}) {
    ExpectRefused("TF_MULTI_STREAM_SANITIZER", value, "off, log, abort");
  }
  for (const char* value : {"private", "gpu", "1"}) {
    ExpectRefused("TF_GPU_THREAD_MODE", value,
                  "global, gpu_private, gpu_shared");
  }
  for (const char* value : {"manual", "1", "cost:2", "full graph", " cost",
                            "embedding,cost", "NO_PARTITION"}) {
    ExpectRefused("TF_MULTI_STREAM_POLICY", value,
                  "none, user_defined, embedding, full_graph, cost");
  }
}

TEST(OptionsTest, NumbersRefuseAnythingElse) {
  for (const char* value : {"abc", "0", "65", "4,x", "4,"}) {
    ExpectRefused("TF_GPU_CONTEXT_COUNT", value, "from 1 to 64");
  }
  for (const char* value : {"abc", "65", "-65", "0,x", "1.5"}) {
    ExpectRefused("TF_GPU_STREAM_GROUP_PRIORITIES", value, "from -64 to 64");
  }
  for (const char* value : {"abc", "0", "-1", "1,2", "99999999999"}) {
    ExpectRefused("TF_BFC_EXTEND_LIMIT_MB", value,
                  "a whole number of at least 1");
  }
  for (const char* value : {"abc", "0", "-1", "1,2", "1025"}) {
    ExpectRefused("TF_GPU_THREAD_COUNT", value, "from 1 to 1024");
  }
}

TEST(OptionsTest, VariablesAtTheirDefaultAskForNothing) {
  const absl::StatusOr<Options> options =
      Parse({{"TF_NODE_LEVEL_MULTISTREAM", "false"},
             {"TF_REDUCE_STREAM_WAIT", "true"},
             {"TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION", "0"},
             {"TF_MULTI_STREAM_SANITIZER", "off"},
             {"TF_GPU_STREAM_MERGE", "0"},
             {"TF_PER_STREAM_HOST_ALLOCATOR", "false"},
             {"TF_GPU_STREAM_GROUP_SHARE_MEM_POOL", "false"},
             {"TF_GPU_STREAM_AWARE_BFC", "false"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->without_effect, std::vector<std::string>());
}

TEST(OptionsTest, NodeLevelHasItsVariables) {
  const absl::StatusOr<Options> options =
      Parse({{kNodeLevelVariable, "true"},
             {kReduceStreamWaitVariable, "0"},
             {kForwardPropagationVariable, "1"},
             {kStreamFileVariable, "a.txt"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->node_level);
  EXPECT_FALSE(options->reduce_stream_wait);
  EXPECT_TRUE(options->forward_propagation);
  EXPECT_EQ(options->stream_file, "a.txt");
  EXPECT_TRUE(options->without_effect.empty());

  const absl::StatusOr<Options> unset = Parse({});
  EXPECT_FALSE(unset->node_level);
  EXPECT_TRUE(unset->reduce_stream_wait);
  EXPECT_FALSE(unset->forward_propagation);
  EXPECT_EQ(unset->stream_file, "");
}

TEST(OptionsTest, VariablesThatNeedNodeLevelAreNamedWithoutIt) {
  for (const auto& [name, value] : Variables{{kForwardPropagationVariable, "1"},
                                             {kStreamFileVariable, "a.txt"}}) {
    const absl::StatusOr<Options> options = Parse({{name, value}});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(
        options->without_effect,
        std::vector<std::string>{
            name + " (without TF_NODE_LEVEL_MULTISTREAM=true, but for sessions "
                   "that ask for streams)"});
  }
}

TEST(OptionsTest, ThreadsOfGroups) {
  const auto parse = [](const std::string& mode, const std::string& count) {
    const absl::StatusOr<Options> options =
        Parse({{kGroupCountVariable, "4"},
               {kThreadModeVariable, mode},
               {kThreadCountVariable, count}});
    EXPECT_TRUE(options.ok()) << options.status();
    return *options;
  };
  EXPECT_EQ(parse("", "").thread_mode, ThreadMode::kProcess);
  EXPECT_EQ(parse("global", "").thread_mode, ThreadMode::kGlobal);
  EXPECT_EQ(parse("gpu_shared", "").thread_mode, ThreadMode::kShared);
  EXPECT_EQ(parse("gpu_private", "").thread_mode, ThreadMode::kPrivate);
  EXPECT_EQ(parse("GPU_Private", "").thread_mode, ThreadMode::kPrivate);
  EXPECT_EQ(parse("gpu_private", "").thread_count, 2);
  EXPECT_EQ(parse("gpu_private", "7").thread_count, 7);
  EXPECT_TRUE(parse("gpu_private", "7").without_effect.empty());
  // The thread count has no effect without threads of our own.
  for (const char* mode : {"", "global"}) {
    EXPECT_EQ(parse(mode, "7").without_effect,
              std::vector<std::string>{
                  "TF_GPU_THREAD_COUNT (without "
                  "TF_GPU_THREAD_MODE=gpu_private or gpu_shared)"});
  }
}

TEST(OptionsTest, PoliciesHaveNames) {
  for (const auto& [name, policy] :
       {std::pair<std::string, Policy>("none", Policy::kNone),
        {"user_defined", Policy::kNone},
        {"User_Defined", Policy::kNone},
        {"embedding", Policy::kEmbedding},
        {"Embedding", Policy::kEmbedding},
        {"full_graph", Policy::kFullGraph},
        {"FULL_GRAPH", Policy::kFullGraph},
        {"cost", Policy::kCost},
        {"Cost", Policy::kCost}}) {
    const absl::StatusOr<Options> options =
        Parse({{kPolicyVariable, name}, {kGroupCountVariable, "4"}});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->policy, policy) << name;
    EXPECT_EQ(options->node_level, policy != Policy::kNone) << name;
    EXPECT_TRUE(options->without_effect.empty()) << name;
    EXPECT_EQ(PolicyOfName(name), policy);
  }
  EXPECT_EQ(PolicyOfName("manual"), std::nullopt);
  EXPECT_EQ(PolicyOfName(""), std::nullopt);
  EXPECT_EQ(Parse({})->policy, Policy::kNone);
  EXPECT_EQ(Parse({{kPolicyVariable, "manual"}}).status().message(),
            "TF_MULTI_STREAM_POLICY=\"manual\" is not valid: it takes one of "
            "none, user_defined, embedding, full_graph, cost");
}

TEST(OptionsTest, APolicyWithoutEffectIsNamed) {
  const absl::StatusOr<Options> alone = Parse({{kPolicyVariable, "cost"}});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_FALSE(alone->node_level);
  EXPECT_EQ(alone->without_effect,
            std::vector<std::string>{"TF_MULTI_STREAM_POLICY (without several "
                                     "stream groups: "
                                     "TF_GPU_STREAM_GROUP_COUNT)"});
  const absl::StatusOr<Options> off = Parse({{kPolicyVariable, "cost"},
                                             {kGroupCountVariable, "2"},
                                             {kNodeLevelVariable, "false"}});
  ASSERT_TRUE(off.ok()) << off.status();
  EXPECT_EQ(off->policy, Policy::kNone);
  EXPECT_FALSE(off->node_level);
  EXPECT_EQ(off->without_effect,
            std::vector<std::string>{"TF_MULTI_STREAM_POLICY (with "
                                     "TF_NODE_LEVEL_MULTISTREAM=false)"});
  // No policy asks for nothing.
  for (const char* policy : {"none", "user_defined"}) {
    EXPECT_TRUE(Parse({{kPolicyVariable, policy}})->without_effect.empty());
    EXPECT_TRUE(Parse({{kPolicyVariable, policy},
                       {kGroupCountVariable, "2"},
                       {kNodeLevelVariable, "false"}})
                    ->without_effect.empty());
  }
}

TEST(OptionsTest, APolicyImpliesNodeLevel) {
  const std::pair<const char*, const char*> variables[] = {
      {kForwardPropagationVariable, "1"}, {kStreamFileVariable, "a.txt"}};
  for (const auto& [name, value] : variables) {
    const absl::StatusOr<Options> options =
        Parse({{kPolicyVariable, "full_graph"},
               {kGroupCountVariable, "2"},
               {name, value}});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_TRUE(options->node_level) << name;
    EXPECT_TRUE(options->any_node_level) << name;
    EXPECT_TRUE(options->without_effect.empty()) << name;
  }
  for (const char* policy : {"none", "cost"}) {
    EXPECT_TRUE(Parse({{kPolicyVariable, policy},
                       {kGroupCountVariable, "2"},
                       {kNodeLevelVariable, "true"}})
                    ->node_level);
  }
}

TEST(OptionsTest, NodesHaveGroupsWhereThereAreSeveral) {
  EXPECT_FALSE(Parse({})->any_node_level);
  EXPECT_FALSE(Parse({{kNodeLevelVariable, "true"}})->any_node_level);
  EXPECT_FALSE(Parse({{kPolicyVariable, "cost"}})->any_node_level);
  EXPECT_FALSE(Parse({{kGroupCountVariable, "2"}})->any_node_level);
  for (const char* variable : {kGroupCountVariable, kEmulatedGpusVariable}) {
    EXPECT_TRUE(
        Parse({{kNodeLevelVariable, "true"}, {variable, "2"}})->any_node_level)
        << variable;
  }
}

TEST(OptionsTest, ASessionHasTheGroupsOfTheEnvironmentByDefault) {
  EXPECT_EQ(Parse({})->DefaultGroupCount(0), 1);
  const Options one = *Parse({{kGroupCountVariable, "3"}});
  EXPECT_EQ(one.default_group_counts, std::vector<int>{3});
  EXPECT_EQ(one.DefaultGroupCount(7), 3);
  const Options list = *Parse({{kGroupCountVariable, "3,5"}});
  EXPECT_EQ(list.DefaultGroupCount(0), 3);
  EXPECT_EQ(list.DefaultGroupCount(1), 5);
}

TEST(OptionsTest, ResourcesOfGroups) {
  const absl::StatusOr<Options> unset = Parse({});
  EXPECT_FALSE(unset->has_pool());
  EXPECT_FALSE(unset->merge_streams);
  EXPECT_FALSE(unset->host_allocators);
  EXPECT_EQ(unset->extend_limit_mb, 0);
  EXPECT_EQ(unset->Priority(3), 0);
  EXPECT_TRUE(unset->CheckPriorities(4).ok());

  const absl::StatusOr<Options> options =
      Parse({{kMergeVariable, "true"},
             {kHostAllocatorVariable, "true"},
             {kStreamAwareVariable, "true"},
             {kExtendLimitVariable, "64"},
             {kPrioritiesVariable, "-2, 0,0,1"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->merge_streams);
  EXPECT_TRUE(options->host_allocators);
  EXPECT_TRUE(options->stream_aware);
  EXPECT_FALSE(options->share_pool);
  EXPECT_TRUE(options->has_pool());
  EXPECT_EQ(options->extend_limit_mb, 64);
  EXPECT_EQ(options->Priority(0), -2);
  EXPECT_EQ(options->Priority(3), 1);
  EXPECT_TRUE(options->without_effect.empty());

  EXPECT_TRUE(Parse({{kSharePoolVariable, "true"}})->has_pool());
  EXPECT_EQ(Parse({{kPrioritiesVariable, "-3"}})->Priority(7), -3);
}

TEST(OptionsTest, GroupsTakeContextsInTurn) {
  EXPECT_EQ(Parse({})->Context(0, 5), 0);
  const Options one = *Parse({{kContextCountVariable, "3"}});
  EXPECT_EQ(one.Context(0, 0), 0);
  EXPECT_EQ(one.Context(7, 2), 2);
  EXPECT_EQ(one.Context(7, 3), 0);
  const Options list = *Parse({{kContextCountVariable, "1,2"}});
  EXPECT_EQ(list.Context(0, 3), 0);
  EXPECT_EQ(list.Context(1, 3), 1);
  EXPECT_TRUE(list.CheckGroupCounts(2, 2).ok());
  const absl::Status status = list.CheckGroupCounts(1, 1);
  EXPECT_NE(status.message().find("TF_GPU_CONTEXT_COUNT=\"1,2\""),
            std::string::npos)
      << status;
}

TEST(OptionsTest, ContextsAreForSeveralGroups) {
  EXPECT_EQ(Parse({{kContextCountVariable, "2"}})->without_effect,
            std::vector<std::string>{
                "TF_GPU_CONTEXT_COUNT (without several stream groups: "
                "TF_GPU_STREAM_GROUP_COUNT)"});
  for (const Variables& variables :
       {Variables{{kContextCountVariable, "1"}},
        Variables{{kContextCountVariable, "2"}, {kGroupCountVariable, "4"}}}) {
    EXPECT_TRUE(Parse(variables)->without_effect.empty());
  }
}

TEST(OptionsTest, PrioritiesFitTheGroups) {
  const Options options = *Parse({{kPrioritiesVariable, "-1,0"}});
  EXPECT_TRUE(options.CheckPriorities(2).ok());
  const absl::Status status = options.CheckPriorities(4);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"TF_GPU_STREAM_GROUP_PRIORITIES=\"-1,0\"",
                           "has 2 numbers", "has 4 stream groups"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status;
  }
  EXPECT_TRUE(Parse({{kPrioritiesVariable, "-1"}})->CheckPriorities(4).ok());
}

TEST(OptionsTest, SwitchesOfMemoryThatExcludeOthers) {
  EXPECT_EQ(Parse({{kExtendLimitVariable, "64"}})->without_effect,
            std::vector<std::string>{
                "TF_BFC_EXTEND_LIMIT_MB (without TF_GPU_STREAM_AWARE_BFC=true "
                "or TF_GPU_STREAM_GROUP_SHARE_MEM_POOL=true)"});
  const absl::StatusOr<Options> async =
      Parse({{kStreamAwareVariable, "true"},
             {kGpuAllocatorVariable, "cuda_malloc_async"}});
  ASSERT_TRUE(async.ok()) << async.status();
  EXPECT_TRUE(async->cuda_malloc_async);
  EXPECT_FALSE(async->has_pool());
  ASSERT_EQ(async->without_effect.size(), 1);
  EXPECT_EQ(async->without_effect[0].find(
                "TF_GPU_STREAM_AWARE_BFC (with TF_GPU_ALLOCATOR=cuda_malloc"),
            0);
}

TEST(OptionsTest, VariablesWithEffectAreNotNamed) {
  const absl::StatusOr<Options> options = Parse({{kGroupCountVariable, "4"},
                                                 {kEmulatedGpusVariable, "1"},
                                                 {"TF_SEGMENT_OWN_CONST", "1"},
                                                 {kSpinLocksVariable, "0"},
                                                 {"TF_SOMETHING_ELSE", "x"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->without_effect, std::vector<std::string>());
}

TEST(OptionsTest, OneNumberFitsAnyNumberOfGpus) {
  const Options options = *Parse({{kGroupCountVariable, "4"}});
  EXPECT_TRUE(options.CheckGroupCounts(1, 1).ok());
  EXPECT_TRUE(options.CheckGroupCounts(8, 8).ok());
  EXPECT_TRUE(Options().CheckGroupCounts(8, 8).ok());
}

TEST(OptionsTest, AListFitsTheVisibleGpusOrAllThatThereAre) {
  const Options options = *Parse({{kGroupCountVariable, "4,8"}});
  EXPECT_TRUE(options.CheckGroupCounts(/*visible=*/2, /*physical=*/2).ok());
  // Sessions may see fewer GPUs than the process has.
  EXPECT_TRUE(options.CheckGroupCounts(/*visible=*/1, /*physical=*/2).ok());
}

TEST(OptionsTest, AListLongerOrShorterThanTheGpusIsRefused) {
  const Options options = *Parse({{kGroupCountVariable, "4,8"}});
  const absl::Status longer = options.CheckGroupCounts(1, 1);
  EXPECT_EQ(longer.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"TF_GPU_STREAM_GROUP_COUNT=\"4,8\"", "has 2 numbers",
                           "1 visible GPU", "one number for each"}) {
    EXPECT_NE(longer.message().find(part), std::string::npos) << longer;
  }
  const absl::Status shorter = options.CheckGroupCounts(3, 4);
  EXPECT_EQ(shorter.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(shorter.message().find("3 visible GPUs"), std::string::npos)
      << shorter;
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
