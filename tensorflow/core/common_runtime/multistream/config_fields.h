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

// The fields about stream groups that TensorFlow's protocol buffers lack, for
// C++; message_fields.py has the same for Python. multistream.h has what
// programs call.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CONFIG_FIELDS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CONFIG_FIELDS_H_

namespace tensorflow {
namespace multistream {

// Of RewriterConfig.
inline constexpr int kUseMultiStream = 7301;
inline constexpr int kMultiStreamOpts = 7302;

// Of MultiStreamOptions, which is the latter's message.
inline constexpr int kMultiStreamNum = 1;
inline constexpr int kPartitionPolicy = 2;

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CONFIG_FIELDS_H_
