// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/driver_waits.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/cuda/loaded_library.h"
#include "tensorflow/core/common_runtime/multistream/stream/forked_process.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {
namespace {

// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
constexpr int kCaptureInTheWay = 900;

// As many arguments as any entry may have; all are passed on.
using Function = uintptr_t (*)(uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                               uintptr_t, uintptr_t);

// A table entry that we replaced.
struct Place {
  void** at = nullptr;
  CaptureGate* gate = nullptr;
  Function stock = nullptr;
};
constexpr int kMostPlaces = 16;  // a driver has one or two
std::array<Place, kMostPlaces> places;

// Not null while this thread counts calls of our functions.
thread_local int* counted_calls = nullptr;

template <int i>
uintptr_t Gated(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                uintptr_t f) {
  const Place& it = places[i];
  uintptr_t result = 0;
  const auto wait = [&] {
    result = it.stock(a, b, c, d, e, f);
    return static_cast<int>(result) != kCaptureInTheWay;
  };
  if (counted_calls != nullptr) ++*counted_calls;
  // A child of fork() has no GPU, and its copy of the gate's lock may be held
  // by a thread that exists only in the parent.
  if (counted_calls != nullptr || GatedCapture::IsOnThisThread() ||
      GroupsAreOfParent()) {
    wait();
  } else if (TakeTestFault(TestFault::kPassGate)) {
    it.gate->PassBy(wait);
  } else {
    it.gate->Wait(wait);
  }
  return result;
}

template <int... i>
constexpr std::array<Function, sizeof...(i)> AllGated(
    std::integer_sequence<int, i...>) {
  return {&Gated<i>...};
}
constexpr auto kGated =
    AllGated(std::make_integer_sequence<int, kMostPlaces>());

bool IsGated(const void* function) {
  for (const Function gated : kGated) {
    if (function == reinterpret_cast<const void*>(gated)) return true;
  }
  return false;
}

struct Entry {
  const char* name;
  Function function = nullptr;
  void** place = nullptr;
};

// Tests a replaced entry on a thread without a CUDA context, where it returns
// at once. True if the entry called a function of ours exactly once, and
// returned its result.
bool Calls(const Entry& entry, Function stock) {
  int calls = 0;
  bool same = false;
  std::thread thread([&] {
    const uintptr_t expected = stock(0, 0, 0, 0, 0, 0);
    counted_calls = &calls;
    const uintptr_t result = entry.function(0, 0, 0, 0, 0, 0);
    counted_calls = nullptr;
    same = static_cast<int>(result) == static_cast<int>(expected);
  });
  thread.join();
  return calls == 1 && same;
}

// Finds the entry with `entry->name`, and checks that its code is as expected.
absl::Status Find(const LoadedLibrary& library, Entry* entry) {
  void* const function = library.Exported(entry->name);
  if (function == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no ", entry->name));
  }
  const auto* code = static_cast<const unsigned char*>(function);
  if (library.HasCode(code + kEntryBytes)) entry->place = PlaceOfFunction(code);
  if (entry->place == nullptr || !library.HasData(entry->place) ||
      !(library.HasCode(*entry->place) || IsGated(*entry->place))) {
    return absl::UnimplementedError(
        absl::StrCat(entry->name, " calls no function of a table"));
  }
  entry->function = reinterpret_cast<Function>(function);
  return absl::OkStatus();
}

absl::Mutex mu;
int used_places ABSL_GUARDED_BY(mu) = 0;

absl::Status Gate(const Entry& entry, CaptureGate* gate)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
  for (int i = 0; i < used_places; ++i) {
    if (places[i].at == entry.place) return absl::OkStatus();
  }
  if (used_places == kMostPlaces) {
    return absl::ResourceExhaustedError("too many libraries");
  }
  Place& place = places[used_places];
  void* const stock = *entry.place;
  place = {entry.place, gate, reinterpret_cast<Function>(stock)};
  if (!LoadedLibrary::Store(entry.place,
                            reinterpret_cast<void*>(kGated[used_places]))) {
    return absl::InternalError("its table cannot be written to");
  }
  // Other threads may call through the entry from now on, so the Place is kept
  // even if the entry is restored.
  ++used_places;
  if (Calls(entry, place.stock)) return absl::OkStatus();
  LoadedLibrary::Store(entry.place, stock);
  return absl::UnimplementedError(
      absl::StrCat(entry.name, " calls something else, too"));
}

}  // namespace

void** PlaceOfFunction(const unsigned char* entry) {
  const unsigned char* const end = entry + kEntryBytes;
  const unsigned char* at = entry;
  // The instructions that set up a frame, if there are any.
  struct Bytes {
    size_t size;
    unsigned char bytes[4];
    unsigned char mask;  // applies to the last byte
  };
  static constexpr Bytes kFrame[] = {
      {4, {0xf3, 0x0f, 0x1e, 0xfa}, 0xff},  // endbr64
      {1, {0x50}, 0xf8},                    // push
      {2, {0x41, 0x50}, 0xf8},              // push
      {3, {0x48, 0x89, 0xe5}, 0xff},        // mov rbp, rsp
      {4, {0x48, 0x83, 0xec, 0x00}, 0x00},  // sub rsp, ...
  };
  const auto skip = [&](const Bytes& it) {
    if (at + it.size > end) return false;
    for (size_t i = 0; i < it.size; ++i) {
      const unsigned char mask = i + 1 < it.size ? 0xff : it.mask;
      if ((at[i] & mask) != it.bytes[i]) return false;
    }
    at += it.size;
    return true;
  };
  bool skipped = true;
  while (skipped) {
    skipped = false;
    for (const Bytes& it : kFrame) skipped = skipped || skip(it);
  }
  // cmp [state], 0x321cba00
  static constexpr unsigned char kEnded[] = {0x00, 0xba, 0x1c, 0x32};
  if (at + 10 > end || at[0] != 0x81 || at[1] != 0x3d ||
      std::memcmp(at + 6, kEnded, sizeof(kEnded)) != 0) {
    return nullptr;
  }
  at += 10;
  // je, short or near
  if (at + 2 <= end && at[0] == 0x74) {
    at += 2;
  } else if (at + 6 <= end && at[0] == 0x0f && at[1] == 0x84) {
    at += 6;
  } else {
    return nullptr;
  }
  // call or jmp [table + n]
  if (at + 6 > end || at[0] != 0xff || (at[1] != 0x15 && at[1] != 0x25)) {
    return nullptr;
  }
  int32_t offset;
  std::memcpy(&offset, at + 2, sizeof(offset));
  const auto address = reinterpret_cast<intptr_t>(at + 6) + offset;
  if (address % sizeof(void*) != 0) return nullptr;
  return reinterpret_cast<void**>(address);
}

absl::Status GateWaitsOf(const std::string& library, CaptureGate* gate) {
  TF_ASSIGN_OR_RETURN(const LoadedLibrary found, LoadedLibrary::Find(library));
  // There may be a second, versioned entry.
  std::vector<Entry> entries = {{"cuCtxSynchronize"}};
  if (found.Exported("cuCtxSynchronize_v2") != nullptr) {
    entries.push_back({"cuCtxSynchronize_v2"});
  }
  for (Entry& entry : entries) TF_RETURN_IF_ERROR(Find(found, &entry));
  // If another entry calls the same function, the function is a generic
  // dispatcher, and must not be replaced.
  Entry other{"cuStreamSynchronize"};
  TF_RETURN_IF_ERROR(Find(found, &other));
  absl::MutexLock lock(&mu);
  for (const Entry& entry : entries) {
    if (entry.place == other.place) {
      return absl::UnimplementedError(
          absl::StrCat(entry.name, " calls what ", other.name, " calls"));
    }
  }
  for (const Entry& entry : entries) TF_RETURN_IF_ERROR(Gate(entry, gate));
  gate->set_guards(true);
  return absl::OkStatus();
}

bool GateWaitsOfCudaDriver() {
  static const absl::Status* const gated =
      new absl::Status(GateWaitsOf("libcuda.so", ProcessCaptureGate()));
  if (gated->ok()) {
    VLOG(1) << "Multi-stream: cudaDeviceSynchronize and captures wait for each "
               "other";
    return true;
  }
  LOG_FIRST_N(INFO, 1)
      << "Multi-stream: cudaDeviceSynchronize of another thread fails while a "
         "step is captured, which is not recorded then: this CUDA driver is "
         "another one than those that are known ("
      << gated->message() << ")";
  return false;
}

}  // namespace tensorflow::multistream
