// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/predict_messages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/platform/tstring.h"

namespace tensorflow::multistream {
namespace {

template <typename T>
Tensor TensorOf(const std::vector<T>& values, const TensorShape& shape) {
  Tensor tensor(DataTypeToEnum<T>::value, shape);
  for (size_t i = 0; i < values.size(); ++i) tensor.flat<T>()(i) = values[i];
  return tensor;
}

template <typename T>
Tensor Vector(const std::vector<T>& values) {
  return TensorOf<T>(values, {static_cast<int64_t>(values.size())});
}

void ExpectEqual(const Tensor& read, const Tensor& tensor) {
  EXPECT_EQ(read.dtype(), tensor.dtype());
  EXPECT_EQ(read.shape(), tensor.shape());
  if (tensor.dtype() != DT_STRING) {
    EXPECT_EQ(read.tensor_data(), tensor.tensor_data());
    return;
  }
  for (int i = 0; i < tensor.NumElements(); ++i) {
    EXPECT_EQ(read.flat<tstring>()(i), tensor.flat<tstring>()(i));
  }
}

constexpr int64_t kMost = 1 << 20;

// A field of bytes, shorter than 128.
std::string Field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) +
         static_cast<char>(bytes.size()) + bytes;
}

std::string Number(int number, char value) {
  return std::string(1, static_cast<char>(number << 3)) + value;
}

std::string Entry(const std::string& name, const std::string& tensor) {
  return Field(2, Field(1, name) + Field(2, tensor));
}

TensorProto Floats(std::vector<int64_t> shape, std::vector<float> values) {
  TensorProto proto;
  proto.set_dtype(DT_FLOAT);
  for (int64_t size : shape)
    proto.mutable_tensor_shape()->add_dim()->set_size(size);
  for (float value : values) proto.add_float_val(value);
  return proto;
}

bool Reads(const TensorProto& proto, DataType type, PartialTensorShape shape,
           Tensor* tensor, int64_t most_bytes = kMost) {
  return ReadTensor(proto.SerializeAsString(), type, shape, most_bytes, tensor);
}

bool Refuses(const TensorProto& proto, DataType type = DT_FLOAT,
             PartialTensorShape shape = {}, int64_t most_bytes = kMost) {
  Tensor tensor;
  return !Reads(proto, type, shape, &tensor, most_bytes);
}

TEST(PredictRequestTest, IsReadInAnyOrder) {
  const std::string spec =
      Field(1, Field(3, "score") + Field(1, "ranker") + Field(2, Number(1, 7)));
  for (const std::string& message : {spec + Entry("a", "x") + Entry("b", ""),
                                     Entry("a", "x") + spec + Entry("b", "")}) {
    PredictRequest request;
    ASSERT_TRUE(request.Read(message));
    EXPECT_EQ(request.model, "ranker");
    EXPECT_EQ(request.signature, "score");
    EXPECT_TRUE(request.has_version);
    EXPECT_EQ(request.version, 7);
    ASSERT_EQ(request.inputs.size(), 2u);
    EXPECT_EQ(request.inputs[0].name, "a");
    EXPECT_EQ(request.inputs[0].tensor, "x");
    EXPECT_EQ(request.inputs[1].name, "b");
    EXPECT_EQ(request.inputs[1].tensor, "");
  }
}

TEST(PredictRequestTest, WhatIsNotPlainIsRefused) {
  const std::string good = Field(1, Field(1, "m")) + Entry("a", "x");
  for (const std::string& bad : {
           good + Field(3, "output"),           // a filter
           good + Field(9, "?"),                // an unknown field
           good + Number(1, 1),                 // of another type
           Field(1, Field(4, "label")) + good,  // of a version
           Field(1, Number(1, 1)) + good,       // a number as a name
           good + Field(2, Field(3, "third")),  // of an entry
           good.substr(0, good.size() - 1),     // cut off
           good + '\0', good + '\x0a', good + "\x0b\x0c", good + "\x0a\x7f",
           good + "\x0a\xff\xff\xff\xff\x0f",  // 4 GB
       }) {
    PredictRequest request;
    EXPECT_FALSE(request.Read(bad)) << testing::PrintToString(bad);
  }
  PredictRequest request;
  EXPECT_TRUE(request.Read(good));
  EXPECT_TRUE(PredictRequest().Read(""));
  // Protobuf would merge the tensors of an entry, and refuse the others.
  const std::string x = Field(1, "x"), tensor = Field(2, "t");
  EXPECT_TRUE(PredictRequest().Read(Field(2, x + tensor)));
  for (const std::string& entry :
       {x + tensor + tensor, x + x + tensor, x + tensor + Field(0, "t"),
        x + "\x12\x81\x80\x80\x80\x80\x01t"}) {
    EXPECT_FALSE(PredictRequest().Read(Field(2, entry)));
  }
  // Each entry of two bytes would take memory.
  std::string many;
  for (size_t i = 0; i < PredictRequest::kMostInputs; ++i) many += Field(2, "");
  EXPECT_TRUE(PredictRequest().Read(many));
  EXPECT_FALSE(PredictRequest().Read(many + Field(2, "")));
}

TEST(ReadTensorTest, ReadsContentAndFields) {
  Tensor read;
  ASSERT_TRUE(Reads(Floats({2, 2}, {1, 2, 3, 4}), DT_FLOAT, {-1, 2}, &read));
  ExpectEqual(read, TensorOf<float>({1, 2, 3, 4}, {2, 2}));
  // A value that is left out is that of the element before; the first is 0.
  ASSERT_TRUE(Reads(Floats({3}, {5}), DT_FLOAT, {}, &read));
  ExpectEqual(read, Vector<float>({5, 5, 5}));
  ASSERT_TRUE(Reads(Floats({2}, {}), DT_FLOAT, {}, &read));
  ExpectEqual(read, Vector<float>({0, 0}));
  for (const Tensor& tensor :
       {Vector<int64_t>({1, -2}), Vector<int32_t>({-7}), Vector<double>({0.5}),
        Vector<bool>({true, false}), Vector<uint8_t>({255}), Vector<float>({}),
        TensorOf<float>({3}, {})}) {
    TensorProto content, fields;
    tensor.AsProtoTensorContent(&content);
    tensor.AsProtoField(&fields);
    ASSERT_TRUE(Reads(content, tensor.dtype(), {}, &read) ||
                tensor.NumElements() == 0);
    ExpectEqual(read, tensor);
    const bool narrow = tensor.dtype() == DT_UINT8;  // truncates numbers
    EXPECT_EQ(Reads(fields, tensor.dtype(), {}, &read), !narrow);
    ExpectEqual(read, tensor);
  }
  const Tensor strings = Vector<tstring>({"a", "", "ccc"});
  TensorProto proto;
  strings.AsProtoField(&proto);
  ASSERT_TRUE(Reads(proto, DT_STRING, {3}, &read));
  ExpectEqual(read, strings);
}

TEST(ReadTensorTest, WhatIsNotPlainIsRefused) {
  EXPECT_TRUE(Refuses(Floats({2}, {1, 2}), DT_INT32));          // type
  EXPECT_TRUE(Refuses(Floats({2}, {1, 2}), DT_FLOAT, {3}));     // shape
  EXPECT_TRUE(Refuses(Floats({2}, {1, 2}), DT_FLOAT, {2, 1}));  // rank
  EXPECT_TRUE(Refuses(Floats({1}, {1, 2})));                    // too many
  EXPECT_TRUE(Refuses(Floats({-1}, {1})));
  EXPECT_TRUE(Refuses(Floats({int64_t{1} << 40, int64_t{1} << 40}, {1})));
  EXPECT_TRUE(Refuses(Floats(std::vector<int64_t>(255, 1), {1})));
  TensorProto proto = Floats({2}, {});
  proto.set_tensor_content("1234567");  // not 8 bytes
  EXPECT_TRUE(Refuses(proto));
  proto = Floats({2}, {});
  proto.mutable_tensor_shape()->set_unknown_rank(true);
  EXPECT_TRUE(Refuses(proto));
  proto = Floats({1}, {1});
  proto.add_resource_handle_val();
  EXPECT_TRUE(Refuses(proto));
}

TEST(ReadTensorTest, DimensionsThatNoArrayHasAreRefused) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_TRUE(Refuses(Floats({0, kHuge, kHuge}, {})));
  EXPECT_TRUE(Refuses(Floats({kHuge, 0}, {})));
  EXPECT_TRUE(Refuses(Floats({0, std::numeric_limits<int64_t>::max()}, {})));
  Tensor read;
  EXPECT_TRUE(Reads(Floats({0, 1000}, {}), DT_FLOAT, {}, &read));
  EXPECT_EQ(read.shape(), TensorShape({0, 1000}));
}

TEST(ReadTensorTest, AFewBytesDoNotBecomeMany) {
  EXPECT_TRUE(Refuses(Floats({kMost}, {1})));  // 4 MB by its shape
  TensorProto proto;
  proto.set_dtype(DT_STRING);
  proto.mutable_tensor_shape()->add_dim()->set_size(8'000'000);
  proto.add_string_val("x");
  EXPECT_TRUE(Refuses(proto, DT_STRING));
  // One long string for each of few elements.
  proto.mutable_tensor_shape()->mutable_dim(0)->set_size(100);
  *proto.mutable_string_val(0) = std::string(100'000, 'x');
  EXPECT_TRUE(Refuses(proto, DT_STRING));
  // Fields of two bytes, for each of which a parser makes an object.
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += Field(8, "");
  Tensor read;
  EXPECT_FALSE(ReadTensor(many, DT_STRING, {}, kMost, &read));
  proto.Clear();
  for (int i = 0; i < 200'000; ++i) proto.add_int64_val(0);
  proto.set_dtype(DT_INT64);
  EXPECT_TRUE(Refuses(proto, DT_INT64));
}

TEST(ReadTensorTest, DamagedBytesAreRefusedOrAreATensor) {
  TensorProto content;
  TensorOf<float>({1, 2, 3, 4, 5, 6}, {2, 3}).AsProtoTensorContent(&content);
  std::mt19937 random(7);
  int read = 0;
  for (const TensorProto& from : {content, Floats({2, 3}, {1, 2, 3})}) {
    const std::string good = from.SerializeAsString();
    for (int i = 0; i < 20'000; ++i) {
      std::string bad = good;
      for (int k = random() % 3; k >= 0; --k) {
        bad[random() % bad.size()] = static_cast<char>(random());
      }
      if (random() % 4 == 0) bad.resize(random() % bad.size());
      Tensor tensor;
      if (ReadTensor(bad, DT_FLOAT, {-1, 3}, 4096, &tensor)) {
        ++read;
        ASSERT_EQ(tensor.dtype(), DT_FLOAT);
        ASSERT_EQ(tensor.dims(), 2);
        ASSERT_EQ(tensor.dim_size(1), 3);
        ASSERT_LE(tensor.TotalBytes(), 4096u);
      }
      PredictRequest request;
      request.Read(bad);
    }
  }
  EXPECT_GT(read, 0);
}

TEST(PredictResponseTest, IsReadAsItWasWritten) {
  const std::vector<Tensor> outputs = {
      TensorOf<float>({1, 2, 3, 4, 5, 6}, {2, 3}),
      TensorOf<int64_t>({}, {0, 5}), TensorOf<bool>({true}, {})};
  const std::string response =
      PredictResponse("ranker", 300, "score", {"a", "b", "c"}, outputs);
  // A response has what a request has, with the numbers of fields exchanged.
  std::string as_request;
  size_t at = 0;
  for (int i = 0; i < 4; ++i) {
    const size_t size = static_cast<unsigned char>(response[at + 1]);
    as_request += Field(i < 3 ? 2 : 1, response.substr(at + 2, size));
    at += 2 + size;
  }
  ASSERT_EQ(at, response.size());
  PredictRequest read;
  ASSERT_TRUE(read.Read(as_request));
  EXPECT_EQ(read.model, "ranker");
  EXPECT_EQ(read.version, 300);
  EXPECT_EQ(read.signature, "score");
  ASSERT_EQ(read.inputs.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(read.inputs[i].name, std::string(1, 'a' + i));
    TensorProto proto;
    ASSERT_TRUE(proto.ParseFromString(std::string(read.inputs[i].tensor)));
    Tensor tensor;
    ASSERT_TRUE(tensor.FromProto(proto));
    ExpectEqual(tensor, outputs[i]);
  }
}

TEST(PredictResponseTest, ASingleValueIsInTheFieldOfItsType) {
  for (const TensorShape& shape : {TensorShape({}), TensorShape({1, 1})}) {
    const std::string response =
        PredictResponse("m", 1, "s", {"y"}, {TensorOf<float>({3}, shape)});
    // outputs { key, value { dtype, shape, float_val } }
    TensorProto proto;
    const size_t size = static_cast<unsigned char>(response[1]);
    ASSERT_TRUE(proto.ParseFromString(response.substr(7, size - 5)));
    ASSERT_EQ(proto.float_val_size(), 1);
    EXPECT_EQ(proto.float_val(0), 3);
    EXPECT_TRUE(proto.tensor_content().empty());
  }
}

}  // namespace
}  // namespace tensorflow::multistream
