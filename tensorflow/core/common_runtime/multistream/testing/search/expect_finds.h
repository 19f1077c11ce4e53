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
// For tests of a search: with a rule broken, it finds something.

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
