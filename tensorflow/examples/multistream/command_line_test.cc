/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include "tensorflow/examples/multistream/command_line.h"

#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "tensorflow/examples/multistream/contains.h"

namespace tensorflow {
namespace multistream {
namespace {

absl::StatusOr<CommandLine> Parse(const std::string& text) {
  return ParseCommandLine(absl::StrSplit(text, ' ', absl::SkipEmpty()));
}

std::string ErrorOf(const std::string& text) {
  return std::string(Parse(text).status().message());
}

TEST(CommandLineTest, TakesTheDocumentedOrder) {
  const auto line = Parse("model.pbtxt 1 input0 1 output 16 1000 4 config");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->model_path, "model.pbtxt");
  EXPECT_EQ(line->input_names, std::vector<std::string>({"input0"}));
  EXPECT_EQ(line->output_names, std::vector<std::string>({"output"}));
  EXPECT_EQ(line->batch_size, 16);
  EXPECT_EQ(line->iters, 1000);
  EXPECT_EQ(line->number_of_threads, 4);
  EXPECT_EQ(line->config_path, "config");
  EXPECT_FALSE(line->verify);
  EXPECT_EQ(line->tolerance, 0);
}

TEST(CommandLineTest, TakesSeveralInputsAndOutputs) {
  const auto line = Parse("m 3 a b c:0 2 x y:1 1 2 3 config");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->input_names, std::vector<std::string>({"a", "b", "c:0"}));
  EXPECT_EQ(line->output_names, std::vector<std::string>({"x", "y:1"}));
}

TEST(CommandLineTest, OptionsStandAnywhere) {
  const auto line = Parse(
      "--verify m 1 --warmup=7 a 1 b --seed 9 1 2 3 --json out.json config "
      "--tolerance 1e-6 --input-sets=5 --max-seconds=1.5 --save-reference=r");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_TRUE(line->verify);
  EXPECT_EQ(line->warmup, 7);
  EXPECT_EQ(line->seed, 9);
  EXPECT_EQ(line->json, "out.json");
  EXPECT_EQ(line->tolerance, 1e-6);
  EXPECT_EQ(line->input_sets, 5);
  EXPECT_EQ(line->max_seconds, 1.5);
  EXPECT_EQ(line->save_reference, "r");
  EXPECT_EQ(line->config_path, "config");
}

TEST(CommandLineTest, ReferenceFileMeansVerify) {
  const auto line = Parse("m 1 a 1 b 1 2 3 config --reference=r");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_TRUE(line->verify);
}

TEST(CommandLineTest, HelpNeedsNothingElse) {
  EXPECT_TRUE(Parse("--help")->help);
  EXPECT_TRUE(Parse("m 1 -h")->help);
}

TEST(CommandLineTest, HelpNamesEveryArgument) {
  for (const char* name :
       {"model_path", "number_of_input", "input_name", "number_of_output",
        "output_name", "batch_size", "iters", "number_of_threads",
        "config_path", "--warmup", "--max-seconds", "--input-sets", "--seed",
        "--verify", "--tolerance", "--save-reference", "--reference",
        "--json"}) {
    EXPECT_TRUE(Contains(Usage(), {name}));
  }
}

TEST(CommandLineTest, TwoDashesEndTheOptions) {
  const auto line = Parse("--verify -- --m 1 a 1 b 1 2 3 config");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->model_path, "--m");
}

TEST(CommandLineTest, MissingArgumentsAreNamed) {
  EXPECT_TRUE(Contains(ErrorOf(""), {"model_path is missing"}));
  EXPECT_TRUE(Contains(ErrorOf("m"), {"number_of_input is missing"}));
  EXPECT_TRUE(Contains(ErrorOf("m 2 a"), {"input_name 2 of 2 is missing"}));
  EXPECT_TRUE(Contains(ErrorOf("m 1 a 1"), {"output_name 1 of 1 is missing"}));
  EXPECT_TRUE(Contains(ErrorOf("m 1 a 1 b 16 100 4"),
                       {"config_path is missing: only 8 arguments"}));
}

TEST(CommandLineTest, BadNumbersAreNamedWithWhatIsAllowed) {
  EXPECT_TRUE(Contains(ErrorOf("m x a 1 b 1 2 3 c"),
                       {"number_of_input: 'x' is not a whole number from 1"}));
  EXPECT_TRUE(Contains(ErrorOf("m 1 a 0 1 2 3 c"), {"number_of_output: '0'"}));
  EXPECT_TRUE(Contains(ErrorOf("m 1 a 1 b -16 2 3 c"), {"batch_size: '-16'"}));
  EXPECT_TRUE(Contains(ErrorOf("m 1 a 1 b 1 1.5 3 c"), {"iters: '1.5'"}));
  EXPECT_TRUE(Contains(ErrorOf("m 1 a 1 b 1 2 1025 c"),
                       {"number_of_threads: '1025' is not a whole number from "
                        "1 to 1024"}));
  EXPECT_TRUE(Contains(ErrorOf("m 1 a 1 b 99999999999999999999 2 3 c"),
                       {"batch_size: '99999999999999999999'"}));
}

TEST(CommandLineTest, NamesThatDoNotMatchTheirNumberAreExplained) {
  EXPECT_TRUE(
      Contains(ErrorOf("m 1 a 1 b 1 2 3 c d"), {"'d' follows config_path"}));
  EXPECT_TRUE(Contains(ErrorOf("m 1 a b 1 x 1 2 3 c"),
                       {"number_of_output: 'b' is not a whole number"}));
}

TEST(CommandLineTest, BadOptionsAreNamed) {
  const std::string line = "m 1 a 1 b 1 2 3 c ";
  EXPECT_TRUE(
      Contains(ErrorOf(line + "--verbose"), {"'--verbose' is not an option"}));
  EXPECT_TRUE(Contains(ErrorOf(line + "--verify=1"),
                       {"'--verify=1' is not an option"}));
  EXPECT_TRUE(Contains(ErrorOf(line + "--warmup"), {"--warmup needs a value"}));
  EXPECT_TRUE(Contains(ErrorOf(line + "--warmup=-1"), {"--warmup: '-1'"}));
  EXPECT_TRUE(Contains(ErrorOf(line + "--verify --tolerance=nan"),
                       {"--tolerance: 'nan' is not a number of 0 or more"}));
  EXPECT_TRUE(Contains(ErrorOf(line + "--tolerance=1"), {"--verify"}));
  EXPECT_TRUE(Contains(ErrorOf(line + "--json="), {"--json: expected"}));
}

TEST(CommandLineTest, MoreQueriesThanMemoryHoldsAreRefused) {
  EXPECT_TRUE(Contains(ErrorOf("m 1 a 1 b 1 100000000 1024 c"),
                       {"is more than the 500000000 queries"}));
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
