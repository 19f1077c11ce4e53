// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How are a PredictRequest and a PredictResponse of TensorFlow Serving (its
// apis/predict.proto) read and written without objects of Python?
//
//   PredictRequest   1 model_spec { 1 name, 2 version { 1 value },
//                                   3 signature_name, 4 version_label }
//                    2 inputs, of each input an entry { 1 name, 2 TensorProto }
//                    3 output_filter
//   PredictResponse  1 outputs, entries as above; 2 model_spec
//
// Only plain messages are read. For any other message the caller parses the
// message in Python, which words the errors and knows the rest of the API.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PREDICT_MESSAGES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PREDICT_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.pb.h"

namespace tensorflow::multistream {

// The views are parts of the request's bytes.
struct PredictRequest {
  struct Input {
    absl::string_view name;
    absl::string_view tensor;  // a TensorProto
  };

  absl::string_view model;
  absl::string_view signature;
  bool has_version = false;
  int64_t version = 0;
  std::vector<Input> inputs;

  // Entries of a request: each takes memory, and may have two bytes.
  static constexpr size_t kMostInputs = 4096;

  // Whether `bytes` are such a message, with at most kMostInputs inputs, and
  // with neither a label of a version nor a filter of outputs.
  bool Read(absl::string_view bytes);

  // Whether both ask for one function, in the same words.
  bool AsksTheSame(const PredictRequest& other) const {
    return model == other.model && signature == other.signature &&
           has_version == other.has_version && version == other.version;
  }
};

// Reads a TensorProto. Returns whether it is plain: of the type, of a shape
// that `shape` allows, with no more values than the shape has. The parsed
// message and the tensor each take at most `most_bytes`.
bool ReadTensor(absl::string_view proto, DataType type,
                const PartialTensorShape& shape, int64_t most_bytes,
                Tensor* tensor);

// A PredictResponse with these outputs. Empty if it would have 2 GB or more.
std::string PredictResponse(absl::string_view model, int64_t version,
                            absl::string_view signature,
                            const std::vector<std::string>& names,
                            const std::vector<Tensor>& outputs);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PREDICT_MESSAGES_H_
