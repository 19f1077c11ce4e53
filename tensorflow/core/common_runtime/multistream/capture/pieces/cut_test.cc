// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/pieces/cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/capture/pieces/cut_fixture.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_ends.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/host_values.h"
#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"

namespace tensorflow::multistream {
namespace {

// The ops of each piece, and then of the graph that remains.
std::vector<std::string> CutOf(const std::string& text, int fewest = 1) {
  const Part part(text);
  const Cut cut = CutIntoPieces(part.graph, nullptr, /*with_xla=*/true, fewest);
  std::vector<std::string> ops;
  for (const Piece& piece : cut.pieces) {
    EXPECT_EQ(piece.capturable.obstacle, "");
    EXPECT_TRUE(piece.capturable.is_piece);
    ops.push_back(Ops(*piece.graph));
  }
  if (cut.graph != nullptr) {
    ops.push_back(Ops(*cut.graph));
    std::vector<Node*> order;
    GetReversePostOrder(*cut.graph, &order);
    EXPECT_EQ(order.size(), cut.graph->num_nodes());
  }
  return ops;
}

// Of the first piece, as a kernel on a GPU has them.
int ArgumentsOnHost(const Graph& graph) {
  for (const Node* node : graph.op_nodes()) {
    if (node->type_string() != kPieceOp) continue;
    MemoryTypeVector inputs, outputs;
    TF_CHECK_OK(MemoryTypesForNode(graph.op_registry(), DEVICE_GPU, node->def(),
                                   &inputs, &outputs));
    return static_cast<int>(
        std::count(inputs.begin(), inputs.end(), HOST_MEMORY));
  }
  return -1;
}

TEST(CutTest, WhatIsBeforeAndAfterAnObstacleIsAPiece) {
  EXPECT_EQ(CutOf("y = Tanh(x()); w = Cholesky(y); result(Mul(Exp(y), w))"),
            (Texts{"Tanh _Arg _Retval", "Exp Mul _Arg _Arg _Retval",
                   "Cholesky _Arg _MultiStreamPiece _MultiStreamPiece "
                   "_Retval"}));
  // What is not needed between is in the later piece.
  EXPECT_EQ(CutOf("y = Tanh(x()); w = Cholesky(y);"
                  "z = Mul(Exp(Sin(Cos(y))), w); result(z); other(Abs(y))")
                .front(),
            "Tanh _Arg _Retval");
  // Unless the earlier piece is much larger then.
  EXPECT_EQ(CutOf("y = Tanh(Neg(Exp(x()))); w = Cholesky(y); result(Exp(w));"
                  "other(Abs(Sin(Cos(y))))")
                .front(),
            "Abs Cos Exp Neg Sin Tanh _Arg _Retval _Retval");
}

TEST(CutTest, WhatTakesAShapeThatValuesDecideIsLeftOutIfAllElseIsOnePiece) {
  const auto many = [](std::string x) {
    for (int i = 0; i < 60; ++i) x = absl::StrCat("Sin(", x, ")");
    return x;
  };
  // As the gradient of an embedding: of the rows that differ, sums.
  const std::string text =
      absl::StrCat("y = ", many("x()"),
                   "; u = Unique(places()); n = Size(u) out_type=int32;",
                   "result(Exp(UnsortedSegmentSum(y, u:1, n)))");
  const std::vector<std::string> ops = CutOf(text);
  ASSERT_EQ(ops.size(), 2);
  EXPECT_TRUE(absl::StrContains(ops[1], "Exp Size Unique"));
  EXPECT_TRUE(absl::StrContains(ops[1], "UnsortedSegmentSum"));
  // What waits for the GPU comes before the piece if it can.
  const Part part(text);
  const Cut cut = CutIntoPieces(part.graph, nullptr, /*with_xla=*/true, 1);
  for (const Node* node : cut.graph->op_nodes()) {
    if (node->type_string() != kPieceOp) continue;
    EXPECT_TRUE(absl::c_any_of(node->in_nodes(), [](const Node* before) {
      return before->type_string() == "Unique";
    }));
  }
  // Rows that are gathered are as many as the indices.
  EXPECT_EQ(CutOf(absl::StrCat("u = Unique(places()); g = GatherV2(x(), u, 0);"
                               "result(",
                               many("GatherV2(g, places(), 0)"), ")"))
                .back(),
            "GatherV2 GatherV2 Unique _Arg _Arg _Arg _MultiStreamPiece "
            "_Retval");
}

// The step ends while the GPU computes the piece, not after.
TEST(CutTest, TheConditionOfAnAssertComesBeforeThePieceIfFewOpsMakeIt) {
  const auto many = [](int ops) {
    std::string text = "Neg(x())";
    for (int i = 0; i < ops; ++i) text = absl::StrCat("Sin(", text, ")");
    return text;
  };
  const auto precedes = [&many](const std::string& condition,
                                const std::string& rest = "") {
    const Part part(absl::StrCat(
        "y = ", many(250), "; random = RandomUniform({2}) dtype=float;",
        "a = Assert(", condition, ", ids()); result(y); other(Where(x()))",
        rest));
    const Cut cut = CutIntoPieces(part.graph, nullptr, /*with_xla=*/true, 1);
    bool found = false;
    for (const Node* node : cut.graph->op_nodes()) {
      if (!node->IsSend()) continue;
      found |= absl::c_any_of(node->out_nodes(), [](const Node* after) {
        return after->type_string() == kPieceOp;
      });
    }
    return found;
  };
  EXPECT_TRUE(precedes("All(Less(x(), x()), 0)"));
  EXPECT_FALSE(precedes(absl::StrCat("All(Less(", many(9), ", x()), 0)")));
  // The piece would have to compute it.
  EXPECT_FALSE(precedes("All(Less(y, x()), 0)"));
  EXPECT_FALSE(precedes("All(Less(x(), random), 0)"));
  // Work on the GPU that comes after the Assert.
  EXPECT_FALSE(precedes("All(Less(x(), x()), 0)", "; Exp(x(), ^a)"));
}

TEST(CutTest, AGraphWithoutAPieceThatPaysRemains) {
  const std::string text =
      "y = Tanh(x()); w = Where(y); result(GatherNd(y, w))";
  EXPECT_EQ(CutOf(text, 2), Texts());
  // An op that takes two tensors and gives one does not pay for three copies.
  EXPECT_EQ(CutOf(text, 1),
            (Texts{"Tanh _Arg _Retval",
                   "GatherNd Where _Arg _MultiStreamPiece _Retval"}));
}

TEST(CutTest, NodesThatLaunchNothingAreNoPieces) {
  EXPECT_EQ(CutOf("result(Where(Reshape(x(), {-1})))"), Texts());
  // A shape is computed where its tensor is.
  EXPECT_EQ(CutOf("u = Unique(x()); n = Size(u);"
                  "result(Mul(Cast(n) DstT=float, Tanh(x())))")
                .back(),
            "Size Unique _Arg _Arg _MultiStreamPiece _Retval");
}

TEST(CutTest, ValuesOfTheHostThatDecideSizesAreMarked) {
  for (const bool decides : {false, true}) {
    const Part part(absl::StrCat(
        "y = ", decides ? "Tile(x(), ids())" : "GatherV2(x(), ids(), 0)",
        "; result(Exp(Tanh(y))); other(Where(x()))"));
    const Cut cut = CutIntoPieces(part.graph, nullptr, true, 1);
    ASSERT_EQ(cut.pieces.size(), 1);
    int marked = 0, on_host = 0;
    for (const auto& argument : cut.pieces[0].capturable.arguments) {
      marked += argument.decides;
      on_host += argument.on_host;
    }
    EXPECT_EQ(on_host, 1);
    EXPECT_EQ(ArgumentsOnHost(*cut.graph), 1);
    EXPECT_EQ(marked, decides ? 1 : 0);
  }
}

// In a piece, int32 values are computed on the GPU. A piece that gave them to
// the host would have to wait for the GPU.
TEST(CutTest, IntegersOfTheGpuStayThereInAPiece) {
  EXPECT_EQ(CutOf("m = Cast(Tanh(x())) DstT=int32; n = Neg(m);"
                  "result(Exp(Cast(n) DstT=float)); other(Where(x()))"),
            (Texts{"Cast Cast Exp Neg Tanh _Arg _Retval",
                   "Where _Arg _Arg _MultiStreamPiece _Retval _Retval"}));
  EXPECT_EQ(CutOf("n = Neg(Cast(Tanh(x())) DstT=int32); other(n);"
                  "result(Exp(x())); Where(x())"),
            (Texts{"Cast Exp Tanh _Arg _Arg _DeviceRetval _Retval",
                   "Neg Where _Arg _Arg _Arg _MultiStreamPiece _Retval "
                   "_Retval"}));
  // A size that is computed on the GPU ends a piece, and is a part of the key
  // of the next one.
  EXPECT_EQ(CutOf("n = Cast(Tanh(x())) DstT=int32;"
                  "result(Exp(Tile(x(), n))); Where(x())"),
            (Texts{"Cast Tanh _Arg _DeviceRetval", "Exp Tile _Arg _Arg _Retval",
                   "Where _Arg _Arg _Arg _MultiStreamPiece _MultiStreamPiece "
                   "_Retval"}));
}

TEST(CutTest, ConstantsAndHandlesAreInEachPieceThatUsesThem) {
  const Texts ops = CutOf(
      "v = handle(); y = Tanh(AddV2(x(), read(v)));"
      "w = Cholesky(y); result(AddV2(Mul(y, w), read(v)))");
  EXPECT_EQ(ops, (Texts{"AddV2 ReadVariableOp Tanh VarHandleOp _Arg _Retval",
                        "AddV2 Mul ReadVariableOp VarHandleOp _Arg _Arg "
                        "_Retval",
                        "Cholesky _Arg _MultiStreamPiece _MultiStreamPiece "
                        "_Retval"}));
}

// A read for a piece, and for a shape, is in the piece: outside, it would keep
// the piece from changing the variable.
TEST(CutTest, TheShapeOfATensorIsWhereTheTensorIs) {
  const Texts ops = CutOf(
      "v = handle(); r = read(v); g = Tanh(GatherNd(Neg(x()), Where(x())));"
      "b = BroadcastTo(g, Shape(r)); s = Mul(Exp(b), r);"
      "a = AssignAddVariableOp(v, s); result(s)");
  EXPECT_EQ(ops.size(), 2);
  EXPECT_FALSE(absl::StrContains(ops.back(), "ReadVariableOp")) << ops.back();
  EXPECT_FALSE(absl::StrContains(ops.back(), "Shape")) << ops.back();
}

// As constant folding orders it: a forward pass would be a piece of its own,
// and so would be its reads of variables, which the next piece changes.
TEST(CutTest, AConstantThatComesAfterAnOpLeavesItInItsPiece) {
  Part part(
      "w = Where(Neg(x())); y = Tanh(x()); c = {-1};"
      "result(AddV2(GatherNd(y, w), Reshape(y, c)))");
  part.graph.AddControlEdge(part["y"], part["c"]);
  const Cut cut = CutIntoPieces(part.graph, nullptr, true, 1);
  ASSERT_EQ(cut.pieces.size(), 2);
  EXPECT_EQ(cut.pieces[0].launches, 1);
  EXPECT_EQ(cut.pieces[1].launches, 3);
}

// As at the start of a branch: other ops take the first constant, and the
// second one comes after it.
TEST(CutTest, AConstantAfterAPieceDoesNotRunBeforeIt) {
  Part part(
      "y = Tanh(x()); c = 1; d = {-1}; result(Reshape(Exp(y), d)); Where(c)");
  part.graph.AddControlEdge(part["y"], part["c"]);
  part.graph.AddControlEdge(part["c"], part["d"]);
  const Cut cut = CutIntoPieces(part.graph, nullptr, true, 1);
  EXPECT_EQ(cut.no_pieces, "");
  EXPECT_EQ(cut.pieces.size(), 1);
}

// Reads of a variable for two pieces are one read, so that both see one value.
TEST(CutTest, OneReadOfAVariableIsInOnePlace) {
  const Texts ops = CutOf(
      "r = read(handle()); y = Tanh(AddV2(x(), r));"
      "w = Cholesky(y); result(AddV2(Mul(y, w), r))");
  EXPECT_EQ(ops.back(),
            "Cholesky ReadVariableOp VarHandleOp _Arg _MultiStreamPiece "
            "_MultiStreamPiece _Retval");
}

TEST(CutTest, ChangesOfVariablesAreInPiecesInTheirOrder) {
  const Part part(
      "v = handle(); y = Tanh(x()); w = Where(y);"
      "s = Sum(Cast(w) DstT=float, 0);"
      "a = AssignAddVariableOp(v, s); r = read(v, ^a); result(Exp(r))");
  const Cut cut = CutIntoPieces(part.graph, nullptr, true, 1);
  ASSERT_EQ(cut.pieces.size(), 2);
  EXPECT_TRUE(cut.pieces[1].capturable.changes_variables);
  EXPECT_FALSE(cut.pieces[0].capturable.changes_variables);
}

// A piece runs as a whole or not at all.
TEST(CutTest, ANodeIsInAPieceOfItsBranch) {
  const Part part(
      "y = Tanh(x()); z = Tanh(x()); c = Less(L2Loss(y), L2Loss(z));"
      "s = Switch(y, c); t = Switch(z, c);"
      "m = Merge(Mul(Exp(s), Sin(t)), Mul(Cos(s:1), Tan(t:1)));"
      "result(Abs(m)); other(Where(y))");
  const Cut cut = CutIntoPieces(part.graph, nullptr, true, 1);
  Texts ops;
  for (const Piece& piece : cut.pieces) ops.push_back(Ops(*piece.graph));
  std::sort(ops.begin(), ops.end());
  EXPECT_EQ(ops, (Texts{"Abs _Arg _Retval", "Cos Mul Tan _Arg _Arg _Retval",
                        "Exp Mul Sin _Arg _Arg _Retval",
                        "L2Loss L2Loss Less Tanh Tanh _Arg _Arg _Retval "
                        "_Retval _Retval"}));
}

// Constant folding makes a constant of a branch's pivot.
TEST(CutTest, AConstantOrdersTheNodesOfABranch) {
  Part part(
      "y = Tanh(x()); z = Tanh(x()); c = Less(L2Loss(y), L2Loss(z));"
      "s = Switch(y, c); a = Exp(s:1); b = Sin(s:1); w = Where(s:1);"
      "pivot = Const() dtype=bool value='{dtype: DT_BOOL tensor_shape {}}';"
      "m = Merge(s, Mul(a, b)); result(Abs(m)); other(w)");
  part.graph.AddControlEdge(part["a"], part["pivot"]);
  for (const char* after : {"b", "w"}) {
    part.graph.AddControlEdge(part["pivot"], part[after]);
  }
  const Cut cut = CutIntoPieces(part.graph, nullptr, true, 1);
  EXPECT_EQ(cut.no_pieces, "");
  EXPECT_EQ(cut.pieces.size(), 3);
}

// An int32 tensor of an op on the GPU is not on the host, as that of an
// argument of the step would be.
TEST(CutTest, IntegersOnTheGpuStayThereBetweenPieces) {
  const Part part(
      "i = Cast(Tanh(x())) DstT=int32; w = Where(Cast(i) DstT=float);"
      "result(GatherV2(Exp(Sin(GatherNd(x(), w))), i, 0))");
  const Cut cut = CutIntoPieces(part.graph, nullptr, true, 1);
  ASSERT_EQ(cut.pieces.size(), 2);
  for (const Piece& piece : cut.pieces) {
    for (const auto& it : piece.capturable.arguments) EXPECT_FALSE(it.on_host);
    for (const auto& it : piece.capturable.results) EXPECT_FALSE(it.on_host);
  }
}

// The host would read a value that the GPU has not computed yet.
TEST(CutTest, NoPieceGivesTheHostAValueOfTheGpu) {
  const Part part(
      "c = Less(L2Loss(x()), L2Loss(Neg(x()))); s = Switch(Tanh(x()), c);"
      "result(Merge(s, s:1)); other(Where(x()))");
  const Cut cut = CutIntoPieces(part.graph, nullptr, true, 1);
  ASSERT_FALSE(cut.pieces.empty());
  for (const Piece& piece : cut.pieces) {
    for (const Node* node : piece.graph->op_nodes()) {
      const bool is_end = node->IsArg() || node->IsRetval();
      EXPECT_FALSE(is_end && EndIsOnHost(*node)) << node->name();
    }
  }
}

// A value that the host computes from this part's own results.
TEST(CutTest, APieceNeverWaitsForWhatItSends) {
  for (const bool known : {false, true}) {
    Part part(absl::StrCat("y = Tanh(x()); sent = send(y); back = receive();",
                           "result(AddV2(Exp(back), Sin(x())))"));
    if (known) {
      part["back"]->AddAttr("_multi_stream_after",
                            std::vector<std::string>{"sent"});
      part["back"]->AddAttr("_multi_stream_in_branch", false);
    }
    const Cut cut = CutIntoPieces(part.graph, nullptr, true, 1);
    ASSERT_EQ(cut.pieces.size(), known ? 2 : 0);
    if (!known) continue;
    EXPECT_EQ(Ops(*cut.pieces[0].graph), "Tanh _Arg _Retval");
    EXPECT_EQ(Ops(*cut.pieces[1].graph), "AddV2 Exp Sin _Arg _Arg _Retval");
  }
}

// A value that the host computes before the step travels with the other inputs
// of the one piece that uses it.
TEST(CutTest, EarlyValuesArePartOfAPiece) {
  for (const bool in_branch : {false, true}) {
    Part part("e = early(); result(AddV2(Exp(e), x())); other(Where(x()))");
    part["e"]->AddAttr("_multi_stream_after", std::vector<std::string>());
    part["e"]->AddAttr("_multi_stream_in_branch", in_branch);
    const Cut cut = CutIntoPieces(part.graph, nullptr, true, 1);
    ASSERT_EQ(cut.pieces.size(), 1);
    // A value that a branch may leave out is an argument: without it, the piece
    // does not run.
    const Capturable& piece = cut.pieces[0].capturable;
    EXPECT_EQ(piece.receives.size(), in_branch ? 0 : 1);
    EXPECT_EQ(piece.arguments.size(), in_branch ? 2 : 1);
  }
}

TEST(CutTest, WhatXlaCompilesIsInNoPieceWhereItIsNotRecorded) {
  for (const bool with_xla : {false, true}) {
    PartGraph part(kGpu, kHost);
    TF_CHECK_OK(part.graph.AddFunctionDef(
        FunctionDefHelper::Create(
            "f", {"x: float"}, {"y: float"}, {},
            {{{"inside"}, "Tanh", {"x"}, {{"T", DT_FLOAT}}}},
            {{"y", "inside:y:0"}}),
        StackTracesMap()));
    part.Define("x", "_Arg T=float index=0");
    part.Define("result", "_Retval index=0");
    part.Add(
        "call = StatefulPartitionedCall(Exp(Tanh(x()))) f=f Tout=[DT_FLOAT]"
        "    _XlaMustCompile=true; result(Sin(Cos(call)))");
    const Cut cut = CutIntoPieces(part.graph, nullptr, with_xla, 1);
    int calls = 0;
    for (const Piece& piece : cut.pieces) {
      for (const Node* node : piece.graph->op_nodes()) {
        calls += node->type_string() == "StatefulPartitionedCall";
      }
    }
    EXPECT_EQ(cut.pieces.size(), with_xla ? 1 : 2);
    EXPECT_EQ(calls, with_xla ? 1 : 0);
  }
}

TEST(CutTest, CollectivesAreNotCut) {
  for (const auto& [op, call] : std::map<std::string, std::string>{
           {"NcclAllReduce", "(y) reduction=sum num_devices=2 shared_name=c"},
           {"CollectiveReduceV2", "(y, n, n, n) merge_op=Add final_op=Id"}}) {
    const Part part(absl::StrCat("n = ids(); y = Tanh(x()); w = Where(y); c = ",
                                 op, call, "; result(GatherNd(c, w))"));
    const Cut cut = CutIntoPieces(part.graph, nullptr, true, 1);
    EXPECT_EQ(cut.graph, nullptr);
    EXPECT_EQ(cut.no_pieces,
              op + " 'c' is a collective, for which other devices wait");
  }
}

TEST(CutTest, WhyThereIsNoPieceIsSaid) {
  const auto no_pieces = [](const std::string& text, int fewest) {
    const Part part(text);
    return CutIntoPieces(part.graph, nullptr, /*with_xla=*/true, fewest)
        .no_pieces;
  };
  const std::string text = "result(Where(Exp(Tanh(x()))))";
  EXPECT_EQ(no_pieces(text, 1), "");
  EXPECT_EQ(no_pieces(text, 3), "none is large enough");
}

TEST(CutTest, WhatAValueWaitsForIsMarked) {
  PartGraph gpu(kGpu, kHost), host(kHost, kGpu);
  gpu.Add(
      "a = send(arg()); b = send(Neg(arg())); c = receive(); d = receive()");
  host.Add("a = receive(); b = receive(); c = send(Neg(a)); d = send(arg())");
  std::vector<Graph*> parts = {&gpu.graph, &host.graph};
  MarkEarlyValues(parts);
  EXPECT_EQ(WaitsOf(*gpu["c"]).sends, Texts{"a"});
  EXPECT_TRUE(WaitsOf(*gpu["d"]).known);
  EXPECT_TRUE(WaitsOf(*gpu["d"]).sends.empty());
  EXPECT_FALSE(WaitsOf(*gpu["c"]).in_branch);
}

}  // namespace
}  // namespace tensorflow::multistream
