// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/tensor_messages.h"

#include <google/protobuf/io/coded_stream.h>

namespace front {
namespace {

using google::protobuf::io::CodedOutputStream;

void AppendTagAnd(uint32_t tag, uint64_t value, std::string* to) {
  uint8_t bytes[15];  // the most that a tag and an integer take
  uint8_t* end = CodedOutputStream::WriteTagToArray(tag, bytes);
  end = CodedOutputStream::WriteVarint64ToArray(value, end);
  to->append(reinterpret_cast<const char*>(bytes),
             static_cast<size_t>(end - bytes));
}

}  // namespace

void AppendTextHead(int field, size_t size, std::string* to) {
  AppendTagAnd(TextTag(field), size, to);
}

void AppendText(int field, std::string_view text, std::string* to) {
  AppendTextHead(field, text.size(), to);
  to->append(text);
}

void AppendNumber(int field, uint64_t value, std::string* to) {
  AppendTagAnd(NumberTag(field), value, to);
}

int SizeOfType(int type) {
  switch (type) {
    case kString:
      return 0;
    case kBool:
    case kInt8:
    case kUint8:
      return 1;
    case kInt16:
    case kUint16:
    case kHalf:
    case kBfloat16:
      return 2;
    case kInt32:
    case kUint32:
    case kFloat:
      return 4;
    case kInt64:
    case kUint64:
    case kDouble:
      return 8;
    default:
      return -1;
  }
}

}  // namespace front
