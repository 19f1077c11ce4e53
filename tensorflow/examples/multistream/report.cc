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

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tensorflow/examples/multistream/emulated.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr double kMebi = 1024.0 * 1024.0;

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const unsigned char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", c);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// JSON has no infinity.
std::string Number(double value) {
  return std::isfinite(value) ? absl::StrFormat("%.9g", value) : "null";
}

}  // namespace

std::vector<StreamGroupStats> StepsSince(
    const std::vector<StreamGroupStats>& before,
    std::vector<StreamGroupStats> after) {
  for (StreamGroupStats& group : after) {
    for (const StreamGroupStats& earlier : before) {
      if (earlier.gpu == group.gpu && earlier.group == group.group) {
        group.steps_started -= earlier.steps_started;
        group.steps_failed -= earlier.steps_failed;
        group.steps_replayed -= earlier.steps_replayed;
      }
    }
  }
  return after;
}

std::string ReportAsText(const Report& report) {
  const CommandLine& line = report.command_line;
  std::string text = absl::StrFormat(
      "%d threads x %d warm-up and %d measured queries, batch size %d\n",
      line.number_of_threads, line.warmup, line.iters, line.batch_size);
  absl::StrAppendFormat(&text, "%d queries in %.3f s: %.1f queries/s\n",
                        report.queries, report.seconds,
                        report.queries_per_second);
  absl::StrAppendFormat(
      &text,
      "latency in ms: mean %.3f, p50 %.3f, p95 %.3f, p99 %.3f, max %.3f\n",
      report.latency.mean, report.latency.p50, report.latency.p95,
      report.latency.p99, report.latency.max);
  if (!report.queries_of_seconds.empty()) {
    std::vector<int64_t> sorted = report.queries_of_seconds;
    std::sort(sorted.begin(), sorted.end());
    absl::StrAppendFormat(
        &text,
        "queries in each second: lowest %d, median %d, highest %d of %d\n",
        sorted.front(), sorted[sorted.size() / 2], sorted.back(),
        sorted.size());
  }
  if (report.queries > 0 && report.seconds > 0) {
    absl::StrAppendFormat(&text, "CPU: %.2f cores, %.0f us a query\n",
                          report.cpu_seconds / report.seconds,
                          report.cpu_seconds / report.queries * 1e6);
  }
  if (report.emulated) absl::StrAppend(&text, kTimesMeanNothing);
  if (report.groups.empty())
    text += "no stream groups: stock TensorFlow's way\n";
  for (const StreamGroupStats& group : report.groups) {
    absl::StrAppendFormat(&text,
                          "gpu %d group %d: %d steps, %d failed, %.2f MiB in "
                          "use, %.2f MiB peak\n",
                          group.gpu, group.group, group.steps_started,
                          group.steps_failed, group.bytes_in_use / kMebi,
                          group.peak_bytes_in_use / kMebi);
    if (group.recordings_made > 0) {
      absl::StrAppendFormat(
          &text,
          "  %d of them replayed, %.2f MiB for that and %.2f MiB of "
          "workspaces, recorded in %.1f ms at most\n",
          group.steps_replayed, group.recording_bytes / kMebi,
          group.recording_workspace_bytes / kMebi,
          group.longest_recording_micros / 1e3);
    }
  }
  if (line.verify) {
    const Verification& verification = report.verification;
    absl::StrAppendFormat(&text,
                          "largest difference: %g absolute, %g relative\n",
                          verification.max_absolute, verification.max_relative);
    if (verification.wrong > 0) {
      absl::StrAppend(&text, "first wrong: ", verification.first_wrong, "\n");
    }
    absl::StrAppendFormat(&text, "verified %d results, %d wrong\n",
                          verification.verified, verification.wrong);
  }
  return text;
}

std::string ReportAsJson(const Report& report) {
  const CommandLine& line = report.command_line;
  std::vector<std::pair<std::string, std::string>> fields = {
      {"model", Quoted(line.model_path)},
      {"batch_size", absl::StrCat(line.batch_size)},
      {"threads", absl::StrCat(line.number_of_threads)},
      {"iters", absl::StrCat(line.iters)},
      {"warmup", absl::StrCat(line.warmup)},
      {"stream_group_count", absl::StrCat(report.stream_group_count)},
      {"emulated", report.emulated ? "true" : "false"},
      {"queries", absl::StrCat(report.queries)},
      {"seconds", Number(report.seconds)},
      {"queries_per_second", Number(report.queries_per_second)},
      {"mean_ms", Number(report.latency.mean)},
      {"p50_ms", Number(report.latency.p50)},
      {"p95_ms", Number(report.latency.p95)},
      {"p99_ms", Number(report.latency.p99)},
      {"max_ms", Number(report.latency.max)},
      {"queries_of_seconds",
       absl::StrCat("[", absl::StrJoin(report.queries_of_seconds, ", "), "]")},
      {"cpu_of_seconds",
       absl::StrCat("[", absl::StrJoin(report.cpu_of_seconds, ", "), "]")},
      {"cpu_seconds", Number(report.cpu_seconds)},
      {"verify", line.verify ? "true" : "false"},
      {"verified", absl::StrCat(report.verification.verified)},
      {"wrong", absl::StrCat(report.verification.wrong)},
      {"max_absolute_difference", Number(report.verification.max_absolute)},
      {"max_relative_difference", Number(report.verification.max_relative)},
  };
  std::string groups = "[";
  for (const StreamGroupStats& group : report.groups) {
    absl::StrAppendFormat(&groups,
                          "%s\n    {\"gpu\": %d, \"group\": %d, \"steps\": %d, "
                          "\"steps_failed\": %d, \"bytes_in_use\": %d, "
                          "\"peak_bytes_in_use\": %d, \"bytes_limit\": %d, "
                          "\"longest_launch_wait_micros\": %d, "
                          "\"steps_replayed\": %d, "
                          "\"recording_bytes\": %d}",
                          groups.size() > 1 ? "," : "", group.gpu, group.group,
                          group.steps_started, group.steps_failed,
                          group.bytes_in_use, group.peak_bytes_in_use,
                          group.bytes_limit, group.longest_launch_wait_micros,
                          group.steps_replayed, group.recording_bytes);
  }
  fields.emplace_back("groups",
                      groups + (report.groups.empty() ? "]" : "\n  ]"));
  std::string json = "{";
  for (const auto& [name, value] : fields) {
    absl::StrAppend(&json, json.size() > 1 ? "," : "", "\n  ", Quoted(name),
                    ": ", value);
  }
  return json + "\n}\n";
}

}  // namespace multistream
}  // namespace tensorflow
