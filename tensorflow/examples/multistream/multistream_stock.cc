// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// multistream.h for programs that run without the runtime library: TensorFlow
// as it is, with one stream group, so that the same client can measure both.

#include "tensorflow/core/common_runtime/multistream/multistream.h"

namespace tensorflow::multistream {

bool MultiStreamIsEnabled() { return false; }

int StreamGroupCount(int) { return 1; }

std::vector<StreamGroupStats> StreamStats() { return {}; }

int64_t SanitizerReports() { return 0; }

std::string CheckEnvironment() { return ""; }

}  // namespace tensorflow::multistream
