/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

// Which threads may touch the same keys at once, where many of one kind may,
// but never two kinds? VariableOrder locks variables so, for those who read
// them, change them, and move them.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_SIDED_LOCKS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_SIDED_LOCKS_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace tensorflow {
namespace multistream {

// A lock for each key. Any number of threads of one side may be inside, and
// none of another side. Whoever enters takes all its locks at once: while it
// waits it keeps nobody out who came before. Fair: nobody overtakes one of
// another side that came before for the same key. Not recursive. A lock that
// nobody is in or waits for takes no memory.
class SidedLocks {
 public:
  enum Side { kReaders, kWriters, kMovers };
  using Key = uint64_t;

  // Keys may be there twice. None: never waits.
  void Enter(Side side, absl::Span<const Key> keys);
  // With the side and keys of Enter.
  void Leave(Side side, absl::Span<const Key> keys);

  // Locks that somebody is in or waits for.
  int64_t size();

 private:
  // A thread that waits.
  struct Request {
    const Side side;
    const absl::Span<const Key> keys;
    bool admitted = false;
    absl::CondVar changed;
  };
  struct Lock {
    int inside[3] = {0, 0, 0};

    bool IsEmpty() const { return inside[0] + inside[1] + inside[2] == 0; }
    bool HasOthersThan(Side side) const {
      return inside[0] + inside[1] + inside[2] > inside[side];
    }
    std::vector<Request*> waiting;  // as they came
  };

  // `request`: the one that waits, or nullptr if it has just come.
  bool MayEnter(Side side, absl::Span<const Key> keys, const Request* request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Admits who may enter of those that wait for `key`.
  void Admit(Key key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Mutex mu_;
  absl::flat_hash_map<Key, Lock> locks_ ABSL_GUARDED_BY(mu_);
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_SIDED_LOCKS_H_
