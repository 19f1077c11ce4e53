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

// What differs between TensorFlow releases, in one place.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_UTIL_COMPAT_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_UTIL_COMPAT_H_

#include "tensorflow/core/public/version.h"

// Executor's virtual was RunAsync itself before RunAsyncInternal wrapped it.
#if TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION < 15
#define TFMS_RUN_ASYNC RunAsync
#else
#define TFMS_RUN_ASYNC RunAsyncInternal
#endif

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_UTIL_COMPAT_H_
