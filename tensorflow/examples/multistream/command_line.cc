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

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr int64_t kMaxNames = 1024;
constexpr int64_t kMaxBatchSize = 1 << 20;
constexpr int64_t kMaxIters = 100 * 1000 * 1000;
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxInputSets = 4096;
constexpr int64_t kMaxLatencies = 500 * 1000 * 1000;  // 4 bytes each

absl::Status SeeHelp(const std::string& message) {
  return absl::InvalidArgumentError(absl::StrCat(message, "; see --help"));
}

absl::Status ParseWhole(const std::string& name, const std::string& text,
                        int64_t low, int64_t high, int64_t* value) {
  int64_t parsed;
  if (!absl::SimpleAtoi(text, &parsed) || parsed < low || parsed > high) {
    return SeeHelp(absl::StrCat(
        name, ": '", text, "' is not a whole number from ", low, " to ", high));
  }
  *value = parsed;
  return absl::OkStatus();
}

absl::Status ParseNonNegative(const std::string& name, const std::string& text,
                              double* value) {
  double parsed;
  if (!absl::SimpleAtod(text, &parsed) || !std::isfinite(parsed) ||
      parsed < 0) {
    return SeeHelp(
        absl::StrCat(name, ": '", text, "' is not a number of 0 or more"));
  }
  *value = parsed;
  return absl::OkStatus();
}

absl::Status ParseFile(const std::string& name, const std::string& text,
                       std::string* value) {
  if (text.empty()) {
    return SeeHelp(absl::StrCat(name, ": expected the path of a file"));
  }
  *value = text;
  return absl::OkStatus();
}

// Sets what option `name` stands for. NotFound if there is no such option.
absl::Status SetOption(const std::string& name, const std::string& value,
                       CommandLine* line) {
  if (name == "--warmup") {
    return ParseWhole(name, value, 0, kMaxIters, &line->warmup);
  }
  if (name == "--input-sets") {
    return ParseWhole(name, value, 1, kMaxInputSets, &line->input_sets);
  }
  if (name == "--seed") {
    return ParseWhole(name, value, 0, INT64_MAX, &line->seed);
  }
  if (name == "--max-seconds") {
    return ParseNonNegative(name, value, &line->max_seconds);
  }
  if (name == "--tolerance") {
    return ParseNonNegative(name, value, &line->tolerance);
  }
  if (name == "--reference") return ParseFile(name, value, &line->reference);
  if (name == "--save-reference") {
    return ParseFile(name, value, &line->save_reference);
  }
  if (name == "--json") return ParseFile(name, value, &line->json);
  return absl::NotFoundError(name);
}

// Takes positional arguments one by one and says which one is missing.
class Positional {
 public:
  explicit Positional(std::vector<std::string> values)
      : values_(std::move(values)) {}

  absl::Status Next(const std::string& name, std::string* value) {
    if (next_ == values_.size()) {
      return SeeHelp(absl::StrCat(name, " is missing: only ", values_.size(),
                                  " arguments were given"));
    }
    *value = values_[next_++];
    if (value->empty()) return SeeHelp(absl::StrCat(name, " is empty"));
    return absl::OkStatus();
  }

  absl::Status NextWhole(const std::string& name, int64_t high,
                         int64_t* value) {
    std::string text;
    if (absl::Status status = Next(name, &text); !status.ok()) return status;
    return ParseWhole(name, text, 1, high, value);
  }

  // A number, then as many names.
  absl::Status NextNames(const std::string& what,
                         std::vector<std::string>* names) {
    int64_t count;
    absl::Status status =
        NextWhole(absl::StrCat("number_of_", what), kMaxNames, &count);
    for (int64_t i = 0; status.ok() && i < count; ++i) {
      status = Next(absl::StrCat(what, "_name ", i + 1, " of ", count),
                    &names->emplace_back());
    }
    return status;
  }

  absl::Status End() const {
    if (next_ == values_.size()) return absl::OkStatus();
    return SeeHelp(absl::StrCat("'", values_[next_],
                                "' follows config_path, the last argument; do "
                                "number_of_input and number_of_output match "
                                "the names that follow them?"));
  }

 private:
  const std::vector<std::string> values_;
  size_t next_ = 0;
};

absl::Status SetPositional(std::vector<std::string> values, CommandLine* line) {
  Positional positional(std::move(values));
  absl::Status status = positional.Next("model_path", &line->model_path);
  if (status.ok()) status = positional.NextNames("input", &line->input_names);
  if (status.ok()) {
    status = positional.NextNames("output", &line->output_names);
  }
  if (status.ok()) {
    status =
        positional.NextWhole("batch_size", kMaxBatchSize, &line->batch_size);
  }
  if (status.ok()) {
    status = positional.NextWhole("iters", kMaxIters, &line->iters);
  }
  if (status.ok()) {
    status = positional.NextWhole("number_of_threads", kMaxThreads,
                                  &line->number_of_threads);
  }
  if (status.ok()) status = positional.Next("config_path", &line->config_path);
  if (status.ok()) status = positional.End();
  return status;
}

absl::Status CheckTogether(const CommandLine& line) {
  if (line.iters * line.number_of_threads > kMaxLatencies) {
    return SeeHelp(absl::StrCat("iters ", line.iters, " x number_of_threads ",
                                line.number_of_threads, " is more than the ",
                                kMaxLatencies, " queries of one run"));
  }
  if (line.tolerance > 0 && !line.verify) {
    return SeeHelp(absl::StrCat("--tolerance ", line.tolerance,
                                " says how --verify compares: give it too"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(
    const std::vector<std::string>& arguments) {
  CommandLine line;
  std::vector<std::string> positional;
  bool options_ended = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (options_ended ||
        (!absl::StartsWith(argument, "--") && argument != "-h")) {
      positional.push_back(argument);
      continue;
    }
    if (argument == "--") {
      options_ended = true;
      continue;
    }
    if (argument == "--help" || argument == "-h") {
      line.help = true;
      return line;
    }
    if (argument == "--verify") {
      line.verify = true;
      continue;
    }
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const bool has_next = i + 1 < arguments.size();
    std::string value;
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (has_next) {
      value = arguments[i + 1];
    }
    const absl::Status status = SetOption(name, value, &line);
    if (absl::IsNotFound(status) || name == "--verify") {
      return SeeHelp(absl::StrCat("'", argument, "' is not an option"));
    }
    if (equals == std::string::npos) {
      if (!has_next) return SeeHelp(absl::StrCat(name, " needs a value"));
      ++i;
    }
    if (!status.ok()) return status;
  }
  // A reference from a file is given to be compared with.
  if (!line.reference.empty()) line.verify = true;
  absl::Status status = SetPositional(std::move(positional), &line);
  if (status.ok()) status = CheckTogether(line);
  if (!status.ok()) return status;
  return line;
}

std::string Usage() {
  return R"(Serves a frozen graph from several client threads of one process, through one
session, and measures it.

usage: multistream_inference [option...] model_path
           number_of_input input_name... number_of_output output_name...
           batch_size iters number_of_threads config_path

  model_path         GraphDef: text if it ends in .pbtxt or .txt, binary if it
                     ends in .pb, else either
  input_name         placeholder to feed, `name` or `name:0`
  output_name        tensor to fetch, `name` or `name:index`
  batch_size         1 to 1048576: stands for an input's unknown first dimension
  iters              queries (session runs) of each thread
  number_of_threads  client threads, 1 to 1024
  config_path        ConfigProto in text format

  --warmup=N         queries of each thread before the measured ones [20]
  --max-seconds=S    stop measuring after S seconds, whatever is left of iters
  --input-sets=N     different random inputs, used in turn, 1 to 4096 [32]
  --seed=N           of the random inputs [1]
  --verify           compare every result, warm-up included, with a reference:
                     results of the same inputs, made in this process by one
                     thread before the load, or read with --reference
  --tolerance=T      with --verify: accept |result - reference| up to
                     T * max(1, |reference|) [0: equal bit by bit]
  --save-reference=FILE  write the reference results of one thread to FILE
  --reference=FILE   verify against the results in FILE, which another process
                     wrote for the same model, names, batch_size, --seed and
                     --input-sets
  --json=FILE        write the figures to FILE
  --help

Options may stand anywhere; `--name=value` and `--name value` are the same.

Inputs: floating point values are uniform in [0, 1); bool values are fair coin
tosses; integers are uniform in [0, n) where n is the placeholder's integer
attribute `_input_range`, 100 if it has none.

Environment: TF_GPU_STREAM_GROUP_COUNT=N serves on N stream groups of a GPU.

Exit status: 0, 1 after an error or a wrong result, 2 if the command line is not
understood.
)";
}

}  // namespace multistream
}  // namespace tensorflow
