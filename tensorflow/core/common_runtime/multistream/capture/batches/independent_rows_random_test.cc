// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Compares the answers of IndependentRows for random steps with the steps'
// results on the CPU: for a batch, and for the same batch padded with garbage
// rows.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows_fixture.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow::multistream {
namespace {

constexpr int kSeeds = 150;
constexpr int kOps = 40;  // tried in each step
constexpr int kIds = 4;

// Ops to draw, as text for a TestStep: <<a|b>> is one of a and b, random[2,3] a
// random constant; RandomStep::Replacements has the $words.
const std::vector<std::string>& Ops() {
  static const auto* ops = new std::vector<std::string>{
      "<<Neg|Abs|Relu|Square|Sign>>($x)", "<<AddV2|Mul>>($x, $y)",
      "<<Sub|Maximum>>($x, $y)", "MatMul($x, random[$last,<<1|2|3|4|5>>])",
      "MatMul($x, $y) transpose_a=<<true|false>> transpose_b=<<true|false>>",
      "BatchMatMulV2($x, $y) adj_x=<<true|false|false>> adj_y=<<true|false>>",
      "BatchMatMulV2($x, random[$last,4])",
      "<<Sum|Mean|Max|Min|ArgMax>>($x, $axis)", "Cumsum($x, $axis)",
      "ReverseV2($x, {$axis})",
      // Scale the result, so that rounding is not near a half.
      "Mul(Softmax($x), scale[])",
      "Reshape($x, {<<-1|-1,4|2,-1|$rows,-1|-1,$half|-1,$half,2>>})",
      "Reshape($x, Pack($size, -1))", "Transpose($x, {$order})",
      "ConcatV2($x, $y, $axis)", "Pack($x, <<$x|$y>>) axis=$axis",
      "Slice($x, {$begin}, {$rest})",
      "StridedSlice($x, {<<0|1>>,<<0|1>>}, {<<0|1|2|3>>,<<0|1|2|3>>},"
      "    {<<-1|1|1|1|1>>,1}) begin_mask=<<1|3|5>> end_mask=<<1|3|5>>"
      "    shrink_axis_mask=<<1|0|2|0|2|0>> ellipsis_mask=<<1|0|0|0|0|0|0>>"
      "    new_axis_mask=<<1|2|0|0|0|0|0>>",
      "GatherV2(<<$x|random[4,4]>>, $ids, <<0|$axis>>)",
      "GatherV2($x, $ids, <<0|1>>) batch_dims=1",
      "<<Tile|BroadcastTo>>(random[1,<<1|2|3>>], Pack($size, <<1|2|3>>))",
      "Fill(Pack($size, $size), const[])",
      "<<ExpandDims($x, $axis)|Squeeze($x)>>",
      "Einsum($x, $y) equation='<<ab,ab->a|ab,ac->abc|ab,cb->ac|abc,abc->ab|"
      "abc,adc->adb|ab,b->a|abc,ac->ab|ab,ab->b|abcd,ab->ad>>'",
      "OneHot($ids, 4, const[], random[]) axis=<<-1|0|1>>",
      "t$n = TopKV2($x, 2); t$n:<<0|1>>", "Pad($x, {$paddings})",
      "<<MaxPool|AvgPool>>($x) ksize=[1,2,2,1] strides=[1,1,2,1] padding=VALID",
      "<<Select|SelectV2>>(IsFinite($z), $x, $y)",
      "AddV2($x, Cast($size) DstT=float)"};
  return *ops;
}

// A random step that computes with small whole numbers, so that sums are exact
// in any order. Ops are drawn without regard to rows, and kept if
// IndependentRows accepts them.
class RandomStep : public TestStep {
 public:
  explicit RandomStep(uint32_t seed) : random_(seed), batch_(1 + Below(4)) {
    rows_ = batch_ + 1 + Below(4);
    garbage_ = Chance(50) ? std::numeric_limits<float>::quiet_NaN() : 1000;
    for (const TensorShape& shape :
         {TensorShape({batch_, 4}), TensorShape({batch_, 4}),
          TensorShape({batch_, 3, 4}), TensorShape({batch_, 4, 4, 2}),
          TensorShape({batch_}), TensorShape({})}) {
      Keep("rows", shape);
    }
    Add(absl::StrCat("ids0 = rows[", batch_, "]:int32;", "ids1 = rows[", batch_,
                     ",3]:int32"));
    for (const TensorShape& shape :
         {TensorShape({4}), TensorShape({batch_, 4}), TensorShape({rows_, 4}),
          TensorShape({1, 4})}) {
      Keep("random", shape);
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
      names.push_back(values_[i].name);
      Return((*this)[names.back()]);
    }
    const auto results = IndependentRows(graph).Pad(shapes, rows_);
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

 protected:
  Value Leaf(const std::string& kind, const TensorShape& shape,
             DataType type) override {
    static const auto* numbers = new std::map<std::string, float>{
        {"zero", 0}, {"low", -6}, {"high", 6}, {"scale", 7.3f}};
    if (const auto found = numbers->find(kind); found != numbers->end()) {
      return Const(Tensor(found->second));
    }
    if (kind == "random") return Const(Random(shape, /*ids=*/false));
    return TestStep::Leaf(kind, shape, type);
  }

 private:
  struct Shaped {
    std::string name;
    TensorShape shape;  // for the step's batch
  };
  using Feeds = std::vector<std::pair<std::string, Tensor>>;

  int Below(int n) { return static_cast<int>(random_() % n); }
  bool Chance(int percent) { return Below(100) < percent; }

  // Adds an input or a constant.
  void Keep(const std::string& kind, const TensorShape& shape) {
    const std::string name = absl::StrCat("v", values_.size());
    Add(absl::StrCat(name, " = ", kind, "[",
                     absl::StrJoin(shape.dim_sizes(), ","), "]"));
    values_.push_back({name, shape});
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

  void MakeFeeds() {
    for (size_t i = 0; i < shapes.arguments.size(); ++i) {
      const std::string name = i == 0 ? "Arg" : absl::StrCat("Arg_", i);
      const bool ids = i == 6 || i == 7;
      TensorShape shape = shapes.arguments[i];
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
  int AnyAxis(int rank) {
    return rank == 0                ? 0
           : Chance(80) && rank > 1 ? 1 + Below(rank - 1)
                                    : Below(2 * rank) - rank;
  }

  // The text of a random op.
  std::string Draw() {
    std::string text;
    for (const absl::string_view part :
         absl::StrSplit(Ops()[Below(Ops().size())], "<<")) {
      const std::vector<absl::string_view> choice_and_rest =
          absl::StrSplit(part, ">>");
      if (choice_and_rest.size() > 1) {
        const std::vector<absl::string_view> choices =
            absl::StrSplit(choice_and_rest[0], '|');
        absl::StrAppend(&text, choices[Below(choices.size())]);
      }
      absl::StrAppend(&text, choice_and_rest.back());
    }
    return absl::StrReplaceAll(text, Replacements());
  }
  std::map<std::string, std::string> Replacements() {
    const Shaped x = Any();
    const int rank = x.shape.dims();
    const int axis = AnyAxis(rank);
    const int64_t last = rank == 0 ? 1 : x.shape.dim_size(rank - 1);
    std::vector<int> order, begin, rest;
    std::vector<std::string> paddings;
    for (int i = 0; i < rank; ++i) {
      order.push_back(i);
      begin.push_back(i > 0 && i == axis ? Below(2) : 0);
      rest.push_back(i == 0 && Chance(80) ? -1
                                          : x.shape.dim_size(i) - begin[i]);
      const bool none = i == 0 && Chance(80);
      paddings.push_back(
          absl::StrCat(none ? 0 : Below(2), ",", none ? 0 : Below(2)));
    }
    std::shuffle(order.begin() + (Chance(80) && rank > 0), order.end(),
                 random_);
    const int dimension = Chance(60) ? 0 : Below(std::max(rank, 1));
    return {{"$x", x.name},
            {"$y", Any().name},
            {"$z", Any().name},
            {"$n", absl::StrCat(tries_)},
            {"$ids", Chance(50) ? "ids0" : "ids1"},
            {"$axis", absl::StrCat(axis)},
            {"$last", absl::StrCat(last)},
            {"$half", absl::StrCat(std::max<int64_t>(last / 2, 1))},
            {"$rows", absl::StrCat(rows_)},
            {"$order", absl::StrJoin(order, ",")},
            {"$begin", absl::StrJoin(begin, ",")},
            {"$rest", absl::StrJoin(rest, ",")},
            {"$paddings", absl::StrJoin(paddings, ";")},
            // The size of a random dimension.
            {"$size", absl::StrCat("size(Shape(", x.name, "), {", dimension,
                                   "}, {", dimension + 1, "}, {1})")}};
  }

  // Draws an op, and keeps its output if IndependentRows accepts it.
  void TryOp() {
    ++tries_;
    std::vector<std::string> statements = absl::StrSplit(Draw(), "; ");
    // NaNs have no order.
    if (statements.size() > 1 && garbage_ != garbage_) return;
    // Adding 0 turns -0 into +0: sums may give either.
    const std::string name = absl::StrCat("op", tries_);
    statements.back() = absl::StrCat(
        name, " = AddV2(Round(ClipByValue(Cast(", statements.back(),
        ") DstT=float, low[], high[])), ", "zero[])");
    const auto value = TryAdd(absl::StrJoin(statements, ";"));
    if (!value.ok()) return;
    Node* result = Return(*value).node;
    const auto results = IndependentRows(graph).Pad(shapes, rows_);
    graph.RemoveNode(result);
    if (!results.ok()) return;
    const TensorShape& shape = (*results)[0].shape;
    if (shape.num_elements() > 3000 || shape.dims() > 5) return;
    if (!(*results)[0].is_rows && Chance(90)) return;
    // Some ops fail for every batch.
    std::vector<Tensor> outputs;
    if (!Run(batch_feeds_, {name}, &outputs).ok()) return;
    values_.push_back({name, shape});
  }

  // Runs the step in a session, so without _Arg and _Retval nodes.
  absl::Status Run(const Feeds& feeds, const std::vector<std::string>& names,
                   std::vector<Tensor>* outputs) const {
    GraphDef all, called;
    graph.ToGraphDef(&all);
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
  std::vector<Shaped> values_;
  Feeds batch_feeds_;
  Feeds padded_feeds_;
  size_t taken_ = 0;
  int tries_ = 0;
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
}  // namespace tensorflow::multistream
