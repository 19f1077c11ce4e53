// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/input_values.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include "examples/serving/front/small_floats.h"
#include "examples/serving/front/tensor_messages.h"

namespace front {
namespace {

// More than any program writes. sliced_json.py refuses some above 64 KiB.
constexpr size_t kLongestNumber = 1024;

template <typename T>
bool ReadAll(std::string_view text, T* value) {
  if (text.size() > kLongestNumber) return false;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end;
}

std::optional<double> ReadDouble(std::string_view text) {
  double value;
  if (!ReadAll(text, &value) || !std::isfinite(value)) return std::nullopt;
  return text == "-0" ? 0.0 : value;  // in Python it is an integer
}

}  // namespace

bool InputValues::OpenList() {
  if (open_ == kDeepest) return false;
  if (open_ > 0) ++counts_[open_ - 1];
  counts_[open_++] = 0;
  return true;
}

bool InputValues::CloseList() {
  const int64_t count = counts_[--open_];
  int64_t& length = lengths_[open_];
  if (length == 0) length = count;
  return count != 0 && count == length;
}

bool InputValues::CountValue() {
  if (rank_ < 0) rank_ = open_;
  if (open_ > 0) ++counts_[open_ - 1];
  return open_ == rank_;
}

template <typename T>
bool InputValues::Add(T value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return CountValue();
}

template <typename T>
bool InputValues::AddInteger(std::string_view text) {
  T value;
  return ReadAll(text, &value) && Add(value);
}

bool InputValues::AddNumber(std::string_view text) {
  switch (type_) {
    case kInt8:
      return AddInteger<int8_t>(text);
    case kInt16:
      return AddInteger<int16_t>(text);
    case kInt32:
      return AddInteger<int32_t>(text);
    case kInt64:
      return AddInteger<int64_t>(text);
    case kUint8:
      return AddInteger<uint8_t>(text);
    case kUint16:
      return AddInteger<uint16_t>(text);
    case kUint32:
      return AddInteger<uint32_t>(text);
    case kUint64:
      return AddInteger<uint64_t>(text);
    default:
      break;
  }
  const std::optional<double> value = ReadDouble(text);
  if (!value.has_value()) return false;
  switch (type_) {
    case kDouble:
      return Add(*value);
    case kFloat: {
      const auto rounded = static_cast<float>(*value);
      return std::isfinite(rounded) && Add(rounded);
    }
    case kHalf: {
      const uint16_t rounded = HalfOf(*value);
      return std::isfinite(FromHalf(rounded)) && Add(rounded);
    }
    case kBfloat16: {
      const uint16_t rounded = Bfloat16Of(*value);
      return std::isfinite(FromBfloat16(rounded)) && Add(rounded);
    }
    default:
      return false;
  }
}

bool InputValues::AddBool(bool value) {
  return type_ == kBool && Add(static_cast<uint8_t>(value));
}

bool InputValues::AddString(std::string_view bytes) {
  if (type_ != kString) return false;
  AppendText(8, bytes, &bytes_);
  return CountValue();
}

std::string InputValues::Head() const {
  std::string shape;
  for (int i = 0; i < rank_; ++i) {
    std::string dimension;
    AppendNumber(1, static_cast<uint64_t>(lengths_[i]), &dimension);
    AppendText(2, dimension, &shape);
  }
  std::string head;
  AppendNumber(1, static_cast<uint64_t>(type_), &head);
  AppendText(2, shape, &head);
  if (type_ != kString) AppendTextHead(4, bytes_.size(), &head);
  return head;
}

}  // namespace front
