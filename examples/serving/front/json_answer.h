// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which JSON stands for a PredictResponse? The same bytes as rest_json.py's,
// for outputs of the types of tensor_messages.h.

#ifndef EXAMPLES_SERVING_FRONT_JSON_ANSWER_H_
#define EXAMPLES_SERVING_FRONT_JSON_ANSWER_H_

#include <string>
#include <string_view>

namespace front {

// The error for a signature that must not have been called; the other error is
// of the request.
inline constexpr char kOutputsHaveNoJson[] =
    "the outputs are not of types that JSON has.";

// Writes the answer to a request that gave rows or columns, from a serialized
// tensorflow.serving.PredictResponse. Returns why it cannot, else nothing.
std::string WriteJsonAnswer(std::string_view predict_response, bool by_row,
                            std::string* answer);

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_JSON_ANSWER_H_
