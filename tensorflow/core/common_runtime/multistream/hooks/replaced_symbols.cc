// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/hooks/replaced_symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace tensorflow::multistream {
namespace {

// The functions that a library or program exports.
class Exports {
 public:
  Exports(const dl_phdr_info& info, const ElfW(Dyn) * dynamic)
      : base_(info.dlpi_addr) {
    for (const auto* d = dynamic; d->d_tag != DT_NULL; ++d) {
      // The loader has made most of these absolute; in some libraries they are
      // offsets.
      const uintptr_t at =
          d->d_un.d_ptr < base_ ? base_ + d->d_un.d_ptr : d->d_un.d_ptr;
      if (d->d_tag == DT_SYMTAB) {
        symbols_ = reinterpret_cast<const ElfW(Sym)*>(at);
      } else if (d->d_tag == DT_STRTAB) {
        names_ = reinterpret_cast<const char*>(at);
      } else if (d->d_tag == DT_GNU_HASH) {
        const auto* hash = reinterpret_cast<const uint32_t*>(at);
        bucket_count_ = hash[0];
        first_ = hash[1];
        const uint32_t bloom_words = hash[2];
        buckets_ = hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
        chains_ = buckets_ + bucket_count_;
      }
    }
  }

  void ForEachFunction(
      const std::function<void(const char* name, const void* function)>& visit)
      const {
    for (uint32_t bucket = 0; bucket < bucket_count_; ++bucket) {
      VisitBucket(bucket, [&](const ElfW(Sym) & symbol) {
        if (IsFunction(symbol)) visit(names_ + symbol.st_name, At(symbol));
        return false;
      });
    }
  }

  bool HasFunction(const char* name) const {
    if (bucket_count_ == 0) return false;
    uint32_t hash = 5381;
    for (const char* c = name; *c != 0; ++c) {
      hash = hash * 33 + static_cast<unsigned char>(*c);
    }
    return VisitBucket(hash % bucket_count_, [&](const ElfW(Sym) & symbol) {
      return IsFunction(symbol) &&
             std::strcmp(names_ + symbol.st_name, name) == 0;
    });
  }

 private:
  static bool IsFunction(const ElfW(Sym) & symbol) {
    return (symbol.st_info & 0xf) == STT_FUNC && symbol.st_shndx != SHN_UNDEF;
  }

  const void* At(const ElfW(Sym) & symbol) const {
    return reinterpret_cast<const void*>(base_ + symbol.st_value);
  }

  // Visits symbols until `found` returns true. Returns whether it did.
  template <class Found>
  bool VisitBucket(uint32_t bucket, Found found) const {
    if (buckets_[bucket] < first_) return false;
    for (uint32_t i = buckets_[bucket];; ++i) {
      if (found(symbols_[i])) return true;
      // The last symbol of a chain has an odd hash.
      if ((chains_[i - first_] & 1) != 0) return false;
    }
  }

  const uintptr_t base_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  uint32_t bucket_count_ = 0;
  uint32_t first_ = 0;
  const uint32_t* buckets_ = nullptr;
  const uint32_t* chains_ = nullptr;
};

struct Module {
  std::string path;
  Exports exports;
};

// In load order, which is also the order of symbol lookup.
struct Modules {
  std::vector<Module> ours;
  std::vector<Module> tensorflow_before_ours;
  std::vector<Module> tensorflow;
};

bool IsTensorFlow(absl::string_view path) {
  const absl::string_view name = path.substr(path.rfind('/') + 1);
  return absl::StartsWith(name, "libtensorflow_cc.so") ||
         absl::StartsWith(name, "libtensorflow_framework.so");
}

bool Contains(const dl_phdr_info& info, const void* address) {
  const uintptr_t offset =
      reinterpret_cast<uintptr_t>(address) - info.dlpi_addr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    if (part.p_type == PT_LOAD && offset - part.p_vaddr < part.p_memsz) {
      return true;
    }
  }
  return false;
}

int AddModule(dl_phdr_info* info, size_t, void* data) {
  auto* modules = static_cast<Modules*>(data);
  const bool ours =
      Contains(*info, reinterpret_cast<const void*>(&CheckReplacedSymbols));
  if (!ours && !IsTensorFlow(info->dlpi_name)) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const Module module{
        info->dlpi_name[0] == 0 ? "this program" : info->dlpi_name,
        Exports(*info, reinterpret_cast<const ElfW(Dyn)*>(
                           info->dlpi_addr + info->dlpi_phdr[i].p_vaddr))};
    if (ours) {
      modules->ours.push_back(module);
    } else {
      modules->tensorflow.push_back(module);
      if (modules->ours.empty()) {
        modules->tensorflow_before_ours.push_back(module);
      }
    }
  }
  return 0;
}

std::string Readable(const char* symbol) {
  char* demangled = abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr);
  if (demangled == nullptr) return symbol;
  const std::string name = demangled;
  std::free(demangled);
  return name.substr(0, name.find('('));
}

// Functions whose calls do not reach ours, keyed by the library that they
// reach.
using Lost = std::map<std::string, std::set<std::string>>;

absl::Status ErrorOf(const Lost& lost, const std::string& ours) {
  bool tensorflow_first = true;
  std::vector<std::string> parts;
  for (const auto& [whose, functions] : lost) {
    tensorflow_first = tensorflow_first && IsTensorFlow(whose);
    parts.push_back(
        absl::StrCat(absl::StrJoin(functions, ", "), " reach ", whose));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "TensorFlow's calls of ", absl::StrJoin(parts, "; of "),
      ", which comes before ", ours, ". ",
      tensorflow_first
          ? "Load the multi-stream runtime before TensorFlow's libraries: in "
            "Python, import tensorflow before anything else loads them; in "
            "C++, put libtensorflow_multistream.so before them in the link"
          : "Do not preload that library, load it with RTLD_GLOBAL, or put it "
            "before libtensorflow_multistream.so in the link"));
}

absl::Status Look() {
  Modules modules;
  dl_iterate_phdr(&AddModule, &modules);
  // Built as one program, nothing is replaced.
  if (modules.tensorflow.empty() || modules.ours.empty()) {
    return absl::OkStatus();
  }
  const Module& ours = modules.ours[0];
  int replaced = 0;
  Lost lost;
  ours.exports.ForEachFunction([&](const char* symbol, const void* function) {
    bool in_tensorflow = false;
    for (const Module& module : modules.tensorflow) {
      in_tensorflow = in_tensorflow || module.exports.HasFunction(symbol);
    }
    if (!in_tensorflow) return;  // part of our own interface
    // Other libraries, such as PyTorch, may export CUDA's functions to all.
    // Then we lose ours, which only some rare recorded steps need.
    if (absl::StartsWith(symbol, "cuda")) return;
    ++replaced;
    // TensorFlow's libraries loaded with ours, or later, look symbols up as we
    // do.
    const void* reached = dlsym(RTLD_DEFAULT, symbol);
    if (reached != function) {
      Dl_info info;
      const bool known = reached != nullptr && dladdr(reached, &info) != 0;
      lost[known ? info.dli_fname : "nothing"].insert(Readable(symbol));
      return;
    }
    // TensorFlow's libraries loaded earlier find their own functions first.
    for (const Module& module : modules.tensorflow_before_ours) {
      if (module.exports.HasFunction(symbol)) {
        lost[module.path].insert(Readable(symbol));
      }
    }
  });
  if (!lost.empty()) return ErrorOf(lost, ours.path);
  if (replaced == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        ours.path,
        " exports none of the functions that it has in TensorFlow's "
        "place. Build it with exports.lds"));
  }
  return absl::OkStatus();
}

}  // namespace

const absl::Status& CheckReplacedSymbols() {
  static const auto* status = new absl::Status(Look());
  return *status;
}

}  // namespace tensorflow::multistream
