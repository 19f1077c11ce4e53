// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Is a text UTF-8, and what are its characters? Which base64 stands for bytes?

#ifndef EXAMPLES_SERVING_FRONT_TEXT_CODES_H_
#define EXAMPLES_SERVING_FRONT_TEXT_CODES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace front {

// The number of the character that begins at `*at`, which moves behind it; -1
// if the bytes there are not UTF-8. As in Python, surrogates are no characters.
int32_t NextCharacter(std::string_view text, size_t* at);

bool IsUtf8(std::string_view text);

// The bytes that base64 stands for, with all of its padding and nothing else.
std::optional<std::string> FromBase64(std::string_view text);

void AppendBase64(std::string_view bytes, std::string* to);

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_TEXT_CODES_H_
