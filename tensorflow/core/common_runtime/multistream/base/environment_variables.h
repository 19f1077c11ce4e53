// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The table of variables: each TF_* variable that multi-stream reads has a row,
// with its values, its default, a line of documentation and what leaves it
// without effect. ParseOptions reads the environment by it, the warnings in the
// log and docs/variables.md come from it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_ENVIRONMENT_VARIABLES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_ENVIRONMENT_VARIABLES_H_

#include <functional>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/base/options.h"

namespace tensorflow {
namespace multistream {

// Reads the values of a variable.
struct ValueParser {
  std::string values;   // for the documentation: "1 to 64"
  std::string allowed;  // for errors: "it takes a whole number from 1 to 64"
  // Returns false, with the options as they were, if the value is not allowed.
  std::function<bool(const std::string& value, Options* options)> read;
};

struct Variable {
  const char* name;
  ValueParser parser;
  const char* default_value;
  const char* text;
  // Returns why the variable, which is set, has no effect among the others, or
  // "". Null if it always has one.
  std::function<std::string(const Options& options)> without_effect = nullptr;
  // Stock TensorFlow reads the variable, too, and checks it where there are no
  // stream groups.
  bool is_stock = false;
};

const std::vector<Variable>& Variables();

// The variable's row of docs/variables.md: name, values, default and text.
std::string RowOf(const Variable& variable);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_ENVIRONMENT_VARIABLES_H_
