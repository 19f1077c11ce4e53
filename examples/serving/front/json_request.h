// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which PredictRequest does the JSON body of a REST request stand for?
//
//   rows:    {"signature_name": "", "instances": [{"a": [1, 2], "b": 3}, ...]}
//   columns: {"signature_name": "", "inputs": {"a": [[1, 2], ...], "b": [3]}}
//
// Only plain bodies are read: they are right in every respect, all numbers are
// finite, no list is empty, no object has a name twice, no string has half of
// a surrogate pair. For any other body Python is asked (rest_json.py), which
// words the errors. Of a body that both read they make the same tensors.

#ifndef EXAMPLES_SERVING_FRONT_JSON_REQUEST_H_
#define EXAMPLES_SERVING_FRONT_JSON_REQUEST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace front {

// The inputs of a signature by name, each with the number of its
// tensorflow.DataType.
using InputTypes = std::map<std::string, int>;
// The signatures by name that Python need not see.
using Signatures = std::map<std::string, InputTypes>;

struct JsonRequest {
  std::string predict_request;  // serialized
  bool by_row;                  // whether the answer is to have rows
};

// Nothing if Python is to answer, also where an input has a type that is not
// one of tensor_messages.h. The request names the version if there is one. The
// values of the body may take `most_bytes` in memory, as sliced_json.py counts.
std::optional<JsonRequest> ReadJsonRequest(std::string_view body,
                                           const std::string& model,
                                           std::optional<int64_t> version,
                                           const Signatures& signatures,
                                           uint64_t most_bytes);

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_JSON_REQUEST_H_
