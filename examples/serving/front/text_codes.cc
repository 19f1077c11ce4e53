// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/text_codes.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace front {
namespace {

constexpr char kDigits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Of each byte, its value as a digit of base64, or -1.
constexpr std::array<int8_t, 256> DigitValues() {
  std::array<int8_t, 256> values = {};
  for (int8_t& value : values) value = -1;
  for (int i = 0; i < 64; ++i) {
    values[static_cast<uint8_t>(kDigits[i])] = static_cast<int8_t>(i);
  }
  return values;
}
constexpr std::array<int8_t, 256> kValues = DigitValues();

// Where the first byte is that is not ASCII, at `at` or later.
size_t AfterAscii(std::string_view text, size_t at) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  for (uint64_t word; text.size() - at >= sizeof(word); at += sizeof(word)) {
    std::memcpy(&word, &text[at], sizeof(word));
    if (word & kHighBits) break;
  }
  while (at < text.size() && !(text[at] & 0x80)) ++at;
  return at;
}

}  // namespace

int32_t NextCharacter(std::string_view text, size_t* at) {
  const auto first = static_cast<uint8_t>(text[(*at)++]);
  if (first < 0x80) return first;
  if (first < 0xc0 || first >= 0xf8) return -1;
  const int more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  if (text.size() - *at < static_cast<size_t>(more)) return -1;
  int32_t number = first & (0x3f >> more);
  for (int i = 0; i < more; ++i) {
    const auto next = static_cast<uint8_t>(text[(*at)++]);
    if ((next & 0xc0) != 0x80) return -1;
    number = number << 6 | (next & 0x3f);
  }
  // Longer than need be, a surrogate, or above Unicode.
  constexpr int32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = number >= 0xd800 && number < 0xe000;
  return number < kLeast[more] || is_surrogate || number > 0x10ffff ? -1
                                                                    : number;
}

bool IsUtf8(std::string_view text) {
  for (size_t at = 0; (at = AfterAscii(text, at)) < text.size();) {
    if (NextCharacter(text, &at) < 0) return false;
  }
  return true;
}

std::optional<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() &&
         text[text.size() - 1 - padding] == '=') {
    ++padding;
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    uint32_t group = 0;
    for (size_t i = at; i < at + 4; ++i) {
      const int value = i >= text.size() - padding
                            ? 0
                            : kValues[static_cast<uint8_t>(text[i])];
      if (value < 0) return std::nullopt;
      group = group << 6 | static_cast<uint32_t>(value);
    }
    for (const int shift : {16, 8, 0}) {
      bytes.push_back(static_cast<char>(group >> shift));
    }
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

void AppendBase64(std::string_view bytes, std::string* to) {
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(bytes.size() - at, 3);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) {
      group =
          group << 8 | (i < count ? static_cast<uint8_t>(bytes[at + i]) : 0);
    }
    for (size_t i = 0; i < 4; ++i) {
      to->push_back(i <= count ? kDigits[group >> (18 - 6 * i) & 63] : '=');
    }
  }
}

}  // namespace front
