// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Do TensorFlow's calls reach the functions that this library, or program, has
// in TensorFlow's place?

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_REPLACED_SYMBOLS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_REPLACED_SYMBOLS_H_

#include "absl/status/status.h"

namespace tensorflow {
namespace multistream {

// FailedPrecondition names the functions whose calls do not reach ours, the
// library that they do reach, and what to do. Looks once, in about a tenth of a
// millisecond. That must be while this library is loaded: calls are bound then,
// as Python does it, or to libraries in the order of the link. What comes later
// changes that no more, but can change what a look would find.
//
//   loaded first ---> last
//   ours, cc, framework           all calls reach ours
//   other, ours, cc, framework    not those of functions that `other` has, too,
//                                 if TensorFlow's libraries see it
//   framework, ours, cc           not those of framework's own functions
const absl::Status& CheckReplacedSymbols();

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_REPLACED_SYMBOLS_H_
