// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/predict_messages.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/protobuf.h"

namespace tensorflow::multistream {
namespace {

using protobuf::io::CodedInputStream;

constexpr int kMostDimensions = 254;  // of TensorFlow
// The memory of a string besides its bytes, in a message and in a tensor.
constexpr int64_t kOfString = 80;
// The memory of any other parsed field of a message, about.
constexpr int64_t kOfField = 32;

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Goes through the fields of a message.
class Fields {
 public:
  explicit Fields(absl::string_view message)
      : message_(message),
        input_(reinterpret_cast<const uint8_t*>(message.data()),
               static_cast<int>(message.size())) {}

  // Reads the next field: its number, its type, and the bytes or the number.
  // False at the end, and if the bytes are not those of a field.
  bool Next() {
    const uint32_t tag = input_.ReadTag();
    if (tag == 0) return false;
    number = static_cast<int>(tag >> 3);
    type = static_cast<WireType>(tag & 7);
    bytes = {};
    value = 0;
    uint32_t fixed = 0;
    switch (type) {
      case kVarint:
        return input_.ReadVarint64(&value);
      case kFixed64:
        return input_.ReadLittleEndian64(&value);
      case kFixed32:
        return input_.ReadLittleEndian32(&fixed);
      case kBytes: {
        uint64_t size;
        if (!input_.ReadVarint64(&size)) return false;
        const auto at = static_cast<size_t>(input_.CurrentPosition());
        if (size > message_.size() - at) return false;
        bytes = message_.substr(at, size);
        return input_.Skip(static_cast<int>(size));
      }
      default:
        return false;
    }
  }
  // Whether Next() has come to the end of the message.
  bool AtEnd() { return input_.ConsumedEntireMessage(); }

  int number = 0;
  WireType type = kVarint;
  absl::string_view bytes;
  uint64_t value = 0;

 private:
  const absl::string_view message_;
  CodedInputStream input_;
};

constexpr size_t kMostMessage = std::numeric_limits<int>::max();

bool CanBeRead(absl::string_view message) {
  return message.size() <= kMostMessage;
}

// Whether the message takes at most `most_bytes` when it is parsed: a field of
// two bytes may become an object, and a number of one byte eight.
bool TakesAtMost(absl::string_view tensor, int64_t most_bytes) {
  Fields fields(tensor);
  int64_t taken = 0;
  while (fields.Next()) {
    const auto size = static_cast<int64_t>(fields.bytes.size());
    switch (fields.type == kBytes ? fields.number : 0) {
      case TensorProto::kTensorShapeFieldNumber:
        taken += kOfField * size / 2;
        break;
      case TensorProto::kIntValFieldNumber:
        taken += 4 * size;
        break;
      case TensorProto::kInt64ValFieldNumber:
        taken += 8 * size;
        break;
      case TensorProto::kDtypeFieldNumber:
      case TensorProto::kHalfValFieldNumber:
      case TensorProto::kUint32ValFieldNumber:
      case TensorProto::kUint64ValFieldNumber:
      case TensorProto::kResourceHandleValFieldNumber:
      case TensorProto::kVariantValFieldNumber:
        return false;
      case TensorProto::kStringValFieldNumber:
        taken += kOfString + size;
        break;
      default:
        taken += kOfField + size;
    }
    if (taken > most_bytes) return false;
  }
  return fields.AtEnd();
}

// How many values a tensor of `type` finds in its own field of the message; -1
// for types whose values are read from tensor_content only.
int64_t ValuesOf(const TensorProto& proto, DataType type) {
  switch (type) {
    case DT_FLOAT:
      return proto.float_val_size();
    case DT_DOUBLE:
      return proto.double_val_size();
    case DT_INT32:
      return proto.int_val_size();
    case DT_INT64:
      return proto.int64_val_size();
    case DT_BOOL:
      return proto.bool_val_size();
    case DT_STRING:
      return proto.string_val_size();
    default:
      return -1;
  }
}

// What a tensor of strings takes, the last of which stands for those left out.
int64_t BytesOfStrings(const TensorProto& proto, int64_t count) {
  int64_t bytes = count * kOfString;
  for (const auto& string : proto.string_val()) {
    bytes += static_cast<int64_t>(string.size());
  }
  const int64_t given = proto.string_val_size();
  if (given > 0 && given < count) {
    bytes += (count - given) *
             static_cast<int64_t>(
                 proto.string_val(static_cast<int>(given) - 1).size());
  }
  return bytes;
}

void AppendVarint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) {
    to->push_back(static_cast<char>(value | 0x80));
  }
  to->push_back(static_cast<char>(value));
}

void AppendTag(int field, WireType type, std::string* to) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | type, to);
}

void AppendBytes(int field, absl::string_view bytes, std::string* to) {
  AppendTag(field, kBytes, to);
  AppendVarint(bytes.size(), to);
  to->append(bytes.data(), bytes.size());
}

}  // namespace

bool PredictRequest::Read(absl::string_view message) {
  if (!CanBeRead(message)) return false;
  Fields fields(message);
  while (fields.Next()) {
    if (fields.type != kBytes) return false;
    Fields inner(fields.bytes);
    if (fields.number == 1) {
      while (inner.Next()) {
        if (inner.type != kBytes) return false;
        if (inner.number == 1) {
          model = inner.bytes;
        } else if (inner.number == 2) {
          has_version = true;
          Fields wrapped(inner.bytes);
          while (wrapped.Next()) {
            if (wrapped.number != 1 || wrapped.type != kVarint) return false;
            version = static_cast<int64_t>(wrapped.value);
          }
          if (!wrapped.AtEnd()) return false;
        } else if (inner.number == 3) {
          signature = inner.bytes;
        } else {
          return false;
        }
      }
    } else if (fields.number == 2) {
      if (inputs.size() == kMostInputs) return false;
      Input input;
      bool has[] = {false, false};
      while (inner.Next()) {
        if (inner.type != kBytes || (inner.number != 1 && inner.number != 2) ||
            std::exchange(has[inner.number - 1], true)) {
          return false;
        }
        (inner.number == 1 ? input.name : input.tensor) = inner.bytes;
      }
      inputs.push_back(input);
    } else {
      return false;
    }
    if (!inner.AtEnd()) return false;
  }
  return fields.AtEnd();
}

bool ReadTensor(absl::string_view message, DataType type,
                const PartialTensorShape& shape, int64_t most_bytes,
                Tensor* tensor) {
  TensorProto proto;
  if (!CanBeRead(message) || !TakesAtMost(message, most_bytes) ||
      !proto.ParseFromArray(message.data(), static_cast<int>(message.size())) ||
      proto.dtype() != type || proto.tensor_shape().unknown_rank() ||
      proto.tensor_shape().dim_size() > kMostDimensions ||
      !TensorShape::IsValid(proto.tensor_shape())) {
    return false;
  }
  // A shape of no elements may have other dimensions that no array can have.
  int64_t extent = type == DT_STRING ? kOfString : DataTypeSize(type);
  if (extent == 0) return false;
  for (const auto& dim : proto.tensor_shape().dim()) {
    if (dim.size() > most_bytes / extent) return false;
    extent *= std::max<int64_t>(dim.size(), 1);
  }
  const TensorShape given(proto.tensor_shape());
  if (!shape.IsCompatibleWith(given)) return false;
  const int64_t count = given.num_elements();
  const int64_t in_field = ValuesOf(proto, type);
  if (type == DT_STRING) {
    if (in_field > count || !proto.tensor_content().empty() ||
        BytesOfStrings(proto, count) > most_bytes) {
      return false;
    }
  } else {
    const int64_t size = DataTypeSize(type);
    const bool has_content = !proto.tensor_content().empty();
    if (has_content ? static_cast<int64_t>(proto.tensor_content().size()) !=
                          count * size
                    : in_field < 0 || in_field > count) {
      return false;
    }
  }
  return tensor->FromProto(cpu_allocator(), proto);
}

std::string PredictResponse(absl::string_view model, int64_t version,
                            absl::string_view signature,
                            const std::vector<std::string>& names,
                            const std::vector<Tensor>& outputs) {
  std::string response;
  for (size_t i = 0; i < outputs.size(); ++i) {
    // Several numbers are the bytes of the tensor, which are copied once. A
    // single value is in the field of its type, as TensorFlow's Python writes
    // it.
    TensorProto head;
    const bool has_content =
        outputs[i].dtype() != DT_STRING && outputs[i].NumElements() > 1;
    if (has_content) {
      head.set_dtype(outputs[i].dtype());
      outputs[i].shape().AsProto(head.mutable_tensor_shape());
    } else {
      outputs[i].AsProtoField(&head);
      if (head.ByteSizeLong() > kMostMessage) return {};
    }
    std::string tensor = head.SerializeAsString();
    const absl::string_view content =
        has_content ? outputs[i].tensor_data() : absl::string_view();
    if (!content.empty()) {
      AppendTag(TensorProto::kTensorContentFieldNumber, kBytes, &tensor);
      AppendVarint(content.size(), &tensor);
    }
    std::string entry;
    AppendBytes(1, names[i], &entry);
    AppendTag(2, kBytes, &entry);
    AppendVarint(tensor.size() + content.size(), &entry);
    entry += tensor;
    if (!CanBeRead(response) || !CanBeRead(content)) return {};
    response.reserve(response.size() + entry.size() + content.size() + 64);
    AppendTag(1, kBytes, &response);
    AppendVarint(entry.size() + content.size(), &response);
    response += entry;
    response.append(content.data(), content.size());
  }
  std::string spec, value;
  if (!model.empty()) AppendBytes(1, model, &spec);
  AppendTag(1, kVarint, &value);
  AppendVarint(static_cast<uint64_t>(version), &value);
  AppendBytes(2, value, &spec);
  AppendBytes(3, signature, &spec);
  AppendBytes(2, spec, &response);
  return CanBeRead(response) ? response : std::string();
}

}  // namespace tensorflow::multistream
