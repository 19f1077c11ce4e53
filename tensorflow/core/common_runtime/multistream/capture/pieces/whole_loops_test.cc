// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Loops in graphs that are cut (cut.h).

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/multistream/capture/pieces/cut.h"
#include "tensorflow/core/common_runtime/multistream/capture/pieces/cut_fixture.h"

namespace tensorflow::multistream {
namespace {

TEST(WholeLoopsTest, ANodeIsInAPieceOfItsLoop) {
  Part part(
      "start = Tanh(x()); i = Merge(enter(start), enter(start));"
      "c = LoopCond(Less(L2Loss(i), L2Loss(Neg(i)))); s = Switch(i, c);"
      "next = NextIteration(Exp(s:1)); result(Cos(Exit(s)))");
  part.Close("next", "i");
  const Cut cut = CutIntoPieces(part.graph, nullptr, true, 1);
  Texts ops;
  for (const Piece& piece : cut.pieces) ops.push_back(Ops(*piece.graph));
  std::sort(ops.begin(), ops.end());
  EXPECT_EQ(
      ops, (Texts{"Cos _Arg _Retval", "Exp _Arg _Retval",
                  "L2Loss L2Loss Less Neg _Arg _Retval", "Tanh _Arg _Retval"}));
  for (const Piece& piece : cut.pieces) {
    const char first = Ops(*piece.graph)[0];
    EXPECT_EQ(piece.in_loop, first == 'E' || first == 'L');
  }
}

// A loop that applies `body` to Tanh(x) while k < `most`, which is made in the
// loop `frame`.
std::string Loop(const std::string& most, const std::string& body = "Exp",
                 const std::string& start = "Tanh(x())") {
  return absl::StrCat(
      "start = ", start, "; i = Merge(enter(start), enter(start));",
      "k = Merge(enter(0), enter(0)); most = enter(", most,
      ") is_constant=true; c = LoopCond(Less(k, most));",
      "s = Switch(i, c); t = Switch(k, c);", "next = NextIteration(", body,
      "(s:1));",
      "count = NextIteration(AddV2(t:1, enter(1) is_constant=true));");
}

std::vector<Piece> PiecesOf(const std::string& text, int fewest = 1) {
  Part part(text);
  part.Close("next", "i");
  part.Close("count", "k");
  return CutIntoPieces(part.graph, nullptr, /*with_xla=*/true, fewest).pieces;
}

bool IsWhole(const std::vector<Piece>& pieces) {
  return std::any_of(pieces.begin(), pieces.end(), [](const Piece& piece) {
    return absl::StrContains(Ops(*piece.graph), "LoopCond");
  });
}

TEST(WholeLoopsTest, ALoopThatConstantsCountIsPartOfAPiece) {
  const auto pieces =
      PiecesOf(Loop("9") + "result(Cos(Exit(s))); other(Where(x()))");
  ASSERT_EQ(pieces.size(), 1);
  EXPECT_EQ(Ops(*pieces[0].graph),
            "AddV2 Cos Enter Enter Enter Enter Enter Enter Exit Exp Less "
            "LoopCond Merge Merge NextIteration NextIteration Switch Switch "
            "Tanh _Arg _Retval");
  EXPECT_FALSE(pieces[0].in_loop);
}

TEST(WholeLoopsTest, OnlyIfShapesAndConstantsCountIt) {
  const std::string rest = "result(Cos(Exit(s))); other(Where(x()))";
  struct Case {
    const char* most;
    bool whole;
    bool has_pieces;  // in each iteration
  };
  for (const Case& it : {
           Case{"9", true, false},
           {"1001", false, true},  // takes long to record
           {"Size(start)", true, false},
           {"Size(Tanh(Reshape(x(), ids())))", false, true},
           {"Size(Exp(x()))", true, false},
           {"Size(Where(x()))", false, false},
           {"Size(GatherNd(x(), Where(x())))", false, true},
           {"Sum(ids(), {0})", false, true},
           {"Size(Fill(ids(), 1))", false, true},
           {"Size(GatherV2(x(), Cast(places()) DstT=int32, 0))", true, false},
       }) {
    const auto pieces = PiecesOf(Loop(it.most) + rest);
    EXPECT_EQ(IsWhole(pieces), it.whole) << it.most;
    const bool has_pieces =
        std::any_of(pieces.begin(), pieces.end(),
                    [](const Piece& piece) { return piece.in_loop; });
    EXPECT_EQ(has_pieces, it.has_pieces) << it.most;
  }
}

TEST(WholeLoopsTest, ALoopWithAnOpThatIsNotCapturedIsDivided) {
  const auto pieces = PiecesOf(Loop("9", "Cos") +
                               "w = Where(s:1); result(Cos(Exit(s)));"
                               "other(Where(x()))");
  EXPECT_FALSE(IsWhole(pieces));
  EXPECT_FALSE(pieces.empty());
}

TEST(WholeLoopsTest, ALoopBesideOneThatIsDividedStaysWhole) {
  Part part(Loop("9") +
            "j = Merge(Enter(Sin(x())) frame_name=other,"
            "          Enter(Sin(x())) frame_name=other);"
            "d = LoopCond(Less(L2Loss(j), L2Loss(Neg(j)))); u = Switch(j, d);"
            "other_next = NextIteration(Tan(u:1));"
            "result(AddV2(Cos(Exit(s)), Exit(u))); other(Where(x()))");
  part.Close("next", "i");
  part.Close("count", "k");
  part.Close("other_next", "j");
  const Cut cut = CutIntoPieces(part.graph, nullptr, true, 1);
  ASSERT_TRUE(IsWhole(cut.pieces)) << cut.no_pieces;
  int in_loop = 0;
  for (const Piece& piece : cut.pieces) {
    const std::string ops = Ops(*piece.graph);
    in_loop += piece.in_loop;
    EXPECT_FALSE(absl::StrContains(ops, "LoopCond") &&
                 absl::StrContains(ops, "Tan "))
        << ops;
  }
  EXPECT_GT(in_loop, 0);
}

TEST(WholeLoopsTest, ALoopThatIsTooSmallForAPieceIsNone) {
  const std::string graph =
      Loop("9") + "result(Cos(Exit(s))); other(Where(x()))";
  EXPECT_FALSE(PiecesOf(graph, 3).empty());
  EXPECT_TRUE(PiecesOf(graph, 4).empty());
}

TEST(WholeLoopsTest, ALoopInABranchIsAPieceOfTheBranch) {
  const auto pieces =
      PiecesOf("p = Less(L2Loss(x()), L2Loss(Neg(x()))); b = Switch(x(), p);" +
               Loop("9", "Exp", "Tanh(b:1)") +
               "result(Merge(Cos(Exit(s)), Sin(b))); other(Where(x()))");
  ASSERT_TRUE(IsWhole(pieces));
  for (const Piece& piece : pieces) {
    const std::string ops = Ops(*piece.graph);
    EXPECT_FALSE(absl::StrContains(ops, "LoopCond") &&
                 absl::StrContains(ops, "Sin"))
        << ops;
  }
}

// What a loop gives depends on all that it takes, through other iterations.
TEST(WholeLoopsTest, APieceBeforeALoopIsNotThePieceAfterIt) {
  Part part(
      "a = Tanh(x()); b = Sin(x());"
      "i = Merge(enter(a), enter(a)); j = Merge(enter(b), enter(b));"
      "c = LoopCond(Less(L2Loss(i), L2Loss(i)));"
      "s = Switch(i, c); t = Switch(j, c);"
      "next = NextIteration(AddV2(s:1, t:1)); other_next = NextIteration(t:1);"
      "result(Cos(Exit(s))); other(Where(b))");
  part.Close("next", "i");
  part.Close("other_next", "j");
  const Cut cut = CutIntoPieces(part.graph, nullptr, true, 1);
  for (const Piece& piece : cut.pieces) {
    const std::string ops = Ops(*piece.graph);
    EXPECT_FALSE(absl::StrContains(ops, "Cos") && absl::StrContains(ops, "Sin"))
        << ops;
  }
}

}  // namespace
}  // namespace tensorflow::multistream
