// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which bits stand for a number as half or bfloat16, and which number do such
// bits stand for? NumPy's and ml_dtypes' answers, which a client of the Python
// server gets.

#ifndef EXAMPLES_SERVING_FRONT_SMALL_FLOATS_H_
#define EXAMPLES_SERVING_FRONT_SMALL_FLOATS_H_

#include <cstdint>

namespace front {

// The bits of the nearest half; between two, of the even one. `value` is no
// NaN.
uint16_t HalfOf(double value);
// The bits of the bfloat16 that is nearest to the nearest float, as ml_dtypes
// rounds twice. `value` is no NaN.
uint16_t Bfloat16Of(double value);

double FromHalf(uint16_t bits);
float FromBfloat16(uint16_t bits);

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_SMALL_FLOATS_H_
