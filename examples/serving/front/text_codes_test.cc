// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/text_codes.h"

#include <gtest/gtest.h>

#include <utility>

namespace front {
namespace {

TEST(TextCodesTest, FindsCharacters) {
  const std::pair<std::string, int32_t> cases[] = {
      {std::string(1, '\0'), 0},
      {"a", 'a'},
      {"\x7f", 0x7f},
      {"\xc2\x80", 0x80},
      {"\xdf\xbf", 0x7ff},
      {"\xe0\xa0\x80", 0x800},
      {"\xed\x9f\xbf", 0xd7ff},
      {"\xee\x80\x80", 0xe000},
      {"\xef\xbf\xbf", 0xffff},
      {"\xf0\x90\x80\x80", 0x10000},
      {"\xf4\x8f\xbf\xbf", 0x10ffff},
  };
  for (const auto& [text, character] : cases) {
    size_t at = 0;
    EXPECT_EQ(NextCharacter(text + "b", &at), character);
    EXPECT_EQ(at, text.size());
    EXPECT_TRUE(IsUtf8("12345678" + text));
  }
}

TEST(TextCodesTest, RefusesWhatIsNotUtf8) {
  for (const char* text :
       {"\x80", "\xbf", "\x80\x80", "\xb0\x80", "\xbf\xbf", "\xc2", "\xc2(",
        "\xc2\xc2", "\xe2\x82", "\xe2\x82(", "\xf0\x9f\x98", "\xf0\x9f\x98(",
        // Longer than need be.
        "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",
        // Surrogates, and above Unicode.
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xf8\x88\x80\x80\x80", "\xf9\x80\x80\x80", "\xff"}) {
    size_t at = 0;
    EXPECT_EQ(NextCharacter(text, &at), -1);
    for (const char* before : {"", "a", "1234567", "12345678", "\xc3\xa9"}) {
      for (const char* after : {"", "a", "12345678"}) {
        EXPECT_FALSE(IsUtf8(std::string(before) + text + after));
      }
    }
  }
}

TEST(TextCodesTest, ReadsNothingBehindTheText) {
  size_t at = 0;
  EXPECT_EQ(NextCharacter(std::string_view("\xc3\xa9", 1), &at), -1);
}

TEST(TextCodesTest, Base64StandsForBytes) {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"AA==", std::string(1, '\0')},
      {"cXI=", "qr"},
      {"cXJz", "qrs"},
      {"cXJzdA==", "qrst"},
      {"+/+/", "\xfb\xff\xbf"},
      {"////AP8=", std::string("\xff\xff\xff\0\xff", 5)},
  };
  for (const auto& [base64, bytes] : cases) {
    EXPECT_EQ(FromBase64(base64), bytes) << base64;
    std::string written;
    AppendBase64(bytes, &written);
    EXPECT_EQ(written, base64);
  }
  EXPECT_EQ(FromBase64("cR=="),
            "q");  // the bits that are left out do not count
}

TEST(TextCodesTest, RefusesWhatIsNotBase64) {
  for (const char* text :
       {"c",        "cQ",       "cQ=",  "cXI",           "=",
        "==",       "===",      "====", "c===",          "cXJz=",
        "cXJz====", "cQ==cQ==", "c=Q=", "=cQ=",          "cX I",
        " cQ=",     "cXJ\n",    "-_-_", "cXJ\xc3\xa9xx", "AAA\x80"}) {
    EXPECT_EQ(FromBase64(text), std::nullopt) << text;
  }
  EXPECT_EQ(FromBase64(std::string("cXJ\0", 4)), std::nullopt);
}

}  // namespace
}  // namespace front
