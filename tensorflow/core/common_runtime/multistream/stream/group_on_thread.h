// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which group is this thread launching an op on? An OpScope sets it. Code that
// TensorFlow calls from inside an op reads it, because nothing else tells that
// code the group: allocators, the table of convolutions' runners.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_ON_THREAD_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_ON_THREAD_H_

#include <utility>

namespace tensorflow {
namespace multistream {

class StreamGroup;

class GroupOnThread {
 public:
  explicit GroupOnThread(StreamGroup* group)
      : before_(std::exchange(*Current(), group)) {}
  ~GroupOnThread() { *Current() = before_; }
  GroupOnThread(const GroupOnThread&) = delete;
  GroupOnThread& operator=(const GroupOnThread&) = delete;

  // nullptr if the thread is launching no op.
  static StreamGroup* Get() { return *Current(); }

 private:
  static StreamGroup** Current() {
    thread_local StreamGroup* group = nullptr;
    return &group;
  }

  StreamGroup* const before_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_ON_THREAD_H_
