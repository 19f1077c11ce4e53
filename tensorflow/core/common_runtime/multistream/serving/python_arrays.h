// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a call read NumPy arrays in less than a microsecond each? While a
// call has the GIL, all other calls of the process wait. So C++ reads the
// fields of the array objects, and copies small arguments, which takes less
// time than to keep other threads from resizing them:
//
//   with the GIL     StageStrings -> PlanOf -> Stage -> NewResults
//   without          arguments from the staged copies, results into new arrays
//
// Arrays that are not plain take the way in Python (serving_callable.py), which
// converts them, makes the plans, and says what is wrong with an argument.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PYTHON_ARRAYS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PYTHON_ARRAYS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace tensorflow::multistream {

// A Python object. Python's headers are not needed: all that is used of Python
// is in its stable ABI, and found by name when it is first used.
struct PythonObject;

struct PythonFunctions {
  void* (*save_thread)() = nullptr;
  void (*restore_thread)(void* thread) = nullptr;
  void (*decref)(PythonObject*) = nullptr;
  PythonObject* (*call)(PythonObject* callable, PythonObject* args,
                        PythonObject* kwargs) = nullptr;
  // The arguments, and a null pointer after the last one.
  PythonObject* (*call_with)(PythonObject* callable, ...) = nullptr;
  void (*clear_error)() = nullptr;
  PythonObject* (*long_from_pointer)(void*) = nullptr;
  PythonObject* (*new_list)(ptrdiff_t size) = nullptr;
  // Takes over the reference to `item`.
  int (*set_in_list)(PythonObject* list, ptrdiff_t at,
                     PythonObject* item) = nullptr;
  PythonObject* (*in_list)(PythonObject* list, ptrdiff_t at) = nullptr;
  ptrdiff_t (*list_size)(PythonObject* list) = nullptr;
  ptrdiff_t (*tuple_size)(PythonObject* tuple) = nullptr;
  PythonObject* (*in_tuple)(PythonObject* tuple, ptrdiff_t at) = nullptr;
  const PythonObject* bytes_type = nullptr;
  int (*text_of_bytes)(PythonObject* bytes, char** text,
                       ptrdiff_t* size) = nullptr;
  // Null, with an error set, for what is no str, or has no UTF-8.
  const char* (*utf8_of_str)(PythonObject* str, ptrdiff_t* size) = nullptr;

  // False if the process has no Python, or another one than expected.
  bool AreThere() const { return save_thread != nullptr; }
};

// Of the Python that this process runs.
const PythonFunctions& Python();

// What each object begins with.
struct PythonHeader {
  ptrdiff_t references;
  const PythonObject* type;
};

// The layout of NumPy's PyArrayObject, which is the same in all its releases.
struct NumpyArray : PythonHeader {
  static constexpr int kCContiguous = 1;

  void* data;
  int rank;
  const intptr_t* dimensions;
  const intptr_t* strides;
  const PythonObject* base;
  const PythonObject* dtype;
  int flags;
};

// The arrays of one function's calls. Call all methods with the GIL held.
class PythonArrays {
 public:
  // The shapes of a call's arguments, and what is known of its results.
  struct Plan {
    // Of the arguments, then of the results; each is a rank and the dimensions.
    std::vector<int64_t> shapes;
    // A list of the arguments of numpy.empty for each result. Null if the
    // shapes of the results differ from call to call.
    PythonObject* results = nullptr;
    std::vector<int64_t> counts;  // elements of each argument
    size_t bytes = 0;             // of all arguments that are no strings
  };
  // Copies of a call's arguments.
  struct Staged {
    struct Strings {
      std::unique_ptr<char[]> packed;  // as StringsOf reads them
      int64_t count = 0;
    };
    std::vector<void*> data;
    std::unique_ptr<char[]> copies;
    std::vector<Strings> strings;  // of each argument that is strings, in order
  };

  // `array_type` is numpy.ndarray, `empty` is numpy.empty, and `flat_list`
  // gives the elements of an array as a list. `dtypes` are the arguments'
  // numpy.dtype objects, of elements with `sizes` bytes, or null for strings.
  // The caller keeps the objects alive.
  PythonArrays(const PythonObject* array_type, PythonObject* empty,
               PythonObject* flat_list, std::vector<const PythonObject*> dtypes,
               std::vector<size_t> sizes)
      : array_type_(array_type),
        empty_(empty),
        flat_list_(flat_list),
        dtypes_(std::move(dtypes)),
        sizes_(std::move(sizes)) {}

  // Adds a plan. If there is one for these arguments with other results, or if
  // `results` is null, the shapes of the results are unknown from then on. The
  // caller keeps `results` alive.
  void AddPlan(std::vector<int64_t> shapes, PythonObject* results);

  // Stages the arguments that are strings. Call it first: other threads may run
  // Python meanwhile. False if an argument is no array of str and bytes.
  bool StageStrings(PythonObject* arguments, Staged* staged) const;
  // The plan for a tuple of arrays; it is valid as long as this object. Null if
  // there is none, or if an argument is not a C-contiguous array of its dtype,
  // or if the arrays are too large to be copied with the GIL held.
  const Plan* PlanOf(PythonObject* arguments);
  // Stages the others. False if strings have become more or fewer since they
  // were staged.
  bool Stage(PythonObject* arguments, const Plan& plan, Staged* staged) const;
  // A list of new arrays, and the addresses of their data fields; `results` is
  // a plan's. Null, with Python's error set, if there is no memory.
  PythonObject* NewResults(PythonObject* results,
                           std::vector<void* const*>* data) const;

 private:
  bool IsStrings(size_t argument) const { return dtypes_[argument] == nullptr; }
  // Of an array; null if an element is neither str nor bytes.
  Staged::Strings Packed(const NumpyArray& array) const;

  const PythonObject* const array_type_;
  PythonObject* const empty_;
  PythonObject* const flat_list_;
  const std::vector<const PythonObject*> dtypes_;
  const std::vector<size_t> sizes_;
  // By the arguments' shapes. Never removed: calls use them without the GIL.
  absl::flat_hash_map<std::vector<int64_t>, std::unique_ptr<Plan>> plans_;
  std::vector<int64_t> key_;  // kept for its memory
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PYTHON_ARRAYS_H_
