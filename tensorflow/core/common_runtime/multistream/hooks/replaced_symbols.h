// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Do TensorFlow's calls reach this library's (or program's) replacements of
// TensorFlow's functions?

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_REPLACED_SYMBOLS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_REPLACED_SYMBOLS_H_

#include "absl/status/status.h"

namespace tensorflow::multistream {

// FailedPrecondition names the functions whose calls do not reach ours, the
// library that they do reach, and what to do. Checks at the first call, in
// about 0.1 ms, which must be while this library is being loaded. Then calls
// are bound at once, as Python loads libraries, or to libraries in link order.
// Libraries loaded later cannot change the binding, but could change what this
// check sees.
//
//   loaded first ---> last
//   ours, cc, framework           all calls reach ours
//   other, ours, cc, framework    not those of functions that `other` has, too,
//                                 if TensorFlow's libraries see it
//   framework, ours, cc           not those of framework's own functions
const absl::Status& CheckReplacedSymbols();

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_REPLACED_SYMBOLS_H_
