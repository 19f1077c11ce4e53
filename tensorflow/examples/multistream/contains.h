/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

// For tests of messages: does a text contain all of these parts?

#ifndef TENSORFLOW_EXAMPLES_MULTISTREAM_CONTAINS_H_
#define TENSORFLOW_EXAMPLES_MULTISTREAM_CONTAINS_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tensorflow {
namespace multistream {

inline ::testing::AssertionResult Contains(
    const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (text.find(part) == std::string::npos) {
      return ::testing::AssertionFailure()
             << "'" << part << "' is not in '" << text << "'";
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_EXAMPLES_MULTISTREAM_CONTAINS_H_
