// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/pieces/piece_back_off.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace tensorflow::multistream {
namespace {

void RunPieces(PieceBackOff* back_off, int replayed) {
  for (int i = 0; i < PieceBackOff::kPieces; ++i) {
    back_off->NotePiece(/*launches=*/9, i < replayed);
  }
}

int64_t StepsWithoutPieces(PieceBackOff* back_off) {
  int64_t steps = 0;
  while (!back_off->UsePieces()) ++steps;
  return steps;
}

TEST(PieceBackOffTest, StepsRunInPiecesIfHalfOfThemAreReplayed) {
  PieceBackOff back_off;
  EXPECT_EQ(StepsWithoutPieces(&back_off), 0);
  RunPieces(&back_off, PieceBackOff::kPieces / 2);
  EXPECT_EQ(StepsWithoutPieces(&back_off), 0);
}

TEST(PieceBackOffTest, APieceCountsByItsLaunches) {
  PieceBackOff back_off;
  const auto run = [&back_off](int replayed, int others) {
    for (int i = 0; i < PieceBackOff::kPieces; ++i) {
      const bool is_replayed = i % 2 == 0;
      back_off.NotePiece(is_replayed ? replayed : others, is_replayed);
    }
  };
  run(/*replayed=*/556, /*others=*/4255);
  EXPECT_EQ(StepsWithoutPieces(&back_off), PieceBackOff::kFirstPause);
  run(/*replayed=*/4255, /*others=*/556);
  EXPECT_EQ(StepsWithoutPieces(&back_off), 0);
}

TEST(PieceBackOffTest, PausesGrowUntilPiecesAreReplayed) {
  PieceBackOff back_off;
  const int few = PieceBackOff::kPieces / 2 - 1;
  int64_t pause = PieceBackOff::kFirstPause;
  for (int i = 0; i < 10; ++i) {
    RunPieces(&back_off, few);
    EXPECT_EQ(StepsWithoutPieces(&back_off), pause);
    EXPECT_TRUE(back_off.UsePieces());
    pause = std::min(2 * pause, PieceBackOff::kLongestPause);
  }
  RunPieces(&back_off, PieceBackOff::kPieces);
  EXPECT_EQ(StepsWithoutPieces(&back_off), 0);
  RunPieces(&back_off, 0);
  EXPECT_EQ(StepsWithoutPieces(&back_off), PieceBackOff::kFirstPause);
}

}  // namespace
}  // namespace tensorflow::multistream
