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

#include "tensorflow/core/common_runtime/multistream/cuda/driver_locks.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/util/spinning_locks.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace multistream {

#if defined(__x86_64__) && defined(__GLIBC__)
namespace {

struct Replacement {
  const char* name;
  void* with;
};
const Replacement kReplacements[] = {
    {"pthread_mutex_lock", reinterpret_cast<void*>(&SpinningLock)},
    {"pthread_rwlock_rdlock", reinterpret_cast<void*>(&SpinningReadLock)},
    {"pthread_rwlock_wrlock", reinterpret_cast<void*>(&SpinningWriteLock)},
};

struct Search {
  const std::string& library;
  bool found = false;
  int changed = 0;
  int already = 0;
  bool failed = false;
};

// The loader gives addresses in most entries, and offsets in some libraries.
template <class T>
T* At(const dl_phdr_info& info, uintptr_t address) {
  return reinterpret_cast<T*>(
      address < info.dlpi_addr ? info.dlpi_addr + address : address);
}

bool Replace(void** entry, void* with) {
  const uintptr_t page = sysconf(_SC_PAGESIZE);
  void* begin =
      reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(entry) & ~(page - 1));
  // Writable from now on: who made it read-only (RELRO) is not known to have
  // done so, and a library that resolves lazily needs it writable.
  if (mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(entry, with, __ATOMIC_RELEASE);
  return true;
}

void SearchRelocations(const dl_phdr_info& info, const ElfW(Rela) * begin,
                       size_t bytes, const ElfW(Sym) * symbols,
                       const char* names, Search* search) {
  if (begin == nullptr || symbols == nullptr || names == nullptr) return;
  for (const auto* r = begin; r < begin + bytes / sizeof(*r); ++r) {
    const auto type = ELF64_R_TYPE(r->r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
    const char* name = names + symbols[ELF64_R_SYM(r->r_info)].st_name;
    for (const Replacement& replacement : kReplacements) {
      if (std::strcmp(name, replacement.name) != 0) continue;
      auto** entry = reinterpret_cast<void**>(info.dlpi_addr + r->r_offset);
      if (*entry == replacement.with) {
        ++search->already;
      } else if (Replace(entry, replacement.with)) {
        ++search->changed;
      } else {
        search->failed = true;
      }
    }
  }
}

int SearchLibrary(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  const char* slash = std::strrchr(info->dlpi_name, '/');
  const char* name = slash == nullptr ? info->dlpi_name : slash + 1;
  if (!absl::StartsWith(name, search->library)) return 0;
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela)* rela = nullptr;
  const ElfW(Rela)* plt = nullptr;
  size_t rela_bytes = 0;
  size_t plt_bytes = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    search->found = true;
    for (const auto* d = reinterpret_cast<const ElfW(Dyn)*>(
             info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
         d->d_tag != DT_NULL; ++d) {
      switch (d->d_tag) {
        case DT_SYMTAB:
          symbols = At<const ElfW(Sym)>(*info, d->d_un.d_ptr);
          break;
        case DT_STRTAB:
          names = At<const char>(*info, d->d_un.d_ptr);
          break;
        case DT_RELA:
          rela = At<const ElfW(Rela)>(*info, d->d_un.d_ptr);
          break;
        case DT_RELASZ:
          rela_bytes = d->d_un.d_val;
          break;
        case DT_JMPREL:
          plt = At<const ElfW(Rela)>(*info, d->d_un.d_ptr);
          break;
        case DT_PLTRELSZ:
          plt_bytes = d->d_un.d_val;
          break;
        default:
          break;
      }
    }
  }
  SearchRelocations(*info, rela, rela_bytes, symbols, names, search);
  SearchRelocations(*info, plt, plt_bytes, symbols, names, search);
  return 0;
}

}  // namespace

absl::StatusOr<int> ReplaceLocksIn(const std::string& library) {
  Search search{library};
  dl_iterate_phdr(&SearchLibrary, &search);
  if (!search.found) {
    return absl::NotFoundError(absl::StrCat(library, " is not loaded"));
  }
  if (search.failed) {
    return absl::InternalError(
        absl::StrCat("cannot write to the import table of ", library));
  }
  return search.changed + search.already;
}
#else
absl::StatusOr<int> ReplaceLocksIn(const std::string& library) {
  return absl::UnimplementedError("only on x86-64 with glibc");
}
#endif

void ReplaceLocksInCudaDriver() {
  const absl::StatusOr<int> entries = ReplaceLocksIn("libcuda.so");
  if (entries.ok() && *entries > 0) {
    VLOG(1) << "Multi-stream: the CUDA driver's locks spin and serve writers";
    return;
  }
  LOG(INFO) << "Multi-stream: the CUDA driver's locks stay as they are, which "
               "can cost throughput under load: "
            << (entries.ok() ? "it takes none that can be changed"
                             : entries.status().message());
}

}  // namespace multistream
}  // namespace tensorflow
