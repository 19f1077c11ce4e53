// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/capture_mark.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_fixture.h"

namespace tensorflow::multistream {
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
    part_ = std::make_unique<PartGraph>(kGpu, kHost);
    part_->Add("x = arg(); last = Identity(x)");
    for (const std::string& function : functions) {
      part_->Add(absl::StrCat("last = PartitionedCall(last) Tout=[DT_FLOAT] f=",
                              function));
    }
    part_->Add("result(last)");
    return &part_->graph;
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
  std::unique_ptr<PartGraph> part_;
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
  for (const char* mark : {"on", "", "marked", "inference"}) {
    Graph* graph = Calling({});
    (*part_)["x"]->AddAttr(kCaptureAttr, mark);
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
  const std::unique_ptr<PartGraph> kept = std::move(part_);
  Graph* plain = Calling({});
  MarkParts({plain});
  EXPECT_EQ(CaptureMarkOf(*plain), std::nullopt);
  MarkParts({plain, marked});
  EXPECT_EQ(CaptureMarkOf(*plain), CaptureMode::kRequire);
}

}  // namespace
}  // namespace tensorflow::multistream
