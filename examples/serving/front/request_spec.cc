// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/request_spec.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <vector>

#include "examples/serving/front/tensor_messages.h"

namespace front {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// The specification and the shape of an input are within these first bytes.
constexpr size_t kLongestBeginning = 1024;
// More than any batch has.
constexpr uint64_t kMostRows = 1 << 20;

std::string BeginningOf(const grpc::ByteBuffer& request) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!request.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    if (bytes.size() >= kLongestBeginning) break;
    bytes.append(reinterpret_cast<const char*>(slice.begin()),
                 std::min(slice.size(), kLongestBeginning - bytes.size()));
  }
  return bytes;
}

bool ReadText(CodedInputStream* in, std::string* text) {
  uint32_t size = 0;
  return in->ReadVarint32(&size) && size <= kLongestBeginning &&
         in->ReadString(text, static_cast<int>(size));
}

CodedInputStream Stream(const std::string& bytes) {
  return CodedInputStream(reinterpret_cast<const uint8_t*>(bytes.data()),
                          static_cast<int>(bytes.size()));
}

void ReadModelSpec(const std::string& bytes, RequestSpec* spec) {
  CodedInputStream in = Stream(bytes);
  std::string model, signature;
  while (const uint32_t tag = in.ReadTag()) {
    const bool is_read = tag == TextTag(1) ? ReadText(&in, &model)
                         : tag == TextTag(3)
                             ? ReadText(&in, &signature)
                             : WireFormatLite::SkipField(&in, tag);
    if (!is_read) return;
  }
  spec->model = std::move(model);
  spec->signature = std::move(signature);
}

// Of an entry of the map of inputs: its key, then its TensorProto.
int64_t ReadRows(CodedInputStream* in) {
  constexpr int64_t kUnknown = 1;
  uint32_t size = 0;
  std::string name;
  if (!in->ReadVarint32(&size) || in->ReadTag() != TextTag(1) ||
      !ReadText(in, &name) || in->ReadTag() != TextTag(2) ||
      !in->ReadVarint32(&size)) {
    return kUnknown;
  }
  uint32_t tag = in->ReadTag();
  uint64_t number = 0;
  if (tag == NumberTag(1)) {  // the type
    if (!in->ReadVarint64(&number)) return kUnknown;
    tag = in->ReadTag();
  }
  // The shape, its first dimension, and the dimension's size.
  for (const uint32_t outer : {TextTag(2), TextTag(2)}) {
    if (tag != outer || !in->ReadVarint32(&size)) return kUnknown;
    tag = in->ReadTag();
  }
  if (tag != NumberTag(1) || !in->ReadVarint64(&number)) return kUnknown;
  return static_cast<int64_t>(std::min(number, kMostRows));
}

}  // namespace

RequestSpec SpecOf(const grpc::ByteBuffer& request) {
  const std::string beginning = BeginningOf(request);
  CodedInputStream in = Stream(beginning);
  RequestSpec spec;
  if (in.ReadTag() != TextTag(1) || !ReadText(&in, &spec.bytes)) return spec;
  ReadModelSpec(spec.bytes, &spec);
  if (in.ReadTag() == TextTag(2)) {
    spec.rows = std::max<int64_t>(ReadRows(&in), 1);
  }
  return spec;
}

}  // namespace front
