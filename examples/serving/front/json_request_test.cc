// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/json_request.h"

#include <google/protobuf/io/coded_stream.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "examples/serving/front/hex_fixture.h"
#include "examples/serving/front/request_spec.h"
#include "examples/serving/front/tensor_messages.h"

namespace front {
namespace {

constexpr char kPython[] = "Python answers";
constexpr uint64_t kUnlimited = 1 << 30;

const Signatures& Known() {
  static const auto* const known = new Signatures{
      {"serving_default", {{"a", kFloat}, {"b", kInt64}}},
      {"float", {{"x", kFloat}}},
      {"double", {{"x", kDouble}}},
      {"half", {{"x", kHalf}}},
      {"bfloat16", {{"x", kBfloat16}}},
      {"int8", {{"x", kInt8}}},
      {"int16", {{"x", kInt16}}},
      {"int32", {{"x", kInt32}}},
      {"int64", {{"x", kInt64}}},
      {"uint8", {{"x", kUint8}}},
      {"uint16", {{"x", kUint16}}},
      {"uint32", {{"x", kUint32}}},
      {"uint64", {{"x", kUint64}}},
      {"bool", {{"x", kBool}}},
      {"string", {{"x", kString}}},
      {"mixed", {{"n", kInt8}, {"s", kString}}},
      {"complex64", {{"x", 8}}},
      {"named b64", {{"b64", kString}}},
      {"none", {}},
  };
  return *known;
}

// The fields of a message, each as its number and its text or number.
struct Field {
  uint32_t tag;
  std::string text;
  uint64_t number;
};
std::vector<Field> FieldsOf(const std::string& message) {
  google::protobuf::io::CodedInputStream in(
      reinterpret_cast<const uint8_t*>(message.data()),
      static_cast<int>(message.size()));
  std::vector<Field> fields;
  while (const uint32_t tag = in.ReadTag()) {
    Field field = {tag, "", 0};
    EXPECT_TRUE(in.ReadVarint64(&field.number));
    if ((tag & 7) == 2) {
      EXPECT_TRUE(in.ReadString(&field.text, static_cast<int>(field.number)));
    }
    fields.push_back(field);
  }
  EXPECT_TRUE(in.ConsumedEntireMessage());
  return fields;
}

// A TensorProto: its shape, and its strings or the bytes of its numbers.
std::string TensorText(const std::string& proto, int type) {
  const std::vector<Field> fields = FieldsOf(proto);
  EXPECT_GE(fields.size(), 3u);
  // request_spec.cc asks for this order.
  EXPECT_EQ(fields[0].tag, NumberTag(1));
  EXPECT_EQ(fields[0].number, static_cast<uint64_t>(type));
  EXPECT_EQ(fields[1].tag, TextTag(2));
  std::string text = "[";
  for (const Field& dimension : FieldsOf(fields[1].text)) {
    EXPECT_EQ(dimension.tag, TextTag(2));
    const Field size = FieldsOf(dimension.text).at(0);
    EXPECT_EQ(size.tag, NumberTag(1));
    text += (text == "[" ? "" : ",") + std::to_string(size.number);
  }
  text += "]";
  for (size_t i = 2; i < fields.size(); ++i) {
    EXPECT_EQ(fields[i].tag, TextTag(type == kString ? 8 : 4));
    text += " " + (type == kString ? fields[i].text : Hex(fields[i].text));
  }
  return text;
}

// What the request says that a body stands for.
std::string Read(const std::string& body, uint64_t most_bytes = kUnlimited) {
  const std::optional<JsonRequest> request =
      ReadJsonRequest(body, "m", 7, Known(), most_bytes);
  if (!request.has_value()) return kPython;
  std::string text = request->by_row ? "rows" : "columns";
  std::string signature;
  for (const Field& field : FieldsOf(request->predict_request)) {
    const std::vector<Field> inner = FieldsOf(field.text);
    if (field.tag == TextTag(1)) {
      EXPECT_EQ(text.find(':'), text.npos) << "the specification comes first";
      EXPECT_EQ(inner.at(0).text, "m");
      if (inner.size() > 2) {
        signature = inner[2].text;
        EXPECT_FALSE(signature.empty());
      }
      text += signature.empty() ? ":" : " of " + signature + ":";
    } else {
      EXPECT_EQ(field.tag, TextTag(2));
      EXPECT_EQ(inner.at(0).tag, TextTag(1));
      EXPECT_EQ(inner.at(1).tag, TextTag(2));
      const int type =
          Known()
              .at(signature.empty() ? "serving_default" : signature)
              .at(inner[0].text);
      text += " " + inner[0].text + TensorText(inner[1].text, type);
    }
  }
  return text;
}

// Of a signature's only input, the tensor that a value makes.
std::string ReadValue(const std::string& signature, const std::string& value) {
  const std::string text = Read("{\"signature_name\": \"" + signature +
                                "\", \"inputs\": " + value + "}");
  const std::string before = "columns of " + signature + ": x";
  return text.rfind(before, 0) == 0 ? text.substr(before.size()) : text;
}

TEST(JsonRequestTest, WritesTheMessage) {
  const auto request =
      ReadJsonRequest(R"({"signature_name": "half", "instances": [[1], [2]]})",
                      "model", 300, Known(), kUnlimited);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(Hex(request->predict_request),
            // model_spec: name, version 300, signature_name
            "0a12"
            "0a056d6f64656c"
            "120308ac02"
            "1a0468616c66"
            // inputs: "x", half, [2, 1], 1 and 2
            "1217"
            "0a0178"
            "1212"
            "0813"
            "1208"
            "12020802"
            "12020801"
            "2204"
            "003c0040");
}

TEST(JsonRequestTest, NamesNoVersionIfThereIsNone) {
  const auto request = ReadJsonRequest(R"({"instances": [{"a": 1, "b": 2}]})",
                                       "m", std::nullopt, Known(), kUnlimited);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(Hex(request->predict_request).substr(0, 12), "0a030a016d12");
}

TEST(JsonRequestTest, BeginsAsTheFrontReadsRequests) {
  const auto request = ReadJsonRequest(
      R"({"signature_name": "mixed", "instances": [{"n": [1, 2], "s": "p"},
          {"n": [3, 4], "s": "q"}, {"n": [5, 6], "s": "r"}]})",
      "model", 7, Known(), kUnlimited);
  ASSERT_TRUE(request.has_value());
  const grpc::Slice slice(request->predict_request);
  const RequestSpec spec = SpecOf(grpc::ByteBuffer(&slice, 1));
  EXPECT_EQ(spec.model, "model");
  EXPECT_EQ(spec.signature, "mixed");
  EXPECT_EQ(spec.rows, 3);
}

TEST(JsonRequestTest, RowsHaveInputsByName) {
  EXPECT_EQ(Read(R"({"instances": [{"a": [1, 2], "b": 3},
                                   {"b": 4, "a": [0, -2]}]})"),
            "rows: a[2,2] 0000803f0000004000000000000000c0 "
            "b[2] 03000000000000000400000000000000");
  EXPECT_EQ(Read(R"({"signature_name": "int8", "instances": [{"x": 1}]})"),
            "rows of int8: x[1] 01");
}

TEST(JsonRequestTest, RowsOfTheOnlyInputNeedNoName) {
  EXPECT_EQ(Read(R"({"signature_name": "int8", "instances": [1, 2]})"),
            "rows of int8: x[2] 0102");
  EXPECT_EQ(Read(R"({"signature_name": "int8", "instances": [[[1]], [[2]]]})"),
            "rows of int8: x[2,1,1] 0102");
  EXPECT_EQ(Read(R"({"signature_name": "bool", "instances": [true]})"),
            "rows of bool: x[1] 01");
  EXPECT_EQ(
      Read(
          R"({"signature_name": "string", "instances": ["p", {"b64": "cQ=="}]})"),
      "rows of string: x[2] p q");
  EXPECT_EQ(
      Read(
          R"({"signature_name": "string", "instances": [{"b64": "cQ=="}, "p"]})"),
      "rows of string: x[2] q p");
  EXPECT_EQ(Read(R"({"instances": [1, 2]})"), kPython);
  EXPECT_EQ(Read(R"({"instances": [{"b64": "cQ=="}]})"), kPython);
}

TEST(JsonRequestTest, AllRowsHaveNamesOrNone) {
  const Signatures known = {{"serving_default", {{"x", kInt8}}}};
  for (const char* body : {R"({"instances": [{"x": [1]}, 1]})",
                           R"({"instances": [{"x": [1]}, [1]]})",
                           R"({"instances": [1, {"x": 1}]})"}) {
    EXPECT_FALSE(ReadJsonRequest(body, "m", 7, known, kUnlimited).has_value());
  }
}

TEST(JsonRequestTest, ColumnsHaveInputsByName) {
  EXPECT_EQ(Read(R"({"inputs": {"b": [[3], [4]], "a": 1}})"),
            "columns: a[] 0000803f b[2,1] 03000000000000000400000000000000");
  EXPECT_EQ(ReadValue("int8", R"({"x": [1]})"), "[1] 01");
}

TEST(JsonRequestTest, ColumnOfTheOnlyInputNeedsNoName) {
  EXPECT_EQ(ReadValue("int8", "5"), "[] 05");
  EXPECT_EQ(ReadValue("int8", "[[1, 2], [3, 4]]"), "[2,2] 01020304");
  EXPECT_EQ(ReadValue("bool", "true"), "[] 01");
  EXPECT_EQ(ReadValue("string", R"("p")"), "[] p");
  EXPECT_EQ(ReadValue("string", R"({"b64": "cQ=="})"), "[] q");
  EXPECT_EQ(Read(R"({"inputs": 5})"), kPython);
  EXPECT_EQ(Read(R"({"inputs": "p"})"), kPython);
}

TEST(JsonRequestTest, FindsTheSignatureWhereverItIsNamed) {
  const std::string b = " b[1] 0200000000000000";
  EXPECT_EQ(Read(R"({"instances": [{"a": 1, "b": 2}]})"),
            "rows: a[1] 0000803f" + b);
  EXPECT_EQ(Read(R"({"instances": [{"a": 1, "b": 2}], "signature_name": ""})"),
            "rows: a[1] 0000803f" + b);
  EXPECT_EQ(Read(R"({"signature_name": "serving_default",
                     "instances": [{"a": 1, "b": 2}]})"),
            "rows of serving_default: a[1] 0000803f" + b);
  EXPECT_EQ(Read("{\"instances\": [1], \"signature_name\" \n:\t\"uint8\" }"),
            "rows of uint8: x[1] 01");
  EXPECT_EQ(Read(R"({"\u0069nstances": [1], "signature_name": "uint8"})"),
            "rows of uint8: x[1] 01");
}

TEST(JsonRequestTest, LeavesADoubtfulSignatureToPython) {
  EXPECT_EQ(Read(R"({"signature_name": "unknown", "instances": [1]})"),
            kPython);
  EXPECT_EQ(Read(R"({"signature_name": 1, "instances": [{"a": 1, "b": 2}]})"),
            kPython);
  EXPECT_EQ(
      Read(R"({"signature_name": null, "instances": [{"a": 1, "b": 2}]})"),
      kPython);
  // The name is not found, or another one, before the body is read.
  EXPECT_EQ(Read(R"({"instances": [{"a": 1, "b": 2}],
                     "signature_nam\u0065": "int8"})"),
            kPython);
  EXPECT_EQ(Read(R"({"inputs": {"signature_name": "int8", "x": 1}})"), kPython);
  EXPECT_EQ(Read(R"({"signature_name": "int8", "inputs": 1,
                     "signature_name": "int8"})"),
            kPython);
  EXPECT_EQ(Read(R"({"signature_name")"), kPython);
  EXPECT_EQ(Read(R"({"signature_name": "int8)"), kPython);
}

// Each is plain but for one thing.
TEST(JsonRequestTest, LeavesOtherBodiesToPython) {
  const std::string plain =
      R"({"signature_name": "int8", "inputs": {"x": [1, 2]}})";
  ASSERT_EQ(Read(plain), "columns of int8: x[2] 0102");
  ASSERT_EQ(Read(" \t\r\n" + plain + " \t\r\n"), "columns of int8: x[2] 0102");
  for (const char* before :
       {"x", "[", "//\n", "\xef\xbb\xbf", "\xff\xfe", "\f"}) {
    EXPECT_EQ(Read(before + plain), kPython) << before;
  }
  for (const char* after : {"x", "}", "{}", ",", "//", "\f"}) {
    EXPECT_EQ(Read(plain + after), kPython) << after;
  }
  EXPECT_EQ(Read(plain + std::string(1, '\0')), kPython);
  EXPECT_EQ(Read(plain + std::string("\0x", 2)), kPython);
  const std::string begin = R"({"signature_name": "int8", )";
  for (const char* rest : {
           R"("inputs": {"x": [1, 2]}, "instances": [1]})",
           R"("inputs": {"x": [1, 2]}, "inputs": [1]})",
           R"("inputs": {"x": [1, 2]}, "unknown": 1})",
           R"("inputs": {"x": [1, 2], "x": [1, 2]}})",
           R"("inputs": {"x": [1, 2], "y": [1, 2]}})",
           R"("inputs": {"y": [1, 2]}})",
           R"("inputs": {"x": [1, 2]})",
           R"("inputs": {"x": [1, 2]]})",
           R"("inputs": {"x": [1, 2],}})",
           R"("inputs": {"x": [1, 2,]}})",
           R"("inputs": {"x": [1 2]}})",
           R"("inputs": {"x": [01, 2]}})",
           R"("inputs": {"x": [+1, 2]}})",
           R"("inputs": {"x": [1, NaN]}})",
           R"("inputs": {"x": [1, null]}})",
           R"("inputs": {"x": [1, "2"]}})",
           R"("inputs": {"x": [1, true]}})",
           R"("inputs": {"x": [1, {}]}})",
           R"("inputs": {"x": [1, {"b64": "cQ=="}]}})",
           R"("inputs": {"x": null}})",
           R"("inputs": {}})",
           R"("inputs": null})",
           R"("instances": []})",
           R"("instances": {}})",
           R"("instances": 1})",
           R"("instances": [{}]})",
           R"("instances": [{"x": 1}, {}]})",
           R"("instances": [{"x": 1}, {"x": 1, "x": 2}]})",
           R"("instances": [{"x": 1}, {"y": 1}]})",
           R"("instances": [{"x": 1}, 1]})",
           R"("instances": [{"x": [1]}, 1]})",
           R"("instances": [1, {"x": 1}]})",
           R"("instances": [{"x": 1}, {"x": [1]}]})",
           R"("instances": null})",
           R"("unknown": 1})",
           "}",
       }) {
    EXPECT_EQ(Read(begin + rest), kPython) << rest;
  }
  for (const char* body :
       {"", "{}", "[]", "1", "null", "\"inputs\"",
        R"({"instances": [{"a": 1}]})",
        R"({"instances": [{"a": 1, "b": 2}, {"a": 1}]})",
        R"({"instances": [{"a": 1, "a": 2}]})",
        R"({"inputs": {"a": 1, "a": 2}})", R"({"inputs": {"a": 1}})"}) {
    EXPECT_EQ(Read(body), kPython) << body;
  }
}

TEST(JsonRequestTest, ListsAreOfOneLengthAndDepth) {
  EXPECT_EQ(ReadValue("int8", "[[[1], [2]], [[3], [4]]]"), "[2,2,1] 01020304");
  for (const char* value : {"[[1], [2, 3]]", "[[1, 2], [3]]", "[1, [2]]",
                            "[[1], 2]", "[[1], [[2]]]", "[[[1]], [2]]",
                            "[[[1], [2]], [[3]]]", "[]", "[[]]", "[[1], []]"}) {
    EXPECT_EQ(ReadValue("int8", value), kPython) << value;
  }
  EXPECT_EQ(ReadValue("string", R"(["p", ["q"]])"), kPython);
  EXPECT_EQ(ReadValue("string", "[]"), kPython);
  EXPECT_EQ(Read(R"({"instances": [{"a": [], "b": 1}]})"), kPython);
}

TEST(JsonRequestTest, NestsAtMost32Deep) {
  const auto nested = [](size_t lists) {
    return std::string(lists, '[') + "1" + std::string(lists, ']');
  };
  EXPECT_NE(ReadValue("int8", nested(31)), kPython);  // the body is one more
  EXPECT_EQ(ReadValue("int8", nested(32)), kPython);
  EXPECT_EQ(ReadValue("string", std::string(31, '[') + R"({"b64": ""})" +
                                    std::string(31, ']')),
            kPython);
  EXPECT_EQ(ReadValue("int8", nested(1000000)), kPython);
  EXPECT_EQ(Read(std::string(1000000, '[')), kPython);
}

TEST(JsonRequestTest, ManyListsAndObjectsAreNotDeep) {
  std::string lists, objects;
  for (int i = 0; i < 100; ++i) {
    lists += i == 0 ? "[1]" : ", [1]";
    objects += i == 0 ? "{\"x\": [1]}" : ", {\"x\": [1]}";
  }
  EXPECT_NE(ReadValue("int8", "[" + lists + "]"), kPython);
  EXPECT_NE(
      Read("{\"signature_name\": \"int8\", \"instances\": [" + objects + "]}"),
      kPython);
}

// As Python counts in sliced_json.py.
TEST(JsonRequestTest, CountsTheMemoryOfValues) {
  const struct {
    std::string body;
    uint64_t values, strings, lists, objects;
  } cases[] = {
      // Values are one more than the commas.
      {R"({"signature_name": "int8", "inputs": [1, 2, 3]})", 4, 3, 1, 1},
      {R"({"signature_name": "int8", "inputs": [[1, 2], [3, 4]]})", 5, 3, 3, 1},
      {R"({"signature_name": "int8", "instances": [{"x": 1}, {"x": 2}]})", 3, 5,
       1, 3},
      {R"({"signature_name": "string", "inputs": ["a,[{", {"b64": "cQ=="}]})",
       3, 6, 1, 2},
      {R"({"signature_name": "bool", "inputs": [true, false]})", 3, 3, 1, 1},
      {R"({"inputs": {"a": 1, "b": [2, 3]}})", 3, 3, 1, 2},
  };
  for (const auto& [body, values, strings, lists, objects] : cases) {
    const uint64_t bytes =
        32 * values + 80 * strings + 128 * lists + 288 * objects;
    EXPECT_NE(Read(body, bytes), kPython) << body;
    EXPECT_EQ(Read(body, bytes - 1), kPython) << body;
  }
}

TEST(JsonRequestTest, NumbersAreOfTheInputsType) {
  EXPECT_EQ(ReadValue("double", "[1.5, 2, -0, -0.0]"),
            "[4] 000000000000f83f00000000000000400000000000000000"
            "0000000000000080");
  for (const auto& [signature, value] :
       std::vector<std::pair<const char*, const char*>>{{"double", "true"},
                                                        {"double", "[1, true]"},
                                                        {"double", "null"},
                                                        {"double", "\"1\""},
                                                        {"double", "1."},
                                                        {"double", ".5"},
                                                        {"double", "1e"},
                                                        {"double", "-"},
                                                        {"double", "NaN"},
                                                        {"double", "-Infinity"},
                                                        {"double", "1e400"},
                                                        {"float", "1e39"},
                                                        {"int8", "1.0"},
                                                        {"int8", "1e1"},
                                                        {"int8", "128"},
                                                        {"int8", "true"},
                                                        {"bool", "1"},
                                                        {"bool", "[true, 0]"},
                                                        {"bool", "\"true\""}}) {
    EXPECT_EQ(ReadValue(signature, value), kPython) << signature << value;
  }
}

// RapidJSON's own reader of such numbers ends the process.
TEST(JsonRequestTest, ReadsLongNumbersWithLargeExponents) {
  std::string digits;
  while (digits.size() < 900) digits += "123456789";
  EXPECT_EQ(ReadValue("double", "0." + digits), "[] 5e21c137dd9abf3f");
  const std::string zero = ReadValue("double", "0." + digits + "e-1100");
  EXPECT_TRUE(zero == kPython || zero == "[] 0000000000000000") << zero;
}

TEST(JsonRequestTest, StringsAreUtf8) {
  const std::pair<std::string, std::string> cases[] = {
      {R"("")", ""},
      {R"("\"\\\/\b\f\n\r\t")", "\"\\/\b\f\n\r\t"},
      {R"("\u0041\u00e9\u20AC\ud83d\ude00")", "A\u00e9\u20ac\U0001f600"},
      {R"("\u0000")", std::string(1, '\0')},
      {"\"\u00e9\u20ac\U0001f600\x7f\"", "\u00e9\u20ac\U0001f600\x7f"},
  };
  for (const auto& [json, bytes] : cases) {
    EXPECT_EQ(ReadValue("string", json), "[] " + bytes) << json;
  }
  for (const char* json :
       {R"("\ud83d")", R"("\ud83dx")", R"("\ude00")", R"("\ude00\ud83d")",
        R"("\ud83d\u0041")", R"("\x41")", R"("\u00g0")", "\"a\nb\"", "\"a",
        "\"\xff\"", "1", "true", "null", "{}", R"(["p", {"x": "p"}])"}) {
    EXPECT_EQ(ReadValue("string", json), kPython) << json;
  }
  EXPECT_EQ(ReadValue("string", std::string("\"a\0b\"", 5)), kPython);
}

TEST(JsonRequestTest, AnObjectWithB64IsAString) {
  EXPECT_EQ(ReadValue("string", R"([{"b64": "cQ\u003d="}, {"b64": ""}])"),
            "[2] q ");
  for (const char* object :
       {R"({"b64": "cQ"})", R"({"b64": 1})", R"({"b64": ["cQ=="]})",
        R"({"b64": null})", R"({"b64": "cQ==", "b64": "cQ=="})",
        R"({"b64": "cQ==", "x": 1})", R"({"x": "p", "b64": "cQ=="})",
        R"({"x": {"b64": "cQ==", "y": 1}})", R"({"x": {"y": "cQ=="}})",
        R"([{"b64": "cQ=="}, {"b65": "cQ=="}])", R"([{"b64": "cQ=="}, {}])"}) {
    EXPECT_EQ(ReadValue("string", object), kPython) << object;
  }
}

TEST(JsonRequestTest, LeavesOtherSignaturesToPython) {
  EXPECT_EQ(ReadValue("complex64", "1"), kPython);
  EXPECT_EQ(Read(R"({"signature_name": "named b64", "inputs": "p"})"), kPython);
  EXPECT_EQ(Read(R"({"signature_name": "none", "inputs": {}})"), kPython);
  EXPECT_EQ(Read(R"({"signature_name": "none", "instances": [{}]})"), kPython);
}

TEST(JsonRequestTest, ManyRowsAndInputsOfSeveralTypes) {
  EXPECT_EQ(Read(R"({"signature_name": "mixed", "instances": [
                     {"s": "p", "n": 1}, {"s": {"b64": "cQ=="}, "n": 2},
                     {"n": 3, "s": "r"}]})"),
            "rows of mixed: n[3] 010203 s[3] p q r");
}

}  // namespace
}  // namespace front
