// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/shared_kernels.h"

#include <dlfcn.h>

#include <cstdint>
#include <tuple>
#include <typeinfo>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/executor_factory.h"
#include "tensorflow/core/common_runtime/multistream/stream/forked_process.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/lib/strings/proto_serialization.h"
#include "tensorflow/core/platform/hash.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {
namespace {

// The shared library that contains an address, or nullptr.
const void* LibraryOf(const void* address) {
  Dl_info info;
  return address != nullptr && dladdr(address, &info) != 0 ? info.dli_fbase
                                                           : nullptr;
}

// Whether a kernel's class, given by its virtual table, comes with TensorFlow.
// Kernels of other libraries may keep unknown state between calls.
bool IsBuiltIn(const void* table) {
  static const auto* libraries = new absl::flat_hash_set<const void*>{
      LibraryOf(reinterpret_cast<const void*>(&ExecutorFactory::GetFactory)),
      LibraryOf(dlsym(RTLD_DEFAULT, "_ZTVN10tensorflow13DirectSessionE"))};
  return libraries->contains(LibraryOf(table));
}

// Whether a kernel's class comes with TensorFlow. dladdr searches all symbols
// of a library, so the answer is cached for each class.
bool IsBuiltIn(const OpKernel* kernel) {
  static absl::Mutex mu(absl::kConstInit);
  static auto* known = new absl::flat_hash_map<const void*, bool>;
  const void* table = *reinterpret_cast<const void* const*>(kernel);
  absl::MutexLock lock(&mu);
  auto [found, added] = known->try_emplace(table, false);
  if (added) found->second = IsBuiltIn(table);
  return found->second;
}

bool HaveSameValue(const AttrValue& a, const AttrValue& b) {
  const TensorProto& left = a.tensor();
  const TensorProto& right = b.tensor();
  // Large constants, which TensorFlow's function would write again to compare.
  if (!left.tensor_content().empty() && !right.tensor_content().empty()) {
    return left.dtype() == right.dtype() &&
           AreSerializedProtosEqual(left.tensor_shape(),
                                    right.tensor_shape()) &&
           left.tensor_content() == right.tensor_content();
  }
  return AreAttrValuesEqual(a, b, /*allow_false_negatives=*/true);
}

// Whether one kernel can run two nodes of the same name. Of the attributes that
// graph optimizers add, only kRunsOnHostAttr counts.
bool HaveSameKernel(const NodeProperties& a, const NodeProperties& b) {
  if (&a == &b) return true;
  if (a.node_def.op() != b.node_def.op()) return false;
  const auto counts = [](const std::string& name) {
    return name[0] != '_' || name == kRunsOnHostAttr;
  };
  const auto are_in = [&counts](const NodeProperties& some,
                                const NodeProperties& others) {
    return absl::c_all_of(some.node_def.attr(), [&](const auto& attr) {
      if (!counts(attr.first)) return true;
      const auto found = others.node_def.attr().find(attr.first);
      return found != others.node_def.attr().end() &&
             HaveSameValue(attr.second, found->second);
    });
  };
  return are_in(a, b) && are_in(b, a);
}

// Which kernel has a constant of this value already? With TF_SEGMENT_OWN_CONST,
// constants of equal value exist once on a GPU, shared by all executors (one
// for each set of feeds and fetches), sessions and functions; without the
// variable, once in each executor.
class ConstantCache {
 public:
  using MakeKernel = std::function<absl::Status(
      const std::shared_ptr<const NodeProperties>&, OpKernel**)>;

  // The process-wide cache. Never deleted.
  static ConstantCache* Get() {
    static ConstantCache* cache = new ConstantCache;
    return cache;
  }

  // A Const kernel on /device:GPU:`gpu` with the value of `node`, made by
  // `make` if the cache has none. Each Acquire needs one Release.
  absl::Status Acquire(int gpu,
                       const std::shared_ptr<const NodeProperties>& node,
                       const MakeKernel& make, OpKernel** kernel) {
    const auto& attributes = node->node_def.attr();
    auto value = attributes.find("value");
    if (value == attributes.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Const node ", node->node_def.name(), " has no attribute value"));
    }
    std::string serialized;
    SerializeToStringDeterministic(value->second, &serialized);
    const auto hash = [&serialized](uint64_t seed) {
      return Hash64(serialized.data(), serialized.size(), seed);
    };
    const Key key(gpu, serialized.size(), hash(0x2545f4914f6cdd1d),
                  hash(0x9e3779b97f4a7c15));
    absl::MutexLock lock(&mu_);
    auto found = entries_.find(key);
    if (found != entries_.end()) {
      ++found->second.uses;
      *kernel = found->second.kernel.get();
      return absl::OkStatus();
    }
    TF_RETURN_IF_ERROR(make(node, kernel));
    keys_.try_emplace(*kernel, key);
    entries_.try_emplace(key, Entry{std::unique_ptr<OpKernel>(*kernel), 1});
    return absl::OkStatus();
  }

  // False if `kernel` is not from this cache.
  bool Release(const OpKernel* kernel) {
    // In a fork()ed child, a thread that no longer exists may hold the lock.
    if (GroupsAreOfParent()) return true;
    std::unique_ptr<OpKernel> last;
    absl::MutexLock lock(&mu_);
    auto key = keys_.find(kernel);
    if (key == keys_.end()) return false;
    auto entry = entries_.find(key->second);
    if (--entry->second.uses == 0) {
      last = std::move(entry->second.kernel);
      entries_.erase(entry);
      keys_.erase(key);
    }
    return true;
  }

 private:
  // The GPU, the serialized value's size, and two independent hashes of it.
  using Key = std::tuple<int, uint64_t, uint64_t, uint64_t>;
  struct Entry {
    std::unique_ptr<OpKernel> kernel;
    int uses;
  };

  absl::Mutex mu_;
  absl::flat_hash_map<Key, Entry> entries_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<const OpKernel*, Key> keys_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

SharedKernels::SharedKernels(int gpu, const LocalExecutorParams& params,
                             const GraphTraits& traits, bool share_constants)
    : gpu_(gpu),
      share_constants_(share_constants),
      make_(MakeKernelOrHostKernel(params)),
      delete_(params.delete_kernel),
      readers_(traits.readers) {
  kernel_traits_.has_references = traits.has_references;
}

void SharedKernels::Wrap(std::shared_ptr<SharedKernels> kernels, int group,
                         LocalExecutorParams* params, bool is_late) {
  params->create_kernel = [kernels, group, is_late](
                              const std::shared_ptr<const NodeProperties>& node,
                              OpKernel** kernel) {
    return kernels->Make(group, is_late, node, kernel);
  };
  params->delete_kernel = [kernels](OpKernel* kernel) {
    kernels->Delete(kernel);
  };
}

absl::Status SharedKernels::Make(
    int group, bool is_late, const std::shared_ptr<const NodeProperties>& node,
    OpKernel** kernel) {
  const std::string& name = node->node_def.name();
  absl::MutexLock lock(&mu_);
  int number = 0;
  for (bool is_taken = true; is_taken; number += is_taken) {
    is_taken = false;
    for (int owner : {0, group}) {
      auto found = kernels_.find(Key(name, owner, number));
      if (found == kernels_.end()) continue;
      Entry& entry = found->second;
      if (!HaveSameKernel(*entry.node, *node)) {
        is_taken = true;
        break;
      }
      const bool shared =
          !KeepsScratch(node->node_def.op()) && IsBuiltIn(entry.kernel);
      if (owner != group && !shared) continue;
      ++entry.uses;
      *kernel = entry.kernel;
      return absl::OkStatus();
    }
  }
  if (share_constants_ && node->node_def.op() == "Const") {
    TF_RETURN_IF_ERROR(
        ConstantCache::Get()->Acquire(gpu_, node, make_, kernel));
  } else {
    TF_RETURN_IF_ERROR(make_(node, kernel));
  }
  const Key key(name, group, number);
  // A session may return the same kernel of a stateful op many times, and so
  // may ConstantCache for equal constants. Entry::uses counts them; the kernel
  // is given back once.
  if (!keys_.try_emplace(*kernel, key).second) {
    kernels_.find(keys_[*kernel])->second.uses++;
    if (share_constants_) ConstantCache::Get()->Release(*kernel);
    return absl::OkStatus();
  }
  kernels_.try_emplace(key, Entry{node, *kernel, 1});
  if (is_late) return absl::OkStatus();
  if (readers_.contains(name)) kernel_traits_.readers.insert(*kernel);
  if (const Tensor* constant = (*kernel)->const_tensor()) {
    kernel_traits_.constants.insert(constant->data());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<GuardedPhiloxRandom*>> SharedKernels::GeneratorsOf(
    const std::vector<std::string>& nodes) {
  // As TensorFlow's template PhiloxRandomOp, which no header declares: the
  // generator is its only member.
  struct PhiloxRandomOp : OpKernel {
    GuardedPhiloxRandom generator;
  };
  std::vector<GuardedPhiloxRandom*> generators;
  absl::MutexLock lock(&mu_);
  for (const std::string& node : nodes) {
    const auto found = kernels_.find(Key(node, 0, 0));
    OpKernel* kernel = found == kernels_.end() ? nullptr : found->second.kernel;
    if (kernel == nullptr || !IsBuiltIn(kernel) ||
        !absl::StrContains(typeid(*kernel).name(), "PhiloxRandomOp")) {
      return absl::FailedPreconditionError(
          absl::StrCat("'", node, "' draws numbers in an unknown way"));
    }
    generators.push_back(&static_cast<PhiloxRandomOp*>(kernel)->generator);
  }
  return generators;
}

void SharedKernels::Delete(OpKernel* kernel) {
  if (kernel == nullptr) return;
  {
    absl::MutexLock lock(&mu_);
    auto key = keys_.find(kernel);
    if (key == keys_.end()) return;
    auto entry = kernels_.find(key->second);
    if (--entry->second.uses > 0) return;
    kernels_.erase(entry);
    keys_.erase(key);
  }
  if (!share_constants_ || !ConstantCache::Get()->Release(kernel)) {
    delete_(kernel);
  }
}

}  // namespace tensorflow::multistream
