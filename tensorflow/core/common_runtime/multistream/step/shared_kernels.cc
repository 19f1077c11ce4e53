// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/shared_kernels.h"

#include <dlfcn.h>

#include "tensorflow/core/common_runtime/executor_factory.h"
#include "tensorflow/core/common_runtime/multistream/step/constant_cache.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace multistream {
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

}  // namespace

std::shared_ptr<SharedKernels> SharedKernels::Create(
    int gpu, const LocalExecutorParams& params, const GraphTraits& traits,
    bool share_constants) {
  return std::shared_ptr<SharedKernels>(
      new SharedKernels(gpu, params, traits, share_constants));
}

SharedKernels::SharedKernels(int gpu, const LocalExecutorParams& params,
                             const GraphTraits& traits, bool share_constants)
    : gpu_(gpu),
      share_constants_(share_constants),
      make_(params.create_kernel),
      delete_(params.delete_kernel),
      readers_(traits.readers) {
  kernel_traits_.has_references = traits.has_references;
}

void SharedKernels::Wrap(std::shared_ptr<SharedKernels> kernels, int group,
                         LocalExecutorParams* params) {
  params->create_kernel = [kernels, group](
                              const std::shared_ptr<const NodeProperties>& node,
                              OpKernel** kernel) {
    return kernels->Make(group, node, kernel);
  };
  params->delete_kernel = [kernels](OpKernel* kernel) {
    kernels->Delete(kernel);
  };
}

absl::Status SharedKernels::Make(
    int group, const std::shared_ptr<const NodeProperties>& node,
    OpKernel** kernel) {
  const std::string& name = node->node_def.name();
  absl::MutexLock lock(&mu_);
  for (int owner : {0, group}) {
    auto found = kernels_.find(Key(name, owner));
    if (found == kernels_.end()) continue;
    Entry& entry = found->second;
    const bool shared =
        !KeepsScratch(node->node_def.op()) && IsBuiltIn(entry.kernel);
    if (owner != group && !shared) continue;
    ++entry.uses;
    *kernel = entry.kernel;
    return absl::OkStatus();
  }
  if (share_constants_ && node->node_def.op() == "Const") {
    TF_RETURN_IF_ERROR(
        ConstantCache::Get()->Acquire(gpu_, node, make_, kernel));
  } else {
    TF_RETURN_IF_ERROR(make_(node, kernel));
  }
  const Key key(name, group);
  // A session may return the same kernel of a stateful op many times, and so
  // may ConstantCache for equal constants. Entry::uses counts them; the kernel
  // is given back once.
  if (!keys_.try_emplace(*kernel, key).second) {
    kernels_.find(keys_[*kernel])->second.uses++;
    if (share_constants_) ConstantCache::Get()->Release(*kernel);
    return absl::OkStatus();
  }
  kernels_.try_emplace(key, Entry{*kernel, 1});
  if (readers_.contains(name)) kernel_traits_.readers.insert(*kernel);
  if (const Tensor* constant = (*kernel)->const_tensor()) {
    kernel_traits_.constants.insert(constant->data());
  }
  return absl::OkStatus();
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

}  // namespace multistream
}  // namespace tensorflow
