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
