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

// Serves a frozen graph from several client threads of one process, through
// one session, and measures it; see --help.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow/examples/multistream/command_line.h"
#include "tensorflow/examples/multistream/emulated.h"
#include "tensorflow/examples/multistream/latency.h"
#include "tensorflow/examples/multistream/load.h"
#include "tensorflow/examples/multistream/model.h"
#include "tensorflow/examples/multistream/report.h"
#include "tensorflow/examples/multistream/results.h"

namespace tensorflow {
namespace multistream {
namespace {

struct SessionCloser {
  void operator()(Session* session) const {
    session->Close().IgnoreError();
    delete session;
  }
};
using OwnedSession = std::unique_ptr<Session, SessionCloser>;

absl::StatusOr<OwnedSession> MakeSession(const GraphDef& graph,
                                         const ConfigProto& config) {
  SessionOptions options;
  options.config = config;
  Session* session = nullptr;
  absl::Status status = NewSession(options, &session);
  if (!status.ok()) return status;
  OwnedSession owned(session);
  status = session->Create(graph);
  if (!status.ok()) return status;
  return owned;
}

// The results that --verify compares with; empty if nothing is verified.
absl::StatusOr<std::vector<ResultSet>> MakeReference(const CommandLine& line,
                                                     const Origin& origin,
                                                     const Queries& queries,
                                                     Session* session) {
  std::vector<ResultSet> reference;
  const bool from_file = !line.reference.empty();
  if (!line.save_reference.empty() || (line.verify && !from_file)) {
    absl::StatusOr<std::vector<ResultSet>> results =
        RunEachOnce(session, queries);
    if (!results.ok()) return results.status();
    reference = *std::move(results);
  }
  if (!line.save_reference.empty()) {
    absl::Status status = SaveReference(line.save_reference, origin, reference);
    if (!status.ok()) return status;
  }
  if (from_file) return LoadReference(line.reference, origin);
  return reference;
}

// Runs what the command line asks for and fills in `report`.
absl::Status Serve(const CommandLine& line, Report* report) {
  absl::StatusOr<Model> model = LoadModel(line.model_path);
  if (!model.ok()) return model.status();
  absl::StatusOr<ConfigProto> config = LoadConfig(line.config_path);
  if (!config.ok()) return config.status();
  absl::StatusOr<std::vector<InputSpec>> inputs =
      ResolveInputs(model->graph, line.input_names, line.batch_size);
  if (!inputs.ok()) return inputs.status();
  absl::Status status = CheckOutputs(model->graph, line.output_names);
  if (!status.ok()) return status;
  absl::StatusOr<std::vector<InputSet>> sets =
      MakeInputSets(*inputs, line.input_sets, line.seed);
  if (!sets.ok()) return sets.status();
  const Queries queries = {line.input_names, line.output_names,
                           *std::move(sets)};

  absl::StatusOr<OwnedSession> session = MakeSession(model->graph, *config);
  if (!session.ok()) return session.status();

  const Origin origin = {
      model->fingerprint, line.input_names, FingerprintOf(queries.input_sets),
      line.output_names,  line.batch_size,  line.seed,
      line.input_sets};
  absl::StatusOr<std::vector<ResultSet>> reference =
      MakeReference(line, origin, queries, session->get());
  if (!reference.ok()) return reference.status();

  LoadOptions options;
  options.number_of_threads = line.number_of_threads;
  options.iters = line.warmup;
  if (line.verify) options.reference = &*reference;
  options.tolerance = line.tolerance;
  absl::StatusOr<LoadFigures> warmup =
      RunLoad(session->get(), queries, options);
  if (!warmup.ok()) return warmup.status();

  options.iters = line.iters;
  options.max_seconds = line.max_seconds;
  const std::vector<StreamGroupStats> before = StreamStats();
  absl::StatusOr<LoadFigures> figures =
      RunLoad(session->get(), queries, options);
  if (!figures.ok()) return figures.status();

  report->groups = StepsSince(before, StreamStats());
  report->stream_group_count = StreamGroupCount();
  report->emulated = GpusAreEmulated();
  report->queries = figures->latencies_in_millis.size();
  report->seconds = figures->seconds;
  report->queries_per_second =
      figures->seconds > 0 ? report->queries / figures->seconds : 0;
  report->verification = warmup->verification;
  report->verification.Add(figures->verification);
  report->queries_of_seconds = std::move(figures->queries_of_seconds);
  // The whole ones.
  report->queries_of_seconds.resize(
      std::min(report->queries_of_seconds.size(),
               static_cast<size_t>(figures->seconds)));
  report->cpu_of_seconds = std::move(figures->cpu_of_seconds);
  report->cpu_of_seconds.resize(report->queries_of_seconds.size());
  report->cpu_seconds = figures->cpu_seconds;
  report->latency = Summarize(std::move(figures->latencies_in_millis));
  return absl::OkStatus();
}

int Fail(absl::string_view message, int exit_status) {
  std::fprintf(stderr, "multistream_inference: %s\n",
               std::string(message).c_str());
  return exit_status;
}

int Main(const std::vector<std::string>& arguments) {
  absl::StatusOr<CommandLine> line = ParseCommandLine(arguments);
  if (!line.ok()) return Fail(line.status().message(), 2);
  if (line->help) {
    std::fputs(Usage().c_str(), stdout);
    return 0;
  }
  if (const std::string wrong = CheckEnvironment(); !wrong.empty()) {
    return Fail(wrong, 1);
  }
  Report report;
  report.command_line = *line;
  if (absl::Status status = Serve(*line, &report); !status.ok()) {
    return Fail(status.message(), 1);
  }
  std::fputs(ReportAsText(report).c_str(), stdout);
  if (!line->json.empty()) {
    absl::Status status =
        WriteStringToFile(Env::Default(), line->json, ReportAsJson(report));
    if (!status.ok()) {
      return Fail(absl::StrCat("--json '", line->json,
                               "' cannot be written: ", status.message()),
                  1);
    }
  }
  return report.verification.wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow

int main(int argc, char** argv) {
  return tensorflow::multistream::Main({argv + 1, argv + argc});
}
