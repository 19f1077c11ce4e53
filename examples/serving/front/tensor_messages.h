// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How is a message of TensorFlow's written, field by field? The front is built
// without TensorFlow.

#ifndef EXAMPLES_SERVING_FRONT_TENSOR_MESSAGES_H_
#define EXAMPLES_SERVING_FRONT_TENSOR_MESSAGES_H_

#include <google/protobuf/wire_format_lite.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace front {

// What stands before a field that is bytes, a string or a message.
constexpr uint32_t TextTag(int field) {
  using google::protobuf::internal::WireFormatLite;
  return static_cast<uint32_t>(field << 3 |
                               WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}
// What stands before a field that is an integer.
constexpr uint32_t NumberTag(int field) {
  using google::protobuf::internal::WireFormatLite;
  return static_cast<uint32_t>(field << 3 | WireFormatLite::WIRETYPE_VARINT);
}

// What stands before a field of so many bytes, with their number.
void AppendTextHead(int field, size_t size, std::string* to);
// A field of bytes, and one that is an integer.
void AppendText(int field, std::string_view text, std::string* to);
void AppendNumber(int field, uint64_t value, std::string* to);

// A few values of tensorflow.DataType.
enum DataType : int {
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kUint16 = 17,
  kHalf = 19,
  kUint32 = 22,
  kUint64 = 23,
};

// The bytes that a number of the type has in tensor_content: 0 for strings, -1
// for types that are none of these.
int SizeOfType(int type);

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_TENSOR_MESSAGES_H_
