// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/capture_mark.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace multistream {
namespace {

// A function with a mark on its argument. The body is Neg, or a call of
// `calls`.
FunctionDef Function(const std::string& name, const char* mark,
                     const std::string& calls = "") {
  FunctionDefHelper::Node node{{"n"}, calls, {"x"}};
  if (calls.empty()) node = {{"n"}, "Neg", {"x"}, {{"T", DT_FLOAT}}};
  FunctionDef function = FunctionDefHelper::Create(
      name, {"x: float"}, {"y: float"}, {}, {node}, {{"y", "n:y:0"}});
  if (mark != nullptr) {
    (*(*function.mutable_arg_attr())[0].mutable_attr())[kCaptureAttr].set_s(
        mark);
  }
  return function;
}

class CaptureMarkTest : public testing::Test {
 protected:
  // A graph that calls these functions, one after another.
  Graph* Calling(const std::vector<std::string>& functions) {
    graph_ = std::make_unique<Graph>(OpRegistry::Global());
    Node* last = nullptr;
    EXPECT_TRUE(NodeBuilder("x", "_Arg")
                    .Attr("T", DT_FLOAT)
                    .Attr("index", 0)
                    .Finalize(graph_.get(), &last)
                    .ok());
    for (const std::string& function : functions) {
      NameAttrList called;
      called.set_name(function);
      EXPECT_TRUE(NodeBuilder(function, "PartitionedCall")
                      .Input(std::vector<NodeBuilder::NodeOut>{last})
                      .Attr("Tin", DataTypeVector{DT_FLOAT})
                      .Attr("Tout", DataTypeVector{DT_FLOAT})
                      .Attr("f", called)
                      .Finalize(graph_.get(), &last)
                      .ok());
    }
    EXPECT_TRUE(NodeBuilder("result", "_Retval")
                    .Input(last)
                    .Attr("index", 0)
                    .Finalize(graph_.get(), &last)
                    .ok());
    return graph_.get();
  }

  std::optional<CaptureMode> MarkOf(const std::vector<std::string>& functions) {
    Graph* graph = Calling(functions);
    const absl::Status status = MarkArgumentsAndResults(library_, graph);
    EXPECT_TRUE(status.ok()) << status;
    return CaptureMarkOf(*graph);
  }

  void Add(const FunctionDef& function) {
    EXPECT_TRUE(library_.AddFunctionDef(function).ok());
  }

  FunctionLibraryDefinition library_{OpRegistry::Global(),
                                     FunctionDefLibrary()};
  std::unique_ptr<Graph> graph_;
};

TEST_F(CaptureMarkTest, AGraphHasTheMarkOfTheFunctionsThatItCalls) {
  Add(Function("plain", nullptr));
  Add(Function("never", "off"));
  Add(Function("may", "auto"));
  Add(Function("must", "require"));
  EXPECT_EQ(MarkOf({}), std::nullopt);
  EXPECT_EQ(MarkOf({"plain"}), std::nullopt);
  EXPECT_EQ(MarkOf({"plain", "never"}), CaptureMode::kOff);
  EXPECT_EQ(MarkOf({"may", "never"}), CaptureMode::kAuto);
  EXPECT_EQ(MarkOf({"may", "must", "never"}), CaptureMode::kRequire);
}

TEST_F(CaptureMarkTest, AtAnyDepthAndAlsoWhereFunctionsCallThemselves) {
  Add(Function("inner", "auto", "outer"));
  Add(Function("outer", nullptr, "inner"));
  Add(Function("outermost", nullptr, "outer"));
  EXPECT_EQ(MarkOf({"outermost"}), CaptureMode::kAuto);
}

TEST_F(CaptureMarkTest, AnUnknownMarkIsNamed) {
  for (const char* mark : {"on", "", "marked"}) {
    Graph* graph = Calling({});
    for (Node* node : graph->op_nodes()) {
      if (node->name() == "x") node->AddAttr(kCaptureAttr, mark);
    }
    const absl::Status status = MarkArgumentsAndResults(library_, graph);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "'x'")) << status;
  }
}

// Not every part contains an argument of the graph.
TEST_F(CaptureMarkTest, PartsShareTheMark) {
  Add(Function("must", "require"));
  Graph* marked = Calling({"must"});
  EXPECT_TRUE(MarkArgumentsAndResults(library_, marked).ok());
  const std::unique_ptr<Graph> kept = std::move(graph_);
  const std::unique_ptr<Graph> plain = (Calling({}), std::move(graph_));
  MarkParts({plain.get()});
  EXPECT_EQ(CaptureMarkOf(*plain), std::nullopt);
  MarkParts({plain.get(), kept.get()});
  EXPECT_EQ(CaptureMarkOf(*plain), CaptureMode::kRequire);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
