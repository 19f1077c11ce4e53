// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/sanitizer/race_report.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace tensorflow::multistream {
namespace {

std::string Title(const Report& report) {
  const int current = report.current.group;
  const int previous = report.previous.group;
  switch (report.kind) {
    case ReportKind::kReadAfterWrite:
      return "read after write that nothing orders";
    case ReportKind::kWriteAfterRead:
      return "write after read that nothing orders";
    case ReportKind::kWriteAfterWrite:
      return "write after write that nothing orders";
    case ReportKind::kFreedInUse:
      return absl::StrCat("memory of group ", current, " freed while group ",
                          previous, " may still use it");
    case ReportKind::kHandedOutInUse:
      return absl::StrCat("memory handed to group ", current, " while group ",
                          previous, " may still use it");
    case ReportKind::kHandedOutTwice:
      return absl::StrCat("memory handed to group ", current, " while group ",
                          previous, " still owns it");
    case ReportKind::kUsedAfterFree:
      return absl::StrCat("memory of group ", previous, " used by group ",
                          current, " after it was freed");
  }
  return "";
}

std::string UseAsText(const Use& use) {
  const std::string group = absl::StrCat("group ", use.group);
  const std::string op = absl::StrCat("op '", use.op, "'");
  switch (use.kind) {
    case UseKind::kRead:
      return absl::StrCat(group, ", ", op, " reads tensor '", use.tensor, "'");
    case UseKind::kWrite:
      return absl::StrCat(group, ", ", op, " writes tensor '", use.tensor, "'");
    case UseKind::kFree:
      if (use.op.empty()) return absl::StrCat(group, " frees it");
      return absl::StrCat(group, " freed it after ", op);
    case UseKind::kAllocate:
      return absl::StrCat(group, " is given it");
    case UseKind::kOwn:
      if (use.op.empty()) return absl::StrCat(group, " owns it");
      return absl::StrCat(group, " owns it, for tensor '", use.tensor, "' of ",
                          op);
  }
  return "";
}

}  // namespace

std::string MissingOrder(const Report& report) {
  const Use& current = report.current;
  const Use& previous = report.previous;
  const std::string wait =
      absl::StrCat("group ", current.group, " must wait for group ",
                   previous.group, " after op '", previous.op, "' before ");
  switch (report.kind) {
    case ReportKind::kReadAfterWrite:
    case ReportKind::kWriteAfterRead:
    case ReportKind::kWriteAfterWrite:
      return absl::StrCat(wait, "op '", current.op, "'");
    case ReportKind::kFreedInUse:
      return absl::StrCat(wait, "the memory is freed, or the memory must be ",
                          "held until group ", previous.group,
                          " has completed op '", previous.op, "'");
    case ReportKind::kHandedOutInUse:
      if (current.op.empty()) return absl::StrCat(wait, "it is given memory");
      return absl::StrCat(wait, "op '", current.op, "'");
    case ReportKind::kHandedOutTwice:
      return absl::StrCat("group ", previous.group,
                          " must free the memory before group ", current.group,
                          " is given it");
    case ReportKind::kUsedAfterFree:
      return absl::StrCat("the memory must be held until op '", current.op,
                          "' of group ", current.group, " has been launched");
  }
  return "";
}

std::string ReportAsText(const Report& report) {
  return absl::StrCat("Stream sanitizer: ", Title(report),
                      "\n  now:     ", UseAsText(report.current),
                      "\n  before:  ", UseAsText(report.previous),
                      "\n  memory:  ", report.bytes, " bytes at 0x",
                      absl::Hex(reinterpret_cast<uintptr_t>(report.address)),
                      "\n  missing: ", report.missing);
}

}  // namespace tensorflow::multistream
