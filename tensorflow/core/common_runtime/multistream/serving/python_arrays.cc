// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/python_arrays.h"

#include <dlfcn.h>

#include <cstring>
#include <utility>

namespace tensorflow::multistream {
namespace {

// Copying more takes longer than the way in Python, which copies without the
// GIL.
constexpr size_t kMostBytes = 1 << 16;

const NumpyArray& ArrayIn(PythonObject* tuple, size_t at) {
  return *reinterpret_cast<const NumpyArray*>(
      Python().in_tuple(tuple, static_cast<ptrdiff_t>(at)));
}

// Sets `function` to Python's function of that name; returns whether it exists.
template <typename T>
bool Find(const char* name, T* function) {
  void* found = dlsym(RTLD_DEFAULT, name);
  std::memcpy(function, &found, sizeof(found));
  return found != nullptr;
}

}  // namespace

const PythonFunctions& Python() {
  static const PythonFunctions functions = [] {
    PythonFunctions f;
    const bool all = Find("PyEval_SaveThread", &f.save_thread) &&
                     Find("PyEval_RestoreThread", &f.restore_thread) &&
                     Find("Py_DecRef", &f.decref) &&
                     Find("PyObject_Call", &f.call) &&
                     Find("PyLong_FromVoidPtr", &f.long_from_pointer) &&
                     Find("PyList_New", &f.new_list) &&
                     Find("PyList_SetItem", &f.set_in_list) &&
                     Find("PyList_GetItem", &f.in_list) &&
                     Find("PyTuple_Size", &f.tuple_size) &&
                     Find("PyTuple_GetItem", &f.in_tuple);
    return all ? f : PythonFunctions();
  }();
  return functions;
}

void PythonArrays::AddPlan(std::vector<int64_t> shapes, PythonObject* results) {
  std::vector<size_t> bytes;
  size_t end = 0;  // of the arguments' shapes
  for (size_t size : sizes_) {
    const int64_t rank = shapes[end++];
    for (int64_t i = 0; i < rank; ++i) size *= shapes[end++];
    bytes.push_back(size);
  }
  std::unique_ptr<Plan>& plan =
      plans_[std::vector<int64_t>(shapes.begin(), shapes.begin() + end)];
  if (plan == nullptr) {
    plan = std::make_unique<Plan>();
    plan->shapes = std::move(shapes);
    plan->bytes = std::move(bytes);
    for (const size_t size : plan->bytes) plan->all_bytes += size;
  }
  plan->results = results;
}

const PythonArrays::Plan* PythonArrays::PlanOf(PythonObject* arguments) {
  if (Python().tuple_size(arguments) !=
      static_cast<ptrdiff_t>(dtypes_.size())) {
    return nullptr;
  }
  key_.clear();
  for (size_t i = 0; i < dtypes_.size(); ++i) {
    const NumpyArray& array = ArrayIn(arguments, i);
    if (array.type != array_type_ || array.dtype != dtypes_[i] ||
        (array.flags & NumpyArray::kCContiguous) == 0) {
      return nullptr;
    }
    key_.push_back(array.rank);
    key_.insert(key_.end(), array.dimensions, array.dimensions + array.rank);
  }
  const auto found = plans_.find(key_);
  if (found == plans_.end() || found->second->results == nullptr ||
      found->second->all_bytes > kMostBytes) {
    return nullptr;
  }
  return found->second.get();
}

PythonArrays::Staged PythonArrays::Stage(PythonObject* arguments,
                                         const Plan& plan) {
  Staged staged;
  staged.data.reserve(plan.bytes.size());
  staged.copies.reset(new char[plan.all_bytes]);
  char* to = staged.copies.get();
  for (size_t i = 0; i < plan.bytes.size(); ++i) {
    const size_t bytes = plan.bytes[i];
    if (bytes > 0) std::memcpy(to, ArrayIn(arguments, i).data, bytes);
    staged.data.push_back(to);
    to += bytes;
  }
  return staged;
}

PythonObject* PythonArrays::NewResults(const Plan& plan,
                                       std::vector<void* const*>* data) const {
  const PythonFunctions& python = Python();
  const size_t count = data->size();
  PythonObject* list = python.new_list(static_cast<ptrdiff_t>(count));
  for (size_t i = 0; list != nullptr && i < count; ++i) {
    const auto at = static_cast<ptrdiff_t>(i);
    PythonObject* made =
        python.call(empty_, python.in_list(plan.results, at), nullptr);
    if (made == nullptr) {
      python.decref(list);
      return nullptr;
    }
    (*data)[i] = &reinterpret_cast<const NumpyArray*>(made)->data;
    python.set_in_list(list, at, made);
  }
  return list;
}

}  // namespace tensorflow::multistream
