// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Steps for the tests of IndependentRows.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_INDEPENDENT_ROWS_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_INDEPENDENT_ROWS_FIXTURE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace multistream {

// A graph, and the shapes of its inputs. A node is named for its op, without a
// leading _; further nodes of the same op also get a number.
class TestStep {
 public:
  using Value = NodeBuilder::NodeOut;
  using Attrs = std::function<void(NodeBuilder*)>;

  Value Take(const TensorShape& shape, DataType type = DT_FLOAT) {
    const int index = static_cast<int>(shapes.arguments.size());
    shapes.arguments.push_back(shape);
    return Op("_Arg", {}, [&](NodeBuilder* node) {
      node->Attr("T", type).Attr("index", index);
    });
  }
  Value Receive(const TensorShape& shape, DataType type = DT_FLOAT) {
    shapes.received.push_back(shape);
    return Op("_Recv", {}, [&](NodeBuilder* node) {
      node->Attr("tensor_type", type);
      Transfer(node);
    });
  }
  // A variable's handle, from the caller or by name.
  Value Handle(const TensorShape& shape) {
    shapes.variables.push_back({DT_FLOAT, shape});
    return Take(TensorShape(), DT_RESOURCE);
  }
  Value Variable(const TensorShape& shape) {
    shapes.variables.push_back({DT_FLOAT, shape});
    return Op("VarHandleOp", {}, [&](NodeBuilder* node) {
      node->Attr("dtype", DT_FLOAT).Attr("shape", PartialTensorShape());
    });
  }
  Value Read(Value handle) {
    return Op("ReadVariableOp", {handle},
              [](NodeBuilder* node) { node->Attr("dtype", DT_FLOAT); });
  }

  Value Const(const Tensor& tensor) {
    return Op("Const", {}, [&](NodeBuilder* node) {
      node->Attr("value", tensor).Attr("dtype", tensor.dtype());
    });
  }
  Value Floats(const TensorShape& shape) {
    Tensor tensor(DT_FLOAT, shape);
    tensor.flat<float>().setConstant(2);
    return Const(tensor);
  }
  Value Ints(const std::vector<int32_t>& values) {
    Tensor tensor(DT_INT32, {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), tensor.flat<int32_t>().data());
    return Const(tensor);
  }
  Value Int(int32_t value) {
    Tensor tensor(DT_INT32, TensorShape());
    tensor.scalar<int32_t>()() = value;
    return Const(tensor);
  }

  // One of the op's inputs may be a list.
  Value Op(
      const std::string& op, const std::vector<Value>& inputs,
      const Attrs& attrs = [](NodeBuilder*) {}) {
    const absl::StatusOr<Node*> node = TryOp(op, inputs, attrs);
    TF_CHECK_OK(node.status()) << op;
    return *node;
  }
  absl::StatusOr<Node*> TryOp(const std::string& op,
                              const std::vector<Value>& inputs,
                              const Attrs& attrs) {
    const int number = counts_[op]++;
    const std::string name = op.substr(op[0] == '_');
    NodeBuilder builder(number == 0 ? name : absl::StrCat(name, "_", number),
                        op);
    const OpDef* def;
    TF_CHECK_OK(OpRegistry::Global()->LookUpOpDef(op, &def));
    size_t next = 0;
    size_t after = def->input_arg_size();
    for (const OpDef::ArgDef& arg : def->input_arg()) {
      --after;
      if (arg.number_attr().empty() && arg.type_list_attr().empty()) {
        builder.Input(inputs.at(next++));
        continue;
      }
      const size_t end = std::max(next, inputs.size() - after);
      builder.Input(
          std::vector<Value>(inputs.begin() + next, inputs.begin() + end));
      next = end;
    }
    attrs(&builder);
    Node* node = nullptr;
    TF_RETURN_IF_ERROR(builder.Finalize(&graph, &node));
    return node;
  }
  // Element `i` of the output of a shape op.
  Value Size(Value sizes, int i) {
    return Op("StridedSlice", {sizes, Ints({i}), Ints({i + 1}), Ints({1})},
              [](NodeBuilder* node) { node->Attr("shrink_axis_mask", 1); });
  }

  Value Return(Value value) {
    const int index = results_++;
    return Op("_Retval", {value},
              [&](NodeBuilder* node) { node->Attr("index", index); });
  }
  void Send(Value value) {
    Op("_Send", {value}, [&](NodeBuilder* node) { Transfer(node); });
  }

  // The results' shapes, "[2,3] of [4,3]" if they are rows; or why padding is
  // refused.
  std::string Pad(int64_t rows) const {
    const auto results = IndependentRows(graph).Pad(shapes, rows);
    if (!results.ok()) return std::string(results.status().message());
    return absl::StrJoin(
        *results, ", ", [](std::string* text, const BatchResult& result) {
          absl::StrAppend(text, result.shape.DebugString());
          if (result.is_rows || result.shape != result.padded) {
            absl::StrAppend(text, result.is_rows ? " of " : " is not ",
                            result.padded.DebugString());
          }
        });
  }

  Graph graph{OpRegistry::Global()};
  StepShapes shapes;

 private:
  void Transfer(NodeBuilder* node) {
    node->Attr("tensor_name", absl::StrCat("edge_", transfers_++))
        .Attr("send_device", "/job:a/replica:0/task:0/device:CPU:0")
        .Attr("send_device_incarnation", 7)
        .Attr("recv_device", "/job:a/replica:0/task:0/device:GPU:0");
  }

  std::map<std::string, int> counts_;
  int results_ = 0;
  int transfers_ = 0;
};

using Value = TestStep::Value;
using Values = std::vector<Value>;

// Pads a step that returns the value of `build` to 4 rows; see TestStep::Pad.
inline std::string Padded(const std::function<Value(TestStep&)>& build) {
  TestStep step;
  step.Return(build(step));
  return step.Pad(4);
}

// Like Padded, for an op whose first input is 2 rows of shape `row`. `others`
// are the further inputs.
inline std::string PaddedOp(
    const std::string& op, TensorShape row,
    const std::function<Values(TestStep&)>& others = nullptr,
    const TestStep::Attrs& attrs = [](NodeBuilder*) {}) {
  return Padded([&](TestStep& step) {
    row.InsertDim(0, 2);
    Values inputs = {step.Take(row)};
    if (others != nullptr) {
      for (Value other : others(step)) inputs.push_back(other);
    }
    return step.Op(op, inputs, attrs);
  });
}
inline std::function<Values(TestStep&)> Axis(int axis) {
  return [=](TestStep& step) { return Values{step.Int(axis)}; };
}
inline std::function<Values(TestStep&)> Numbers(
    const std::vector<int32_t>& numbers) {
  return [=](TestStep& step) { return Values{step.Ints(numbers)}; };
}
inline std::function<Values(TestStep&)> Constant(const TensorShape& shape) {
  return [=](TestStep& step) { return Values{step.Floats(shape)}; };
}
template <typename T>
TestStep::Attrs Attr(const char* name, T value) {
  return [=](NodeBuilder* node) { node->Attr(name, value); };
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_INDEPENDENT_ROWS_FIXTURE_H_
