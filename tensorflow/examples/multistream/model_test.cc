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

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/examples/multistream/contains.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr char kGraph[] = R"pb(
  node {
    name: "ids"
    op: "Placeholder"
    attr {
      key: "dtype"
      value { type: DT_INT64 }
    }
    attr {
      key: "shape"
      value {
        shape {
          dim { size: -1 }
          dim { size: 3 }
        }
      }
    }
    attr {
      key: "_input_range"
      value { i: 7 }
    }
  }
  node {
    name: "dense"
    op: "Placeholder"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "shape"
      value { shape { dim { size: 2 } } }
    }
  }
  node { name: "output" op: "NoOp" }
)pb";

std::string TempPath(const std::string& name) {
  return absl::StrCat(::testing::TempDir(), "/model_test_", name);
}

std::string Write(const std::string& name, const std::string& content) {
  const std::string path = TempPath(name);
  EXPECT_TRUE(WriteStringToFile(Env::Default(), path, content).ok());
  return path;
}

GraphDef Graph() {
  GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kGraph, &graph));
  return graph;
}

AttrValue& Attribute(GraphDef* graph, const std::string& name) {
  return (*graph->mutable_node(0)->mutable_attr())[name];
}

template <typename T>
std::string ErrorOf(const absl::StatusOr<T>& result) {
  return std::string(result.status().message());
}

TEST(ModelTest, ReadsTextAndBinary) {
  const auto text = LoadModel(Write("a.pbtxt", kGraph));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->graph.node_size(), 3);
  const std::string bytes = Graph().SerializeAsString();
  const auto binary = LoadModel(Write("a.pb", bytes));
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_EQ(binary->graph.node_size(), 3);
  EXPECT_NE(text->fingerprint, binary->fingerprint);
}

TEST(ModelTest, ReadsEitherIfTheNameDoesNotSay) {
  EXPECT_TRUE(LoadModel(Write("text", kGraph)).ok());
  EXPECT_TRUE(LoadModel(Write("binary", Graph().SerializeAsString())).ok());
}

TEST(ModelTest, MissingModelIsNamed) {
  EXPECT_TRUE(Contains(ErrorOf(LoadModel("/no/such.pbtxt")),
                       {"model_path '/no/such.pbtxt'", "no such file"}));
}

TEST(ModelTest, FolderIsNoModel) {
  EXPECT_TRUE(
      Contains(ErrorOf(LoadModel(::testing::TempDir())), {"is a folder"}));
}

TEST(ModelTest, FileThatIsNoGraphDefIsNamedWithThePlace) {
  EXPECT_TRUE(
      Contains(ErrorOf(LoadModel(Write("bad.pbtxt", "node {\n  nam: 1 }"))),
               {"bad.pbtxt' is not a GraphDef in text format", "line 2"}));
  EXPECT_TRUE(Contains(ErrorOf(LoadModel(Write("bad.pb", "no graph\n"))),
                       {"bad.pb' is not a GraphDef: not in binary format"}));
  EXPECT_TRUE(Contains(ErrorOf(LoadModel(Write("bad", "\x01\x02 bytes"))),
                       {"bad' is not a GraphDef"}));
  EXPECT_TRUE(Contains(ErrorOf(LoadModel(Write("empty.pb", ""))),
                       {"is not a GraphDef with nodes"}));
}

TEST(ModelTest, ReadsConfig) {
  const auto config =
      LoadConfig(Write("config", "# soft\nallow_soft_placement: true\n"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->allow_soft_placement());
}

TEST(ModelTest, ConfigMayAskForStreams) {
  const auto config =
      LoadConfig(Write("streams",
                       "graph_options { rewrite_options {\n"
                       "  use_multi_stream: ON\n"
                       "  multi_stream_opts { multi_stream_num: 4 }\n"
                       "} }\n"));
  ASSERT_TRUE(config.ok()) << config.status();
  ConfigProto same;
  SetMultiStream(4, MultiStreamPartitionPolicy::kNoPartition, &same);
  EXPECT_GT(same.ByteSizeLong(), 0);
  EXPECT_TRUE(Contains(
      ErrorOf(LoadConfig(Write(
          "few", "graph_options {\n rewrite_options { multi_streams: 1 } }"))),
      {"line 2", "multi_streams"}));
}

TEST(ModelTest, BadConfigIsNamedWithThePlace) {
  EXPECT_TRUE(Contains(ErrorOf(LoadConfig("/no/config")),
                       {"config_path '/no/config': there is no such file"}));
  EXPECT_TRUE(
      Contains(ErrorOf(LoadConfig(Write("bad_config", "threads: 4"))),
               {"is not a ConfigProto in text format: line 1", "threads"}));
}

TEST(ModelTest, InputTakesItsShapeAndRangeFromThePlaceholder) {
  const auto inputs = ResolveInputs(Graph(), {"ids:0", "dense"}, 16);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  EXPECT_EQ((*inputs)[0].dtype, DT_INT64);
  EXPECT_EQ((*inputs)[0].shape, TensorShape({16, 3}));
  EXPECT_EQ((*inputs)[0].range, 7);
  EXPECT_EQ((*inputs)[1].shape, TensorShape({2}));
  EXPECT_EQ((*inputs)[1].range, 100);
}

TEST(ModelTest, UnknownInputNamesThePlaceholders) {
  EXPECT_TRUE(Contains(
      ErrorOf(ResolveInputs(Graph(), {"idz"}, 1)),
      {"input_name 'idz' is not in the graph", "there is: ids, dense"}));
}

TEST(ModelTest, InputMustBeAPlaceholderGivenOnce) {
  EXPECT_TRUE(Contains(ErrorOf(ResolveInputs(Graph(), {"output"}, 1)),
                       {"NoOp, not a placeholder", "ids"}));
  EXPECT_TRUE(Contains(ErrorOf(ResolveInputs(Graph(), {"ids:1"}, 1)),
                       {"not a placeholder"}));
  EXPECT_TRUE(Contains(ErrorOf(ResolveInputs(Graph(), {"ids:x"}, 1)),
                       {"'ids:x' is not a tensor's name"}));
  EXPECT_TRUE(Contains(ErrorOf(ResolveInputs(Graph(), {"ids", "ids:0"}, 1)),
                       {"'ids:0' is given twice"}));
}

TEST(ModelTest, InputThatCannotBeMadeIsRefused) {
  GraphDef graph = Graph();
  Attribute(&graph, "dtype").set_type(DT_STRING);
  EXPECT_TRUE(Contains(ErrorOf(ResolveInputs(graph, {"ids"}, 1)),
                       {"is of type string; inputs can be made of types"}));
  graph = Graph();
  Attribute(&graph, "shape").mutable_shape()->mutable_dim(1)->set_size(-1);
  EXPECT_TRUE(Contains(ErrorOf(ResolveInputs(graph, {"ids"}, 1)),
                       {"dimension 1 is unknown"}));
  graph = Graph();
  Attribute(&graph, "shape").mutable_shape()->set_unknown_rank(true);
  EXPECT_TRUE(Contains(ErrorOf(ResolveInputs(graph, {"ids"}, 1)),
                       {"has no known rank"}));
  graph = Graph();
  Attribute(&graph, "_input_range").set_i(0);
  EXPECT_TRUE(Contains(ErrorOf(ResolveInputs(graph, {"ids"}, 1)),
                       {"_input_range is 0"}));
  graph = Graph();
  Attribute(&graph, "shape")
      .mutable_shape()
      ->mutable_dim(1)
      ->set_size(int64_t{1} << 40);
  EXPECT_TRUE(Contains(ErrorOf(ResolveInputs(graph, {"ids"}, 1)),
                       {"more than 2^32 elements"}));
}

TEST(ModelTest, UnknownOutputNamesNearNames) {
  EXPECT_TRUE(CheckOutputs(Graph(), {"output", "dense:0"}).ok());
  EXPECT_TRUE(
      Contains(std::string(CheckOutputs(Graph(), {"outputs"}).message()),
               {"output_name 'outputs' is not in the graph", "output"}));
  EXPECT_TRUE(
      Contains(std::string(CheckOutputs(Graph(), {"^output"}).message()),
               {"is not a tensor's name"}));
}

TEST(ModelTest, NearNamesPutsTheLikeliestFirst) {
  EXPECT_EQ(NearNames("outptu", {"input", "output", "x", "tower/output"}, 2),
            std::vector<std::string>({"output", "input"}));
  EXPECT_EQ(NearNames("output", {"outside", "tower/output"}, 1),
            std::vector<std::string>({"tower/output"}));
}

TEST(ModelTest, InputSetsAreInRangeDifferentAndRepeatable) {
  const auto inputs = ResolveInputs(Graph(), {"ids", "dense"}, 100);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  const auto sets = MakeInputSets(*inputs, 4, 1);
  ASSERT_TRUE(sets.ok()) << sets.status();
  ASSERT_EQ(sets->size(), 4);
  std::vector<int> seen(7);
  auto ids = (*sets)[0][0].flat<int64_t>();
  for (int i = 0; i < ids.size(); ++i) {
    ASSERT_GE(ids(i), 0);
    ASSERT_LT(ids(i), 7);
    ++seen[ids(i)];
  }
  for (int count : seen) EXPECT_GT(count, 0);
  auto dense = (*sets)[0][1].flat<float>();
  EXPECT_GE(dense(0), 0);
  EXPECT_LT(dense(0), 1);

  EXPECT_NE((*sets)[0][0].tensor_data(), (*sets)[1][0].tensor_data());
  const auto again = MakeInputSets(*inputs, 4, 1);
  EXPECT_EQ((*sets)[3][0].tensor_data(), (*again)[3][0].tensor_data());
  const auto other = MakeInputSets(*inputs, 4, 2);
  EXPECT_NE((*sets)[3][0].tensor_data(), (*other)[3][0].tensor_data());
}

TEST(ModelTest, EveryTypeOfInputCanBeMade) {
  std::vector<InputSpec> inputs;
  for (DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16, DT_INT8,
                         DT_UINT8, DT_INT16, DT_INT32, DT_INT64, DT_BOOL}) {
    inputs.push_back({"x", dtype, TensorShape({64}), 1000});
  }
  const auto sets = MakeInputSets(inputs, 1, 1);
  ASSERT_TRUE(sets.ok()) << sets.status();
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ((*sets)[0][i].dtype(), inputs[i].dtype);
  }
  auto narrow = (*sets)[0][4].flat<int8_t>();
  for (int i = 0; i < narrow.size(); ++i) EXPECT_GE(narrow(i), 0);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
