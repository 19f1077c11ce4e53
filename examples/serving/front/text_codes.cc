// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/text_codes.h"

#include <absl/strings/escaping.h>

#include <algorithm>
#include <cstring>

namespace front {
namespace {

// Abseil may have a type of its own.
absl::string_view ForAbseil(std::string_view text) {
  return {text.data(), text.size()};
}

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
  const size_t last = text.find_last_not_of('=') + 1;  // 0 if there is none
  const size_t padding = std::min<size_t>(text.size() - last, 2);
  std::string bytes;
  // Abseil's reader takes more: spaces, points as padding, and texts without
  // padding. Such texts have fewer bytes than their length says.
  if (!absl::Base64Unescape(ForAbseil(text), &bytes) || text.size() % 4 != 0 ||
      bytes.size() + padding != text.size() / 4 * 3) {
    return std::nullopt;
  }
  return bytes;
}

void AppendBase64(std::string_view bytes, std::string* to) {
  to->append(absl::Base64Escape(ForAbseil(bytes)));
}

}  // namespace front
