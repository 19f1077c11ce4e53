// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/examples/multistream/model.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/parse_text.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/env.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr int64_t kDefaultRange = 100;

// Reads a file; `parse` says why its content is no `type`, or nothing.
absl::Status Load(absl::string_view argument, const std::string& path,
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

struct Input {
  DataType dtype = DT_INVALID;
  TensorShape shape;
  int64_t range = kDefaultRange;
};

absl::StatusOr<Input> FindInput(const GraphDef& graph, const std::string& name,
                                int64_t batch_size) {
  const auto invalid = [&name](const auto&... reason) {
    return absl::InvalidArgumentError(
        absl::StrCat("input_name '", name, "' ", reason...));
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
  Input input;
  TensorShapeProto shape;
  for (const auto& [key, value] : node->attr()) {
    if (key == "dtype") input.dtype = value.type();
    if (key == "shape") shape = value.shape();
    if (key == "_input_range") input.range = value.i();
  }
  if (input.range < 1) {
    return invalid("has _input_range ", input.range, "; allowed is 1 or more");
  }
  if (shape.dim_size() > 0 && shape.dim(0).size() < 0) {
    shape.mutable_dim(0)->set_size(batch_size);
  }
  if (shape.unknown_rank() ||
      !TensorShape::BuildTensorShape(shape, &input.shape).ok()) {
    return invalid("is of shape ", PartialTensorShape(shape).DebugString(),
                   "; only its first dimension may be unknown");
  }
  return input;
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

absl::StatusOr<Tensor> MakeTensor(const std::string& name, const Input& input,
                                  Generator* generator) {
  Tensor tensor(input.dtype, input.shape);
  switch (input.dtype) {
#define FILL(T)                               \
  case DataTypeToEnum<T>::value:              \
    Fill<T>(input.range, generator, &tensor); \
    return tensor;
    TF_CALL_REAL_NUMBER_TYPES(FILL)
    TF_CALL_bool(FILL)
#undef FILL
        default : return absl::UnimplementedError(absl::StrCat(
                      "input_name '", name, "' is of type ",
                      DataTypeString(input.dtype),
                      "; inputs can be made of real numbers and bool"));
  }
}

}  // namespace

absl::Status LoadModel(const std::string& path, GraphDef* graph) {
  return Load("model_path", path, "frozen GraphDef", [&](const auto& content) {
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

absl::Status LoadConfig(const std::string& path, ConfigProto* config) {
  return Load("config_path", path, "ConfigProto in text format",
              [config](const std::string& content) {
                return ParseConfigText(content, config);
              });
}

absl::StatusOr<std::vector<Query>> MakeQueries(
    const GraphDef& graph, const std::vector<std::string>& names,
    int64_t batch_size, int count) {
  std::vector<Query> queries(count);
  Generator generator(1);
  for (Query& query : queries) {
    for (const std::string& name : names) {
      absl::StatusOr<Input> input = FindInput(graph, name, batch_size);
      if (!input.ok()) return input.status();
      absl::StatusOr<Tensor> tensor = MakeTensor(name, *input, &generator);
      if (!tensor.ok()) return tensor.status();
      query.emplace_back(name, *std::move(tensor));
    }
  }
  return queries;
}

}  // namespace multistream
}  // namespace tensorflow
