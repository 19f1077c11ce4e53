// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Steps for the tests of IndependentRows.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_INDEPENDENT_ROWS_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_INDEPENDENT_ROWS_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows.h"
#include "tensorflow/core/common_runtime/multistream/testing/text_graph.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow::multistream {

using Value = TextGraph::Value;
using Values = TextGraph::Values;

// A graph, and the shapes of its inputs. In its text:
//
//   rows[2,3] received[2,3]:int64    inputs: an argument, a value from the host
//   table[9,3] handle[9,3]           variables: by name, an argument
//   const[2,3]                       a constant
//   read(table[9,3])                 a variable's value
//   gather(table[9,3], ids)          rows of a variable
//   size(x, {0}, {1}, {1})           a dimension's size, of a shape
class TestStep : public TextGraph {
 public:
  static constexpr int64_t kPadded = 4;

  TestStep() {
    Define("read", "ReadVariableOp dtype=float");
    Define("gather", "ResourceGather dtype=float");
    Define("size", "StridedSlice shrink_axis_mask=1");
  }

  Value Take(const TensorShape& shape, DataType type = DT_FLOAT) {
    const int index = static_cast<int>(shapes.arguments.size());
    shapes.arguments.push_back(shape);
    return Op("_Arg", {}, [&](NodeBuilder* node) {
      node->Attr("T", type).Attr("index", index);
    });
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
        *results, ", ", [](std::string* text, const SizedResult& result) {
          absl::StrAppend(text, result.shape.DebugString());
          const bool is_rows = result.blocks > 0;
          if (is_rows || result.shape != result.padded) {
            absl::StrAppend(text, is_rows ? " of " : " is not ",
                            result.padded.DebugString());
          }
        });
  }

  StepShapes shapes;

 protected:
  Value Leaf(const std::string& kind, const TensorShape& shape,
             DataType type) override {
    if (kind == "rows") return Take(shape, type);
    if (kind == "received") {
      shapes.received.push_back(shape);
      return Op("_Recv", {}, [&](NodeBuilder* node) {
        node->Attr("tensor_type", type);
        Transfer(node);
      });
    }
    if (kind == "const") {
      Tensor tensor(type, shape);
      if (type == DT_FLOAT) tensor.flat<float>().setConstant(2);
      return Const(tensor);
    }
    shapes.variables.push_back({DT_FLOAT, shape});
    if (kind == "handle") return Take(TensorShape(), DT_RESOURCE);
    EXPECT_EQ(kind, "table");
    return Op("VarHandleOp", {}, [](NodeBuilder* node) {
      node->Attr("dtype", DT_FLOAT).Attr("shape", PartialTensorShape());
    });
  }

 private:
  void Transfer(NodeBuilder* node) {
    node->Attr("tensor_name", absl::StrCat("edge_", transfers_++))
        .Attr("send_device", "/job:a/replica:0/task:0/device:CPU:0")
        .Attr("send_device_incarnation", 7)
        .Attr("recv_device", "/job:a/replica:0/task:0/device:GPU:0");
  }

  int results_ = 0;
  int transfers_ = 0;
};

// A step that returns the value of its last statement, and the answer of Pad
// for kPadded: a refusal may leave out that value's op and name.
struct PaddedStep {
  std::string step;
  std::string expected;
};
template <class Step = TestStep>
void ExpectPadded(const std::vector<PaddedStep>& cases) {
  for (const auto& [text, expected] : cases) {
    Step step;
    const Value value = step.Add(text);
    step.Return(value);
    EXPECT_EQ(step.Pad(Step::kPadded),
              absl::ascii_islower(expected[0])
                  ? absl::StrCat(value.node->type_string(), " '",
                                 value.node->name(), "' ", expected)
                  : expected)
        << text;
  }
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_INDEPENDENT_ROWS_FIXTURE_H_
