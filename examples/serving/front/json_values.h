// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does Python's json write a value?

#ifndef EXAMPLES_SERVING_FRONT_JSON_VALUES_H_
#define EXAMPLES_SERVING_FRONT_JSON_VALUES_H_

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

namespace front {

template <typename T>
void AppendJsonInteger(T value, std::string* to) {
  char text[24];
  const char* const end = std::to_chars(text, text + sizeof(text), value).ptr;
  to->append(text, static_cast<size_t>(end - text));
}

// With the fewest digits that are read as the same double.
void AppendJsonFloat(double value, std::string* to);

// In ASCII. `text` is UTF-8.
void AppendJsonString(std::string_view text, std::string* to);

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_JSON_VALUES_H_
