// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/stream_file.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/env.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr int kGroups = 4;

StreamFile Parse(const std::string& contents) {
  absl::StatusOr<StreamFile> file =
      ParseStreamFile(contents, "streams.txt", kGroups);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

void ExpectBad(const std::string& contents, const std::string& message,
               int group_count = kGroups) {
  absl::StatusOr<StreamFile> file =
      ParseStreamFile(contents, "streams.txt", group_count);
  ASSERT_FALSE(file.ok()) << contents;
  EXPECT_TRUE(absl::IsInvalidArgument(file.status())) << file.status();
  EXPECT_EQ(file.status().message(), message);
}

TEST(StreamFileTest, ANodeWhoseWholeNameMatchesGoesToTheGroup) {
  const StreamFile file = Parse("1:user/.*\n2:item/.*,clicks\n");
  EXPECT_EQ(file.GroupOf("user/embedding"), 1);
  EXPECT_EQ(file.GroupOf("item/embedding"), 2);
  EXPECT_EQ(file.GroupOf("clicks"), 2);
  EXPECT_EQ(file.GroupOf("clicks/1"), std::nullopt);
  EXPECT_EQ(file.GroupOf("my/clicks"), std::nullopt);
  EXPECT_EQ(file.GroupOf("other"), std::nullopt);
}

TEST(StreamFileTest, EveryGroupOfTheGpuIsAllowedAndNoOther) {
  const StreamFile file = Parse("0:a\n3:b");
  EXPECT_EQ(file.GroupOf("a"), 0);
  EXPECT_EQ(file.GroupOf("b"), 3);
  ExpectBad("4:a",
            "streams.txt:1: group \"4\" is not valid: it takes a whole number "
            "from 0 to 3");
}

TEST(StreamFileTest, TheFirstMatchDecides) {
  const StreamFile file = Parse("1:a/x\n2:a/.*\n3:a/x,a/y");
  EXPECT_EQ(file.GroupOf("a/x"), 1);
  EXPECT_EQ(file.GroupOf("a/y"), 2);
}

TEST(StreamFileTest, AGroupMayHaveSeveralLines) {
  const StreamFile file = Parse("1:a\n2:b\n1:c");
  EXPECT_EQ(file.GroupOf("a"), 1);
  EXPECT_EQ(file.GroupOf("c"), 1);
}

TEST(StreamFileTest, CommentsAndBlankLinesSayNothing) {
  const StreamFile file = Parse(
      "# 1:a\n\n   \t\n  # 2:a\n1:b # c, d\n2:c#d\n3:d\t# a comment without a "
      "colon\n#");
  EXPECT_EQ(file.GroupOf("a"), std::nullopt);
  EXPECT_EQ(file.GroupOf("b"), 1);
  EXPECT_EQ(file.GroupOf("c"), std::nullopt);
  EXPECT_EQ(file.GroupOf("c#d"), 2);
  EXPECT_EQ(file.GroupOf("d"), 3);
}

TEST(StreamFileTest, AnEmptyFileSaysNothing) {
  EXPECT_EQ(Parse("").GroupOf("a"), std::nullopt);
  EXPECT_EQ(Parse("\n\n").Summary(), "");
}

TEST(StreamFileTest, WhiteSpaceAroundGroupsAndRegexesIsNotPartOfThem) {
  const StreamFile file = Parse("  1 :  a ,\tb  \r\n2:c\r\n");
  EXPECT_EQ(file.GroupOf("a"), 1);
  EXPECT_EQ(file.GroupOf("b"), 1);
  EXPECT_EQ(file.GroupOf("c"), 2);
}

TEST(StreamFileTest, ACommaInsideARegexDoesNotSeparate) {
  const StreamFile file =
      Parse("1:a{1,2},(?:b|c,d),[,x],[^],],e\\,f,\\[,([)],g)\n2:.");
  EXPECT_EQ(file.GroupOf("a"), 1);
  EXPECT_EQ(file.GroupOf("aa"), 1);
  EXPECT_EQ(file.GroupOf("b"), 1);
  EXPECT_EQ(file.GroupOf("c,d"), 1);
  EXPECT_EQ(file.GroupOf(","), 1);
  EXPECT_EQ(file.GroupOf("x"), 1);
  EXPECT_EQ(file.GroupOf("]"), 2);  // [^],] matches neither
  EXPECT_EQ(file.GroupOf("q"), 1);  // but any other
  EXPECT_EQ(file.GroupOf("e,f"), 1);
  EXPECT_EQ(file.GroupOf("["), 1);
  EXPECT_EQ(file.GroupOf("),g"), 1);
}

TEST(StreamFileTest, AClassOfCharactersEndsWhereRe2SaysItDoes) {
  const StreamFile file =
      Parse("1:[]a]b,c\n2:[[:digit:],]d,e\n3:[\\],]f,g\n0:[^]x]h,i");
  EXPECT_EQ(file.GroupOf("]b"), 1);
  EXPECT_EQ(file.GroupOf("c"), 1);
  EXPECT_EQ(file.GroupOf("7d"), 2);
  EXPECT_EQ(file.GroupOf(",d"), 2);
  EXPECT_EQ(file.GroupOf("e"), 2);
  EXPECT_EQ(file.GroupOf("]f"), 3);
  EXPECT_EQ(file.GroupOf("g"), 3);
  EXPECT_EQ(file.GroupOf("yh"), 0);
  EXPECT_EQ(file.GroupOf("i"), 0);
}

TEST(StreamFileTest, ABraceThatClosesNothingStandsForItself) {
  const StreamFile file = Parse("1:a},(b,c),d");
  EXPECT_EQ(file.GroupOf("a}"), 1);
  EXPECT_EQ(file.GroupOf("b,c"), 1);
  EXPECT_EQ(file.GroupOf("d"), 1);
}

TEST(StreamFileTest, ARegexMayHaveColons) {
  const StreamFile file = Parse("1:(?i:A):b");
  EXPECT_EQ(file.GroupOf("a:b"), 1);
}

TEST(StreamFileTest, ABadLineIsAnErrorWithFileLineAndReason) {
  const std::string form = "a line is GROUP:REGEX or GROUP:REGEX,REGEX,...";
  ExpectBad("1:a\n\n# fine\nabc # not\n",
            absl::StrCat("streams.txt:4: \"abc\" has no colon: ", form));
  ExpectBad("1:a\n1:",
            absl::StrCat("streams.txt:2: \"1:\" has an empty regex: ", form));
  ExpectBad("1:a,",
            absl::StrCat("streams.txt:1: \"1:a,\" has an empty regex: ", form));
  ExpectBad(
      "1:a,,b",
      absl::StrCat("streams.txt:1: \"1:a,,b\" has an empty regex: ", form));
  ExpectBad("1:a, # b",
            absl::StrCat("streams.txt:1: \"1:a,\" has an empty regex: ", form));
}

TEST(StreamFileTest, ABadGroupIsAnErrorThatSaysWhatIsAllowed) {
  for (const char* group : {"x", "-1", "4", "1.5", "", "99999999999", "1 2"}) {
    ExpectBad(absl::StrCat("1:a\n", group, ":b"),
              absl::StrCat("streams.txt:2: group \"", group,
                           "\" is not valid: it takes a whole number from 0 to "
                           "3"));
  }
  ExpectBad("1:a",
            "streams.txt:1: group \"1\" is not valid: it takes 0, as there is "
            "one stream group",
            /*group_count=*/1);
}

TEST(StreamFileTest, ABadRegexIsAnErrorWithRe2sReason) {
  const std::string hint =
      "; it takes RE2's syntax, and commas between regexes";
  ExpectBad("1:ok,a(b,c", absl::StrCat("streams.txt:1: regex \"a(b,c\" is not "
                                       "valid: missing ): a(b,c",
                                       hint));
  ExpectBad("1:a)", absl::StrCat("streams.txt:1: regex \"a)\" is not valid: "
                                 "unexpected ): a)",
                                 hint));
  ExpectBad("1:[a,b", absl::StrCat("streams.txt:1: regex \"[a,b\" is not "
                                   "valid: missing ]: [a,b",
                                   hint));
  ExpectBad("1:a[", absl::StrCat("streams.txt:1: regex \"a[\" is not valid: "
                                 "missing ]: [",
                                 hint));
  ExpectBad("1:a\\", absl::StrCat("streams.txt:1: regex \"a\\\" is not valid: "
                                  "trailing \\",
                                  hint));
}

TEST(StreamFileTest, TheSummaryCountsTheNodesThatEachRegexDecided) {
  const StreamFile file = Parse("# x\n1:a/.*,b\n2:a/1,c");
  for (const char* name : {"a/1", "a/2", "c", "d"}) file.GroupOf(name);
  EXPECT_EQ(file.Summary(),
            "streams.txt:2 group 1 regex 'a/.*': 2 nodes\n"
            "streams.txt:2 group 1 regex 'b': 0 nodes\n"
            "streams.txt:3 group 2 regex 'a/1': 0 nodes\n"
            "streams.txt:3 group 2 regex 'c': 1 node\n");
}

TEST(StreamFileTest, ThreadsMayAskAtTheSameTime) {
  const StreamFile file = Parse("1:a.*");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&file] {
      for (int k = 0; k < 1000; ++k) file.GroupOf(absl::StrCat("a", k));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(file.Summary(), "streams.txt:1 group 1 regex 'a.*': 4000 nodes\n");
}

TEST(LoadStreamFileTest, ReadsTheFile) {
  const std::string path = absl::StrCat(testing::TempDir(), "/streams.txt");
  ASSERT_TRUE(WriteStringToFile(Env::Default(), path, "1:a\n").ok());
  absl::StatusOr<StreamFile> file = LoadStreamFile(path, kGroups);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->GroupOf("a"), 1);
  EXPECT_EQ(file->Summary(),
            absl::StrCat(path, ":1 group 1 regex 'a': 1 node\n"));

  ASSERT_TRUE(WriteStringToFile(Env::Default(), path, "\nx:a\n").ok());
  file = LoadStreamFile(path, kGroups);
  ASSERT_FALSE(file.ok());
  EXPECT_TRUE(absl::StartsWith(file.status().message(),
                               absl::StrCat(path, ":2: group \"x\"")))
      << file.status();
}

TEST(LoadStreamFileTest, AFileThatCannotBeReadIsAnErrorWithItsPath) {
  const std::string directory = testing::TempDir();
  for (const std::string& path :
       {absl::StrCat(directory, "/no_such_file.txt"), directory}) {
    const absl::StatusOr<StreamFile> file = LoadStreamFile(path, kGroups);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_TRUE(absl::StartsWith(
        file.status().message(),
        absl::StrCat("TF_STREAM_FROM_FILE=\"", path, "\" cannot be read: ")))
        << file.status();
  }
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
