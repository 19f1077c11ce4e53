// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// For tests of a search: it must find a fault if a rule is broken.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_EXPECT_FINDS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_EXPECT_FINDS_H_

#include <gtest/gtest.h>

#include "tensorflow/core/common_runtime/multistream/base/rules.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"

// `what`: a regular expression for the report of `statement`.
#define EXPECT_FINDS(rule, statement, what)                 \
  EXPECT_EXIT(                                              \
      {                                                     \
        ::tensorflow::multistream::broken_rule = rule;      \
        statement;                                          \
      },                                                    \
      ::testing::ExitedWithCode(                            \
          ::tensorflow::multistream::search::kFoundStatus), \
      what)

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_EXPECT_FINDS_H_
