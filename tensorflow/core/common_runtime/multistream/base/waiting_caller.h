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

// Does a thread that begins a step wait for it, and do nothing else with its
// end? Who makes such a call says so, and the executors of its graphs ask: then
// the step may end in any thread, even in one that others wait for.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_WAITING_CALLER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_WAITING_CALLER_H_

namespace tensorflow {
namespace multistream {

// While there is one, its thread waits for what it calls.
class WaitingCaller {
 public:
  WaitingCaller();
  ~WaitingCaller();
  WaitingCaller(const WaitingCaller&) = delete;
  WaitingCaller& operator=(const WaitingCaller&) = delete;

  static bool OfThisThread();

 private:
  const bool before_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_WAITING_CALLER_H_
