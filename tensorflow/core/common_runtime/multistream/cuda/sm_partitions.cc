// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/sm_partitions.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/cuda/graph_memory.h"
#include "tensorflow/core/common_runtime/multistream/cuda/loaded_library.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace tensorflow::multistream {
namespace {

// The driver's types and functions, which headers before CUDA 12.4 lack.
struct Sms {
  int type;
  unsigned char reserved[92];
  unsigned int count;
  unsigned char more[44];
};
using GreenContext = struct GreenContextOfDriver*;
using Description = struct DescriptionOfDriver*;
constexpr int kTypeSms = 1;
constexpr unsigned int kWithDefaultStream = 1;  // the only kind there is
#if CUDA_VERSION >= 12040
static_assert(sizeof(Sms) == sizeof(CUdevResource));
static_assert(offsetof(Sms, count) ==
              offsetof(CUdevResource, sm) + offsetof(CUdevSmResource, smCount));
static_assert(kTypeSms == CU_DEV_RESOURCE_TYPE_SM);
static_assert(kWithDefaultStream == CU_GREEN_CTX_DEFAULT_STREAM);
#endif

struct Driver {
  CUresult (*resource_of_device)(CUdevice, Sms*, int type);
  CUresult (*split)(Sms* parts, unsigned int* count, const Sms* whole,
                    Sms* rest, unsigned int flags, unsigned int sms);
  CUresult (*describe)(Description*, Sms*, unsigned int count);
  CUresult (*create)(GreenContext*, Description, CUdevice, unsigned int flags);
  CUresult (*create_stream)(CUstream*, GreenContext, unsigned int flags,
                            int priority);

  // The functions of the driver that is loaded, looked up once.
  static absl::StatusOr<const Driver*> Get();
};

absl::StatusOr<const Driver*> Driver::Get() {
  static const auto* const found = [] {
    // TensorFlow has loaded it.
    void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    const auto look_up = [=](const char* name, auto* function) {
      *reinterpret_cast<void**>(function) =
          library == nullptr ? nullptr : dlsym(library, name);
      return *function != nullptr;
    };
    auto* driver = new Driver;
    const bool has_all =
        look_up("cuDeviceGetDevResource", &driver->resource_of_device) &&
        look_up("cuDevSmResourceSplitByCount", &driver->split) &&
        look_up("cuDevResourceGenerateDesc", &driver->describe) &&
        look_up("cuGreenCtxCreate", &driver->create) &&
        look_up("cuGreenCtxStreamCreate", &driver->create_stream);
    return has_all ? driver : nullptr;
  }();
  if (found != nullptr) return found;
  return absl::FailedPreconditionError(
      absl::StrCat(kSmsVariable,
                   " needs green contexts, which the CUDA driver of this "
                   "machine lacks: install release 555 or newer"));
}

// The partitions of a GPU.
struct Partitions {
  absl::Status status;  // of making them
  std::vector<GreenContext> of_group;
  GreenContext of_others = nullptr;  // null: any SM
};

struct AllPartitions {
  absl::Mutex mu;
  std::map<int, Partitions> by_gpu ABSL_GUARDED_BY(mu);  // never erased
};

AllPartitions* All() {
  static auto* all = new AllPartitions;
  return all;
}

// The group of which this thread makes streams.
struct Chosen {
  int gpu = 0;
  int group = -1;
};
thread_local Chosen chosen;

std::string Asked(const SmShare& share) {
  return absl::StrCat(kSmsVariable, " asks for ", share.sms, " SMs for ",
                      TextOfGroups(share.first, share.last));
}

// Takes the share's SMs from `rest`.
absl::StatusOr<Sms> Take(const Driver& driver, int gpu, const SmShare& share,
                         Sms* rest) {
  const auto split = [&](unsigned int sms, Sms* left) {
    std::optional<Sms> part(std::in_place);
    unsigned int count = 1;
    if (driver.split(&*part, &count, rest, left, 0, sms) != CUDA_SUCCESS ||
        count != 1) {
      part.reset();
    }
    return part;
  };
  Sms left;
  const unsigned int asked = share.sms;
  if (asked > rest->count) {
    return absl::InvalidArgumentError(absl::StrCat(
        Asked(share), ", and GPU ", gpu, " has ", rest->count, " left"));
  }
  const std::optional<Sms> part = split(asked, &left);
  if (part.has_value() && part->count == asked) {
    *rest = left;
    if (left.type != kTypeSms) rest->count = 0;  // none is left
    return *part;
  }
  // The driver rounds up.
  const std::optional<Sms> smallest = split(1, &left);
  return absl::InvalidArgumentError(absl::StrCat(
      Asked(share), ", and GPU ", gpu,
      part.has_value()
          ? absl::StrCat(" gives ", part->count, " SMs in place of so many")
          : absl::StrCat(" cannot give as many of the ", rest->count,
                         " that are left"),
      smallest.has_value()
          ? absl::StrCat(": it gives multiples of ", smallest->count)
          : ""));
}

absl::StatusOr<GreenContext> Partition(const Driver& driver, CUdevice device,
                                       Sms* sms) {
  Description description;
  TF_RETURN_IF_ERROR(Checked("cuDevResourceGenerateDesc",
                             driver.describe(&description, sms, 1)));
  GreenContext context;
  TF_RETURN_IF_ERROR(Checked(
      "cuGreenCtxCreate",
      driver.create(&context, description, device, kWithDefaultStream)));
  return context;
}

absl::Status Divide(int gpu, int groups, absl::Span<const SmShare> shares,
                    Partitions* partitions) {
  TF_ASSIGN_OR_RETURN(const Driver* driver, Driver::Get());
  CUdevice device;
  TF_RETURN_IF_ERROR(Checked("cuDeviceGet", cuDeviceGet(&device, gpu)));
  Sms rest;
  TF_RETURN_IF_ERROR(
      Checked("cuDeviceGetDevResource",
              driver->resource_of_device(device, &rest, kTypeSms)));
  partitions->of_group.resize(groups);
  int named = 0;
  for (const SmShare& share : shares) {
    TF_ASSIGN_OR_RETURN(Sms sms, Take(*driver, gpu, share, &rest));
    TF_ASSIGN_OR_RETURN(const GreenContext partition,
                        Partition(*driver, device, &sms));
    for (int i = share.first; i <= share.last; ++i) {
      partitions->of_group[i] = partition;
    }
    named += share.last - share.first + 1;
  }
  if (rest.count == 0 && named < groups) {
    return absl::InvalidArgumentError(
        absl::StrCat(kSmsVariable, " leaves no SM of GPU ", gpu, " for ",
                     groups - named, " of its ", groups, " stream groups"));
  }
  if (rest.count > 0) {
    TF_ASSIGN_OR_RETURN(partitions->of_others,
                        Partition(*driver, device, &rest));
  }
  for (GreenContext& partition : partitions->of_group) {
    if (partition == nullptr) partition = partitions->of_others;
  }
  LOG(INFO) << "Multi-stream: SMs of GPU " << gpu << ": "
            << absl::StrJoin(shares, ", ",
                             [](std::string* text, const SmShare& share) {
                               absl::StrAppend(
                                   text, share.sms, " for ",
                                   TextOfGroups(share.first, share.last));
                             })
            << ", " << rest.count << " for all others";
  return absl::OkStatus();
}

// Where a stream is made that this thread makes now; null: on any SM.
GreenContext PartitionOfThread() {
  CUdevice device;
  const int group = chosen.group;
  if (group < 0 && cuCtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  AllPartitions* all = All();
  absl::MutexLock lock(&all->mu);
  // CUDA's handle of a device is its number.
  const auto found = all->by_gpu.find(group < 0 ? device : chosen.gpu);
  if (found == all->by_gpu.end() || !found->second.status.ok()) return nullptr;
  return group < 0 ? found->second.of_others : found->second.of_group[group];
}

template <class Stock>
CUresult CreateStream(CUstream* stream, unsigned int flags, int priority,
                      Stock stock) {
  const GreenContext partition = PartitionOfThread();
  if (partition == nullptr || (flags & CU_STREAM_NON_BLOCKING) == 0) {
    return stock();
  }
  const absl::StatusOr<const Driver*> driver = Driver::Get();
  return (*driver)->create_stream(stream, partition, flags, priority);
}

template <typename Name, typename Function>
struct Placed;
template <typename Name>
struct Placed<Name, CUresult (*)(CUstream*, unsigned int)> {
  static inline CUresult (*stock)(CUstream*, unsigned int) = nullptr;
  static CUresult Call(CUstream* stream, unsigned int flags) {
    return CreateStream(stream, flags, /*priority=*/0,
                        [=] { return stock(stream, flags); });
  }
};
template <typename Name>
struct Placed<Name, CUresult (*)(CUstream*, unsigned int, int)> {
  static inline CUresult (*stock)(CUstream*, unsigned int, int) = nullptr;
  static CUresult Call(CUstream* stream, unsigned int flags, int priority) {
    return CreateStream(stream, flags, priority,
                        [=] { return stock(stream, flags, priority); });
  }
};

}  // namespace

absl::Status RedirectStreamCreation(const std::string& library,
                                    const std::string& cuda) {
  static const CallByName kCalls[] = {
      TFMS_CALL_BY_NAME(Placed, cuStreamCreate),
      TFMS_CALL_BY_NAME(Placed, cuStreamCreateWithPriority),
  };
  TF_ASSIGN_OR_RETURN(const int calls, ReplaceCalls(library, cuda, kCalls));
  if (calls > 0) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      kSmsVariable, " has no effect: ", library,
      " does not make its CUDA streams by calls that can be redirected"));
}

void AskForHardwareQueues() {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
}

absl::Status DivideSms(int gpu, int groups, absl::Span<const SmShare> shares) {
  AllPartitions* all = All();
  absl::MutexLock lock(&all->mu);
  const auto [found, is_first] = all->by_gpu.try_emplace(gpu);
  Partitions& partitions = found->second;
  if (is_first) {
    constexpr char kFramework[] = "libtensorflow_framework.so";
    partitions.status = RedirectStreamCreation(kFramework, kFramework);
    if (partitions.status.ok()) {
      partitions.status = Divide(gpu, groups, shares, &partitions);
    }
  }
  const size_t divided = partitions.of_group.size();
  if (partitions.status.ok() && divided != static_cast<size_t>(groups)) {
    return absl::FailedPreconditionError(
        absl::StrCat("GPU ", gpu, " has its SMs divided for ", divided,
                     " stream groups already, and cannot have ", groups));
  }
  return partitions.status;
}

void MakeStreamsOfGroup(int gpu, int group) { chosen = {gpu, group}; }

}  // namespace tensorflow::multistream
