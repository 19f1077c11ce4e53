// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/options.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/multistream/base/environment_variables.h"

namespace tensorflow::multistream {
namespace {

using Environment = std::map<std::string, std::string>;

absl::StatusOr<Options> Parse(const Environment& environment) {
  return ParseOptions(
      [&environment](const std::string& name) -> std::optional<std::string> {
        const auto found = environment.find(name);
        if (found == environment.end()) return std::nullopt;
        return found->second;
      });
}

// Options of an environment that must be valid.
Options Get(const Environment& environment) {
  const absl::StatusOr<Options> options = Parse(environment);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.value_or(Options());
}

void ExpectError(const absl::Status& status,
                 const std::vector<std::string>& parts) {
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  for (const std::string& part : parts) {
    EXPECT_TRUE(absl::StrContains(status.message(), part))
        << part << " is not in: " << status;
  }
}

struct NamedSwitch {
  const char* name;
  bool Options::*field;
  bool by_default = false;
};
constexpr NamedSwitch kSwitches[] = {
    {kSegmentOwnConstVariable, &Options::segment_own_const},
    {kSpinLocksVariable, &Options::spin_locks, true},
    {kTestFaultsVariable, &Options::test_faults},
    {kNodeLevelVariable, &Options::node_level},
    {kReduceStreamWaitVariable, &Options::reduce_stream_wait, true},
    {kForwardPropagationVariable, &Options::forward_propagation},
    {kMergeVariable, &Options::merge_streams},
    {kHostAllocatorVariable, &Options::host_allocators},
    {kSharePoolVariable, &Options::share_pool},
    {kStreamAwareVariable, &Options::stream_aware}};

TEST(OptionsTest, UnsetOrEmptyMeansStock) {
  Environment empty;
  for (const Variable& variable : Variables()) empty[variable.name] = "";
  for (const Environment& environment : {Environment(), empty}) {
    const Options options = Get(environment);
    EXPECT_FALSE(options.Enabled());
    for (const NamedSwitch& it : kSwitches) {
      EXPECT_EQ(options.*it.field, it.by_default) << it.name;
    }
    EXPECT_TRUE(options.group_counts.empty());
    EXPECT_EQ(options.emulated_gpus, 0);
    EXPECT_TRUE(options.without_effect.empty());
    EXPECT_EQ(options.GroupCount(0), 1);
    EXPECT_EQ(options.GroupCount(7), 1);
    EXPECT_EQ(options.DefaultGroupCount(0), 1);
    EXPECT_FALSE(options.any_node_level);
    EXPECT_EQ(options.stream_file, "");
    EXPECT_EQ(options.policy, Policy::kNone);
    EXPECT_EQ(options.thread_mode, ThreadMode::kProcess);
    EXPECT_FALSE(options.has_pool());
    EXPECT_EQ(options.extend_limit_mb, 0);
    EXPECT_EQ(options.Priority(3), 0);
    EXPECT_TRUE(options.CheckPriorities(4).ok());
    EXPECT_EQ(options.Context(0, 5), 0);
    EXPECT_TRUE(options.CheckGroupCounts(8, 8).ok());
    EXPECT_EQ(options.capture, CaptureMode::kUnset);
    EXPECT_EQ(options.capture_verify, 0);
    EXPECT_EQ(options.capture_branches, 4);
    EXPECT_TRUE(options.capture_fuse);
    EXPECT_TRUE(options.capture_batches.empty());
    EXPECT_TRUE(options.capture_lengths.empty());
  }
}

// The error names the variable, its value and what is allowed.
TEST(OptionsTest, RefusesValuesThatAVariableDoesNotTake) {
  struct Refused {
    const char* name;
    std::vector<const char*> values;
    const char* allowed;
  };
  std::vector<Refused> all = {
      {kGroupCountVariable,
       {"abc", "0", "-1", "65", "4,x", "4,", ",4", "4,,4", "4,0", "4,65", "4.5",
        "0x4", "4 4", "4;4", " ", "99999999999999999999"},
       "a whole number from 1 to 64, or a comma list"},
      {kContextCountVariable, {"abc", "0", "65", "4,x", "4,"}, "from 1 to 64"},
      {kPrioritiesVariable, {"abc", "65", "-65", "0,x"}, "from -64 to 64"},
      {kEmulatedGpusVariable,
       {"abc", "-1", "17", "1,1", "1.5", "99999999999"},
       "a whole number from 0 to 16"},
      {kThreadCountVariable, {"abc", "0", "1,2", "1025"}, "from 1 to 1024"},
      {kExtendLimitVariable,
       {"abc", "0", "-1", "1,2", "99999999999"},
       "a whole number of at least 1"},
      {kCaptureBatchesVariable, {"4,0"}, "from 1 to 1048576"},
      {kCaptureBatchesVariable, {"4 8"}, "one for each batch"},
      {kCaptureLengthsVariable, {"4,0"}, "from 1 to 1048576"},
      {kCaptureMegabytesVariable, {"0"}, "from 1 to 1048576"},
      {kCaptureVerifyVariable, {"-1"}, "at least 0"},
      {kCaptureBranchesVariable, {"0", "65"}, "from 1 to 64"},
      {kSanitizerVariable, {"on", "logs", "1", "log,abort"}, "off, log, abort"},
      {kThreadModeVariable,
       {"private", "gpu", "1"},
       "global, gpu_private, gpu_shared"},
      {kPolicyVariable,
       {"manual", "1", "cost:2", "full graph", " cost", "embedding,cost"},
       "none, user_defined, embedding, full_graph, cost"},
      {kCaptureVariable, {"yes"}, "off, marked, inference, auto, require"}};
  for (const NamedSwitch& it : kSwitches) {
    all.push_back({it.name,
                   {"yes", "2", "-1", "truee", "1,0", " "},
                   "true, false, 1 or 0"});
  }
  for (const Refused& it : all) {
    for (const char* value : it.values) {
      Environment environment = {{kGroupCountVariable, "4"}};
      environment[it.name] = value;
      ExpectError(Parse(environment).status(),
                  {absl::StrCat(it.name, "=\"", value, "\""), it.allowed});
    }
  }
}

TEST(OptionsTest, VariablesWithoutEffectAreNamed) {
  const std::pair<Environment, std::string> all[] = {
      // Without groups stock variables are not ours.
      {{{kThreadModeVariable, "anything"}, {kThreadCountVariable, "-7"}}, ""},
      {{{kGroupCountVariable, "4"},
        {kEmulatedGpusVariable, "1"},
        {kSegmentOwnConstVariable, "1"},
        {kSpinLocksVariable, "0"},
        {"TF_SOMETHING_ELSE", "x"}},
       ""},
      // Variables at their default ask for nothing.
      {{{kNodeLevelVariable, "false"},
        {kReduceStreamWaitVariable, "true"},
        {kForwardPropagationVariable, "0"},
        {kSanitizerVariable, "off"},
        {kMergeVariable, "0"},
        {kHostAllocatorVariable, "false"},
        {kSharePoolVariable, "false"},
        {kStreamAwareVariable, "false"},
        {kContextCountVariable, "1"}},
       ""},
      {{{kForwardPropagationVariable, "1"}, {kStreamFileVariable, "a.txt"}},
       "TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION (without "
       "TF_NODE_LEVEL_MULTISTREAM=true, but for sessions that ask for "
       "streams); TF_STREAM_FROM_FILE (without TF_NODE_LEVEL_MULTISTREAM=true, "
       "but for sessions that ask for streams)"},
      {{{kNodeLevelVariable, "true"},
        {kForwardPropagationVariable, "1"},
        {kStreamFileVariable, "a.txt"}},
       ""},
      // A policy implies node level.
      {{{kPolicyVariable, "full_graph"},
        {kGroupCountVariable, "2"},
        {kForwardPropagationVariable, "1"},
        {kStreamFileVariable, "a.txt"}},
       ""},
      {{{kPolicyVariable, "cost"}},
       "TF_MULTI_STREAM_POLICY (without several stream groups: "
       "TF_GPU_STREAM_GROUP_COUNT)"},
      {{{kPolicyVariable, "cost"},
        {kGroupCountVariable, "2"},
        {kNodeLevelVariable, "false"}},
       "TF_MULTI_STREAM_POLICY (with TF_NODE_LEVEL_MULTISTREAM=false)"},
      {{{kPolicyVariable, "none"},
        {kGroupCountVariable, "2"},
        {kNodeLevelVariable, "false"}},
       ""},
      {{{kPolicyVariable, "user_defined"}}, ""},
      {{{kGroupCountVariable, "4"}, {kThreadCountVariable, "7"}},
       "TF_GPU_THREAD_COUNT (without TF_GPU_THREAD_MODE=gpu_private or "
       "gpu_shared)"},
      {{{kGroupCountVariable, "4"},
        {kThreadModeVariable, "global"},
        {kThreadCountVariable, "7"}},
       "TF_GPU_THREAD_COUNT (without TF_GPU_THREAD_MODE=gpu_private or "
       "gpu_shared)"},
      {{{kContextCountVariable, "2"}},
       "TF_GPU_CONTEXT_COUNT (without several stream groups: "
       "TF_GPU_STREAM_GROUP_COUNT)"},
      {{{kContextCountVariable, "2"}, {kGroupCountVariable, "4"}}, ""},
      {{{kSmsVariable, "0:16"}},
       "TF_GPU_STREAM_GROUP_SMS (without several stream groups: "
       "TF_GPU_STREAM_GROUP_COUNT)"},
      {{{kSmsVariable, "0:16"}, {kEmulatedGpusVariable, "1"}},
       "TF_GPU_STREAM_GROUP_SMS (with TF_MULTI_STREAM_EMULATED_GPUS, which "
       "have no SMs: it only keeps calls that name no group off these)"},
      {{{kExtendLimitVariable, "64"}},
       "TF_BFC_EXTEND_LIMIT_MB (without TF_GPU_STREAM_AWARE_BFC=true or "
       "TF_GPU_STREAM_GROUP_SHARE_MEM_POOL=true)"},
      {{{kStreamAwareVariable, "true"},
        {kGpuAllocatorVariable, "cuda_malloc_async"}},
       "TF_GPU_STREAM_AWARE_BFC (with TF_GPU_ALLOCATOR=cuda_malloc_async, "
       "whose pool the groups of a GPU share anyway)"},
      {{{kCaptureMegabytesVariable, "7"}},
       "TF_MULTI_STREAM_CAPTURE_MB (without TF_MULTI_STREAM_CAPTURE, but for "
       "what the program captures)"},
      {{{kCaptureBranchesVariable, "8"}},
       "TF_MULTI_STREAM_CAPTURE_BRANCHES (without TF_MULTI_STREAM_CAPTURE, but "
       "for what the program captures)"},
      {{{kCaptureVariable, "auto"}, {kNodeLevelVariable, "true"}},
       "TF_MULTI_STREAM_CAPTURE (with TF_NODE_LEVEL_MULTISTREAM=true, whose "
       "steps run on several groups)"}};
  for (const auto& [environment, without_effect] : all) {
    EXPECT_EQ(absl::StrJoin(Get(environment).without_effect, "; "),
              without_effect);
  }
}

TEST(OptionsTest, CountsAreOneForEveryGpuOrAListWithOneForEach) {
  for (int n : {1, 4, 64}) {
    const Options one = Get({{kGroupCountVariable, std::to_string(n)}});
    EXPECT_EQ(one.group_counts, std::vector<int>{n});
    EXPECT_EQ(one.default_group_counts, std::vector<int>{n});
    EXPECT_EQ(one.GroupCount(0), n);
    EXPECT_EQ(one.GroupCount(15), n);
    EXPECT_EQ(one.DefaultGroupCount(7), n);
    EXPECT_TRUE(one.CheckGroupCounts(1, 1).ok());
    EXPECT_TRUE(one.CheckGroupCounts(8, 8).ok());
  }
  const Options list = Get({{kGroupCountVariable, " 4, 1 ,8 "}});
  EXPECT_EQ(list.group_counts, std::vector<int>({4, 1, 8}));
  EXPECT_EQ(list.GroupCount(2), 8);
  EXPECT_EQ(list.DefaultGroupCount(1), 1);
  EXPECT_TRUE(list.CheckGroupCounts(/*visible=*/3, /*physical=*/3).ok());
  // Sessions may see fewer GPUs than the process has.
  EXPECT_TRUE(list.CheckGroupCounts(/*visible=*/1, /*physical=*/3).ok());
  ExpectError(list.CheckGroupCounts(1, 1),
              {"TF_GPU_STREAM_GROUP_COUNT=\"4,1,8\"", "has 3 numbers",
               "1 visible GPU", "one number for each"});
  ExpectError(list.CheckGroupCounts(4, 5), {"4 visible GPUs"});

  // Groups take contexts in turn.
  const Options contexts = Get({{kContextCountVariable, "3"}});
  EXPECT_EQ(contexts.Context(7, 2), 2);
  EXPECT_EQ(contexts.Context(7, 3), 0);
  const Options context_list = Get({{kContextCountVariable, "1,2"}});
  EXPECT_EQ(context_list.Context(0, 3), 0);
  EXPECT_EQ(context_list.Context(1, 3), 1);
  EXPECT_TRUE(context_list.CheckGroupCounts(2, 2).ok());
  ExpectError(context_list.CheckGroupCounts(1, 1),
              {"TF_GPU_CONTEXT_COUNT=\"1,2\""});
}

TEST(OptionsTest, PrioritiesAreOneForEveryGroupOrOneForEach) {
  const Options list = Get({{kPrioritiesVariable, "-2, 1"}});
  EXPECT_EQ(list.Priority(0), -2);
  EXPECT_EQ(list.Priority(1), 1);
  EXPECT_TRUE(list.CheckPriorities(2).ok());
  ExpectError(list.CheckPriorities(4),
              {"TF_GPU_STREAM_GROUP_PRIORITIES=\"-2,1\"", "has 2 numbers",
               "has 4 stream groups"});
  const Options one = Get({{kPrioritiesVariable, "-3"}});
  EXPECT_EQ(one.Priority(7), -3);
  EXPECT_TRUE(one.CheckPriorities(4).ok());
}

TEST(OptionsTest, SmsAreSharedOutAmongRangesOfGroups) {
  const Options options =
      Get({{kGroupCountVariable, "8"}, {kSmsVariable, "0-3:32, 5:16"}});
  ASSERT_EQ(options.sm_shares.size(), 2);
  EXPECT_EQ(options.sm_shares[0].first, 0);
  EXPECT_EQ(options.sm_shares[0].last, 3);
  EXPECT_EQ(options.sm_shares[0].sms, 32);
  EXPECT_EQ(options.sm_shares[1].first, 5);
  EXPECT_EQ(options.sm_shares[1].last, 5);
  EXPECT_EQ(options.sm_shares[1].sms, 16);
  EXPECT_TRUE(options.without_effect.empty());
  EXPECT_EQ(options.GroupsForAll(8), (std::vector<int>{4, 6, 7}));
  EXPECT_EQ(options.GroupsForAll(3), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(Options().GroupsForAll(2), (std::vector<int>{0, 1}));
  EXPECT_TRUE(options.CheckSmShares(6).ok());
  ExpectError(options.CheckSmShares(5),
              {"TF_GPU_STREAM_GROUP_SMS", "stream group 5", "groups 0 to 4"});
  for (const char* wrong :
       {"16", "0:", ":16", "0:0", "0:-8", "3-0:16", "0-64:16", "0-1-2:16",
        "0:16:8", "0:16,", "0-3:32,3:16", "2:16,0-3:32", "0:99999", "a:16",
        "0:x"}) {
    ExpectError(Parse({{kSmsVariable, wrong}}).status(),
                {"TF_GPU_STREAM_GROUP_SMS=\"", wrong, "FIRST-LAST:SMS"});
  }
  ExpectError(Parse({{kGroupCountVariable, "4"},
                     {kSmsVariable, "0:16"},
                     {kContextCountVariable, "1,2"}})
                  .status(),
              {"TF_GPU_STREAM_GROUP_SMS cannot be combined with "
               "TF_GPU_CONTEXT_COUNT=1,2"});
}

TEST(OptionsTest, EnabledByMoreThanOneGroupByEmulationOrByCapture) {
  const std::pair<Environment, bool> all[] = {
      {{{kGroupCountVariable, "1"}}, false},
      {{{kGroupCountVariable, "1,1"}}, false},
      {{{kGroupCountVariable, "2"}}, true},
      {{{kGroupCountVariable, "1,2"}}, true},
      {{{kEmulatedGpusVariable, "1"}}, true},
      {{{kEmulatedGpusVariable, "0"}}, false},
      {{{kCaptureVariable, "auto"}}, true},
      {{{kCaptureVariable, "marked"}}, true},
      {{{kCaptureVariable, "off"}}, false}};
  for (const auto& [environment, enabled] : all) {
    EXPECT_EQ(Get(environment).Enabled(), enabled);
  }
  EXPECT_FALSE(Get({{kCaptureVariable, "auto"}}).HasSeveralGroups());
}

TEST(OptionsTest, SwitchesTakeTrueFalse1And0) {
  const std::pair<const char*, bool> values[] = {
      {"true", true},   {"True", true},   {"TRUE", true}, {"1", true},
      {"false", false}, {"False", false}, {"0", false}};
  for (const auto& [value, is_on] : values) {
    for (const NamedSwitch& it : kSwitches) {
      EXPECT_EQ(Get({{it.name, value}}).*it.field, is_on) << it.name << value;
    }
  }
}

TEST(OptionsTest, NumbersAndPaths) {
  const Options options =
      Get({{kEmulatedGpusVariable, "16"}, {kStreamFileVariable, "a.txt"}});
  EXPECT_EQ(options.emulated_gpus, 16);
  EXPECT_EQ(options.stream_file, "a.txt");
}

TEST(OptionsTest, ThreadsOfGroups) {
  const auto parse = [](const char* mode, const char* count) {
    const Options options = Get({{kGroupCountVariable, "4"},
                                 {kThreadModeVariable, mode},
                                 {kThreadCountVariable, count}});
    return std::make_pair(options.thread_mode, options.thread_count);
  };
  EXPECT_EQ(parse("global", "").first, ThreadMode::kGlobal);
  EXPECT_EQ(parse("gpu_shared", "").first, ThreadMode::kShared);
  EXPECT_EQ(parse("GPU_Private", ""), std::pair(ThreadMode::kPrivate, 2));
  EXPECT_EQ(parse("gpu_private", "7"), std::pair(ThreadMode::kPrivate, 7));
}

TEST(OptionsTest, PoliciesHaveNamesAndImplyNodeLevel) {
  const std::pair<const char*, Policy> policies[] = {
      {"none", Policy::kNone},
      {"user_defined", Policy::kNone},
      {"User_Defined", Policy::kNone},
      {"embedding", Policy::kEmbedding},
      {"full_graph", Policy::kFullGraph},
      {"FULL_GRAPH", Policy::kFullGraph},
      {"cost", Policy::kCost}};
  for (const auto& [name, policy] : policies) {
    const Options options =
        Get({{kPolicyVariable, name}, {kGroupCountVariable, "4"}});
    EXPECT_EQ(options.policy, policy) << name;
    EXPECT_EQ(options.node_level, policy != Policy::kNone) << name;
    EXPECT_EQ(options.any_node_level, policy != Policy::kNone) << name;
    EXPECT_EQ(PolicyOfName(name), policy);
    EXPECT_TRUE(Get({{kPolicyVariable, name},
                     {kGroupCountVariable, "2"},
                     {kNodeLevelVariable, "true"}})
                    .node_level);
  }
  EXPECT_EQ(PolicyOfName("manual"), std::nullopt);
  EXPECT_EQ(PolicyOfName(""), std::nullopt);
  EXPECT_FALSE(Get({{kPolicyVariable, "cost"}}).node_level);
  const Options off = Get({{kPolicyVariable, "cost"},
                           {kGroupCountVariable, "2"},
                           {kNodeLevelVariable, "false"}});
  EXPECT_EQ(off.policy, Policy::kNone);
  EXPECT_FALSE(off.node_level);
  // Nodes have groups where there are several.
  EXPECT_FALSE(Get({{kNodeLevelVariable, "true"}}).any_node_level);
  for (const char* several : {kGroupCountVariable, kEmulatedGpusVariable}) {
    EXPECT_TRUE(
        Get({{kNodeLevelVariable, "true"}, {several, "2"}}).any_node_level);
  }
}

TEST(OptionsTest, PoolsOfMemory) {
  EXPECT_TRUE(Get({{kSharePoolVariable, "true"}}).has_pool());
  const Options aware =
      Get({{kStreamAwareVariable, "true"}, {kExtendLimitVariable, "64"}});
  EXPECT_TRUE(aware.stream_aware);
  EXPECT_FALSE(aware.share_pool);
  EXPECT_TRUE(aware.has_pool());
  EXPECT_EQ(aware.extend_limit_mb, 64);
  const Options async = Get({{kStreamAwareVariable, "true"},
                             {kGpuAllocatorVariable, "cuda_malloc_async"}});
  EXPECT_TRUE(async.cuda_malloc_async);
  EXPECT_FALSE(async.has_pool());
}

TEST(OptionsTest, Capture) {
  EXPECT_EQ(Get({{kCaptureVariable, "Auto"}}).capture, CaptureMode::kAuto);
  const Options options = Get({{kCaptureVariable, "require"},
                               {kCaptureMegabytesVariable, "7"},
                               {kCaptureVerifyVariable, "9"},
                               {kCaptureBranchesVariable, "64"},
                               {kCaptureFuseVariable, "false"},
                               {kCaptureBatchesVariable, "16, 1,4"},
                               {kCaptureLengthsVariable, "64,32"}});
  EXPECT_EQ(options.capture, CaptureMode::kRequire);
  EXPECT_EQ(options.capture_mb, 7);
  EXPECT_EQ(options.capture_verify, 9);
  EXPECT_EQ(options.capture_branches, 64);
  EXPECT_FALSE(options.capture_fuse);
  EXPECT_EQ(options.capture_batches, std::vector<int>({1, 4, 16}));
  EXPECT_EQ(options.capture_lengths, std::vector<int>({32, 64}));
  EXPECT_TRUE(options.without_effect.empty());
}

// A program that asks for stream groups alone serves a model.
TEST(OptionsTest, StreamGroupsAtGraphLevelCaptureInference) {
  for (const char* counts : {"2", "1,8"}) {
    const Options options = Get({{kGroupCountVariable, counts}});
    EXPECT_EQ(options.capture, CaptureMode::kInference);
    EXPECT_TRUE(options.capture_is_default);
    EXPECT_TRUE(options.captures());
  }
  const std::map<std::string, std::string> others[] = {
      {{kGroupCountVariable, "1"}},
      {{kEmulatedGpusVariable, "1"}},
      {{kGroupCountVariable, "2"}, {kNodeLevelVariable, "true"}},
      {{kGroupCountVariable, "2"}, {kPolicyVariable, "cost"}}};
  for (const auto& variables : others) {
    EXPECT_EQ(Get(variables).capture, CaptureMode::kUnset);
    EXPECT_FALSE(Get(variables).capture_is_default);
  }
  for (const auto& [word, mode] : kCaptureModes) {
    const Options options =
        Get({{kGroupCountVariable, "2"}, {kCaptureVariable, word}});
    EXPECT_EQ(options.capture, mode);
    EXPECT_FALSE(options.capture_is_default);
  }
}

TEST(OptionsTest, XlasVariableThatAffectsCapture) {
  for (const auto& [flags, has_streams] :
       {std::pair{"--tf_xla_auto_jit=2", false},
        {"--tf_xla_enable_device_api_for_gpu", true}}) {
    EXPECT_EQ(Get({{kTfXlaFlagsVariable, flags}}).xla_has_streams, has_streams);
  }
}

TEST(VariablesTest, ThePageHasTheRowsOfTheTable) {
  std::ifstream page("docs/variables.md");
  ASSERT_TRUE(page) << "docs/variables.md cannot be read";
  std::set<std::string> rows, names;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "| `")) rows.insert(line);
  }
  for (const Variable& variable : Variables()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    EXPECT_EQ(rows.count(RowOf(variable)), 1)
        << "docs/variables.md lacks this row:\n"
        << RowOf(variable);
  }
}

}  // namespace
}  // namespace tensorflow::multistream
