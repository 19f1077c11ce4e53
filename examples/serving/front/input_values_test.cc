// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/input_values.h"

#include <gtest/gtest.h>

#include "examples/serving/front/hex_fixture.h"
#include "examples/serving/front/tensor_messages.h"

namespace front {
namespace {

// The bytes of a number of a type; "none" if the type has no such number.
std::string Convert(int type, const std::string& text) {
  InputValues values(type);
  return values.AddNumber(text) ? Hex(values.bytes()) : "none";
}

// Whether all parts of a text can be added: lists, and the number 1.
bool CanAdd(const std::string& text) {
  InputValues values(kInt8);
  for (const char part : text) {
    if (!(part == '['   ? values.OpenList()
          : part == ']' ? values.CloseList()
                        : values.AddNumber({&part, 1}))) {
      return false;
    }
  }
  return true;
}

// What NumPy and ml_dtypes make of a double, or else of an integer, recorded.
TEST(InputValuesTest, ConvertsNumbersAsPythonDoes) {
  const struct {
    int type;
    const char *text, *hex;
  } cases[] = {
      {kDouble, "1", "000000000000f03f"},
      {kDouble, "-0", "0000000000000000"},
      {kDouble, "-0.0", "0000000000000080"},
      {kDouble, "0.1", "9a9999999999b93f"},
      {kDouble, "1e5", "00000000006af840"},
      {kDouble, "1E-7", "48afbc9af2d77a3e"},
      {kDouble, "123456789012345678", "350f63bab4697b43"},
      {kDouble, "9007199254740993", "0000000000004043"},
      {kDouble, "9223372036854775807", "000000000000e043"},
      {kDouble, "9223372036854775809", "000000000000e043"},
      {kDouble, "18446744073709551615", "000000000000f043"},
      {kDouble, "18446744073709551617", "000000000000f043"},
      {kDouble, "-9223372036854775809", "000000000000e0c3"},
      {kDouble, "9007199254740993.0", "0000000000004043"},
      {kDouble, "2.2250738585072011e-308", "ffffffffffff0f00"},
      {kDouble, "4.9e-324", "0100000000000000"},
      {kDouble, "1.7976931348623157e308", "ffffffffffffef7f"},
      {kDouble, "1.7976931348623159e308", "none"},
      {kDouble, "1e400", "none"},
      {kDouble, "0.1000000000000000055511151231257827021181583404541015625",
       "9a9999999999b93f"},
      {kDouble, "inf", "none"},
      {kDouble, "nan", "none"},
      {kFloat, "0.1", "cdcccc3d"},
      {kFloat, "16777217", "0000804b"},
      {kFloat, "16777217.0000001", "0100804b"},
      {kFloat, "3.4028235e38", "ffff7f7f"},
      {kFloat, "3.4028235677973366e38", "none"},
      {kFloat, "3.4028235677973362e38", "ffff7f7f"},
      {kFloat, "1e-45", "01000000"},
      {kFloat, "7e-46", "00000000"},
      {kFloat, "1e-40", "c2160100"},
      {kFloat, "-1e39", "none"},
      {kHalf, "1.00048828125", "003c"},
      {kHalf, "1.0004882812500002", "013c"},
      {kHalf, "1.00146484375", "023c"},
      {kHalf, "65504", "ff7b"},
      {kHalf, "65519.99", "ff7b"},
      {kHalf, "65520", "none"},
      {kHalf, "-65520", "none"},
      {kHalf, "5.9604644775390625e-08", "0100"},
      {kHalf, "2.98023223876953125e-8", "0000"},
      {kHalf, "2.9802322387695315e-08", "0000"},
      {kHalf, "6.0975551605224609e-05", "ff03"},
      {kHalf, "-0.0", "0080"},
      {kHalf, "0.333333", "5535"},
      {kBfloat16, "1.00390625", "803f"},
      {kBfloat16, "1.00390625001", "803f"},
      {kBfloat16, "1.0039064", "813f"},
      {kBfloat16, "1.01171875", "823f"},
      {kBfloat16, "3.3895313892515355e38", "7f7f"},
      {kBfloat16, "3.39e38", "7f7f"},
      {kBfloat16, "3.3961776e38", "none"},
      {kBfloat16, "9.2e-41", "0100"},
      {kBfloat16, "-2.5", "20c0"},
      {kInt8, "127", "7f"},
      {kInt8, "-128", "80"},
      {kInt8, "128", "none"},
      {kInt8, "-129", "none"},
      {kInt8, "-0", "00"},
      {kInt8, "1.0", "none"},
      {kInt8, "1e2", "none"},
      {kUint8, "255", "ff"},
      {kUint8, "256", "none"},
      {kUint8, "-1", "none"},
      {kUint8, "0", "00"},
      {kInt16, "32767", "ff7f"},
      {kInt16, "-32768", "0080"},
      {kInt16, "32768", "none"},
      {kInt16, "-32769", "none"},
      {kUint16, "65535", "ffff"},
      {kUint16, "65536", "none"},
      {kUint16, "-1", "none"},
      {kInt32, "2147483647", "ffffff7f"},
      {kInt32, "-2147483648", "00000080"},
      {kInt32, "2147483648", "none"},
      {kInt32, "-2147483649", "none"},
      {kUint32, "4294967295", "ffffffff"},
      {kUint32, "4294967296", "none"},
      {kUint32, "-1", "none"},
      {kInt64, "9223372036854775807", "ffffffffffffff7f"},
      {kInt64, "-9223372036854775808", "0000000000000080"},
      {kInt64, "9223372036854775808", "none"},
      {kInt64, "-9223372036854775809", "none"},
      {kInt64, "9007199254740993", "0100000000002000"},
      {kUint64, "18446744073709551615", "ffffffffffffffff"},
      {kUint64, "18446744073709551616", "none"},
      {kUint64, "-1", "none"},
  };
  for (const auto& [type, text, hex] : cases) {
    EXPECT_EQ(Convert(type, text), hex) << type << " " << text;
  }
}

TEST(InputValuesTest, NumbersHaveAtMost1024Characters) {
  const std::string zeros(1022, '0');
  EXPECT_EQ(Convert(kDouble, "1." + zeros), "000000000000f03f");
  EXPECT_EQ(Convert(kDouble, "1.0" + zeros), "none");
}

TEST(InputValuesTest, HasValuesOfItsTypeOnly) {
  EXPECT_FALSE(InputValues(kInt8).AddBool(true));
  EXPECT_FALSE(InputValues(kFloat).AddBool(true));
  EXPECT_FALSE(InputValues(kString).AddBool(true));
  EXPECT_FALSE(InputValues(kBool).AddNumber("1"));
  EXPECT_FALSE(InputValues(kString).AddNumber("1"));
  EXPECT_FALSE(InputValues(kInt8).AddString("1"));
  EXPECT_FALSE(InputValues(kBool).AddString("1"));
  EXPECT_TRUE(InputValues(kBool).AddBool(true));
  EXPECT_TRUE(InputValues(kString).AddString("1"));
}

TEST(InputValuesTest, ListsAreOfOneLengthAndDepth) {
  for (const char* text : {"1", "[1]", "[[11][11]]", "[[[1][1]][[1][1]]]"}) {
    EXPECT_TRUE(CanAdd(text)) << text;
  }
  for (const char* text :
       {"[]", "[[]]", "[[1][]]", "[[1][11]]", "[[11][1]]", "[1[1]]", "[[1]1]",
        "[[1][[1]]]", "[[[1]][1]]", "[[[1][1]][[1]]]"}) {
    EXPECT_FALSE(CanAdd(text)) << text;
  }
  EXPECT_TRUE(CanAdd(std::string(InputValues::kDeepest, '[')));
  EXPECT_FALSE(CanAdd(std::string(InputValues::kDeepest + 1, '[')));
}

TEST(InputValuesTest, HeadHasTypeAndShape) {
  InputValues values(kInt16);
  EXPECT_TRUE(values.OpenList());
  EXPECT_EQ(values.open_lists(), 1);
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(values.AddNumber("1"));
  EXPECT_TRUE(values.CloseList());
  EXPECT_EQ(values.open_lists(), 0);
  EXPECT_EQ(Hex(values.Head()),
            "0805"
            "1205120308c801"
            "229003");
  InputValues strings(kString);
  EXPECT_TRUE(strings.AddString("abc"));
  EXPECT_EQ(Hex(strings.Head() + strings.bytes()),
            "0807"
            "1200"
            "4203616263");
}

}  // namespace
}  // namespace front
