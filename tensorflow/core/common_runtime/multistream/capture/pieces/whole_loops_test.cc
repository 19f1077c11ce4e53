// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Loops in graphs that are cut (cut.h).

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

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

TEST(WholeLoopsTest, ALoopThatConstantsCountIsPartOfAPiece) {
  for (const bool constants : {true, false}) {
    Part part(absl::StrCat(
        "start = Tanh(x()); i = Merge(enter(start), enter(start));"
        "k = Merge(enter(0), enter(0));",
        constants ? "most = enter(9) is_constant=true;"
                  : "most = enter(Sum(ids(), {0})) is_constant=true;",
        "c = LoopCond(Less(k, most)); s = Switch(i, c); t = Switch(k, c);"
        "next = NextIteration(Exp(s:1));"
        "count = NextIteration(AddV2(t:1, enter(1) is_constant=true));"
        "result(Cos(Exit(s))); other(Where(x()))"));
    part.Close("next", "i");
    part.Close("count", "k");
    const Cut cut = CutIntoPieces(part.graph, nullptr, true, 1);
    Texts ops;
    for (const Piece& piece : cut.pieces) ops.push_back(Ops(*piece.graph));
    if (!constants) {
      EXPECT_EQ(ops.size(), 3) << absl::StrJoin(ops, "; ");
      continue;
    }
    EXPECT_EQ(ops, Texts{"AddV2 Cos Enter Enter Enter Enter Enter Enter Exit "
                         "Exp Less LoopCond Merge Merge NextIteration "
                         "NextIteration Switch Switch Tanh _Arg _Retval"});
    EXPECT_FALSE(cut.pieces[0].in_loop);
    EXPECT_EQ(Ops(*cut.graph),
              "Where _Arg _Arg _MultiStreamPiece _Retval _Retval");
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
