// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which tensor do the values of an input make, that JSON gives one by one? They
// become the bytes of a TensorProto at once, so that no value is kept twice.

#ifndef EXAMPLES_SERVING_FRONT_INPUT_VALUES_H_
#define EXAMPLES_SERVING_FRONT_INPUT_VALUES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace front {

class InputValues {
 public:
  // The most lists in each other.
  static constexpr int kDeepest = 32;

  // Of a tensorflow.DataType. Those that tensor_messages.h lacks have no
  // values.
  explicit InputValues(int type) : type_(type) {}

  // Each returns false if the tensor has no such part: the value is not of the
  // type, or a list not as long or as deep as the others. Empty lists are left
  // to Python, too: for a few types the engine takes no tensor without values.
  bool OpenList();
  bool CloseList();
  bool AddNumber(std::string_view text);  // as JSON has it
  bool AddBool(bool value);
  bool AddString(std::string_view bytes);

  int open_lists() const { return open_; }

  // The TensorProto is Head() and then bytes(). All lists are closed by now,
  // and at least one value was added.
  std::string Head() const;
  const std::string& bytes() const { return bytes_; }

 private:
  bool CountValue();
  template <typename T>
  bool Add(T value);
  template <typename T>
  bool AddInteger(std::string_view text);

  const int type_;
  int open_ = 0;
  int rank_ = -1;                   // unknown before the first value
  int64_t counts_[kDeepest] = {};   // of each open list, its elements so far
  int64_t lengths_[kDeepest] = {};  // by depth, of the lists that were closed
  std::string bytes_;  // of numbers, as in tensor_content; or fields string_val
};

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_INPUT_VALUES_H_
