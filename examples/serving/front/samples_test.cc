// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/samples.h"

#include <gtest/gtest.h>

#include <string>

namespace front {
namespace {

std::string Traceparent(const std::string& flags) {
  return "00-" + std::string(32, 'a') + "-" + std::string(16, 'b') + "-" +
         flags;
}

TEST(SamplesTest, AShareOfAModelsCalls) {
  Samples samples;
  EXPECT_FALSE(samples.Draw("m"));
  samples.SetShare("m", 0.25);
  int taken = 0;
  for (int i = 0; i < 10000; ++i) {
    taken += samples.Draw("m");
    EXPECT_FALSE(samples.Draw("other"));
  }
  EXPECT_GT(taken, 2000);
  EXPECT_LT(taken, 3000);
  samples.SetShare("m", 1);
  EXPECT_TRUE(samples.Draw("m"));
  samples.SetShare("m", 0);
  EXPECT_FALSE(samples.Draw("m"));
}

TEST(SamplesTest, CallsThatTheirClientsTrace) {
  for (const char* flags : {"01", "03", "0f", "ff"}) {
    EXPECT_TRUE(IsTraced(Traceparent(flags))) << flags;
  }
  for (const char* flags : {"00", "02", "0e", "0", "0g", "0/"}) {
    EXPECT_FALSE(IsTraced(Traceparent(flags))) << flags;
  }
  EXPECT_FALSE(IsTraced(""));
  Samples samples;
  EXPECT_FALSE(samples.traced());
  samples.SetTraced(true);
  EXPECT_TRUE(samples.traced());
  samples.SetTraced(false);
  EXPECT_FALSE(samples.traced());
}

}  // namespace
}  // namespace front
