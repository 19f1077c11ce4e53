// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/loaded_library.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {

#if defined(__x86_64__) && defined(__GLIBC__)
namespace {

const char* FileNameOf(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// A library's relocations and symbol table.
struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * rela = nullptr;
  const ElfW(Rela) * plt = nullptr;
  size_t rela_bytes = 0;
  size_t relative = 0;  // entries at the start of `rela` without a symbol
  size_t plt_bytes = 0;
};

Tables TablesOf(uintptr_t base, const void* dynamic) {
  Tables tables;
  // The loader has made most of these absolute; in some libraries they are
  // offsets.
  const auto at = [base](uintptr_t address) {
    return address < base ? base + address : address;
  };
  for (const auto* d = static_cast<const ElfW(Dyn)*>(dynamic);
       d->d_tag != DT_NULL; ++d) {
    switch (d->d_tag) {
      case DT_SYMTAB:
        tables.symbols = reinterpret_cast<const ElfW(Sym)*>(at(d->d_un.d_ptr));
        break;
      case DT_STRTAB:
        tables.names = reinterpret_cast<const char*>(at(d->d_un.d_ptr));
        break;
      case DT_RELA:
        tables.rela = reinterpret_cast<const ElfW(Rela)*>(at(d->d_un.d_ptr));
        break;
      case DT_RELASZ:
        tables.rela_bytes = d->d_un.d_val;
        break;
      case DT_RELACOUNT:
        tables.relative = d->d_un.d_val;
        break;
      case DT_JMPREL:
        tables.plt = reinterpret_cast<const ElfW(Rela)*>(at(d->d_un.d_ptr));
        break;
      case DT_PLTRELSZ:
        tables.plt_bytes = d->d_un.d_val;
        break;
      default:
        break;
    }
  }
  return tables;
}

}  // namespace

absl::StatusOr<LoadedLibrary> LoadedLibrary::Find(const std::string& name) {
  struct Search {
    const std::string& name;
    LoadedLibrary found;
  } search{name, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* search = static_cast<Search*>(data);
        if (!absl::StartsWith(FileNameOf(info->dlpi_name), search->name)) {
          return 0;
        }
        LoadedLibrary* library = &search->found;
        library->path_ = info->dlpi_name;
        library->base_ = info->dlpi_addr;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = info->dlpi_phdr[i];
          const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
          if (part.p_type == PT_DYNAMIC) {
            library->dynamic_ = reinterpret_cast<const void*>(begin);
          } else if (part.p_type == PT_LOAD) {
            library->segments_.push_back({begin, begin + part.p_memsz,
                                          (part.p_flags & PF_X) != 0,
                                          (part.p_flags & PF_W) != 0});
          }
        }
        return 1;
      },
      &search);
  if (search.found.dynamic_ == nullptr) {
    return absl::NotFoundError(absl::StrCat(name, " is not loaded"));
  }
  return search.found;
}

void* LoadedLibrary::Exported(const char* name) const {
  void* handle = dlopen(path_.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* function = dlsym(handle, name);
  dlclose(handle);
  return HasCode(function) ? function : nullptr;
}

absl::StatusOr<int> LoadedLibrary::Replace(
    absl::Span<const Import> imports) const {
  const Tables tables = TablesOf(base_, dynamic_);
  if (tables.symbols == nullptr || tables.names == nullptr) return 0;
  int replaced = 0;
  const auto replace = [&](const ElfW(Rela) & entry) {
    const auto type = ELF64_R_TYPE(entry.r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) return true;
    const char* name =
        tables.names + tables.symbols[ELF64_R_SYM(entry.r_info)].st_name;
    for (const Import& import : imports) {
      if (std::strcmp(name, import.name) != 0) continue;
      ++replaced;
      return Store(reinterpret_cast<void**>(base_ + entry.r_offset),
                   import.with);
    }
    return true;
  };
  bool written = true;
  const auto replace_all = [&](const ElfW(Rela) * begin, size_t skipped,
                               size_t bytes) {
    if (begin == nullptr) return;
    for (const auto* entry = begin + skipped;
         entry < begin + bytes / sizeof(*entry); ++entry) {
      if (!replace(*entry)) written = false;
    }
  };
  replace_all(tables.rela, tables.relative, tables.rela_bytes);
  replace_all(tables.plt, 0, tables.plt_bytes);
  if (!written) {
    return absl::InternalError(
        absl::StrCat("cannot write to the import table of ", path_));
  }
  return replaced;
}

bool LoadedLibrary::Store(void** entry, void* address) {
  if (__atomic_load_n(entry, __ATOMIC_ACQUIRE) == address) return true;
  const uintptr_t page = sysconf(_SC_PAGESIZE);
  void* begin =
      reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(entry) & ~(page - 1));
  // The page stays writable. We cannot tell whether RELRO had made it
  // read-only, and a library that binds lazily needs it writable.
  if (mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(entry, address, __ATOMIC_RELEASE);
  return true;
}
#else
absl::StatusOr<LoadedLibrary> LoadedLibrary::Find(const std::string&) {
  return absl::UnimplementedError("only on x86-64 with glibc");
}
void* LoadedLibrary::Exported(const char*) const { return nullptr; }
absl::StatusOr<int> LoadedLibrary::Replace(absl::Span<const Import>) const {
  return absl::UnimplementedError("only on x86-64 with glibc");
}
bool LoadedLibrary::Store(void**, void*) { return false; }
#endif

bool LoadedLibrary::HasCode(const void* address) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (const Segment& it : segments_) {
    if (it.is_code && at >= it.begin && at < it.end) return true;
  }
  return false;
}

bool LoadedLibrary::HasData(const void* address) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (const Segment& it : segments_) {
    if (it.is_writable && at >= it.begin && at < it.end) return true;
  }
  return false;
}

namespace {

// What replaces a function, in the order in which it was asked for. A
// replacement calls the one before it, the first calls the function.
struct Replacements {
  absl::Mutex mu;
  std::map<void*, std::vector<void*>> of_function ABSL_GUARDED_BY(mu);
};

}  // namespace

absl::StatusOr<int> ReplaceCalls(const std::string& library,
                                 const std::string& cuda,
                                 absl::Span<const CallByName> calls) {
  TF_ASSIGN_OR_RETURN(const LoadedLibrary found, LoadedLibrary::Find(library));
  TF_ASSIGN_OR_RETURN(const LoadedLibrary from, LoadedLibrary::Find(cuda));
  static auto* const all = new Replacements;
  absl::MutexLock lock(&all->mu);
  std::vector<LoadedLibrary::Import> imports;
  for (const CallByName& it : calls) {
    void* const stock = from.Exported(it.name);
    if (stock == nullptr) continue;
    std::vector<void*>& chain = all->of_function[stock];
    const auto place = std::find(chain.begin(), chain.end(), it.call);
    *it.stock = place != chain.begin() ? *std::prev(place) : stock;
    if (place == chain.end()) chain.push_back(it.call);
    imports.push_back({it.name, chain.back()});
  }
  return found.Replace(imports);
}

}  // namespace tensorflow::multistream
