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

#include "tensorflow/examples/multistream/model.h"

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "tensorflow/core/common_runtime/multistream/base/parse_text.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/examples/multistream/fingerprint.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr int64_t kDefaultRange = 100;
constexpr size_t kNearNames = 5;

absl::StatusOr<std::string> ReadFile(const std::string& what,
                                     const std::string& path) {
  Env* env = Env::Default();
  if (absl::Status status = env->FileExists(path); !status.ok()) {
    return absl::NotFoundError(
        absl::StrCat(what, " '", path, "': there is no such file"));
  }
  if (env->IsDirectory(path).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " '", path, "' is a folder, not a file"));
  }
  std::string content;
  if (absl::Status status = ReadFileToString(env, path, &content);
      !status.ok()) {
    return absl::Status(
        status.code(),
        absl::StrCat(what, " '", path, "' cannot be read: ", status.message()));
  }
  return content;
}

size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

// A tensor's name taken apart.
struct TensorName {
  std::string node;
  int64_t index = 0;
};

absl::StatusOr<TensorName> ParseTensorName(const std::string& what,
                                           const std::string& name) {
  TensorName parsed;
  const size_t colon = name.rfind(':');
  parsed.node = name.substr(0, colon);
  if (parsed.node.empty() || parsed.node[0] == '^' ||
      (colon != std::string::npos &&
       (!absl::SimpleAtoi(name.substr(colon + 1), &parsed.index) ||
        parsed.index < 0))) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " '", name, "' is not a tensor's name: `name` or `name:index`"));
  }
  return parsed;
}

const NodeDef* FindNode(const GraphDef& graph, const std::string& name) {
  for (const NodeDef& node : graph.node()) {
    if (node.name() == name) return &node;
  }
  return nullptr;
}

bool IsPlaceholder(const NodeDef& node) {
  return node.op() == "Placeholder" || node.op() == "PlaceholderWithDefault";
}

std::vector<std::string> NodeNames(const GraphDef& graph,
                                   bool placeholders_only) {
  std::vector<std::string> names;
  for (const NodeDef& node : graph.node()) {
    if (!placeholders_only || IsPlaceholder(node)) names.push_back(node.name());
  }
  return names;
}

absl::Status NotInGraph(const std::string& what, const std::string& name,
                        const std::vector<std::string>& allowed) {
  const std::vector<std::string> near = NearNames(name, allowed, kNearNames);
  std::string hint = "there is none";
  if (!near.empty()) {
    hint = absl::StrCat(
        near.size() == allowed.size() ? "there is: " : "near names: ",
        absl::StrJoin(near, ", "));
  }
  return absl::NotFoundError(
      absl::StrCat(what, " '", name, "' is not in the graph; ", hint));
}

bool CanBeMade(DataType dtype) {
  switch (dtype) {
    case DT_FLOAT:
    case DT_DOUBLE:
    case DT_HALF:
    case DT_BFLOAT16:
    case DT_INT8:
    case DT_UINT8:
    case DT_INT16:
    case DT_INT32:
    case DT_INT64:
    case DT_BOOL:
      return true;
    default:
      return false;
  }
}

absl::StatusOr<InputSpec> MakeSpec(const NodeDef& node, const std::string& name,
                                   int64_t batch_size) {
  InputSpec spec;
  spec.name = name;
  const auto& attributes = node.attr();
  if (auto it = attributes.find("dtype"); it != attributes.end()) {
    spec.dtype = it->second.type();
  }
  if (!CanBeMade(spec.dtype)) {
    return absl::UnimplementedError(absl::StrCat(
        "input_name '", name, "' is of type ", DataTypeString(spec.dtype),
        "; inputs can be made of types float, double, half, bfloat16, int8, "
        "uint8, int16, int32, int64 and bool"));
  }
  const auto shape = attributes.find("shape");
  if (shape == attributes.end() || shape->second.shape().unknown_rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("input_name '", name,
                     "' has no known rank; give its placeholder a shape in "
                     "which only the first dimension is unknown"));
  }
  const TensorShapeProto& dims = shape->second.shape();
  int64_t elements = 1;
  for (int i = 0; i < dims.dim_size(); ++i) {
    int64_t size = dims.dim(i).size();
    if (size < 0 && i == 0) size = batch_size;
    if (size < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input_name '", name, "': dimension ", i,
          " is unknown; only the first dimension, the batch, may be"));
    }
    if (size > 0 && elements > (int64_t{1} << 32) / size) {
      return absl::InvalidArgumentError(
          absl::StrCat("input_name '", name, "' with batch_size ", batch_size,
                       " has more than 2^32 elements"));
    }
    elements *= size;
    spec.shape.AddDim(size);
  }
  spec.range = kDefaultRange;
  if (auto it = attributes.find("_input_range"); it != attributes.end()) {
    spec.range = it->second.i();
    if (spec.range < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input_name '", name, "': its attribute _input_range is ", spec.range,
          "; it must be an integer of 1 or more"));
    }
  }
  return spec;
}

using Generator = std::mt19937_64;

// Not std::uniform_*_distribution: their values differ between libraries.
double UniformReal(Generator* generator) {
  return static_cast<double>((*generator)() >> 40) / (1 << 24);
}

template <typename T>
void FillReal(Generator* generator, Tensor* tensor) {
  auto values = tensor->flat<T>();
  for (int64_t i = 0; i < values.size(); ++i) {
    values(i) = static_cast<T>(static_cast<float>(UniformReal(generator)));
  }
}

template <typename T>
void FillInteger(Generator* generator, int64_t range, Tensor* tensor) {
  // A narrow type holds less than the range asks for.
  const uint64_t limit =
      std::min(static_cast<uint64_t>(range - 1),
               static_cast<uint64_t>(std::numeric_limits<T>::max()));
  auto values = tensor->flat<T>();
  for (int64_t i = 0; i < values.size(); ++i) {
    values(i) = static_cast<T>((*generator)() % (limit + 1));
  }
}

void Fill(Generator* generator, int64_t range, Tensor* tensor) {
  switch (tensor->dtype()) {
    case DT_FLOAT:
      return FillReal<float>(generator, tensor);
    case DT_DOUBLE:
      return FillReal<double>(generator, tensor);
    case DT_HALF:
      return FillReal<Eigen::half>(generator, tensor);
    case DT_BFLOAT16:
      return FillReal<bfloat16>(generator, tensor);
    case DT_INT8:
      return FillInteger<int8_t>(generator, range, tensor);
    case DT_UINT8:
      return FillInteger<uint8_t>(generator, range, tensor);
    case DT_INT16:
      return FillInteger<int16_t>(generator, range, tensor);
    case DT_INT32:
      return FillInteger<int32_t>(generator, range, tensor);
    case DT_INT64:
      return FillInteger<int64_t>(generator, range, tensor);
    default:  // DT_BOOL: CanBeMade() lets no other through.
      return FillInteger<bool>(generator, 2, tensor);
  }
}

}  // namespace

absl::StatusOr<Model> LoadModel(const std::string& path) {
  absl::StatusOr<std::string> content = ReadFile("model_path", path);
  if (!content.ok()) return content.status();
  const bool text_only =
      absl::EndsWith(path, ".pbtxt") || absl::EndsWith(path, ".txt");
  const bool binary_only = absl::EndsWith(path, ".pb");

  Model model;
  model.fingerprint = Fingerprint(*content);
  bool parsed = false;
  std::string reason = "not in binary format";
  if (!text_only) parsed = model.graph.ParseFromString(*content);
  if (!parsed && !binary_only) {
    model.graph.Clear();
    reason = ParseText(*content, &model.graph);
    parsed = reason.empty();
  }
  if (!parsed) {
    return absl::InvalidArgumentError(
        absl::StrCat("model_path '", path, "' is not a GraphDef",
                     text_only ? " in text format" : "", ": ", reason,
                     "; allowed are .pbtxt (text) and .pb (binary)"));
  }
  // Binary messages of other types parse too, into unknown fields.
  if (model.graph.node().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model_path '", path,
                     "' is not a GraphDef with nodes; a SavedModel must be "
                     "frozen into one first"));
  }
  return model;
}

absl::StatusOr<ConfigProto> LoadConfig(const std::string& path) {
  absl::StatusOr<std::string> content = ReadFile("config_path", path);
  if (!content.ok()) return content.status();
  ConfigProto config;
  if (std::string reason = ParseConfigText(*content, &config);
      !reason.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("config_path '", path,
                     "' is not a ConfigProto in text format: ", reason));
  }
  return config;
}

absl::StatusOr<std::vector<InputSpec>> ResolveInputs(
    const GraphDef& graph, const std::vector<std::string>& names,
    int64_t batch_size) {
  std::vector<InputSpec> specs;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    absl::StatusOr<TensorName> tensor = ParseTensorName("input_name", name);
    if (!tensor.ok()) return tensor.status();
    const NodeDef* node = FindNode(graph, tensor->node);
    if (node == nullptr) {
      return NotInGraph("input_name", name, NodeNames(graph, true));
    }
    if (!IsPlaceholder(*node) || tensor->index != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input_name '", name, "' is output ", tensor->index, " of op ",
          node->op(), ", not a placeholder; the graph's placeholders: ",
          absl::StrJoin(NearNames(name, NodeNames(graph, true), kNearNames),
                        ", ")));
    }
    if (!seen.insert(tensor->node).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("input_name '", name, "' is given twice"));
    }
    absl::StatusOr<InputSpec> spec = MakeSpec(*node, name, batch_size);
    if (!spec.ok()) return spec.status();
    specs.push_back(*std::move(spec));
  }
  return specs;
}

absl::Status CheckOutputs(const GraphDef& graph,
                          const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    absl::StatusOr<TensorName> tensor = ParseTensorName("output_name", name);
    if (!tensor.ok()) return tensor.status();
    if (FindNode(graph, tensor->node) == nullptr) {
      return NotInGraph("output_name", name, NodeNames(graph, false));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<InputSet>> MakeInputSets(
    const std::vector<InputSpec>& inputs, int64_t count, int64_t seed) {
  Generator generator(static_cast<uint64_t>(seed));
  std::vector<InputSet> sets(count);
  for (InputSet& set : sets) {
    for (const InputSpec& input : inputs) {
      Tensor tensor(input.dtype, input.shape);
      if (!tensor.IsInitialized() && input.shape.num_elements() > 0) {
        return absl::ResourceExhaustedError(
            absl::StrCat("no memory for ", count, " input sets with '",
                         input.name, "' of shape ", input.shape.DebugString(),
                         "; use a smaller batch_size or --input-sets"));
      }
      Fill(&generator, input.range, &tensor);
      set.push_back(std::move(tensor));
    }
  }
  return sets;
}

std::vector<std::string> NearNames(const std::string& name,
                                   const std::vector<std::string>& names,
                                   size_t limit) {
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string& candidate : names) {
    size_t distance = EditDistance(name, candidate);
    // A part of the name says more than letters in common.
    if (absl::StrContains(candidate, name) ||
        absl::StrContains(name, candidate)) {
      distance /= 4;
    }
    ranked.emplace_back(distance, candidate);
  }
  std::stable_sort(
      ranked.begin(), ranked.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> near;
  for (size_t i = 0; i < ranked.size() && i < limit; ++i) {
    near.push_back(ranked[i].second);
  }
  return near;
}

}  // namespace multistream
}  // namespace tensorflow
