// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Lists of events written by hand, for tests of the sanitizer.
//
// Drawings: a line is a group's stream, launches from left to right. `=x` op x
// writes M, `-x` op x reads M, `r` an event is recorded, `w` the stream waits
// for it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SANITIZER_SANITIZER_EVENTS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SANITIZER_SANITIZER_EVENTS_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/sanitizer/sanitizer.h"

namespace tensorflow {
namespace multistream {

inline constexpr uintptr_t kM = 0x1000;
inline constexpr size_t kBytes = 0x100;
inline constexpr EventId kEvent = 7;

inline const void* Address(uintptr_t a) {
  return reinterpret_cast<const void*>(a);
}

class SanitizerTest : public ::testing::Test {
 protected:
  void Use(int group, const std::string& op, bool is_write, uintptr_t address,
           size_t bytes) {
    sanitizer_.Launch(group, op, {{Address(address), bytes, is_write, "m"}});
  }
  void Read(int group, const std::string& op, uintptr_t address = kM,
            size_t bytes = kBytes) {
    Use(group, op, /*is_write=*/false, address, bytes);
  }
  void Write(int group, const std::string& op, uintptr_t address = kM,
             size_t bytes = kBytes) {
    Use(group, op, /*is_write=*/true, address, bytes);
  }
  void Allocate(int owner, uintptr_t address = kM, size_t bytes = kBytes) {
    sanitizer_.Allocate(owner, Address(address), bytes);
  }
  void Free(uintptr_t address = kM) { sanitizer_.Free(Address(address)); }

  // Expects exactly one report, with these values, and clears it.
  void ExpectOne(ReportKind kind, const std::string& current_op,
                 int current_group, const std::string& previous_op,
                 int previous_group) {
    ASSERT_EQ(reports_.size(), 1) << AllText();
    EXPECT_EQ(reports_[0].kind, kind) << AllText();
    EXPECT_EQ(reports_[0].current.op, current_op) << AllText();
    EXPECT_EQ(reports_[0].current.group, current_group) << AllText();
    EXPECT_EQ(reports_[0].previous.op, previous_op) << AllText();
    EXPECT_EQ(reports_[0].previous.group, previous_group) << AllText();
    reports_.clear();
  }
  void ExpectNone() { EXPECT_TRUE(reports_.empty()) << AllText(); }
  std::string AllText() const {
    std::string text;
    for (const Report& report : reports_) {
      absl::StrAppend(&text, ReportAsText(report), "\n");
    }
    return text;
  }

  std::vector<Report> reports_;
  Sanitizer sanitizer_{4, [this](const Report& r) { reports_.push_back(r); }};
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SANITIZER_SANITIZER_EVENTS_H_
