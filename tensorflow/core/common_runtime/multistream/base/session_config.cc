// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/session_config.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/unknown_field_set.h"
#include "tensorflow/core/common_runtime/multistream/base/message_fields.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"

namespace tensorflow::multistream {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

constexpr char kField[] = "graph_options.rewrite_options.";

// The field's last value, which is the one that counts in protocol buffers.
std::optional<int64_t> Number(const UnknownFieldSet& fields, int number) {
  std::optional<int64_t> last;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.number() == number && field.type() == UnknownField::TYPE_VARINT) {
      last = static_cast<int64_t>(field.varint());
    }
  }
  return last;
}

absl::Status Bad(const char* field, int64_t value, const std::string& allowed) {
  return absl::InvalidArgumentError(absl::StrCat(
      kField, field, "=", value, " is not valid: it takes ", allowed));
}

std::optional<Policy> PolicyOfValue(int64_t value) {
  switch (static_cast<MultiStreamPartitionPolicy>(value)) {
    case MultiStreamPartitionPolicy::kNoPartition:
    case MultiStreamPartitionPolicy::kUserDefinedPartition:
      return Policy::kNone;
    case MultiStreamPartitionPolicy::kEmbeddingGraphPartition:
      return Policy::kEmbedding;
    case MultiStreamPartitionPolicy::kFullGraphPartition:
      return Policy::kFullGraph;
    case MultiStreamPartitionPolicy::kCostPartition:
      return Policy::kCost;
  }
  return std::nullopt;
}

}  // namespace

void ReadFields(const google::protobuf::Message& message,
                UnknownFieldSet* fields) {
  fields->ParseFromString(message.SerializeAsString());
}

absl::StatusOr<std::optional<SessionConfig>> ReadSessionConfig(
    const ConfigProto& config) {
  UnknownFieldSet fields;
  ReadFields(config.graph_options().rewrite_options(), &fields);
  const int64_t use = Number(fields, kUseMultiStream).value_or(0);
  SessionConfig asked;
  switch (use) {
    case RewriterConfig::DEFAULT:
      return std::nullopt;
    case RewriterConfig::OFF:
      asked.streams = 1;
      return asked;
    case RewriterConfig::ON:
      break;
    default:
      return Bad("use_multi_stream", use, "DEFAULT, ON or OFF");
  }
  UnknownFieldSet options;
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.number() != kMultiStreamOpts ||
        field.type() != UnknownField::TYPE_LENGTH_DELIMITED) {
      continue;
    }
    UnknownFieldSet more;
    if (!more.ParseFromString(field.length_delimited())) {
      return absl::InvalidArgumentError(
          absl::StrCat(kField, "multi_stream_opts is not a message"));
    }
    options.MergeFrom(more);
  }
  if (std::optional<int64_t> streams = Number(options, kMultiStreamNum)) {
    if (*streams < 1 || *streams > kMaxGroupCount) {
      return Bad("multi_stream_opts.multi_stream_num", *streams,
                 absl::StrCat("a number from 1 to ", kMaxGroupCount));
    }
    asked.streams = static_cast<int>(*streams);
  }
  const int64_t value = Number(options, kPartitionPolicy).value_or(0);
  std::optional<Policy> policy = PolicyOfValue(value);
  if (!policy) {
    return Bad("multi_stream_opts.partition_policy", value,
               "a MultiStreamPartitionPolicy");
  }
  asked.policy = *policy;
  return asked;
}

bool AsksForCapture(const ConfigProto& config) {
  UnknownFieldSet fields;
  ReadFields(config.gpu_options(), &fields);
  return Number(fields, kCudaGraphEnableJit).value_or(0) != 0;
}

absl::StatusOr<SessionStreams> StreamsOfSession(const ConfigProto& config,
                                                const Options& options, int k,
                                                int gpu, int made) {
  TF_ASSIGN_OR_RETURN(const std::optional<SessionConfig> asked,
                      ReadSessionConfig(config));
  SessionStreams streams;
  streams.capture = options.capture;
  if (options.capture >= CaptureMode::kMarked &&
      options.capture < CaptureMode::kAuto && AsksForCapture(config)) {
    streams.capture = CaptureMode::kAuto;
  }
  streams.groups = std::min(options.DefaultGroupCount(k), made);
  if (!asked.has_value()) {
    streams.node_level = options.node_level;
    streams.policy = options.policy;
    return streams;
  }
  streams.groups = asked->streams.value_or(streams.groups);
  if (streams.groups > made) {
    return absl::FailedPreconditionError(absl::StrCat(
        "A session's ", kField, "multi_stream_opts.multi_stream_num is ",
        streams.groups, ", and GPU ", gpu, " has ", made,
        made == 1 ? " stream group" : " stream groups",
        " in this process, which are made once: make the session that asks for "
        "most first, or set ",
        kGroupCountVariable, "=", streams.groups));
  }
  streams.node_level = true;
  streams.policy = asked->policy;
  return streams;
}

}  // namespace tensorflow::multistream
