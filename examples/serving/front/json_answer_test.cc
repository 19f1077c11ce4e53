// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/json_answer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "examples/serving/front/tensor_messages.h"

namespace front {
namespace {

constexpr char kNotPlain[] = "the outputs are not of types that JSON has.";

template <typename T>
std::string Bytes(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()),
          values.size() * sizeof(T)};
}

// A TensorProto without values.
std::string Head(int type, const std::vector<int64_t>& shape) {
  std::string dimensions, head;
  for (const int64_t length : shape) {
    std::string dimension;
    // protobuf leaves out a zero.
    if (length != 0) {
      AppendNumber(1, static_cast<uint64_t>(length), &dimension);
    }
    AppendText(2, dimension, &dimensions);
  }
  AppendNumber(1, static_cast<uint64_t>(type), &head);
  AppendText(2, dimensions, &head);
  return head;
}

// With the bytes of its numbers; without a field if it has none.
std::string Tensor(int type, const std::vector<int64_t>& shape,
                   const std::string& numbers) {
  std::string tensor = Head(type, shape);
  if (!numbers.empty()) AppendText(4, numbers, &tensor);
  return tensor;
}

std::string Strings(const std::vector<int64_t>& shape,
                    const std::vector<std::string>& strings) {
  std::string tensor = Head(kString, shape);
  for (const std::string& string : strings) AppendText(8, string, &tensor);
  return tensor;
}

// With a value of a field of several, as protobuf packs it.
std::string Scalar(int type, int field, const std::string& packed) {
  std::string tensor = Head(type, {});
  AppendText(field, packed, &tensor);
  return tensor;
}

struct Named {
  std::string name, tensor;
};

// The PredictResponse with these outputs.
std::string Response(const std::vector<Named>& outputs) {
  std::string response;
  for (const auto& [name, tensor] : outputs) {
    std::string entry;
    AppendText(1, name, &entry);
    AppendText(2, tensor, &entry);
    AppendText(1, entry, &response);
  }
  AppendText(2, "\n\1m", &response);
  return response;
}

std::string Write(const std::string& response, bool by_row) {
  std::string answer;
  const std::string error = WriteJsonAnswer(response, by_row, &answer);
  return error.empty() ? answer : error;
}
std::string Rows(const std::vector<Named>& outputs) {
  return Write(Response(outputs), true);
}
std::string Columns(const std::vector<Named>& outputs) {
  return Write(Response(outputs), false);
}
// The value of the only output.
std::string Value(const std::string& tensor) {
  const std::string text = Columns({{"x", tensor}});
  const std::string before = "{\"outputs\": ";
  return text.rfind(before, 0) == 0
             ? text.substr(before.size(), text.size() - before.size() - 1)
             : text;
}

TEST(JsonAnswerTest, RowsOfOneOutputAreItsValues) {
  EXPECT_EQ(Rows({{"x", Tensor(kInt8, {2, 3}, "\1\2\3\4\5\6")}}),
            "{\"predictions\": [[1, 2, 3], [4, 5, 6]]}");
  EXPECT_EQ(Rows({{"x", Tensor(kInt8, {1}, "\1")}}), "{\"predictions\": [1]}");
  EXPECT_EQ(Rows({{"x", Tensor(kInt8, {0}, "")}}), "{\"predictions\": []}");
}

TEST(JsonAnswerTest, RowsOfSeveralOutputsAreObjects) {
  EXPECT_EQ(
      Rows({{"b", Tensor(kInt8, {2, 2}, "\1\2\3\4")},
            {"a\u00e9\"", Strings({2}, {"p", "q"})},
            {"", Tensor(kBool, {2, 1, 1}, std::string("\1\0", 2))}}),
      "{\"predictions\": [{\"b\": [1, 2], \"a\\u00e9\\\"\": \"p\", \"\": "
      "[[true]]}, {\"b\": [3, 4], \"a\\u00e9\\\"\": \"q\", \"\": [[false]]}]}");
  EXPECT_EQ(
      Rows({{"a", Tensor(kInt8, {0}, "")}, {"b", Tensor(kInt8, {0}, "")}}),
      "{\"predictions\": []}");
}

TEST(JsonAnswerTest, ColumnsOfOneOutputAreItsValue) {
  EXPECT_EQ(Columns({{"x", Tensor(kInt8, {2, 2}, "\1\2\3\4")}}),
            "{\"outputs\": [[1, 2], [3, 4]]}");
  EXPECT_EQ(Columns({{"x", Scalar(kInt8, 7, "\5")}}), "{\"outputs\": 5}");
}

TEST(JsonAnswerTest, ColumnsOfSeveralOutputsAreAnObject) {
  EXPECT_EQ(
      Columns({{"b", Tensor(kInt8, {3}, "\1\2\3")}, {"a", Strings({}, {"p"})}}),
      "{\"outputs\": {\"b\": [1, 2, 3], \"a\": \"p\"}}");
}

TEST(JsonAnswerTest, WritesNoOutputs) {
  EXPECT_EQ(Rows({}), "{\"predictions\": []}");
  EXPECT_EQ(Columns({}), "{\"outputs\": {}}");
}

TEST(JsonAnswerTest, SaysThatThereAreNoRowsInCommon) {
  EXPECT_EQ(Rows({{"x", Scalar(kInt8, 7, "\5")}}),
            "the outputs have no rows in common (x ()): use 'inputs'.");
  EXPECT_EQ(Rows({{"x", Tensor(kInt8, {2}, "\1\2")},
                  {"y", Tensor(kInt8, {1, 2}, "\1\2")}}),
            "the outputs have no rows in common (x (2,), y (1, 2)): use "
            "'inputs'.");
  EXPECT_EQ(
      Rows({{"x", Tensor(kInt8, {2}, "\1\2")}, {"y", Scalar(kInt8, 7, "\5")}}),
      "the outputs have no rows in common (x (2,), y ()): use 'inputs'.");
}

TEST(JsonAnswerTest, ErrorsHave2000CharactersOr6000Bytes) {
  const std::string before = "the outputs have no rows in common (";
  const auto error_of = [](const std::string& name) {
    return Rows(
        {{name, Scalar(kInt8, 7, "\5")}, {name, Scalar(kInt8, 7, "\5")}});
  };
  std::string name(1500, 'x');
  const size_t left = 2000 - before.size() - 1500 - 5;
  EXPECT_TRUE(error_of(name) == before + name + " (), " + name.substr(0, left));
  name.clear();
  for (int i = 0; i < 1500; ++i) name += "\u00e9";
  // gRPC writes 6 bytes for each.
  const size_t characters = (6000 - before.size()) / 6;
  EXPECT_TRUE(error_of(name) == before + name.substr(0, 2 * characters));
}

TEST(JsonAnswerTest, WritesNumbersOfEachType) {
  EXPECT_EQ(Value(Tensor(kFloat, {3}, Bytes<float>({1, 0.1f, -2.5e-8f}))),
            "[1.0, 0.10000000149011612, -2.5000000292152436e-08]");
  EXPECT_EQ(Value(Tensor(kDouble, {2}, Bytes<double>({0.1, 1e16}))),
            "[0.1, 1e+16]");
  EXPECT_EQ(Value(Tensor(kHalf, {8},
                         Bytes<uint16_t>({0x3c00, 0x2e66, 0x8000, 0x0001,
                                          0x83ff, 0x7bff, 0xfc00, 0x7e00}))),
            "[1.0, 0.0999755859375, -0.0, 5.960464477539063e-08, "
            "-6.097555160522461e-05, 65504.0, -Infinity, NaN]");
  EXPECT_EQ(Value(Tensor(kBfloat16, {4},
                         Bytes<uint16_t>({0x3f80, 0x3dcd, 0x7f80, 0xffc0}))),
            "[1.0, 0.10009765625, Infinity, NaN]");
  EXPECT_EQ(Value(Tensor(kBool, {2}, std::string("\1\0", 2))), "[true, false]");
  EXPECT_EQ(Value(Tensor(kInt8, {2}, "\x7f\x80")), "[127, -128]");
  EXPECT_EQ(Value(Tensor(kUint8, {2}, "\x7f\x80")), "[127, 128]");
  EXPECT_EQ(Value(Tensor(kInt16, {2}, Bytes<int16_t>({32767, -32768}))),
            "[32767, -32768]");
  EXPECT_EQ(Value(Tensor(kUint16, {2}, Bytes<uint16_t>({1, 65535}))),
            "[1, 65535]");
  EXPECT_EQ(Value(Tensor(kInt32, {2}, Bytes<int32_t>({1, INT32_MIN}))),
            "[1, -2147483648]");
  EXPECT_EQ(Value(Tensor(kUint32, {2}, Bytes<uint32_t>({1, UINT32_MAX}))),
            "[1, 4294967295]");
  EXPECT_EQ(Value(Tensor(kInt64, {2}, Bytes<int64_t>({1, INT64_MIN}))),
            "[1, -9223372036854775808]");
  EXPECT_EQ(Value(Tensor(kUint64, {2}, Bytes<uint64_t>({1, UINT64_MAX}))),
            "[1, 18446744073709551615]");
}

// As predict_messages.cc writes them.
TEST(JsonAnswerTest, ReadsASingleValueFromTheFieldOfItsType) {
  const std::string minus_two = "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1";
  EXPECT_EQ(Value(Scalar(kFloat, 5, Bytes<float>({1.5f}))), "1.5");
  EXPECT_EQ(Value(Scalar(kDouble, 6, Bytes<double>({0.1}))), "0.1");
  for (const int type : {kInt8, kInt16, kInt32}) {
    EXPECT_EQ(Value(Scalar(type, 7, minus_two)), "-2");
  }
  EXPECT_EQ(Value(Scalar(kUint8, 7, "\xff\1")), "255");
  EXPECT_EQ(Value(Scalar(kUint16, 7, "\xff\xff\3")), "65535");
  EXPECT_EQ(Value(Scalar(kInt64, 10, minus_two)), "-2");
  EXPECT_EQ(Value(Scalar(kBool, 11, "\1")), "true");
  EXPECT_EQ(Value(Scalar(kBool, 11, std::string(1, '\0'))), "false");
  EXPECT_EQ(Value(Scalar(kHalf, 13, "\x80\x78")), "1.0");
  EXPECT_EQ(Value(Scalar(kBfloat16, 13, "\x80\x7f")), "1.0");
  EXPECT_EQ(Value(Scalar(kUint32, 16, "\xff\xff\xff\xff\xf")), "4294967295");
  EXPECT_EQ(
      Value(Scalar(kUint64, 17, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1")),
      "18446744073709551615");
  EXPECT_EQ(Value(Strings({}, {"p"})), "\"p\"");
}

TEST(JsonAnswerTest, WritesListsWithoutValues) {
  EXPECT_EQ(Value(Tensor(kFloat, {0}, "")), "[]");
  EXPECT_EQ(Value(Tensor(kFloat, {2, 0}, "")), "[[], []]");
  EXPECT_EQ(Value(Tensor(kFloat, {2, 0, 3}, "")), "[[], []]");
  EXPECT_EQ(Value(Strings({1, 0}, {})), "[[]]");
  EXPECT_EQ(Rows({{"a", Tensor(kFloat, {1, 0}, "")},
                  {"b", Tensor(kInt8, {1}, "\1")}}),
            "{\"predictions\": [{\"a\": [], \"b\": 1}]}");
}

TEST(JsonAnswerTest, WritesStringsAsTextOrBase64) {
  const std::string tensor = Strings({3}, {"", "\u00e9\n", "\xff"});
  EXPECT_EQ(Value(tensor), R"(["", "\u00e9\n", {"b64": "/w=="}])");
  EXPECT_EQ(Columns({{"x_bytes", tensor}}),
            R"({"outputs": [{"b64": ""}, {"b64": "w6kK"}, {"b64": "/w=="}]})");
  EXPECT_EQ(Columns({{"x_bytes_", Strings({}, {"p"})}}), R"({"outputs": "p"})");
}

TEST(JsonAnswerTest, ReplacesWhatWasThere) {
  std::string answer = "before";
  EXPECT_EQ(
      WriteJsonAnswer(Response({{"x", Strings({}, {"p"})}}), false, &answer),
      "");
  EXPECT_EQ(answer, R"({"outputs": "p"})");
}

TEST(JsonAnswerTest, RefusesOtherMessages) {
  for (const int64_t length : {1, 2, 4, 8}) {  // complex64, whatever its size
    EXPECT_EQ(Value(Tensor(8, {length}, "12345678")), kNotPlain);
  }
  EXPECT_EQ(Value(Tensor(8, {0}, "")), kNotPlain);
  EXPECT_EQ(Value(Tensor(kInt8, {2}, "\1")), kNotPlain);
  EXPECT_EQ(Value(Tensor(kInt8, {2}, "\1\2\3")), kNotPlain);
  EXPECT_EQ(Value(Tensor(kInt8, {-1}, "")), kNotPlain);
  EXPECT_EQ(Value(Tensor(kInt8, {-1, -1}, "\1")), kNotPlain);
  EXPECT_EQ(Value(Tensor(kInt8, {1ll << 33, 1ll << 33}, "")), kNotPlain);
  EXPECT_EQ(Value(Tensor(kInt8, {0, 1ll << 33}, "")), kNotPlain);
  EXPECT_EQ(Value(Tensor(kFloat, {1}, "\1\2\3\4\5")), kNotPlain);
  EXPECT_EQ(Value(Strings({2}, {"p"})), kNotPlain);
  EXPECT_EQ(Value(""), kNotPlain);
  std::string without_tensor;
  AppendText(1, "\n\1x", &without_tensor);
  EXPECT_EQ(Write(without_tensor, false), kNotPlain);
  const std::string whole = Response({{"x", Tensor(kInt8, {2}, "\1\2")}});
  for (size_t size = 1; size < whole.size(); ++size) {
    const std::string cut = Write(whole.substr(0, size), false);
    EXPECT_EQ(cut,
              size == whole.size() - 5 ? "{\"outputs\": [1, 2]}" : kNotPlain);
  }
  EXPECT_EQ(Write(whole + "\1", false), kNotPlain);
  EXPECT_EQ(Write(whole + std::string(1, '\0'), false), kNotPlain);
}

}  // namespace
}  // namespace front
