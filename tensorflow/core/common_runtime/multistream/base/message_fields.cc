// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/message_fields.h"

#include <memory>
#include <string>
#include <utility>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/unknown_field_set.h"
#include "tensorflow/core/common_runtime/multistream/base/parse_text.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"

namespace tensorflow::multistream {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::DescriptorProto;
using google::protobuf::FieldDescriptorProto;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;

// Whether TensorFlow's messages have our fields. They do if TensorFlow was
// built from source with our patches.
bool HasFields() {
  return RewriterConfig::descriptor()->FindFieldByNumber(kUseMultiStream) !=
         nullptr;
}

// Our fields were added as unknown fields. If the message has the fields, the
// new parse makes them known.
void MakeKnown(google::protobuf::Message* message) {
  if (HasFields()) message->ParseFromString(message->SerializeAsString());
}

void AddField(const char* name, int number, FieldDescriptorProto::Type type,
              const char* type_name, DescriptorProto* message) {
  FieldDescriptorProto* field = message->add_field();
  field->set_name(name);
  field->set_number(number);
  field->set_type(type);
  field->set_label(FieldDescriptorProto::LABEL_OPTIONAL);
  if (type_name != nullptr) field->set_type_name(type_name);
}

void AddFields(FileDescriptorProto* file) {
  auto* policies = file->add_enum_type();
  policies->set_name("MultiStreamPartitionPolicy");
  for (const auto& [name, value] :
       {std::pair<const char*, MultiStreamPartitionPolicy>(
            "NO_PARTITION", MultiStreamPartitionPolicy::kNoPartition),
        {"USER_DEFINED_PARTITION",
         MultiStreamPartitionPolicy::kUserDefinedPartition},
        {"EMBEDDING_GRAPH_PARTITION",
         MultiStreamPartitionPolicy::kEmbeddingGraphPartition},
        {"FULL_GRAPH_PARTITION",
         MultiStreamPartitionPolicy::kFullGraphPartition},
        {"COST_PARTITION", MultiStreamPartitionPolicy::kCostPartition}}) {
    auto* policy = policies->add_value();
    policy->set_name(name);
    policy->set_number(static_cast<int>(value));
  }
  DescriptorProto* options = file->add_message_type();
  options->set_name("MultiStreamOptions");
  AddField("multi_stream_num", kMultiStreamNum,
           FieldDescriptorProto::TYPE_INT32, nullptr, options);
  // proto3 `optional`: tells an explicit 0 from unset.
  options->add_oneof_decl()->set_name("_multi_stream_num");
  options->mutable_field(0)->set_oneof_index(0);
  options->mutable_field(0)->set_proto3_optional(true);
  AddField("partition_policy", kPartitionPolicy,
           FieldDescriptorProto::TYPE_ENUM,
           ".tensorflow.MultiStreamPartitionPolicy", options);
  for (DescriptorProto& message : *file->mutable_message_type()) {
    if (message.name() != "RewriterConfig") continue;
    AddField("use_multi_stream", kUseMultiStream,
             FieldDescriptorProto::TYPE_ENUM,
             ".tensorflow.RewriterConfig.Toggle", &message);
    AddField("multi_stream_opts", kMultiStreamOpts,
             FieldDescriptorProto::TYPE_MESSAGE,
             ".tensorflow.MultiStreamOptions", &message);
  }
}

void AddGpuFields(FileDescriptorProto* file) {
  for (DescriptorProto& message : *file->mutable_message_type()) {
    if (message.name() != "GPUOptions") continue;
    AddField("cuda_graph_enable_jit", kCudaGraphEnableJit,
             FieldDescriptorProto::TYPE_BOOL, nullptr, &message);
  }
}

// Adds `file` after all files that it imports.
void AddFile(const FileDescriptor* file, DescriptorPool* pool) {
  if (pool->FindFileByName(file->name()) != nullptr) return;
  for (int i = 0; i < file->dependency_count(); ++i) {
    AddFile(file->dependency(i), pool);
  }
  FileDescriptorProto copy;
  file->CopyTo(&copy);
  if (file == RewriterConfig::descriptor()->file() && !HasFields()) {
    AddFields(&copy);
  }
  if (file == GPUOptions::descriptor()->file() && !HasFields()) {
    AddGpuFields(&copy);
  }
  pool->BuildFile(copy);
}

// A ConfigProto with our fields, of a pool of our own.
std::unique_ptr<google::protobuf::Message> NewConfig() {
  static const auto* pool = [] {
    auto* made = new DescriptorPool;
    AddFile(ConfigProto::descriptor()->file(), made);
    return made;
  }();
  static auto* messages = new google::protobuf::DynamicMessageFactory;
  return std::unique_ptr<google::protobuf::Message>(
      messages
          ->GetPrototype(pool->FindMessageTypeByName(
              ConfigProto::descriptor()->full_name()))
          ->New());
}

}  // namespace

std::string ParseConfigText(const std::string& text, ConfigProto* config) {
  std::unique_ptr<google::protobuf::Message> parsed = NewConfig();
  std::string error = ParseText(text, parsed.get());
  if (!error.empty()) return error;
  return config->ParseFromString(parsed->SerializeAsString())
             ? ""
             : "not a ConfigProto";
}

void SetMultiStream(int streams, MultiStreamPartitionPolicy policy,
                    ConfigProto* config) {
  google::protobuf::UnknownFieldSet options;
  options.AddVarint(kMultiStreamNum, static_cast<uint64_t>(streams));
  options.AddVarint(kPartitionPolicy, static_cast<uint64_t>(policy));
  std::string serialized;
  options.SerializeToString(&serialized);
  RewriterConfig* rewriter =
      config->mutable_graph_options()->mutable_rewrite_options();
  google::protobuf::UnknownFieldSet* fields =
      rewriter->GetReflection()->MutableUnknownFields(rewriter);
  fields->DeleteByNumber(kUseMultiStream);
  fields->DeleteByNumber(kMultiStreamOpts);
  fields->AddVarint(kUseMultiStream, RewriterConfig::ON);
  fields->AddLengthDelimited(kMultiStreamOpts, serialized);
  MakeKnown(rewriter);
}

void SetCudaGraph(bool enable, ConfigProto* config) {
  GPUOptions* options = config->mutable_gpu_options();
  google::protobuf::UnknownFieldSet* fields =
      options->GetReflection()->MutableUnknownFields(options);
  fields->DeleteByNumber(kCudaGraphEnableJit);
  fields->AddVarint(kCudaGraphEnableJit, enable ? 1 : 0);
  MakeKnown(options);
}

}  // namespace tensorflow::multistream
