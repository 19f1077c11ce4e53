// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/json_values.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>

namespace front {
namespace {

// Recorded from Python.
TEST(JsonValuesTest, WritesFloatsAsPythonDoes) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::pair<double, const char*> cases[] = {
      {0x0.0p+0, "0.0"},
      {-0x0.0p+0, "-0.0"},
      {0x1.0000000000000p+0, "1.0"},
      {-0x1.8000000000000p+0, "-1.5"},
      {0x1.999999999999ap-4, "0.1"},
      {0x1.5555555555555p-2, "0.3333333333333333"},
      {kNan, "NaN"},
      {-kNan, "NaN"},
      {kInfinity, "Infinity"},
      {-kInfinity, "-Infinity"},
      {0x1.c6bf526340000p+49, "1000000000000000.0"},
      {0x1.1c37937e07fffp+53, "9999999999999998.0"},
      {0x1.1c37937e08000p+53, "1e+16"},
      {0x1.5ee2a2eb5a5c4p+53, "1.2345678901234568e+16"},
      {0x1.b69b4ba630f35p+56, "1.2345678901234568e+17"},
      {0x1.0f0cf064dd592p+73, "1e+22"},
      {0x1.52d02c7e14af6p+76, "1e+23"},
      {0x1.249ad2594c37dp+332, "1e+100"},
      {0x1.a36e2eb1c432dp-14, "0.0001"},
      {0x1.a36e2eb1c432cp-14, "9.999999999999999e-05"},
      {0x1.4f8b588e368f1p-17, "1e-05"},
      {0x1.421f5f40d8376p-23, "1.5e-07"},
      {0x1.02e85be180b74p-13, "0.00012345678901234567"},
      {-0x1.02e85be180b74p-13, "-0.00012345678901234567"},
      {0x0.0000000000001p-1022, "5e-324"},
      {0x1.0000000000000p-1022, "2.2250738585072014e-308"},
      {0x1.fffffffffffffp+1023, "1.7976931348623157e+308"},
      {0x1.0000000000000p+53, "9007199254740992.0"},
      {0x1.0000000000002p+52, "4503599627370498.0"},
      {0x1.0000000000000p+63, "9.223372036854776e+18"},
      {0x1.0000000000000p-44, "5.684341886080802e-14"},
      {0x1.a36e2eb1c432dp-15, "5e-05"},
      {0x1.e240c9fbe76c9p+16, "123456.789"},
      {0x1.86a0000000000p+16, "100000.0"},
      {0x1.86a0800000000p+16, "100000.5"},
      {0x1.99999a0000000p-4, "0.10000000149011612"},
      {0x1.fffffe0000000p+127, "3.4028234663852886e+38"},
      {0x1.0000000000000p-149, "1.401298464324817e-45"},
  };
  for (const auto& [value, text] : cases) {
    std::string written;
    AppendJsonFloat(value, &written);
    EXPECT_EQ(written, text);
  }
}

TEST(JsonValuesTest, WritesIntegers) {
  std::string written;
  AppendJsonInteger<int8_t>(-128, &written);
  AppendJsonInteger<uint8_t>(255, &written);
  AppendJsonInteger(std::numeric_limits<int64_t>::min(), &written);
  AppendJsonInteger(std::numeric_limits<uint64_t>::max(), &written);
  EXPECT_EQ(written, "-128255-922337203685477580818446744073709551615");
}

TEST(JsonValuesTest, WritesStringsInAscii) {
  const std::pair<std::string, const char*> cases[] = {
      {"", R"("")"},
      {"a ~", R"("a ~")"},
      {"\"\\/\b\f\n\r\t", R"("\"\\/\b\f\n\r\t")"},
      {std::string("\0\x1f\x7f", 3), R"("\u0000\u001f\u007f")"},
      {"\u0122\u015c", R"("\u0122\u015c")"},
      {"a\u00e9\u20acb", R"("a\u00e9\u20acb")"},
      {"\uffff\U00010000", R"("\uffff\ud800\udc00")"},
      {"\U0001f600\U0010ffff", R"("\ud83d\ude00\udbff\udfff")"},
  };
  for (const auto& [text, json] : cases) {
    std::string written;
    AppendJsonString(text, &written);
    EXPECT_EQ(written, json);
  }
}

}  // namespace
}  // namespace front
