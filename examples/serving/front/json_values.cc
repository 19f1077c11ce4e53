// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/json_values.h"

#include <cmath>
#include <cstdint>

#include "examples/serving/front/text_codes.h"

namespace front {
namespace {

bool IsPlain(char byte) {
  return byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\';
}

void AppendUnit(int32_t unit, std::string* to) {
  constexpr char kDigits[] = "0123456789abcdef";
  *to += "\\u";
  for (const int shift : {12, 8, 4, 0}) *to += kDigits[unit >> shift & 15];
}

void AppendEscaped(int32_t character, std::string* to) {
  constexpr std::string_view kNamed = "\"\\\b\f\n\r\t", kNames = "\"\\bfnrt";
  if (character >= 0x10000) {
    AppendUnit(0xd800 + ((character - 0x10000) >> 10), to);
    AppendUnit(0xdc00 + (character & 0x3ff), to);
    return;
  }
  const size_t named = character < 0x80
                           ? kNamed.find(static_cast<char>(character))
                           : kNamed.npos;
  if (named == kNamed.npos) {
    AppendUnit(character, to);
  } else {
    *to += '\\';
    *to += kNames[named];
  }
}

}  // namespace

void AppendJsonFloat(double value, std::string* to) {
  if (!std::isfinite(value)) {
    *to += std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
    return;
  }
  const double size = std::abs(value);
  const bool is_fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto format =
      is_fixed ? std::chars_format::fixed : std::chars_format::scientific;
  char text[32];
  const char* const end =
      std::to_chars(text, text + sizeof(text), value, format).ptr;
  to->append(text, static_cast<size_t>(end - text));
  if (is_fixed && value == std::trunc(value)) *to += ".0";
}

void AppendJsonString(std::string_view text, std::string* to) {
  *to += '"';
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    while (at < text.size() && IsPlain(text[at])) ++at;
    to->append(text.substr(begin, at - begin));
    if (at < text.size()) AppendEscaped(NextCharacter(text, &at), to);
  }
  *to += '"';
}

}  // namespace front
