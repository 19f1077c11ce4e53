// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/inflate.h"

#include <zlib.h>

#include <vector>

namespace front {
namespace {

constexpr int kGzip = 16 + MAX_WBITS;
constexpr size_t kPart = 1 << 16;

// A client decides how long the slices are: one may be empty, or end within the
// two bytes that gzip begins with.
bool IsGzip(const std::vector<grpc::Slice>& slices) {
  constexpr unsigned char kBegin[] = {0x1f, 0x8b};
  size_t at = 0;
  for (const grpc::Slice& slice : slices) {
    for (const unsigned char byte : slice) {
      if (byte != kBegin[at]) return false;
      if (++at == sizeof kBegin) return true;
    }
  }
  return false;
}

}  // namespace

bool Inflate(grpc::ByteBuffer* message, size_t most) {
  std::vector<grpc::Slice> compressed, parts;
  if (!message->Dump(&compressed).ok()) return false;
  if (!IsGzip(compressed)) return true;
  z_stream stream = {};
  if (inflateInit2(&stream, kGzip) != Z_OK) return false;
  std::vector<unsigned char> part(kPart);
  size_t size = 0;
  int state = Z_OK;
  for (const grpc::Slice& slice : compressed) {
    stream.next_in = const_cast<unsigned char*>(slice.begin());
    stream.avail_in = static_cast<unsigned>(slice.size());
    do {
      stream.next_out = part.data();
      stream.avail_out = kPart;
      state = inflate(&stream, Z_NO_FLUSH);
      const size_t more = kPart - stream.avail_out;
      size += more;
      if (more > 0 && size <= most) parts.emplace_back(part.data(), more);
    } while (state == Z_OK && size <= most && stream.avail_out == 0);
    // Zlib has ended before the message has.
    if (stream.avail_in > 0 || size > most) break;
  }
  const bool whole = state == Z_STREAM_END && stream.avail_in == 0;
  inflateEnd(&stream);
  if (!whole || size > most) return false;
  *message = grpc::ByteBuffer(parts.data(), parts.size());
  return true;
}

}  // namespace front
