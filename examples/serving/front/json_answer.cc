// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/json_answer.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <list>
#include <utility>
#include <vector>

#include "examples/serving/front/json_values.h"
#include "examples/serving/front/small_floats.h"
#include "examples/serving/front/tensor_messages.h"
#include "examples/serving/front/text_codes.h"

namespace front {
namespace {

using google::protobuf::io::CodedInputStream;

// Of an error, as in serving_error.py: characters, and bytes as gRPC would
// write them, of most characters each byte as %XX.
constexpr size_t kMostCharacters = 2000, kMostBytes = 6000;
// The text of a byte of numbers, at most about: a text that grows is copied.
constexpr size_t kLongestOfByte = 6;
// Of a message, in bytes, and of an output, in values.
constexpr int64_t kMost = std::numeric_limits<int>::max();

// An output, whose values are written from the first to the last.
struct Output {
  std::string_view name;
  int type = 0;
  std::vector<int64_t> shape;
  std::string_view numbers;  // those that are left, as in tensor_content
  std::string own_numbers;   // if the message has them in another form
  std::vector<std::string_view> strings;
  size_t strings_written = 0;
};

CodedInputStream Stream(std::string_view bytes) {
  return CodedInputStream(reinterpret_cast<const uint8_t*>(bytes.data()),
                          static_cast<int>(bytes.size()));
}

// Calls take(tag, text, number) for each field, which is a text or a number.
// False if a call returns false, or the bytes are no message of such fields.
template <typename Take>
bool ReadFields(std::string_view message, const Take& take) {
  CodedInputStream in = Stream(message);
  while (const uint32_t tag = in.ReadTag()) {
    uint64_t number = 0;
    std::string_view text;
    if (!in.ReadVarint64(&number)) return false;
    if (tag == TextTag(static_cast<int>(tag >> 3))) {
      const auto at = static_cast<size_t>(in.CurrentPosition());
      if (number > message.size() - at) return false;
      text = message.substr(at, number);
      in.Skip(static_cast<int>(number));
    } else if (tag != NumberTag(static_cast<int>(tag >> 3))) {
      return false;
    }
    if (!take(tag, text, number)) return false;
  }
  return in.ConsumedEntireMessage();
}

bool ReadShape(std::string_view message, std::vector<int64_t>* shape) {
  return ReadFields(message, [&](uint32_t tag, std::string_view text,
                                 uint64_t) {
    shape->push_back(0);
    return tag == TextTag(2) &&
           ReadFields(text, [&](uint32_t tag, std::string_view, uint64_t size) {
             shape->back() = static_cast<int64_t>(size);
             return tag == NumberTag(1);
           });
  });
}

// Makes of the integers of a field what tensor_content has of them.
void TakeIntegers(std::string_view packed, Output* output) {
  CodedInputStream in = Stream(packed);
  const auto size = static_cast<size_t>(std::max(SizeOfType(output->type), 0));
  for (uint64_t integer; in.ReadVarint64(&integer);) {
    // The lowest bytes come first.
    output->own_numbers.append(reinterpret_cast<const char*>(&integer), size);
  }
  output->numbers = output->own_numbers;
}

// Whether the output has a value for each place of its shape.
bool IsWhole(const Output& output) {
  int64_t count = 1, most = 1;
  for (const int64_t length : output.shape) {
    if (length < 0 || length > kMost / most) return false;
    count *= length;
    most *= std::max<int64_t>(length, 1);
  }
  const int64_t size = SizeOfType(output.type);
  const size_t given = size > 0 ? output.numbers.size() : output.strings.size();
  return size >= 0 &&
         given == static_cast<size_t>(count * std::max<int64_t>(size, 1));
}

bool ReadTensor(std::string_view message, Output* output) {
  std::string_view integers;
  const auto take = [&](uint32_t tag, std::string_view text, uint64_t number) {
    switch (tag) {
      case NumberTag(1):
        output->type = static_cast<int>(number);
        return true;
      case TextTag(2):
        return ReadShape(text, &output->shape);
      case TextTag(4):  // tensor_content, and floats and doubles of a field
      case TextTag(5):
      case TextTag(6):
        output->numbers = text;
        return true;
      case TextTag(8):
        output->strings.push_back(text);
        return true;
      case TextTag(7):  // integers of several sizes, bool, and bits of half
      case TextTag(10):
      case TextTag(11):
      case TextTag(13):
      case TextTag(16):
      case TextTag(17):
        integers = text;
        return true;
      default:
        return false;
    }
  };
  if (!ReadFields(message, take)) return false;
  if (!integers.empty()) TakeIntegers(integers, output);
  return true;
}

// An entry of the map of outputs: its key, and its TensorProto.
bool ReadOutput(std::string_view entry, Output* output) {
  const auto take = [&](uint32_t tag, std::string_view text, uint64_t) {
    if (tag == TextTag(1)) output->name = text;
    return tag == TextTag(1) || (tag == TextTag(2) && ReadTensor(text, output));
  };
  return ReadFields(entry, take) && IsWhole(*output);
}

// Of a PredictResponse. The list never moves an output.
bool ReadOutputs(std::string_view response, std::list<Output>* outputs) {
  const auto take = [&](uint32_t tag, std::string_view text, uint64_t) {
    return tag == TextTag(2) ||  // the model_spec
           (tag == TextTag(1) && ReadOutput(text, &outputs->emplace_back()));
  };
  return response.size() <= static_cast<size_t>(kMost) &&
         ReadFields(response, take);
}

template <typename T, typename Append>
void AppendNumbers(Output* output, int64_t count, const Append& append,
                   std::string* to) {
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) *to += ", ";
    T number;
    std::memcpy(&number, output->numbers.data(), sizeof(number));
    output->numbers.remove_prefix(sizeof(number));
    append(number, to);
  }
}

template <typename T>
void AppendIntegers(Output* output, int64_t count, std::string* to) {
  AppendNumbers<T>(output, count, AppendJsonInteger<T>, to);
}

void AppendStrings(Output* output, int64_t count, std::string* to) {
  constexpr std::string_view kAsBytes = "_bytes";
  const std::string_view name = output->name;
  const bool as_bytes = name.size() >= kAsBytes.size() &&
                        name.substr(name.size() - kAsBytes.size()) == kAsBytes;
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) *to += ", ";
    const std::string_view string = output->strings[output->strings_written++];
    if (!as_bytes && IsUtf8(string)) {
      AppendJsonString(string, to);
      continue;
    }
    *to += "{\"b64\": \"";
    AppendBase64(string, to);
    *to += "\"}";
  }
}

// The next values, with commas between them.
void AppendValues(Output* output, int64_t count, std::string* to) {
  switch (output->type) {
    case kFloat:
      return AppendNumbers<float>(output, count, AppendJsonFloat, to);
    case kDouble:
      return AppendNumbers<double>(output, count, AppendJsonFloat, to);
    case kHalf:
      return AppendNumbers<uint16_t>(
          output, count,
          [](uint16_t bits, std::string* to) {
            AppendJsonFloat(FromHalf(bits), to);
          },
          to);
    case kBfloat16:
      return AppendNumbers<uint16_t>(
          output, count,
          [](uint16_t bits, std::string* to) {
            AppendJsonFloat(FromBfloat16(bits), to);
          },
          to);
    case kBool:
      return AppendNumbers<uint8_t>(
          output, count,
          [](uint8_t value, std::string* to) {
            *to += value ? "true" : "false";
          },
          to);
    case kInt8:
      return AppendIntegers<int8_t>(output, count, to);
    case kInt16:
      return AppendIntegers<int16_t>(output, count, to);
    case kInt32:
      return AppendIntegers<int32_t>(output, count, to);
    case kInt64:
      return AppendIntegers<int64_t>(output, count, to);
    case kUint8:
      return AppendIntegers<uint8_t>(output, count, to);
    case kUint16:
      return AppendIntegers<uint16_t>(output, count, to);
    case kUint32:
      return AppendIntegers<uint32_t>(output, count, to);
    case kUint64:
      return AppendIntegers<uint64_t>(output, count, to);
    default:
      return AppendStrings(output, count, to);
  }
}

// The next part of an output: a list of this dimension, or a value.
void AppendPart(Output* output, size_t dimension, std::string* to) {
  const std::vector<int64_t>& shape = output->shape;
  if (dimension == shape.size()) return AppendValues(output, 1, to);
  *to += '[';
  if (dimension + 1 == shape.size()) {
    AppendValues(output, shape[dimension], to);
  } else {
    for (int64_t i = 0; i < shape[dimension]; ++i) {
      if (i > 0) *to += ", ";
      AppendPart(output, dimension + 1, to);
    }
  }
  *to += ']';
}

// The next part of each output, by the names of the outputs.
void AppendObject(std::list<Output>* outputs, size_t dimension,
                  std::string* to) {
  const char* before = "";
  *to += '{';
  for (Output& output : *outputs) {
    *to += std::exchange(before, ", ");
    AppendJsonString(output.name, to);
    *to += ": ";
    AppendPart(&output, dimension, to);
  }
  *to += '}';
}

bool HaveRowsInCommon(const std::list<Output>& outputs) {
  for (const Output& output : outputs) {
    if (output.shape.empty() || output.shape[0] != outputs.front().shape[0]) {
      return false;
    }
  }
  return true;
}

std::string NoRowsInCommon(const std::list<Output>& outputs) {
  std::string error = "the outputs have no rows in common (";
  const char* before = "";
  for (const Output& output : outputs) {
    error += std::exchange(before, ", ");
    error.append(output.name).append(" (");
    for (size_t i = 0; i < output.shape.size(); ++i) {
      if (i > 0) error += ", ";
      AppendJsonInteger(output.shape[i], &error);
    }
    error += output.shape.size() == 1 ? ",)" : ")";
  }
  error += "): use 'inputs'.";
  size_t end = 0, bytes = 0;
  for (size_t i = 0; i < kMostCharacters && end < error.size(); ++i) {
    size_t next = end;
    const int32_t character = NextCharacter(error, &next);
    const bool is_plain =
        character >= ' ' && character <= '~' && character != '%';
    bytes += is_plain ? 1 : 3 * (next - end);
    if (bytes > kMostBytes) break;
    end = next;
  }
  error.resize(end);
  return error;
}

}  // namespace

std::string WriteJsonAnswer(std::string_view predict_response, bool by_row,
                            std::string* answer) {
  std::list<Output> outputs;
  if (!ReadOutputs(predict_response, &outputs)) return kOutputsHaveNoJson;
  if (by_row && !HaveRowsInCommon(outputs)) return NoRowsInCommon(outputs);
  size_t size = 0;
  for (const Output& output : outputs) size += output.numbers.size();
  answer->reserve(size * kLongestOfByte);
  *answer = by_row ? "{\"predictions\": " : "{\"outputs\": ";
  if (outputs.size() == 1) {
    AppendPart(&outputs.front(), 0, answer);
  } else if (!by_row) {
    AppendObject(&outputs, 0, answer);
  } else {
    *answer += '[';
    const int64_t rows = outputs.empty() ? 0 : outputs.front().shape[0];
    for (int64_t i = 0; i < rows; ++i) {
      if (i > 0) *answer += ", ";
      AppendObject(&outputs, 1, answer);
    }
    *answer += ']';
  }
  *answer += '}';
  return {};
}

}  // namespace front
