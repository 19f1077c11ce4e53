// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/small_floats.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace front {
namespace {

constexpr uint16_t kSign = 0x8000;
constexpr int kHalfDigits = 10;     // of the fraction
constexpr int kHalfSmallest = -24;  // the exponent of the least half
constexpr uint16_t kHalfInfinity = 0x7c00;

}  // namespace

uint16_t HalfOf(double value) {
  const uint16_t sign = std::signbit(value) ? kSign : 0;
  const double size = std::abs(value);
  if (size >= 65520) return sign | kHalfInfinity;
  // The exponent of the last digit.
  const int last =
      size < 0x1p-14 ? kHalfSmallest : std::ilogb(size) - kHalfDigits;
  // In the default mode, between two integers nearbyint takes the even one.
  const int digits = static_cast<int>(std::nearbyint(std::ldexp(size, -last)));
  // The digits' first one, if it is there, adds one to the exponent.
  return static_cast<uint16_t>(
      sign | (((last - kHalfSmallest) << kHalfDigits) + digits));
}

uint16_t Bfloat16Of(double value) {
  const auto rounded = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  // Carries if the half that is cut off is more than half of the last digit, or
  // just half of it and the digit odd.
  bits += 0x7fff + (bits >> 16 & 1);
  return static_cast<uint16_t>(bits >> 16);
}

double FromHalf(uint16_t bits) {
  const int exponent = bits >> kHalfDigits & 31;
  const int fraction = bits & ((1 << kHalfDigits) - 1);
  double size;
  if (exponent == 31) {
    size = fraction ? std::numeric_limits<double>::quiet_NaN()
                    : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    size = std::ldexp(fraction, kHalfSmallest);
  } else {
    size =
        std::ldexp(fraction + (1 << kHalfDigits), exponent - 1 + kHalfSmallest);
  }
  return bits & kSign ? -size : size;
}

float FromBfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

}  // namespace front
