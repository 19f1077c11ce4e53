// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Compares the proofs that a step may be padded with results on the CPU. The
// ops of random steps are drawn without regard to what is padded, and kept if
// the proof accepts them. Then the step is run as it is, and padded with
// garbage.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows_fixture.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/padded_lengths.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/public/session.h"

namespace tensorflow::multistream {
namespace {

constexpr int kSeeds = 150;

// Ops to draw, as text for a TestStep: <<a|b>> is one of a and b, random[2,3] a
// random constant; RandomStep::Replacements has the $words.
const std::vector<std::string>& Ops() {
  static const auto* ops = new std::vector<std::string>{
      "<<Neg|Abs|Relu|Square|Sign>>($x)", "<<AddV2|Mul>>($x, $y)",
      "<<Sub|Maximum>>($x, $y)", "MatMul($x, random[$last,<<1|2|3|4|5>>])",
      "MatMul($x, $y) transpose_a=<<true|false>> transpose_b=<<true|false>>",
      "BatchMatMulV2($x, $y) adj_x=<<true|false|false>> adj_y=<<true|false>>",
      "BatchMatMulV2($x, random[$last,4])", "<<Sum|Max|Min|ArgMax>>($x, $axis)",
      "Mul(Mean($x, $axis), scale[])", "Cumsum($x, $axis)",
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
// in any order.
class RandomStep : public TestStep {
 public:
  using Feeds = std::vector<std::pair<std::string, Tensor>>;

  // Numbers of results that are padded, and of masks.
  int padded_results() const { return padded_results_; }
  int masks() const { return masks_; }

  // Compares all results of the step with those of the padded step.
  void Compare() {
    const std::vector<std::string> names = ReturnAll();
    if (names.empty()) return;
    const auto found = Prove();
    ASSERT_TRUE(found.ok()) << found.status();
    masks_ = found->masks.size();
    const auto masked = WithMasks(graph, found->masks, "");
    ASSERT_TRUE(masked.ok()) << masked.status();
    Tensor mask(DT_BOOL, {padded_});
    for (int i = 0; i < padded_; ++i) mask.flat<bool>()(i) = i < size_;
    for (const Node* node : (*masked)->op_nodes()) {
      if (node->IsRecv()) padded_feeds_.push_back({node->name(), mask});
    }
    std::vector<Tensor> expected, padded;
    absl::Status status = Run(graph, feeds_, names, &expected);
    ASSERT_TRUE(status.ok()) << status;
    status = Run(**masked, padded_feeds_, names, &padded);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < names.size(); ++i) {
      const SizedResult& result = found->results[i];
      SCOPED_TRACE(names[i]);
      ASSERT_EQ(expected[i].shape(), result.shape);
      ASSERT_EQ(padded[i].shape(), result.padded);
      if (result.blocks == 0) ASSERT_EQ(result.shape, result.padded);
      padded_results_ += result.blocks > 0;
      const int64_t blocks = std::max<int64_t>(result.blocks, 1);
      const size_t bytes = expected[i].TotalBytes() / blocks;
      const size_t more = padded[i].TotalBytes() / blocks;
      for (int64_t k = 0; k < blocks; ++k) {
        ASSERT_EQ(
            std::memcmp(static_cast<char*>(expected[i].data()) + k * bytes,
                        static_cast<char*>(padded[i].data()) + k * more, bytes),
            0)
            << expected[i].DebugString(100) << padded[i].DebugString(100);
      }
    }
  }

 protected:
  static constexpr int kOps = 40;  // tried in each step
  static constexpr int kIds = 4;

  // The proof for the graph.
  virtual absl::StatusOr<PaddedLength> Prove() const = 0;

  explicit RandomStep(uint32_t seed) : random_(seed) {
    garbage_ = Chance(50) ? std::numeric_limits<float>::quiet_NaN() : 1000;
  }
  // Tries ops on what was kept before.
  void TryOps() {
    taken_ = values_.size();
    for (int i = 0; i < kOps; ++i) TryOp();
  }
  // Makes the values that were kept since TryOps the step's results.
  std::vector<std::string> ReturnAll() {
    std::vector<std::string> names;
    for (size_t i = taken_; i < values_.size(); ++i) {
      names.push_back(values_[i].name);
      Return((*this)[names.back()]);
    }
    return names;
  }
  // Feeds argument `i`, and the padded one: `more` in dimension `dim`, or as it
  // is if `dim` is negative.
  void Feed(int i, bool ids, int dim, int64_t more) {
    const std::string name = i == 0 ? "Arg" : absl::StrCat("Arg_", i);
    TensorShape shape = shapes.arguments[i];
    const Tensor value = Random(shape, ids);
    feeds_.push_back({name, value});
    if (dim < 0) {
      padded_feeds_.push_back({name, value});
      return;
    }
    int64_t inner = 1;
    for (int d = dim + 1; d < shape.dims(); ++d) inner *= shape.dim_size(d);
    const int64_t block = shape.dim_size(dim) * inner;
    shape.set_dim(dim, more);
    Tensor padded(value.dtype(), shape);
    for (int64_t k = 0; k < padded.NumElements(); ++k) {
      const int64_t within = k % (more * inner);
      const int64_t from = k / (more * inner) * block + within;
      // Padding ids must be valid: the CPU refuses an id outside of a table.
      if (ids) {
        padded.flat<int32_t>()(k) = value.flat<int32_t>()(
            within < block ? from : k % value.NumElements());
      } else {
        padded.flat<float>()(k) =
            within < block ? value.flat<float>()(from) : garbage_;
      }
    }
    padded_feeds_.push_back({name, padded});
  }

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

  struct Shaped {
    std::string name;
    TensorShape shape;  // for the step's batch
  };
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

  // Runs the step in a session, so without _Arg and _Retval nodes.
  static absl::Status Run(const Graph& graph, const Feeds& feeds,
                          const std::vector<std::string>& names,
                          std::vector<Tensor>* outputs) {
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
      if (node.op() == "_Recv") {  // a mask
        node.set_op("Placeholder");
        node.mutable_attr()->clear();
        (*node.mutable_attr())["dtype"].set_type(DT_BOOL);
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

  Feeds feeds_;
  Feeds padded_feeds_;
  std::vector<std::string> ops_ = Ops();
  // Rows or entries, of the step and padded.
  int64_t size_ = 0;
  int64_t padded_ = 0;

 private:
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
         absl::StrSplit(ops_[Below(ops_.size())], "<<")) {
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
            {"$rows", absl::StrCat(padded_)},
            {"$order", absl::StrJoin(order, ",")},
            {"$begin", absl::StrJoin(begin, ",")},
            {"$rest", absl::StrJoin(rest, ",")},
            {"$paddings", absl::StrJoin(paddings, ";")},
            // The size of a random dimension.
            {"$size", absl::StrCat("size(Shape(", x.name, "), {", dimension,
                                   "}, {", dimension + 1, "}, {1})")}};
  }

  // Draws an op, and keeps its output if the proof accepts it.
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
    Node* node = Return(*value).node;
    const auto found = Prove();
    graph.RemoveNode(node);
    if (!found.ok()) return;
    const SizedResult& result = found->results[0];
    if (result.shape.num_elements() > 3000 || result.shape.dims() > 5) return;
    const bool is_padded = result.blocks > 0 || !found->masks.empty();
    if (!is_padded && Chance(90)) return;
    // Some ops fail for every batch.
    std::vector<Tensor> outputs;
    if (!Run(graph, feeds_, {name}, &outputs).ok()) return;
    values_.push_back({name, result.shape});
  }

  std::mt19937 random_;
  float garbage_ = 0;
  std::vector<Shaped> values_;
  size_t taken_ = 0;
  int padded_results_ = 0;
  int masks_ = 0;
  int tries_ = 0;
};

class RandomRows : public RandomStep {
 public:
  explicit RandomRows(uint32_t seed) : RandomStep(seed) {
    size_ = 1 + Below(4);
    padded_ = size_ + 1 + Below(4);
    for (const TensorShape& shape :
         {TensorShape({size_, 4}), TensorShape({size_, 4}),
          TensorShape({size_, 3, 4}), TensorShape({size_, 4, 4, 2}),
          TensorShape({size_}), TensorShape({})}) {
      Keep("rows", shape);
    }
    Add(absl::StrCat("ids0 = rows[", size_, "]:int32;", "ids1 = rows[", size_,
                     ",3]:int32"));
    for (const TensorShape& shape :
         {TensorShape({4}), TensorShape({size_, 4}), TensorShape({padded_, 4}),
          TensorShape({1, 4})}) {
      Keep("random", shape);
    }
    for (size_t i = 0; i < shapes.arguments.size(); ++i) {
      Feed(i, /*ids=*/i > 5, shapes.arguments[i].dims() == 0 ? -1 : 0, padded_);
    }
    TryOps();
  }

 private:
  absl::StatusOr<PaddedLength> Prove() const override {
    TF_ASSIGN_OR_RETURN(std::vector<SizedResult> results,
                        IndependentRows(graph).Pad(shapes, padded_));
    return PaddedLength{std::move(results), /*masks=*/{}};
  }
};

class RandomEntries : public RandomStep {
 public:
  explicit RandomEntries(uint32_t seed) : RandomStep(seed) {
    const int64_t batch = 1 + Below(3);
    size_ = 1 + Below(4);
    padded_ = size_ + 1 + Below(4);
    for (const TensorShape& shape :
         {TensorShape({batch, size_}), TensorShape({batch, size_, 4}),
          TensorShape({batch, size_, 4}), TensorShape({batch, size_, 4, 2}),
          TensorShape({batch, 4}), TensorShape({})}) {
      Keep("rows", shape);
    }
    Add(absl::StrCat("ids0 = rows[", batch, ",", size_, "]:int32;",
                     "ids1 = rows[", batch, ",3]:int32"));
    for (const TensorShape& shape :
         {TensorShape({4}), TensorShape({batch, 4}), TensorShape({8, 4}),
          TensorShape({1, 4})}) {
      Keep("random", shape);
    }
    for (size_t i = 0; i < shapes.arguments.size(); ++i) {
      const bool entries = i < 4 || i == 6;
      have_.arguments.push_back(entries);
      Feed(i, /*ids=*/i > 5, entries ? 1 : -1, padded_);
    }
    for (const char* op :
         {"<<Sum|Max|Min|Prod|EuclideanNorm>>($x, <<1|2|-1|{1,2}>>) "
          "keep_dims=<<true|false>>",
          "<<Any|All>>(IsFinite($x), <<1|-1>>)",
          "Mul(Softmax(Transpose($x, {0,2,1})), scale[])",
          "<<Sum|Max>>(Transpose($x, {0,2,1}), -1)",
          "BatchMatMulV2($x, $y) adj_x=true",
          "Mul(Softmax(BatchMatMulV2($x, $x) adj_y=true), scale[])",
          "BatchMatMulV2(BatchMatMulV2($x, $y) adj_y=true, $y)",
          "Einsum($x, $y) equation='<<abc,abd->acd|ab,ab->a|abc,abc->ac|abc,"
          "adc->abd|ab,abc->ac>>'",
          "GatherV2(random[8,4], Range(0, $size, 1), 0)",
          "Slice(random[8,4], {0,0}, Pack($size, 4))",
          "StridedSlice($x, {0,<<0|-1|1>>}, {0,0}, {1,1}) begin_mask=1 "
          "end_mask=1 shrink_axis_mask=2",
          "MatrixBandPart($x, -1, 0)", "Mul(Mean($x, <<1|2|{1,2}>>), scale[])",
          "Cast(GreaterEqual(Reshape(Range(0, $size, 1), {-1,1}), "
          "AddV2(Sub(Range(0, $size, 1), $size), $size))) DstT=float",
          "Conv2D($x, random[<<1|2|3>>,3,2,2]) strides=[1,<<1|1|2>>,1,1] "
          "padding=<<SAME|SAME|VALID>>",
          "Reshape($x, Pack(-1, $last))", "Reshape($x, Pack($size, $size, -1))",
          "Transpose(Reshape($x, Pack($size, $size, 2, -1)), {0,2,1,3})"}) {
      ops_.insert(ops_.end(), 3, op);
    }
    TryOps();
  }

 private:
  absl::StatusOr<PaddedLength> Prove() const override {
    return PaddedLengths(graph).Pad(shapes, have_, padded_);
  }

  HaveEntries have_;
};

struct Compared {
  int padded_results = 0;
  int masks = 0;
};

template <class Step>
void CompareAll(Compared* compared) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Step step(seed);
    ASSERT_NO_FATAL_FAILURE(step.Compare());
    compared->padded_results += step.padded_results();
    compared->masks += step.masks();
  }
}

// Otherwise the tests have compared too little.
TEST(PaddedStepsRandomTest, RowsOfWhatIsAcceptedAreIndependent) {
  Compared compared;
  CompareAll<RandomRows>(&compared);
  EXPECT_GT(compared.padded_results, kSeeds * 10);
}

TEST(PaddedStepsRandomTest, AddedEntriesChangeNothingInWhatIsAccepted) {
  Compared compared;
  CompareAll<RandomEntries>(&compared);
  EXPECT_GT(compared.padded_results, kSeeds * 3);
  EXPECT_GT(compared.masks, kSeeds);
}

}  // namespace
}  // namespace tensorflow::multistream
