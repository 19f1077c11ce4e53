// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/inflate.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <utility>
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

// gRPC joins small slices, but for those whose bytes are elsewhere.
grpc::Slice SliceOf(std::string bytes) {
  auto* const owned = new std::string(std::move(bytes));
  return grpc::Slice(
      owned->data(), owned->size(),
      [](void* text) { delete static_cast<std::string*>(text); }, owned);
}

// In slices of `part` bytes, after as many empty ones.
grpc::ByteBuffer Message(const std::string& bytes, size_t part,
                         size_t empty = 0) {
  std::vector<grpc::Slice> slices(empty, SliceOf(""));
  for (size_t at = 0; at < bytes.size(); at += part) {
    slices.push_back(SliceOf(bytes.substr(at, part)));
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
    for (const size_t part : {1, 2, 7, 1000, 1 << 20}) {
      for (const size_t empty : {0, 1, 2}) {
        grpc::ByteBuffer message = Message(Gzip(SomeText(size)), part, empty);
        ASSERT_TRUE(Inflate(&message, 300000)) << size << " " << part;
        ASSERT_EQ(Text(message), SomeText(size)) << size << " " << part;
      }
    }
  }
}

TEST(InflateTest, LeavesOtherMessages) {
  for (const std::string text :
       {"", "\x1f", "\x1f\x1f\x8b", "\x0a\x03\x0a\x01m", "text"}) {
    for (const size_t part : {1, 100}) {
      grpc::ByteBuffer message = Message(text, part, 1);
      EXPECT_TRUE(Inflate(&message, 1));
      EXPECT_EQ(Text(message), text);
    }
  }
}

TEST(InflateTest, RefusesWhatIsBrokenOrTooLarge) {
  const std::string whole = Gzip(SomeText(10000));
  std::string changed = whole;
  changed[changed.size() / 2] ^= 0x55;
  for (const std::string& broken :
       {whole.substr(0, whole.size() - 1), whole.substr(0, 20), whole + "x",
        changed, std::string("\x1f\x8b nothing")}) {
    for (const size_t part : {1, 1000}) {
      grpc::ByteBuffer message = Message(broken, part);
      EXPECT_FALSE(Inflate(&message, 1 << 20));
    }
  }
  grpc::ByteBuffer large = Message(whole, 1000);
  EXPECT_FALSE(Inflate(&large, 9999));
  grpc::ByteBuffer bomb = Message(Gzip(std::string(200 << 20, 'x')), 1 << 20);
  EXPECT_FALSE(Inflate(&bomb, 1 << 20));
}

}  // namespace
}  // namespace front
