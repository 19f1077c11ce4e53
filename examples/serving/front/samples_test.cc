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
  EXPECT_FALSE(samples.Take("m", "").drawn);
  samples.SetShare("m", 0.25);
  int taken = 0;
  for (int i = 0; i < 10000; ++i) {
    taken += samples.Take("m", "").drawn;
    EXPECT_FALSE(samples.Take("other", "").drawn);
  }
  EXPECT_GT(taken, 2000);
  EXPECT_LT(taken, 3000);
  samples.SetShare("m", 1);
  EXPECT_TRUE(samples.Take("m", "").drawn);
  samples.SetShare("m", 0);
  EXPECT_FALSE(samples.Take("m", "").drawn);
}

TEST(SamplesTest, CallsThatTheirClientsTrace) {
  Samples samples;
  EXPECT_FALSE(samples.Take("m", Traceparent("01")).traced);
  samples.SetTraced(true);
  for (const char* flags : {"01", "03", "0f", "ff"}) {
    EXPECT_TRUE(samples.Take("m", Traceparent(flags)).traced) << flags;
  }
  for (const char* flags : {"00", "02", "0e", "0", "0g", "0/"}) {
    EXPECT_FALSE(samples.Take("m", Traceparent(flags)).traced) << flags;
  }
  EXPECT_FALSE(samples.Take("m", "").traced);
  samples.SetTraced(false);
  EXPECT_FALSE(samples.Take("m", Traceparent("01")).traced);
}

}  // namespace
}  // namespace front
