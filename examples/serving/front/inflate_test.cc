// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/inflate.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <vector>

namespace front {
namespace {

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8,
               Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), 0);
  stream.next_in =
      reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<unsigned char*>(out.data());
  stream.avail_out = out.size();
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// In slices of `part` bytes.
grpc::ByteBuffer Message(const std::string& bytes, size_t part) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += part) {
    slices.emplace_back(bytes.data() + at, std::min(part, bytes.size() - at));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string Text(const grpc::ByteBuffer& message) {
  grpc::Slice text;
  if (!message.DumpToSingleSlice(&text).ok()) return "no message";
  return {reinterpret_cast<const char*>(text.begin()), text.size()};
}

std::string SomeText(size_t size) {
  std::string text;
  for (size_t i = 0; text.size() < size; ++i) text += std::to_string(i * i);
  text.resize(size);
  return text;
}

TEST(InflateTest, GivesWhatWasCompressed) {
  for (const size_t size : {0, 1, 1000, 65536, 300000}) {
    for (const size_t part : {2, 7, 1000, 1 << 20}) {
      grpc::ByteBuffer message = Message(Gzip(SomeText(size)), part);
      ASSERT_TRUE(Inflate(&message, 300000)) << size << " " << part;
      EXPECT_EQ(Text(message), SomeText(size));
    }
  }
}

TEST(InflateTest, LeavesOtherMessages) {
  for (const std::string text : {"", "\x1f", "\x0a\x03\x0a\x01m", "text"}) {
    grpc::ByteBuffer message = Message(text, 100);
    EXPECT_TRUE(Inflate(&message, 1));
    EXPECT_EQ(Text(message), text);
  }
}

TEST(InflateTest, RefusesWhatIsBrokenOrTooLarge) {
  const std::string whole = Gzip(SomeText(10000));
  std::string changed = whole;
  changed[changed.size() / 2] ^= 0x55;
  for (const std::string& broken :
       {whole.substr(0, whole.size() - 1), whole.substr(0, 20), whole + "x",
        changed, std::string("\x1f\x8b nothing")}) {
    grpc::ByteBuffer message = Message(broken, 1000);
    EXPECT_FALSE(Inflate(&message, 1 << 20));
  }
  grpc::ByteBuffer large = Message(whole, 1000);
  EXPECT_FALSE(Inflate(&large, 9999));
  grpc::ByteBuffer bomb = Message(Gzip(std::string(200 << 20, 'x')), 1 << 20);
  EXPECT_FALSE(Inflate(&bomb, 1 << 20));
}

}  // namespace
}  // namespace front
