// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// For tests of ParseOptions: options and errors from given variables.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_OPTIONS_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_OPTIONS_FIXTURE_H_

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"

namespace tensorflow {
namespace multistream {

using Variables = std::map<std::string, std::string>;

inline absl::StatusOr<Options> Parse(const Variables& variables) {
  return ParseOptions(
      [&variables](const std::string& name) -> std::optional<std::string> {
        auto found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
      });
}

// Checks that the value is refused, with an error that names the variable, the
// value and what is allowed.
inline void ExpectRefused(const std::string& name, const std::string& value,
                          const std::string& allowed) {
  Variables variables = {{"TF_GPU_STREAM_GROUP_COUNT", "4"}};
  variables[name] = value;
  const absl::StatusOr<Options> options = Parse(variables);
  ASSERT_FALSE(options.ok()) << name << "=\"" << value << "\" was accepted";
  EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(options.status().message());
  EXPECT_NE(message.find(name + "=\"" + value + "\""), std::string::npos)
      << message;
  EXPECT_NE(message.find(allowed), std::string::npos) << message;
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_OPTIONS_FIXTURE_H_
