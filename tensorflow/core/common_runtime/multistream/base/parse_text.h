// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Is a text a protocol buffer in text format? If not, where is its first error?

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_PARSE_TEXT_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_PARSE_TEXT_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"

namespace tensorflow::multistream {

// Keeps the first error, with its place, instead of logging it.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void TFMS_RECORD_ERROR(int line, google::protobuf::io::ColumnNumber column,
                         ParserMessage message) override {
    if (message_.empty()) {
      message_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ",
                              message);
    }
  }
  void TFMS_RECORD_WARNING(int, google::protobuf::io::ColumnNumber,
                           ParserMessage) override {}

  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

// Parses `text` into `message`. Returns "", or the first error.
inline std::string ParseText(const std::string& text,
                             google::protobuf::Message* message) {
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(text, message)) return "";
  return error.message().empty() ? "not in text format" : error.message();
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_PARSE_TEXT_H_
