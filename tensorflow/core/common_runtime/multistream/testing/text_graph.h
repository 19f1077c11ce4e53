// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// TensorFlow graphs written as text, for tests:
//
//   x = _Arg() T=float index=0; y = MatMul(Tanh(x), w:1, ^z) transpose_b=true
//
// An input is a name with an output's index, `^` and the name of a node to run
// before, or an expression. Constants are ints: 5 is a scalar, {5,6} a vector,
// {5,6;7,8} a matrix.
// A node without a name is named for its op, without a leading _; further nodes
// of the same op also get a number.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_TEXT_GRAPH_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_TEXT_GRAPH_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow::multistream {

class TextGraph {
 public:
  using Value = NodeBuilder::NodeOut;
  using Values = std::vector<Value>;
  using Attrs = std::function<void(NodeBuilder*)>;

  virtual ~TextGraph() = default;

  // Adds the nodes of statements. Returns the last one's value.
  Value Add(absl::string_view text) {
    const absl::StatusOr<Value> value = TryAdd(text);
    TF_CHECK_OK(value.status()) << text;
    return *value;
  }
  // An error if a node cannot be made; earlier ones may have been.
  absl::StatusOr<Value> TryAdd(absl::string_view text) {
    rest_ = text;
    status_ = absl::OkStatus();
    Value last;
    do {
      const absl::string_view start = rest_;
      std::string name = Word();
      if (!Skip('=')) {
        name.clear();
        rest_ = start;
      }
      last = Expression(name);
      if (!name.empty()) values_[name] = last;
    } while (Skip(';'));
    if (!rest_.empty()) return absl::InvalidArgumentError(rest_);
    if (!status_.ok()) return status_;
    return last;
  }
  Node* operator[](const std::string& name) { return values_.at(name).node; }

  // From now on, `name` stands for an op with some attributes, which an
  // expression may change. "$name" is the node's name.
  void Define(const std::string& name, absl::string_view op_with_attributes) {
    definitions_[name] = op_with_attributes;
  }

  // One of the op's inputs may be a list.
  Value Op(
      const std::string& op, const Values& inputs,
      const Attrs& attrs = [](NodeBuilder*) {}) {
    const absl::StatusOr<Node*> node = TryOp(op, inputs, attrs, "");
    TF_CHECK_OK(node.status()) << op;
    return *node;
  }

  Value Const(const Tensor& tensor) {
    return Op("Const", {}, [&](NodeBuilder* node) {
      node->Attr("value", tensor).Attr("dtype", tensor.dtype());
    });
  }

  Graph graph{OpRegistry::Global()};
  std::string device;  // of the nodes that are added next

 protected:
  // The value of an expression KIND[SIZES] or KIND[SIZES]:TYPE.
  virtual Value Leaf(const std::string& kind, const TensorShape& shape,
                     DataType type) {
    TF_CHECK_OK(absl::UnimplementedError(kind));
    return {};
  }

 private:
  absl::StatusOr<Node*> TryOp(const std::string& op, const Values& inputs,
                              const Attrs& attrs, std::string name) {
    if (name.empty()) {
      const int number = counts_[op]++;
      name = op.substr(op[0] == '_');
      if (number > 0) absl::StrAppend(&name, "_", number);
    }
    NodeBuilder builder(name, op);
    const OpDef& def = DefOf(op);
    size_t next = 0;
    size_t after = def.input_arg_size();
    for (const OpDef::ArgDef& arg : def.input_arg()) {
      --after;
      if (arg.number_attr().empty() && arg.type_list_attr().empty()) {
        builder.Input(inputs.at(next++));
        continue;
      }
      const size_t end = std::max(next, inputs.size() - after);
      builder.Input(Values(inputs.begin() + next, inputs.begin() + end));
      next = end;
    }
    attrs(&builder);
    Node* node = nullptr;
    TF_RETURN_IF_ERROR(builder.Finalize(&graph, &node));
    node->set_assigned_device_name(device);
    return node;
  }
  static const OpDef& DefOf(const std::string& op) {
    const OpDef* def;
    TF_CHECK_OK(OpRegistry::Global()->LookUpOpDef(op, &def));
    return *def;
  }
  static std::vector<int64_t> NumbersIn(absl::string_view text) {
    std::vector<int64_t> numbers;
    for (absl::string_view part :
         absl::StrSplit(text, ',', absl::SkipEmpty())) {
      numbers.push_back(std::stoll(std::string(part)));
    }
    return numbers;
  }
  static AttrValue Attribute(const std::string& op, const std::string& name,
                             const std::string& text) {
    std::string type = text == "true" || text == "false" ? "bool" : "string";
    for (const OpDef::AttrDef& attr : DefOf(op).attr()) {
      if (attr.name() == name) type = attr.type();
    }
    AttrValue value;
    bool ok = true;
    if (type == "string") {
      value.set_s(text);
    } else if (type == "func") {
      value.mutable_func()->set_name(text);
    } else if (type == "type") {
      DataType data_type = DT_INVALID;
      ok = DataTypeFromString(text, &data_type);
      value.set_type(data_type);
    } else if (type == "shape") {
      PartialTensorShape(NumbersIn(text.substr(1, text.size() - 2)))
          .AsProto(value.mutable_shape());
    } else {
      ok = ParseAttrValue(type, text, &value);
    }
    TF_CHECK_OK(ok ? absl::OkStatus()
                   : absl::InvalidArgumentError(absl::StrCat(name, "=", text)));
    return value;
  }

  bool Skip(char c) {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    return absl::ConsumePrefix(&rest_, absl::string_view(&c, 1));
  }
  // Takes the next characters for which `is_part` holds.
  std::string Take(const std::function<bool(char)>& is_part) {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    const size_t size =
        std::find_if_not(rest_.begin(), rest_.end(), is_part) - rest_.begin();
    const std::string taken(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return taken;
  }
  std::string Word() {
    return Take([](char c) { return absl::ascii_isalnum(c) || c == '_'; });
  }
  std::string Until(char end) {
    const std::string text = Take([end](char c) { return c != end; });
    Skip(end);
    return text;
  }

  Value Expression(const std::string& name) {
    if (Skip('{')) {
      const std::string text = Until('}');
      const int64_t rows = 1 + absl::c_count(text, ';');
      const std::vector<int64_t> numbers =
          NumbersIn(absl::StrReplaceAll(text, {{";", ","}}));
      const int64_t columns = static_cast<int64_t>(numbers.size()) / rows;
      Tensor tensor(DT_INT32, rows == 1 ? TensorShape({columns})
                                        : TensorShape({rows, columns}));
      absl::c_copy(numbers, tensor.flat<int32_t>().data());
      return Const(tensor);
    }
    const bool is_negative = Skip('-');
    const std::string word = Word();
    int32_t number = 0;
    if (absl::SimpleAtoi(word, &number)) {
      return Const(Tensor(is_negative ? -number : number));
    }
    if (Skip('[')) {
      const TensorShape shape(NumbersIn(Until(']')));
      DataType type = DT_FLOAT;
      if (Skip(':')) DataTypeFromString(Word(), &type);
      return Leaf(word, shape, type);
    }
    if (!Skip('(')) {
      const Value value = values_.at(word);
      if (!Skip(':')) return value;
      const int output = std::stoi(Word());
      return value.node == nullptr ? value : Value(value.node, output);
    }
    Values inputs;
    std::vector<Node*> before;
    while (!Skip(')')) {
      if (Skip('^')) {
        before.push_back(values_.at(Word()).node);
      } else {
        inputs.push_back(Expression(""));
      }
      Skip(',');
    }
    std::string op = word;
    std::map<std::string, std::string> attributes;
    if (const auto it = definitions_.find(word); it != definitions_.end()) {
      const absl::string_view rest = std::exchange(rest_, it->second);
      op = Word();
      TakeAttributes(&attributes);
      rest_ = rest;
    }
    TakeAttributes(&attributes);
    if (!status_.ok()) return {};
    const absl::StatusOr<Node*> node = TryOp(
        op, inputs,
        [&](NodeBuilder* node) {
          for (const auto& [key, text] : attributes) {
            node->Attr(key,
                       Attribute(op, key,
                                 absl::StrReplaceAll(text, {{"$name", name}})));
          }
          node->ControlInputs(before);
        },
        name);
    status_ = node.status();
    return node.ok() ? Value(*node) : Value();
  }
  void TakeAttributes(std::map<std::string, std::string>* attributes) {
    while (true) {
      const absl::string_view start = rest_;
      const std::string name = Word();
      if (name.empty() || !Skip('=')) {
        rest_ = start;
        return;
      }
      if (Skip('\'')) {
        (*attributes)[name] = Until('\'');
        continue;
      }
      int depth = 0;
      (*attributes)[name] = Take([&depth](char c) {
        depth += (c == '[') - (c == ']');
        return depth > 0 ||
               !(absl::ascii_isspace(c) || c == ',' || c == ';' || c == ')');
      });
    }
  }

  absl::string_view rest_;  // of the text
  absl::Status status_;
  std::map<std::string, Value> values_;
  std::map<std::string, std::string> definitions_;
  std::map<std::string, int> counts_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_TEXT_GRAPH_H_
