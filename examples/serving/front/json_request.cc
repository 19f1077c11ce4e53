// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/json_request.h"

#include <rapidjson/reader.h>

#include <cstring>
#include <limits>
#include <utility>

#include "examples/serving/front/input_values.h"
#include "examples/serving/front/tensor_messages.h"
#include "examples/serving/front/text_codes.h"

namespace front {
namespace {

constexpr int kDeepest = InputValues::kDeepest;  // as in sliced_json.py
// What Python keeps for a value, in bytes; sliced_json.py has the same figures.
// It does not count small bodies, which cannot have too many values.
constexpr uint64_t kOfValue = 32, kOfString = 80, kOfList = 128,
                   kOfObject = 288;
constexpr size_t kMostMessage = std::numeric_limits<int>::max();
constexpr char kDefaultSignature[] = "serving_default";
constexpr std::string_view kBase64Name = "b64";

struct Input {
  Input(std::string_view name, int type) : name(name), values(type) {}

  const std::string_view name;
  InputValues values;
  uint64_t times = 0;     // that the body has named it
  Input* next = nullptr;  // named after it in the last row
};
using Inputs = std::map<std::string_view, Input>;

// Takes what the body says, part by part, as RapidJSON reads it. Each function
// returns false if Python is to answer.
class BodyHandler
    : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, BodyHandler> {
 public:
  BodyHandler(const InputTypes& types, uint64_t most_bytes)
      : most_bytes_(most_bytes) {
    for (const auto& [name, type] : types) {
      inputs_.try_emplace(name, name, type);
    }
  }

  bool Default() { return false; }  // null
  bool Bool(bool value) {
    return Count(0) && BareBegins() && input_->values.AddBool(value) &&
           ValueEnds();
  }
  bool RawNumber(const char* text, size_t size, bool) {
    return Count(0) && BareBegins() && input_->values.AddNumber({text, size}) &&
           ValueEnds();
  }
  bool String(const char* text, size_t size, bool);
  bool StartObject();
  bool Key(const char* text, size_t size, bool);
  bool EndObject(size_t members);
  bool StartArray();
  bool EndArray(size_t elements);

  const std::string& signature() const { return signature_; }
  bool by_row() const { return by_row_; }
  const Inputs& inputs() const { return inputs_; }

 private:
  // What comes next.
  enum State {
    kAtBody,
    kAtField,
    kAtSignature,
    kAtRows,       // their list
    kAtFirst,      // the first row, or the value of `inputs`
    kAtFirstName,  // of an input, or of base64, in an object that comes first
    kAtName,       // of an input
    kAtValue,      // of input_, or a part of it
    kAtRow,        // another row by name, or the end of the rows
    kAtBase64Name,
    kAtBase64,
    kAtBase64End,
    kAtEnd,
  };

  // Counts a part. There is a comma before each but the first of a list or an
  // object, and the value of a field; no plain body has an empty one.
  bool Count(uint64_t bytes, bool first_follows = false) {
    memory_ += bytes + (is_first_ ? 0 : kOfValue);
    is_first_ = first_follows;
    return memory_ <= most_bytes_;
  }
  bool FieldBegins(std::string_view name);
  bool FirstNameBegins(std::string_view name);
  bool InputBegins(std::string_view name);
  bool BareBegins();
  bool ValueEnds();

  const uint64_t most_bytes_;
  uint64_t memory_ = 0;  // that Python keeps for the values so far, in bytes
  bool is_first_ = false;
  int depth_ = 0;
  State state_ = kAtBody;

  bool has_signature_ = false;
  std::string signature_;
  bool has_values_ = false;
  bool by_row_ = false;
  bool by_name_ = false;  // whether values come by the names of inputs
  uint64_t rows_ = 0;     // that are whole, if they are by name
  Inputs inputs_;
  Input* input_ = nullptr;  // whose value comes, or has come last
};

bool BodyHandler::FieldBegins(std::string_view name) {
  if (name == "signature_name") {
    state_ = kAtSignature;
    return !std::exchange(has_signature_, true);
  }
  by_row_ = name == "instances";
  state_ = by_row_ ? kAtRows : kAtFirst;
  return (by_row_ || name == "inputs") && !std::exchange(has_values_, true);
}

// Whether an object has inputs by their names is seen by its first name.
bool BodyHandler::FirstNameBegins(std::string_view name) {
  if (name == kBase64Name) {
    state_ = kAtFirst;
    if (!BareBegins()) return false;
    state_ = kAtBase64;
    return true;
  }
  by_name_ = true;
  if (by_row_) {
    for (auto& [_, input] : inputs_) input.values.OpenList();
  }
  return InputBegins(name);
}

bool BodyHandler::InputBegins(std::string_view name) {
  // Most rows name their inputs in the order of the row before.
  Input* found = input_ == nullptr ? nullptr : input_->next;
  if (found == nullptr || found->name != name) {
    const auto at = inputs_.find(name);
    if (at == inputs_.end()) return false;
    found = &at->second;
    if (input_ != nullptr) input_->next = found;
  }
  input_ = found;
  state_ = kAtValue;
  return found->times++ == rows_;
}

// Whether a value of an input begins, or a part of one. The value of the only
// input need not come by its name.
bool BodyHandler::BareBegins() {
  if (state_ != kAtFirst) return state_ == kAtValue;
  if (inputs_.size() != 1) return false;
  input_ = &inputs_.begin()->second;
  state_ = kAtValue;
  return !by_row_ || input_->values.OpenList();
}

bool BodyHandler::ValueEnds() {
  const int outer = by_row_ && by_name_ ? 1 : 0;
  state_ = input_->values.open_lists() > outer ? kAtValue
           : by_name_                          ? kAtName
                                               : kAtField;
  return true;
}

bool BodyHandler::String(const char* text, size_t size, bool) {
  if (!Count(kOfString)) return false;
  const std::string_view string(text, size);
  if (state_ == kAtSignature) {
    signature_ = string;
    state_ = kAtField;
    return true;
  }
  if (state_ == kAtBase64) {
    state_ = kAtBase64End;
    const std::optional<std::string> bytes = FromBase64(string);
    return bytes.has_value() && input_->values.AddString(*bytes);
  }
  return BareBegins() && IsUtf8(string) && input_->values.AddString(string) &&
         ValueEnds();
}

bool BodyHandler::StartObject() {
  if (!Count(kOfObject, true) || ++depth_ > kDeepest) return false;
  switch (state_) {
    case kAtBody:
      state_ = kAtField;
      return true;
    case kAtFirst:
      state_ = kAtFirstName;
      return true;
    case kAtRow:
      state_ = kAtName;
      return true;
    case kAtValue:
      state_ = kAtBase64Name;
      return true;
    default:
      return false;
  }
}

bool BodyHandler::Key(const char* text, size_t size, bool) {
  if (!Count(kOfString, true)) return false;
  const std::string_view name(text, size);
  switch (state_) {
    case kAtField:
      return FieldBegins(name);
    case kAtFirstName:
      return FirstNameBegins(name);
    case kAtName:
      return InputBegins(name);
    case kAtBase64Name:
      state_ = kAtBase64;
      return name == kBase64Name;
    default:
      return false;
  }
}

bool BodyHandler::EndObject(size_t members) {
  --depth_;
  switch (state_) {
    case kAtField:
      state_ = kAtEnd;
      return has_values_;
    case kAtName:
      state_ = by_row_ ? kAtRow : kAtField;
      ++rows_;
      return members == inputs_.size();
    case kAtBase64End:
      return ValueEnds();
    default:
      return false;
  }
}

bool BodyHandler::StartArray() {
  if (!Count(kOfList, true) || ++depth_ > kDeepest) return false;
  if (state_ == kAtRows) {
    state_ = kAtFirst;
    return true;
  }
  return BareBegins() && input_->values.OpenList();
}

bool BodyHandler::EndArray(size_t) {
  --depth_;
  if (state_ == kAtRow) {
    state_ = kAtField;
    for (auto& [_, input] : inputs_) input.values.CloseList();
    return true;
  }
  return state_ == kAtValue && input_->values.CloseList() && ValueEnds();
}

// The signature that the body names, or likely so: the types of its inputs are
// needed before the body is read, and the name may come last.
std::string_view LikelySignature(std::string_view body) {
  constexpr std::string_view kField = "\"signature_name\"", kBlank = " \t\n\r";
  // Where there are many quotes, string_view::find() takes twice the time.
  const void* const found =
      memmem(body.data(), body.size(), kField.data(), kField.size());
  if (found == nullptr) return {};
  body.remove_prefix(
      static_cast<size_t>(static_cast<const char*>(found) - body.data()));
  size_t at = kField.size();
  for (const char next : {':', '"'}) {
    at = body.find_first_not_of(kBlank, at);
    if (at == body.npos || body[at++] != next) return {};
  }
  return body.substr(at, body.find('"', at) - at);
}

// Empty if it would have 2 GB or more.
std::string WriteRequest(const std::string& model,
                         std::optional<int64_t> version,
                         const std::string& signature, const Inputs& inputs) {
  std::string request, spec, number;
  AppendText(1, model, &spec);
  if (version) {
    AppendNumber(1, static_cast<uint64_t>(*version), &number);
    AppendText(2, number, &spec);
  }
  if (!signature.empty()) AppendText(3, signature, &spec);
  AppendText(1, spec, &request);
  for (const auto& [name, input] : inputs) {
    const std::string head = input.values.Head();
    const std::string& bytes = input.values.bytes();
    std::string entry;
    AppendText(1, name, &entry);
    AppendTextHead(2, head.size() + bytes.size(), &entry);
    entry += head;
    const size_t size = entry.size() + bytes.size();
    AppendTextHead(2, size, &request);
    if (request.size() + size > kMostMessage) return {};
    request.reserve(request.size() + size);
    request += entry;
    request += bytes;
  }
  return request;
}

}  // namespace

std::optional<JsonRequest> ReadJsonRequest(std::string_view body,
                                           const std::string& model,
                                           std::optional<int64_t> version,
                                           const Signatures& signatures,
                                           uint64_t most_bytes) {
  const std::string signature(LikelySignature(body));
  const auto found =
      signatures.find(signature.empty() ? kDefaultSignature : signature);
  if (found == signatures.end() || body.size() > kMostMessage) {
    return std::nullopt;
  }
  const InputTypes& types = found->second;
  // An object whose only name is that of base64 is a value.
  if (types.count(std::string(kBase64Name)) > 0) return std::nullopt;

  BodyHandler handler(types, most_bytes);
  std::string text(body);  // its strings are unescaped in their places
  rapidjson::InsituStringStream stream(text.data());
  // Lists in lists take no stack. Numbers come as text: RapidJSON 1.1 reads
  // outside its tables if it is to read some of them in full precision.
  constexpr unsigned kFlags = rapidjson::kParseInsituFlag |
                              rapidjson::kParseIterativeFlag |
                              rapidjson::kParseNumbersAsStringsFlag;
  const auto result = rapidjson::Reader().Parse<kFlags>(stream, handler);
  // A zero byte ends what RapidJSON reads.
  if (result.IsError() || stream.Tell() != body.size() ||
      handler.signature() != signature) {
    return std::nullopt;
  }
  JsonRequest request = {
      WriteRequest(model, version, signature, handler.inputs()),
      handler.by_row()};
  if (request.predict_request.empty()) return std::nullopt;
  return request;
}

}  // namespace front
