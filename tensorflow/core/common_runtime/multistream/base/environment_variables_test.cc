// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// docs/variables.md has a row for each variable, equal to RowOf.

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
