// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Where does TensorFlow ask the runtime first, if both are built from source?
// Stands in for FarmHash's header, which the wheel does not have and its
// tsl/platform/fingerprint.h includes: declarations, for code that includes
// TensorFlow's eager/context.h and calls none of them.

#ifndef THIRD_PARTY_FARMHASH_FARMHASH_H_
#define THIRD_PARTY_FARMHASH_FARMHASH_H_

#include <cstddef>
#include <cstdint>
#include <utility>

namespace util {

using uint128_t = std::pair<uint64_t, uint64_t>;

uint32_t Fingerprint32(const char* s, size_t length);
uint64_t Fingerprint64(const char* s, size_t length);
uint128_t Fingerprint128(const char* s, size_t length);
uint64_t Uint128Low64(const uint128_t& x);
uint64_t Uint128High64(const uint128_t& x);

}  // namespace util

#endif  // THIRD_PARTY_FARMHASH_FARMHASH_H_
