// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What differs between TensorFlow releases, in one place.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_COMPAT_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_COMPAT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/public/version.h"
#include "xla/stream_executor/stream_executor.h"

#ifndef TF_MINOR_VERSION
#error "It is not known which release of TensorFlow this is."
#endif

// Executor's virtual was RunAsync itself before RunAsyncInternal wrapped it.
#if TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION < 15
#define TFMS_RUN_ASYNC RunAsync
#else
#define TFMS_RUN_ASYNC RunAsyncInternal
#endif

// Names of memory on a GPU.
#if TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION < 21
namespace stream_executor {
using DeviceAddressBase = DeviceMemoryBase;
#if TF_MINOR_VERSION >= 14
using MemorySpace = MemoryType;
#endif
}  // namespace stream_executor
#endif

// The type of a CUDA context; executor_compat.h makes them.
#if TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION < 19
namespace stream_executor::gpu {
class GpuContext;
using CudaContext = GpuContext;
}  // namespace stream_executor::gpu
#else
namespace stream_executor::gpu {
class CudaContext;
}
#endif

// The function that names a stream.
#if TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION < 19
#define TFMS_SET_STREAM_NAME set_name
#else
#define TFMS_SET_STREAM_NAME SetName
#endif

// How protobuf's parsers report an error.
#if TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION < 20
#define TFMS_RECORD_ERROR AddError
#define TFMS_RECORD_WARNING AddWarning
namespace tensorflow::multistream {
using ParserMessage = const std::string&;
}
#else
#define TFMS_RECORD_ERROR RecordError
#define TFMS_RECORD_WARNING RecordWarning
namespace tensorflow::multistream {
using ParserMessage = absl::string_view;
}
#endif

namespace tensorflow::multistream {
#if TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION < 14
// The parameters that an op runs with.
OpKernelContext::Params* OpParams(const OpKernelContext* context);

// Enqueues a copy from the host.
inline absl::Status CopyToDevice(stream_executor::Stream* stream,
                                 const void* from,
                                 stream_executor::DeviceAddressBase* to,
                                 size_t bytes) {
  if (stream->ThenMemcpy(to, from, bytes).ok()) return absl::OkStatus();
  return absl::InternalError("The stream has failed, or refuses the copy");
}

// Gives the session's config of an op to the executor of a function that the op
// calls; here neither has one.
template <class ExecutorArgs>
void GiveSessionConfig(const OpKernelContext*, ExecutorArgs*) {}
#else
inline OpKernelContext::Params* OpParams(const OpKernelContext* context) {
  return context->params();
}

inline absl::Status CopyToDevice(stream_executor::Stream* stream,
                                 const void* from,
                                 stream_executor::DeviceAddressBase* to,
                                 size_t bytes) {
  return stream->Memcpy(to, from, bytes);
}

template <class ExecutorArgs>
void GiveSessionConfig(const OpKernelContext* context, ExecutorArgs* args) {
  args->session_config = context->session_config();
}
#endif
}  // namespace tensorflow::multistream

namespace tensorflow::multistream {
// The value of an int32 field; 0 if this release's message lacks the field.
inline int32_t NumberIn(const google::protobuf::Message& message,
                        const std::string& field) {
  const auto* found = message.GetDescriptor()->FindFieldByName(field);
  return found == nullptr ? 0
                          : message.GetReflection()->GetInt32(message, found);
}
}  // namespace tensorflow::multistream

// Symbols that TensorFlow's headers declare and its libraries lack;
// missing_symbols.cc defines them.
#if TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION < 14
// An op's context keeps its parameters private before 2.14. An explicit
// template instantiation may name a private member.
#define TFMS_MISSING_SYMBOLS                                          \
  namespace tensorflow::multistream {                                 \
  using ParamsMember = OpKernelContext::Params* OpKernelContext::*;   \
  ParamsMember Member(OpKernelContext*);                              \
  template <ParamsMember member>                                      \
  struct NamedParams {                                                \
    friend ParamsMember Member(OpKernelContext*) { return member; }   \
  };                                                                  \
  template struct NamedParams<&OpKernelContext::params_>;             \
  OpKernelContext::Params* OpParams(const OpKernelContext* context) { \
    return context->*Member(nullptr);                                 \
  }                                                                   \
  }
#elif TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION < 21
#define TFMS_MISSING_SYMBOLS                                                \
  namespace absl {                                                          \
  ABSL_NAMESPACE_BEGIN                                                      \
  namespace log_internal {                                                  \
  template LogMessage& LogMessage::operator<<(const int& v);                \
  template LogMessage& LogMessage::operator<<(const unsigned int& v);       \
  template LogMessage& LogMessage::operator<<(const long& v);               \
  template LogMessage& LogMessage::operator<<(const unsigned long& v);      \
  template LogMessage& LogMessage::operator<<(const long long& v);          \
  template LogMessage& LogMessage::operator<<(const unsigned long long& v); \
  template LogMessage& LogMessage::operator<<(const double& v);             \
  template LogMessage& LogMessage::operator<<(const bool& v);               \
  }                                                                         \
  ABSL_NAMESPACE_END                                                        \
  }
#else
#define TFMS_MISSING_SYMBOLS
#endif

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_COMPAT_H_
