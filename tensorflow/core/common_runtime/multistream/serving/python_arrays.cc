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
                     Find("PyObject_CallFunctionObjArgs", &f.call_with) &&
                     Find("PyErr_Clear", &f.clear_error) &&
                     Find("PyLong_FromVoidPtr", &f.long_from_pointer) &&
                     Find("PyList_New", &f.new_list) &&
                     Find("PyList_SetItem", &f.set_in_list) &&
                     Find("PyList_GetItem", &f.in_list) &&
                     Find("PyList_Size", &f.list_size) &&
                     Find("PyTuple_Size", &f.tuple_size) &&
                     Find("PyTuple_GetItem", &f.in_tuple) &&
                     Find("PyBytes_Type", &f.bytes_type) &&
                     Find("PyBytes_AsStringAndSize", &f.text_of_bytes) &&
                     Find("PyUnicode_AsUTF8AndSize", &f.utf8_of_str);
    return all ? f : PythonFunctions();
  }();
  return functions;
}

void PythonArrays::AddPlan(std::vector<int64_t> shapes, PythonObject* results) {
  auto plan = std::make_unique<Plan>();
  size_t end = 0;  // of the arguments' shapes
  for (size_t i = 0; i < sizes_.size(); ++i) {
    const int64_t rank = shapes[end++];
    int64_t count = 1;
    for (int64_t k = 0; k < rank; ++k) count *= shapes[end++];
    plan->counts.push_back(count);
    if (!IsStrings(i)) plan->bytes += count * sizes_[i];
  }
  std::unique_ptr<Plan>& known =
      plans_[std::vector<int64_t>(shapes.begin(), shapes.begin() + end)];
  if (known == nullptr) {
    known = std::move(plan);
    known->shapes = std::move(shapes);
    known->results = results;
  } else if (results == nullptr || shapes != known->shapes) {
    // Threads may add plans in any order: what differs once stays unknown.
    known->results = nullptr;
  }
}

PythonArrays::Staged::Strings PythonArrays::Packed(
    const NumpyArray& array) const {
  const PythonFunctions& python = Python();
  PythonObject* list = python.call_with(
      flat_list_, reinterpret_cast<const PythonObject*>(&array), nullptr);
  if (list == nullptr) {
    python.clear_error();
    return {};
  }
  std::vector<std::pair<const char*, ptrdiff_t>> texts(python.list_size(list));
  size_t bytes = (texts.size() + 1) * sizeof(int64_t);
  const size_t first = bytes;
  Staged::Strings strings;
  bool all = true;
  for (size_t i = 0; i < texts.size() && all; ++i) {
    PythonObject* element = python.in_list(list, static_cast<ptrdiff_t>(i));
    auto& [text, size] = texts[i];
    if (reinterpret_cast<const PythonHeader*>(element)->type ==
        python.bytes_type) {
      char* of_bytes = nullptr;
      all = python.text_of_bytes(element, &of_bytes, &size) == 0;
      text = of_bytes;
    } else {
      text = python.utf8_of_str(element, &size);
      all = text != nullptr;
    }
    bytes += all ? size : 0;
  }
  if (all) {
    strings.count = static_cast<int64_t>(texts.size());
    strings.packed.reset(new char[bytes]);
    char* offset = strings.packed.get();
    int64_t at = 0;
    for (const auto& [text, size] : texts) {
      std::memcpy(offset, &at, sizeof(at));
      offset += sizeof(at);
      if (size > 0) std::memcpy(&strings.packed[first + at], text, size);
      at += size;
    }
    std::memcpy(offset, &at, sizeof(at));
  } else {
    python.clear_error();
  }
  python.decref(list);
  return strings;
}

bool PythonArrays::StageStrings(PythonObject* arguments, Staged* staged) const {
  if (Python().tuple_size(arguments) !=
      static_cast<ptrdiff_t>(dtypes_.size())) {
    return false;
  }
  for (size_t i = 0; i < dtypes_.size(); ++i) {
    if (!IsStrings(i)) continue;
    const NumpyArray& array = ArrayIn(arguments, i);
    if (array.type != array_type_) return false;
    staged->strings.push_back(Packed(array));
    if (staged->strings.back().packed == nullptr) return false;
  }
  return true;
}

const PythonArrays::Plan* PythonArrays::PlanOf(PythonObject* arguments) {
  key_.clear();
  for (size_t i = 0; i < dtypes_.size(); ++i) {
    const NumpyArray& array = ArrayIn(arguments, i);
    if (array.type != array_type_) return nullptr;  // Or it has no such fields.
    const bool is_plain = array.dtype == dtypes_[i] &&
                          (array.flags & NumpyArray::kCContiguous) != 0;
    if (!is_plain && !IsStrings(i)) return nullptr;
    key_.push_back(array.rank);
    key_.insert(key_.end(), array.dimensions, array.dimensions + array.rank);
  }
  const auto found = plans_.find(key_);
  if (found == plans_.end() || found->second->results == nullptr ||
      found->second->bytes > kMostBytes) {
    return nullptr;
  }
  return found->second.get();
}

bool PythonArrays::Stage(PythonObject* arguments, const Plan& plan,
                         Staged* staged) const {
  staged->data.reserve(plan.counts.size());
  staged->copies.reset(new char[plan.bytes]);
  char* to = staged->copies.get();
  auto strings = staged->strings.begin();
  for (size_t i = 0; i < plan.counts.size(); ++i) {
    if (IsStrings(i)) {
      if (strings->count != plan.counts[i]) return false;
      staged->data.push_back((strings++)->packed.get());
      continue;
    }
    const size_t bytes = plan.counts[i] * sizes_[i];
    if (bytes > 0) std::memcpy(to, ArrayIn(arguments, i).data, bytes);
    staged->data.push_back(to);
    to += bytes;
  }
  return true;
}

PythonObject* PythonArrays::NewResults(PythonObject* results,
                                       std::vector<void* const*>* data) const {
  const PythonFunctions& python = Python();
  const size_t count = data->size();
  PythonObject* list = python.new_list(static_cast<ptrdiff_t>(count));
  for (size_t i = 0; list != nullptr && i < count; ++i) {
    const auto at = static_cast<ptrdiff_t>(i);
    PythonObject* made =
        python.call(empty_, python.in_list(results, at), nullptr);
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
