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

#include "tensorflow/examples/multistream/report.h"

#include <gtest/gtest.h>

#include <limits>

#include "tensorflow/examples/multistream/contains.h"

namespace tensorflow {
namespace multistream {
namespace {

StreamGroupStats Group(int group, int64_t steps) {
  StreamGroupStats stats;
  stats.group = group;
  stats.steps_started = steps;
  stats.bytes_in_use = 1024 * 1024;
  return stats;
}

TEST(ReportTest, StepsOfEarlierQueriesAreTakenOff) {
  const auto groups =
      StepsSince({Group(0, 5), Group(1, 7)}, {Group(0, 15), Group(1, 27)});
  EXPECT_EQ(groups[0].steps_started, 10);
  EXPECT_EQ(groups[1].steps_started, 20);
  EXPECT_EQ(groups[1].bytes_in_use, 1024 * 1024);
}

TEST(ReportTest, TextTellsEveryFigure) {
  Report report;
  report.command_line.verify = true;
  report.queries = 4000;
  report.seconds = 2;
  report.queries_per_second = 2000;
  report.latency.p99 = 3.25;
  report.queries_of_seconds = {1900, 2100};
  report.cpu_seconds = 3;
  report.groups = {Group(0, 1000), Group(1, 3000)};
  report.verification.verified = 4080;
  const std::string text = ReportAsText(report);
  EXPECT_TRUE(Contains(text, {"2000.0 queries/s"}));
  EXPECT_TRUE(Contains(text, {"p99 3.250"}));
  EXPECT_TRUE(Contains(text, {"lowest 1900, median 2100, highest 2100 of 2"}));
  EXPECT_TRUE(Contains(text, {"CPU: 1.50 cores, 750 us a query"}));
  EXPECT_TRUE(Contains(text, {"group 1: 3000 steps"}));
  EXPECT_TRUE(Contains(text, {"1.00 MiB in use"}));
  EXPECT_TRUE(Contains(text, {"verified 4080 results, 0 wrong\n"}));
  report.command_line.verify = false;
  EXPECT_FALSE(Contains(ReportAsText(report), {"verified"}));
}

TEST(ReportTest, AnEmulatedRunSaysThatItsTimesMeanNothing) {
  Report report;
  EXPECT_FALSE(Contains(ReportAsText(report), {"mean nothing"}));
  EXPECT_TRUE(Contains(ReportAsJson(report), {R"("emulated": false)"}));
  report.emulated = true;
  EXPECT_TRUE(Contains(ReportAsText(report), {"times mean nothing"}));
  EXPECT_TRUE(Contains(ReportAsJson(report), {R"("emulated": true)"}));
}

TEST(ReportTest, JsonIsValidWhateverTheValues) {
  Report report;
  report.command_line.model_path = "a\"b\\c\n";
  report.verification.max_relative = std::numeric_limits<double>::infinity();
  report.groups = {Group(0, 1), Group(1, 2)};
  report.queries_of_seconds = {3, 4};
  report.cpu_of_seconds = {0.5, 1.25};
  const std::string json = ReportAsJson(report);
  EXPECT_TRUE(Contains(json, {R"("model": "a\"b\\c\u000a")"}));
  EXPECT_TRUE(Contains(json, {R"("max_relative_difference": null)"}));
  EXPECT_TRUE(Contains(json, {R"("group": 1, "steps": 2)"}));
  EXPECT_TRUE(Contains(json, {R"("queries_of_seconds": [3, 4])"}));
  EXPECT_TRUE(Contains(json, {R"("cpu_of_seconds": [0.5, 1.25])"}));
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
