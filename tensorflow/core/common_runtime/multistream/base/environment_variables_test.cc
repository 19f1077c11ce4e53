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

// docs/variables.md has the row of each variable, as the table says.

#include "tensorflow/core/common_runtime/multistream/base/environment_variables.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "absl/strings/match.h"

namespace tensorflow {
namespace multistream {
namespace {

TEST(VariablesTest, ThePageHasTheRowsOfTheTable) {
  std::ifstream page("docs/variables.md");
  ASSERT_TRUE(page) << "docs/variables.md cannot be read";
  std::set<std::string> rows;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "| `")) rows.insert(line);
  }
  for (const Variable& variable : Variables()) {
    EXPECT_EQ(rows.count(RowOf(variable)), 1)
        << "docs/variables.md lacks this row:\n"
        << RowOf(variable);
  }
}

TEST(VariablesTest, NamesAreUnique) {
  std::set<std::string> names;
  for (const Variable& variable : Variables()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
  }
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
