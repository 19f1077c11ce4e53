// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Compares the answers of IndependentRows for random steps with the steps'
// results on the CPU: for a batch, and for the same batch padded with garbage
// rows.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows_fixture.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr int kSeeds = 150;
constexpr int kOps = 40;  // tried in each step
constexpr int kIds = 4;

template <typename T>
TestStep::Attrs Attr(const char* name, T value) {
  return [=](NodeBuilder* node) { node->Attr(name, value); };
}

// A random step that computes with small whole numbers, so that sums are exact
// in any order. Ops are drawn without regard to rows, and kept if
// IndependentRows accepts them.
class RandomStep {
 public:
  explicit RandomStep(uint32_t seed) : random_(seed), batch_(1 + Below(4)) {
    rows_ = batch_ + 1 + Below(4);
    garbage_ = Chance(50) ? std::numeric_limits<float>::quiet_NaN() : 1000;
    Take({batch_, 4});
    Take({batch_, 4});
    Take({batch_, 3, 4});
    Take({batch_, 4, 4, 2});
    Take({batch_});
    ids_ = {step_.Take({batch_}, DT_INT32), step_.Take({batch_, 3}, DT_INT32)};
    values_.push_back({step_.Take({}), {}});
    for (const TensorShape& shape :
         {TensorShape({4}), TensorShape({batch_, 4}), TensorShape({rows_, 4}),
          TensorShape({1, 4})}) {
      values_.push_back({Const(shape), shape});
    }
    taken_ = values_.size();
    MakeFeeds();
    for (int i = 0; i < kOps; ++i) TryOp();
  }

  // Number of ops that were kept, and of results that are rows.
  int kept() const { return values_.size() - taken_; }
  int row_results() const { return row_results_; }

  void Compare() {
    if (kept() == 0) return;
    std::vector<std::string> names;
    for (size_t i = taken_; i < values_.size(); ++i) {
      step_.Return(values_[i].value);
      names.push_back(NameOf(values_[i].value));
    }
    const auto results = IndependentRows(step_.graph).Pad(step_.shapes, rows_);
    ASSERT_TRUE(results.ok()) << results.status();
    std::vector<Tensor> expected, padded;
    absl::Status status = Run(batch_feeds_, names, &expected);
    ASSERT_TRUE(status.ok()) << status;
    status = Run(padded_feeds_, names, &padded);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < names.size(); ++i) {
      const BatchResult& result = (*results)[i];
      SCOPED_TRACE(names[i]);
      ASSERT_EQ(expected[i].shape(), result.shape);
      ASSERT_EQ(padded[i].shape(), result.padded);
      ASSERT_EQ(std::memcmp(expected[i].data(), padded[i].data(),
                            expected[i].TotalBytes()),
                0)
          << expected[i].DebugString(100) << padded[i].DebugString(100);
      if (result.is_rows) {
        ++row_results_;
      } else {
        ASSERT_EQ(result.shape, result.padded);
      }
    }
  }

 private:
  struct Shaped {
    Value value;
    TensorShape shape;  // for the step's batch
  };

  int Below(int n) { return static_cast<int>(random_() % n); }
  bool Chance(int percent) { return Below(100) < percent; }
  template <typename T>
  T OneOf(const std::vector<T>& choices) {
    return choices[Below(choices.size())];
  }

  void Take(const TensorShape& shape) {
    values_.push_back({step_.Take(shape), shape});
  }
  Value Const(const TensorShape& shape) {
    return step_.Const(Random(shape, false));
  }
  Tensor Random(const TensorShape& shape, bool ids) {
    Tensor tensor(ids ? DT_INT32 : DT_FLOAT, shape);
    for (int64_t i = 0; i < tensor.NumElements(); ++i) {
      if (ids) {
        tensor.flat<int32_t>()(i) = Below(kIds);
      } else {
        tensor.flat<float>()(i) = Below(7) - 3;
      }
    }
    return tensor;
  }

  using Feeds = std::vector<std::pair<std::string, Tensor>>;

  static std::string NameOf(const Value& value) {
    return absl::StrCat(value.node->name(), ":", value.index);
  }

  void MakeFeeds() {
    for (size_t i = 0; i < step_.shapes.arguments.size(); ++i) {
      const std::string name = i == 0 ? "Arg" : absl::StrCat("Arg_", i);
      const bool ids = i == 5 || i == 6;
      TensorShape shape = step_.shapes.arguments[i];
      const Tensor rows = Random(shape, ids);
      if (shape.dims() > 0) shape.set_dim(0, rows_);
      Tensor padded(rows.dtype(), shape);
      for (int64_t k = 0; k < padded.NumElements(); ++k) {
        // Padding ids must be valid: the CPU refuses an id outside of a table.
        if (ids) {
          padded.flat<int32_t>()(k) =
              rows.flat<int32_t>()(k % rows.NumElements());
        } else {
          padded.flat<float>()(k) =
              k < rows.NumElements() ? rows.flat<float>()(k) : garbage_;
        }
      }
      batch_feeds_.push_back({name, rows});
      padded_feeds_.push_back({name, padded});
    }
  }

  // A random value, more often a recent one.
  Shaped Any() {
    const int first = Chance(50) ? values_.size() / 2 : 0;
    return values_[first + Below(values_.size() - first)];
  }
  int AnyAxis(const TensorShape& shape) {
    const int rank = shape.dims();
    return rank == 0                ? 0
           : Chance(80) && rank > 1 ? 1 + Below(rank - 1)
                                    : Below(2 * rank) - rank;
  }
  // The size of a random dimension, as a tensor.
  Value AnySize(const Shaped& x) {
    const int dimension = Below(std::max(x.shape.dims(), 1));
    const int i = Chance(60) ? 0 : dimension;
    return step_.Op("StridedSlice",
                    {step_.Op("Shape", {x.value}), step_.Ints({i}),
                     step_.Ints({i + 1}), step_.Ints({1})},
                    Attr("shrink_axis_mask", 1));
  }
  std::vector<int32_t> Sizes(const TensorShape& shape) {
    std::vector<int32_t> sizes;
    for (int i = 0; i < shape.dims(); ++i) sizes.push_back(shape.dim_size(i));
    return sizes;
  }

  // Draws an op, and keeps its output if IndependentRows accepts it.
  void TryOp() {
    Value value;
    if (!Draw(&value).ok()) return;
    if (value.node->output_type(value.index) != DT_FLOAT) {
      value = step_.Op("Cast", {value}, Attr("DstT", DT_FLOAT));
    }
    value = step_.Op("ClipByValue", {value, Limit(-6), Limit(6)});
    // Adding 0 turns -0 into +0: sums may give either.
    value = step_.Op("AddV2", {step_.Op("Round", {value}), Limit(0)});
    Node* result = step_.Return(value).node;
    const auto results = IndependentRows(step_.graph).Pad(step_.shapes, rows_);
    step_.graph.RemoveNode(result);
    if (!results.ok()) return;
    const TensorShape& shape = (*results)[0].shape;
    if (shape.num_elements() > 3000 || shape.dims() > 5) return;
    if (!(*results)[0].is_rows && Chance(90)) return;
    // Some ops fail for every batch.
    std::vector<Tensor> outputs;
    if (!Run(batch_feeds_, {NameOf(value)}, &outputs).ok()) return;
    values_.push_back({value, shape});
  }
  Value Limit(float value) {
    Tensor tensor(DT_FLOAT, TensorShape());
    tensor.scalar<float>()() = value;
    return step_.Const(tensor);
  }

  absl::Status Try(
      const std::string& op, const Values& inputs, Value* value,
      const TestStep::Attrs& attrs = [](NodeBuilder*) {}) {
    const auto node = step_.TryOp(op, inputs, attrs);
    if (node.ok()) *value = Value(*node, Below((*node)->num_outputs()));
    return node.status();
  }

  absl::Status Draw(Value* value) {
    const Shaped x = Any(), y = Any();
    const int rank = x.shape.dims();
    const int axis = AnyAxis(x.shape);
    const int64_t last = rank == 0 ? 1 : x.shape.dim_size(rank - 1);
    const auto flip = [&](const char* a, const char* b, int percent) {
      const bool first = Chance(percent), second = Chance(50);
      return [=](NodeBuilder* node) { node->Attr(a, first).Attr(b, second); };
    };
    switch (Below(29)) {
      case 0:
        return Try(OneOf<std::string>({"Neg", "Abs", "Relu", "Square", "Sign"}),
                   {x.value}, value);
      case 1:
      case 2:
        return Try(OneOf<std::string>({"AddV2", "Mul", "Sub", "Maximum"}),
                   {x.value, y.value}, value);
      case 3:
        return Try("MatMul", {x.value, Const({last, 1 + Below(5)})}, value);
      case 4:
        return Try("MatMul", {x.value, y.value}, value,
                   flip("transpose_a", "transpose_b", 50));
      case 5:
        return Try("BatchMatMulV2", {x.value, y.value}, value,
                   flip("adj_x", "adj_y", 30));
      case 6:
        return Try("BatchMatMulV2", {x.value, Const({last, 4})}, value);
      case 7:
        return Try(OneOf<std::string>({"Sum", "Mean", "Max", "Min", "ArgMax"}),
                   {x.value, step_.Int(axis)}, value);
      case 8:
        return Try("Cumsum", {x.value, step_.Int(axis)}, value);
      case 9:
        return Try("ReverseV2", {x.value, step_.Ints({axis})}, value);
      case 10: {
        // Scale the result, so that rounding is not near a half.
        Value soft;
        TF_RETURN_IF_ERROR(Try("Softmax", {x.value}, &soft));
        return Try("Mul", {soft, Limit(7.3f)}, value);
      }
      case 11: {
        const int32_t half = std::max<int32_t>(last / 2, 1);
        return Try("Reshape",
                   {x.value, step_.Ints(OneOf<std::vector<int32_t>>(
                                 {{-1, half},
                                  {-1},
                                  {-1, 4},
                                  {-1, half, 2},
                                  {2, -1},
                                  {static_cast<int32_t>(rows_), -1}}))},
                   value);
      }
      case 12:
        return Try("Reshape",
                   {x.value, step_.Op("Pack", {AnySize(x), step_.Int(-1)})},
                   value);
      case 13: {
        std::vector<int32_t> order;
        for (int i = 0; i < rank; ++i) order.push_back(i);
        std::shuffle(order.begin() + (Chance(80) && rank > 0), order.end(),
                     random_);
        return Try("Transpose", {x.value, step_.Ints(order)}, value);
      }
      case 14:
        return Try("ConcatV2", {x.value, y.value, step_.Int(axis)}, value);
      case 15:
        return Try("Pack", {x.value, Chance(50) ? y.value : x.value}, value,
                   Attr("axis", axis));
      case 16: {
        std::vector<int32_t> begin(rank), size = Sizes(x.shape);
        if (axis > 0) begin[axis] = Below(2), size[axis] -= begin[axis];
        if (rank > 0 && Chance(80)) size[0] = -1;
        return Try("Slice", {x.value, step_.Ints(begin), step_.Ints(size)},
                   value);
      }
      case 17: {
        const int masks = Below(16);
        const bool negative = Chance(20);
        const Values inputs = {x.value, step_.Ints({Below(2), Below(2)}),
                               step_.Ints({Below(4), Below(4)}),
                               step_.Ints({negative ? -1 : 1, 1})};
        const int others[] = {Below(8), Below(8), Below(8)};
        return Try("StridedSlice", inputs, value, [&](NodeBuilder* node) {
          node->Attr("begin_mask", masks | 1).Attr("end_mask", masks | 1);
          node->Attr("shrink_axis_mask", others[0] == 0 ? 1 : others[0] & 2);
          node->Attr("ellipsis_mask", others[1] == 0 ? 1 : 0);
          node->Attr("new_axis_mask", others[2] < 2 ? others[2] + 1 : 0);
        });
      }
      case 18: {
        const Value table = Chance(50) ? x.value : Const({kIds, 4});
        const int batch_dims = Chance(30);
        return Try("GatherV2",
                   {table, OneOf(ids_),
                    step_.Int(Chance(50)   ? 0
                              : batch_dims ? 1
                                           : axis)},
                   value, Attr("batch_dims", batch_dims));
      }
      case 19:
        return Try(OneOf<std::string>({"Tile", "BroadcastTo"}),
                   {Const({1, 1 + Below(3)}),
                    step_.Op("Pack", {AnySize(x), step_.Int(1 + Below(3))})},
                   value);
      case 20:
        return Try("Fill",
                   {step_.Op("Pack", {AnySize(x), AnySize(y)}), Limit(3)},
                   value);
      case 21:
        return Chance(50) ? Try("ExpandDims", {x.value, step_.Int(axis)}, value)
                          : Try("Squeeze", {x.value}, value);
      case 22:
        return Try(
            "Einsum", {x.value, y.value}, value,
            Attr("equation", OneOf<std::string>(
                                 {"ab,ab->a", "ab,ac->abc", "ab,cb->ac",
                                  "abc,abc->ab", "abc,adc->adb", "ab,b->a",
                                  "abc,ac->ab", "ab,ab->b", "abcd,ab->ad"})));
      case 23:
        return Try("OneHot",
                   {OneOf(ids_), step_.Int(kIds), Limit(2), Limit(-1)}, value,
                   Attr("axis", Below(3) - 1));
      case 24:
        // NaNs have no order.
        if (garbage_ != garbage_) return absl::UnavailableError("no order");
        return Try("TopKV2", {x.value, step_.Int(2)}, value);
      case 25: {
        Tensor paddings(DT_INT32, TensorShape({rank, 2}));
        for (int i = 0; i < 2 * rank; ++i) {
          paddings.flat<int32_t>()(i) = i < 2 && Chance(80) ? 0 : Below(2);
        }
        return Try("Pad", {x.value, step_.Const(paddings)}, value);
      }
      case 26:
        return Try(OneOf<std::string>({"MaxPool", "AvgPool"}), {x.value}, value,
                   [](NodeBuilder* node) {
                     node->Attr("ksize", std::vector<int>{1, 2, 2, 1})
                         .Attr("strides", std::vector<int>{1, 1, 2, 1})
                         .Attr("padding", "VALID");
                   });
      case 27:
        return Try(OneOf<std::string>({"Select", "SelectV2"}),
                   {step_.Op("IsFinite", {Any().value}), x.value, y.value},
                   value);
      default: {
        const Value size =
            step_.Op("Cast", {AnySize(y)}, Attr("DstT", DT_FLOAT));
        return Try("AddV2", {x.value, size}, value);
      }
    }
  }

  // Runs the step in a session, so without _Arg and _Retval nodes.
  absl::Status Run(const Feeds& feeds, const std::vector<std::string>& names,
                   std::vector<Tensor>* outputs) const {
    GraphDef all, called;
    step_.graph.ToGraphDef(&all);
    for (NodeDef& node : *all.mutable_node()) {
      if (node.op() == "_Retval") continue;
      if (node.op() == "_Arg") {
        node.set_op("Placeholder");
        (*node.mutable_attr())["dtype"] = node.attr().at("T");
        node.mutable_attr()->erase("T");
        node.mutable_attr()->erase("index");
      }
      *called.add_node() = node;
    }
    SessionOptions options;
    GraphOptions* how = options.config.mutable_graph_options();
    how->mutable_optimizer_options()->set_opt_level(OptimizerOptions::L0);
    how->mutable_rewrite_options()->set_disable_meta_optimizer(true);
    const std::unique_ptr<Session> session(NewSession(options));
    TF_RETURN_IF_ERROR(session->Create(called));
    return session->Run(feeds, names, {}, outputs);
  }

  std::mt19937 random_;
  const int64_t batch_;
  int64_t rows_;
  float garbage_;
  TestStep step_;
  std::vector<Shaped> values_;
  std::vector<Value> ids_;
  Feeds batch_feeds_;
  Feeds padded_feeds_;
  size_t taken_ = 0;
  int row_results_ = 0;
};

TEST(IndependentRowsRandomTest, RowsOfWhatIsAcceptedAreIndependent) {
  int kept = 0, row_results = 0;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomStep step(seed);
    kept += step.kept();
    ASSERT_NO_FATAL_FAILURE(step.Compare());
    row_results += step.row_results();
  }
  // Otherwise the test has compared too little.
  EXPECT_GT(row_results, kSeeds * kOps / 4);
  RecordProperty("ops", kept);
  RecordProperty("row_results", row_results);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
