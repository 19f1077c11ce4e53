// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Serves a frozen graph from several client threads of one process, through
// one session, and measures it; see kUsage.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tensorflow/core/common_runtime/multistream/base/parse_text.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/hash.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow::multistream {
namespace {

constexpr char kUsage[] =
    R"(Serves a frozen graph from several client threads of one process, through one
session, and measures it.

usage: multistream_inference [--verify] model_path
           number_of_input input_name... number_of_output output_name...
           batch_size iters number_of_threads config_path

  model_path         GraphDef: text if it ends in .pbtxt or .txt, else binary
  input_name         placeholder to feed
  output_name        tensor to fetch, `name` or `name:index`
  batch_size         stands for an input's unknown first dimension
  iters              measured session runs of each thread, after up to 20 others
  number_of_threads  client threads
  config_path        ConfigProto in text format
  --verify           compare each result, bit by bit, with what one thread got
                     for the same input before; print a fingerprint of these
                     results, to compare processes

Inputs are random and the same in each run: real numbers in [0, 1), integers in
[0, n), n being the placeholder's attribute `_input_range`, or 100.

TF_GPU_STREAM_GROUP_COUNT=N serves on N stream groups of a GPU.

Exit status: 0, 1 after an error or a wrong result, 2 for a wrong command line.
)";

constexpr int kQueries = 32;  // different ones, used in turn
constexpr int64_t kWarmUp = 20;

struct CommandLine {
  bool verify = false;
  std::string model_path;
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  int64_t batch_size = 0;
  int64_t iters = 0;
  int64_t number_of_threads = 0;
  std::string config_path;
};

absl::StatusOr<CommandLine> ParseCommandLine(
    const std::vector<std::string>& arguments) {
  CommandLine line;
  absl::Status status;  // the first error
  const auto fail = [&status](const auto&... message) {
    status.Update(
        absl::InvalidArgumentError(absl::StrCat(message..., "; see --help")));
  };
  size_t given = 0;
  auto argument = arguments.begin();
  const auto next = [&](const std::string& name) -> std::string {
    for (; argument != arguments.end(); ++argument) {
      if (*argument == "--verify") {
        line.verify = true;
      } else if (absl::StartsWith(*argument, "--")) {
        fail("'", *argument, "' is not an option");
      } else {
        ++given;
        return *argument++;
      }
    }
    if (!name.empty()) {
      fail(name, " is missing: only ", given, " arguments were given");
    }
    return "";
  };
  const auto next_number = [&](const std::string& name, int64_t most) {
    const std::string text = next(name);
    int64_t number = 0;
    if (!absl::SimpleAtoi(text, &number) || number < 1 || number > most) {
      fail(name, ": '", text, "' is not a whole number from 1 to ", most);
    }
    return number;
  };
  const auto next_names = [&](const std::string& what) {
    std::vector<std::string> names;
    const int64_t count = next_number("number_of_" + what, 1024);
    for (int64_t i = 1; status.ok() && i <= count; ++i) {
      names.push_back(next(absl::StrCat(what, "_name ", i, " of ", count)));
    }
    return names;
  };
  line.model_path = next("model_path");
  line.input_names = next_names("input");
  line.output_names = next_names("output");
  line.batch_size = next_number("batch_size", 1 << 20);
  line.iters = next_number("iters", 100'000'000);
  line.number_of_threads = next_number("number_of_threads", 1024);
  line.config_path = next("config_path");
  if (const std::string more = next(""); !more.empty()) {
    fail("'", more, "' follows config_path, the last argument");
  }
  if (!status.ok()) return status;
  return line;
}

// Reads a file; `parse` says why its content is no `type`, or nothing.
absl::Status ReadAs(absl::string_view argument, const std::string& path,
                    absl::string_view type,
                    std::function<std::string(const std::string&)> parse) {
  std::string content;
  absl::Status status = ReadFileToString(Env::Default(), path, &content);
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat(argument, " '", path,
                                     "' cannot be read: ", status.message()));
  }
  const std::string reason = parse(content);
  if (reason.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(argument, " '", path, "' is no ", type, ": ", reason));
}

using Generator = std::mt19937_64;

// Not std::uniform_*_distribution: its values differ between libraries.
template <typename T>
void Fill(int64_t range, Generator* generator, Tensor* tensor) {
  auto values = tensor->flat<T>();
  for (int64_t i = 0; i < values.size(); ++i) {
    const uint64_t drawn = (*generator)();
    if constexpr (std::numeric_limits<T>::is_integer) {
      const auto largest = static_cast<uint64_t>(std::numeric_limits<T>::max());
      values(i) = static_cast<T>(
          drawn % (std::min(static_cast<uint64_t>(range - 1), largest) + 1));
    } else {
      values(i) = static_cast<T>(static_cast<float>(drawn >> 40) / (1 << 24));
    }
  }
}

// Makes a tensor of random values for the placeholder `name`. An unknown first
// dimension becomes `batch_size`. Integers are below the placeholder's
// attribute
// `_input_range`, or below 100.
absl::Status MakeInput(const GraphDef& graph, const std::string& name,
                       int64_t batch_size, Generator* generator,
                       Tensor* tensor) {
  const auto what = absl::StrCat("input_name '", name, "' ");
  const auto invalid = [&what](const auto&... reason) {
    return absl::InvalidArgumentError(absl::StrCat(what, reason...));
  };
  std::string placeholders;
  const NodeDef* node = nullptr;
  for (const NodeDef& other : graph.node()) {
    if (!absl::StartsWith(other.op(), "Placeholder")) continue;
    absl::StrAppend(&placeholders, " ", other.name());
    if (name == other.name() || name == other.name() + ":0") node = &other;
  }
  if (node == nullptr) {
    return invalid("is no placeholder of the graph; it has:", placeholders);
  }
  DataType dtype = DT_INVALID;
  TensorShapeProto sizes;
  int64_t range = 100;
  for (const auto& [key, value] : node->attr()) {
    if (key == "dtype") dtype = value.type();
    if (key == "shape") sizes = value.shape();
    if (key == "_input_range") range = value.i();
  }
  if (range < 1) {
    return invalid("has _input_range ", range, "; allowed is 1 or more");
  }
  if (sizes.dim_size() > 0 && sizes.dim(0).size() < 0) {
    sizes.mutable_dim(0)->set_size(batch_size);
  }
  TensorShape shape;
  if (sizes.unknown_rank() ||
      !TensorShape::BuildTensorShape(sizes, &shape).ok()) {
    return invalid("is of shape ", PartialTensorShape(sizes).DebugString(),
                   "; only its first dimension may be unknown");
  }
  *tensor = Tensor(dtype, shape);
  switch (dtype) {
#define FILL(T)                        \
  case DataTypeToEnum<T>::value:       \
    Fill<T>(range, generator, tensor); \
    return absl::OkStatus();
    TF_CALL_REAL_NUMBER_TYPES(FILL)
    TF_CALL_bool(FILL)
#undef FILL
        default : return absl::UnimplementedError(absl::StrCat(
                      what, "is of type ", DataTypeString(dtype),
                      "; inputs can be made of real numbers and bool"));
  }
}

// Reads a GraphDef: text if `path` ends in .pbtxt or .txt, else binary.
absl::Status LoadModel(const std::string& path, GraphDef* graph) {
  return ReadAs(
      "model_path", path, "frozen GraphDef", [&](const auto& content) {
        std::string reason;
        if (absl::EndsWith(path, ".pbtxt") || absl::EndsWith(path, ".txt")) {
          reason = ParseText(content, graph);
        } else if (!graph->ParseFromString(content)) {
          reason = "not in binary format; text ends in .pbtxt or .txt";
        }
        // Binary messages of other types parse too, into unknown fields.
        if (reason.empty() && graph->node().empty()) reason = "it has no nodes";
        return reason;
      });
}

// What one query feeds to Session::Run.
using Query = std::vector<std::pair<std::string, Tensor>>;

class Server {
 public:
  absl::Status Start(const CommandLine& line) {
    GraphDef graph;
    TF_RETURN_IF_ERROR(LoadModel(line.model_path, &graph));
    SessionOptions options;
    TF_RETURN_IF_ERROR(
        ReadAs("config_path", line.config_path, "ConfigProto in text format",
               [&options](const std::string& content) {
                 return ParseConfigText(content, &options.config);
               }));
    Generator generator(1);  // the same queries in every process
    for (Query& query : queries_) {
      for (const std::string& name : line.input_names) {
        Tensor tensor;
        TF_RETURN_IF_ERROR(
            MakeInput(graph, name, line.batch_size, &generator, &tensor));
        query.emplace_back(name, tensor);
      }
    }
    output_names_ = line.output_names;
    Session* session = nullptr;
    TF_RETURN_IF_ERROR(NewSession(options, &session));
    session_.reset(session);
    return session_->Create(graph);
  }

  // Runs the `number`-th query.
  absl::Status Run(int64_t number, std::vector<Tensor>* outputs) {
    return session_->Run(queries_[number % kQueries], output_names_, {},
                         outputs);
  }

 private:
  std::unique_ptr<Session> session_;
  std::vector<Query> queries_{kQueries};
  std::vector<std::string> output_names_;
};

// What a query fetched, with types and shapes.
using Result = std::string;

Result ResultOf(const std::vector<Tensor>& outputs) {
  Result result;
  for (const Tensor& output : outputs) {
    TensorProto proto;
    output.AsProtoTensorContent(&proto);
    absl::StrAppend(&result, proto.SerializeAsString());
  }
  return result;
}

struct Load {
  absl::Status status;
  double seconds = 0;
  std::vector<double> milliseconds;  // of each query
  int64_t verified = 0;
  int64_t wrong = 0;
};

// Runs `iters` queries from each thread, which begin together. Each result must
// be the one of `expected`, unless that is empty. The first error ends it.
Load RunLoad(Server* server, int64_t number_of_threads, int64_t iters,
             const std::vector<Result>& expected) {
  using Clock = std::chrono::steady_clock;
  std::vector<Load> shares(number_of_threads);
  std::vector<std::thread> threads;
  std::atomic<bool> failed = false;
  std::promise<void> begin;
  const std::shared_future<void> begun = begin.get_future().share();
  for (int64_t thread = 0; thread < number_of_threads; ++thread) {
    threads.emplace_back([&, thread] {
      Load& share = shares[thread];
      std::vector<Tensor> outputs;
      begun.wait();
      for (int64_t i = 0; i < iters && !failed; ++i) {
        const Clock::time_point before = Clock::now();
        // Threads begin with different queries.
        share.status = server->Run(thread + i, &outputs);
        share.milliseconds.push_back(
            std::chrono::duration<double, std::milli>(Clock::now() - before)
                .count());
        if (!share.status.ok()) failed = true;
        if (expected.empty() || failed) continue;
        ++share.verified;
        share.wrong += ResultOf(outputs) != expected[(thread + i) % kQueries];
      }
    });
  }
  const Clock::time_point start = Clock::now();
  begin.set_value();
  for (std::thread& thread : threads) thread.join();
  Load total;
  total.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  for (const Load& share : shares) {
    total.status.Update(share.status);
    total.milliseconds.insert(total.milliseconds.end(),
                              share.milliseconds.begin(),
                              share.milliseconds.end());
    total.verified += share.verified;
    total.wrong += share.wrong;
  }
  return total;
}

void PrintTimes(Load load) {
  std::vector<double>& sorted = load.milliseconds;
  std::sort(sorted.begin(), sorted.end());
  double sum = 0;
  for (double each : sorted) sum += each;
  // The smallest that so many percent do not exceed.
  const auto percentile = [&sorted](int percent) {
    return sorted[(percent * sorted.size() + 99) / 100 - 1];
  };
  absl::PrintF(
      "%d queries in %.3f s: %.1f queries/s\n"
      "latency in ms: mean %.3f, p50 %.3f, p95 %.3f, p99 %.3f, max %.3f\n",
      sorted.size(), load.seconds, sorted.size() / load.seconds,
      sum / sorted.size(), percentile(50), percentile(95), percentile(99),
      sorted.back());
  const char* emulated = std::getenv("TF_MULTI_STREAM_EMULATED_GPUS");
  if (emulated != nullptr && std::atoi(emulated) > 0) {
    std::puts(
        "the GPU is emulated on the CPU: results count, times mean nothing");
  }
}

// Steps since `before`.
void PrintGroups(const std::vector<StreamGroupStats>& before) {
  constexpr double kMebi = 1024.0 * 1024.0;
  const std::vector<StreamGroupStats> after = StreamStats();
  if (after.empty()) std::puts("no stream groups: stock TensorFlow's way");
  for (size_t i = 0; i < after.size(); ++i) {
    StreamGroupStats earlier;
    if (i < before.size()) earlier = before[i];
    const StreamGroupStats& group = after[i];
    absl::PrintF(
        "gpu %d group %d: %d steps, %d failed, %d replayed, %.2f MiB in "
        "use, %.2f MiB peak\n",
        group.gpu, group.group, group.steps_started - earlier.steps_started,
        group.steps_failed - earlier.steps_failed,
        group.steps_replayed - earlier.steps_replayed,
        group.bytes_in_use / kMebi, group.peak_bytes_in_use / kMebi);
  }
}

// Sets `right` to whether all results were right.
absl::Status Serve(const CommandLine& line, bool* right) {
  Server server;
  TF_RETURN_IF_ERROR(server.Start(line));
  std::vector<Result> expected;  // of each query
  for (int i = 0; line.verify && i < kQueries; ++i) {
    std::vector<Tensor> outputs;
    TF_RETURN_IF_ERROR(server.Run(i, &outputs));
    expected.push_back(ResultOf(outputs));
  }
  const int64_t warm_up = std::min(kWarmUp, line.iters);
  const Load first =
      RunLoad(&server, line.number_of_threads, warm_up, expected);
  TF_RETURN_IF_ERROR(first.status);
  const std::vector<StreamGroupStats> before = StreamStats();
  const Load load =
      RunLoad(&server, line.number_of_threads, line.iters, expected);
  TF_RETURN_IF_ERROR(load.status);
  absl::PrintF(
      "%d threads x %d warm-up and %d measured queries, batch size %d\n",
      line.number_of_threads, warm_up, line.iters, line.batch_size);
  PrintTimes(load);
  PrintGroups(before);
  *right = true;
  if (!line.verify) return absl::OkStatus();
  uint64_t fingerprint = 0;
  for (const Result& result : expected) {
    fingerprint = Hash64(result.data(), result.size(), fingerprint);
  }
  absl::PrintF("fingerprint of one thread's results: %016x\n", fingerprint);
  const int64_t wrong = first.wrong + load.wrong;
  absl::PrintF("verified %d results, %d wrong\n",
               first.verified + load.verified, wrong);
  *right = wrong == 0;
  return absl::OkStatus();
}

int Fail(absl::string_view message, int exit_status) {
  std::fprintf(stderr, "multistream_inference: %s\n",
               std::string(message).c_str());
  return exit_status;
}

int Main(const std::vector<std::string>& arguments) {
  if (absl::c_linear_search(arguments, "--help")) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  const absl::StatusOr<CommandLine> line = ParseCommandLine(arguments);
  if (!line.ok()) return Fail(line.status().message(), 2);
  if (const std::string wrong = CheckEnvironment(); !wrong.empty()) {
    return Fail(wrong, 1);
  }
  bool right = false;
  absl::Status status = Serve(*line, &right);
  if (!status.ok()) return Fail(status.message(), 1);
  return right ? 0 : 1;
}

}  // namespace
}  // namespace tensorflow::multistream

int main(int argc, char** argv) {
  return tensorflow::multistream::Main({argv + 1, argv + argc});
}
