// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/stream_file.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/env.h"

namespace tensorflow::multistream {
namespace {

constexpr int kGroups = 4;

std::unique_ptr<StreamFile> Parse(const std::string& contents) {
  absl::StatusOr<std::unique_ptr<StreamFile>> file =
      ParseStreamFile(contents, "streams.txt", kGroups);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

struct FileCase {
  const char* name;
  const char* contents;
  // Of nodes; -1: none.
  std::vector<std::pair<const char*, int>> groups;
};

class StreamFileTest : public ::testing::TestWithParam<FileCase> {};
TEST_P(StreamFileTest, GivesGroups) {
  const auto file = Parse(GetParam().contents);
  for (const auto& [node, group] : GetParam().groups) {
    EXPECT_EQ(file->GroupOf(node).value_or(-1), group) << node;
  }
}

const FileCase kFiles[] = {
    {"WholeNamesMatch",
     "1:user/.*\n2:item/.*,clicks\n",
     {{"user/embedding", 1},
      {"item/embedding", 2},
      {"clicks", 2},
      {"clicks/1", -1},
      {"my/clicks", -1},
      {"other", -1}}},
    {"EveryGroupOfTheGpuIsAllowed", "0:a\n3:b", {{"a", 0}, {"b", 3}}},
    {"TheFirstMatchDecides",
     "1:a/x\n2:a/.*\n3:a/x,a/y",
     {{"a/x", 1}, {"a/y", 2}}},
    {"AGroupMayHaveSeveralLines", "1:a\n2:b\n1:c", {{"a", 1}, {"c", 1}}},
    {"CommentsAndBlankLinesSayNothing",
     "# 1:a\n\n   \t\n  # 2:a\n1:b # c, d\n2:c#d\n3:d\t# no colon\n#",
     {{"a", -1}, {"b", 1}, {"c", -1}, {"c#d", 2}, {"d", 3}}},
    {"AnEmptyFileSaysNothing", "", {{"a", -1}}},
    {"WhiteSpaceAroundGroupsAndRegexesIsNotPartOfThem",
     "  1 :  a ,\tb  \r\n2:c\r\n",
     {{"a", 1}, {"b", 1}, {"c", 2}}},
    // [^],] matches neither `]` nor `,` but any other.
    {"ACommaInsideARegexDoesNotSeparate",
     "1:a{1,2},(?:b|c,d),[,x],[^],],e\\,f,\\[,([)],g)\n2:.",
     {{"a", 1},
      {"aa", 1},
      {"b", 1},
      {"c,d", 1},
      {",", 1},
      {"x", 1},
      {"]", 2},
      {"q", 1},
      {"e,f", 1},
      {"[", 1},
      {"),g", 1}}},
    {"AClassOfCharactersEndsWhereRe2SaysItDoes",
     "1:[]a]b,c\n2:[[:digit:],]d,e\n3:[\\],]f,g\n0:[^]x]h,i",
     {{"]b", 1},
      {"c", 1},
      {"7d", 2},
      {",d", 2},
      {"e", 2},
      {"]f", 3},
      {"g", 3},
      {"yh", 0},
      {"i", 0}}},
    {"ABraceThatClosesNothingStandsForItself",
     "1:a},(b,c),d",
     {{"a}", 1}, {"b,c", 1}, {"d", 1}}},
    {"ARegexMayHaveColons", "1:(?i:A):b", {{"a:b", 1}}},
};
INSTANTIATE_TEST_SUITE_P(Files, StreamFileTest, ::testing::ValuesIn(kFiles),
                         [](const auto& info) { return info.param.name; });

// An error has the file, the line and the reason.
TEST(BadStreamFileTest, IsAnError) {
  auto expect = [](const std::string& contents, const std::string& reason,
                   int group_count = kGroups) {
    const absl::Status status =
        ParseStreamFile(contents, "streams.txt", group_count).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << contents << ": " << status;
    EXPECT_TRUE(absl::StartsWith(status.message(), "streams.txt:" + reason))
        << status;
  };
  expect("1:a\n\n# fine\nabc # not\n",
         "4: \"abc\" has no colon: a line is "
         "GROUP:REGEX or GROUP:REGEX,REGEX,...");
  for (const char* line : {"1:", "1:a,", "1:a,,b"}) {
    expect(line, absl::StrCat("1: \"", line, "\" has an empty regex"));
  }
  expect("1:a, # b", "1: \"1:a,\" has an empty regex");
  for (const char* group : {"x", "-1", "4", "1.5", "", "99999999999", "1 2"}) {
    expect(absl::StrCat("1:a\n", group, ":b"),
           absl::StrCat("2: group \"", group,
                        "\" is not valid: it takes a whole number from 0 to "
                        "3"));
  }
  expect("1:a", "1: group \"1\" is not valid: it takes 0,", 1);
  // With RE2's reason.
  expect("1:ok,a(b,c", "1: regex \"a(b,c\" is not valid: missing ): a(b,c; ");
  expect("1:a)", "1: regex \"a)\" is not valid: unexpected ): a)");
  expect("1:[a,b", "1: regex \"[a,b\" is not valid: missing ]: [a,b");
  expect("1:a[", "1: regex \"a[\" is not valid: missing ]: [");
  expect("1:a\\", "1: regex \"a\\\" is not valid: trailing \\");
}

TEST(StreamFileSummaryTest, CountsTheNodesThatEachRegexDecided) {
  const auto file = Parse("# x\n1:a/.*,b\n2:a/1,c");
  for (const char* name : {"a/1", "a/2", "c", "d"}) file->GroupOf(name);
  EXPECT_EQ(file->Summary(),
            "streams.txt:2 group 1 regex 'a/.*': 2 nodes\n"
            "streams.txt:2 group 1 regex 'b': 0 nodes\n"
            "streams.txt:3 group 2 regex 'a/1': 0 nodes\n"
            "streams.txt:3 group 2 regex 'c': 1 node\n");
  // Of many in a line together.
  const auto many = Parse("1:a,b,c,d,e,f,g,h,i");
  for (const char* name : {"a", "i"}) many->GroupOf(name);
  EXPECT_EQ(many->Summary(), "streams.txt:1 group 1 9 regexes: 2 nodes\n");
}

TEST(StreamFileSummaryTest, ThreadsMayAskAtTheSameTime) {
  const auto file = Parse("1:a.*");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&file] {
      for (int k = 0; k < 1000; ++k) file->GroupOf(absl::StrCat("a", k));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(file->Summary(), "streams.txt:1 group 1 regex 'a.*': 4000 nodes\n");
}

TEST(LoadStreamFileTest, ReadsTheFileAndNamesItInErrors) {
  const std::string path = absl::StrCat(testing::TempDir(), "/streams.txt");
  ASSERT_TRUE(WriteStringToFile(Env::Default(), path, "1:a\n").ok());
  const auto file = LoadStreamFile(path, kGroups);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->GroupOf("a"), 1);
  EXPECT_EQ((*file)->Summary(),
            absl::StrCat(path, ":1 group 1 regex 'a': 1 node\n"));
  ASSERT_TRUE(WriteStringToFile(Env::Default(), path, "\nx:a\n").ok());
  const absl::Status bad = LoadStreamFile(path, kGroups).status();
  EXPECT_TRUE(absl::StartsWith(bad.message(), path + ":2: group \"x\"")) << bad;
  for (const std::string& unread : {path + "/none", testing::TempDir()}) {
    const absl::Status status = LoadStreamFile(unread, kGroups).status();
    EXPECT_TRUE(absl::StartsWith(
        status.message(),
        absl::StrCat("TF_STREAM_FROM_FILE=\"", unread, "\" cannot be read")))
        << status;
  }
}

}  // namespace
}  // namespace tensorflow::multistream
