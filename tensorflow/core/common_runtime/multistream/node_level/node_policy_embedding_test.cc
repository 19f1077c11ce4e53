// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_policy.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_policy_fixture.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace multistream {
namespace {

// Embeddings.

//   ids0 --> ResourceGather --> pool0 --> concat --> MatMul
//   ids1 --> ResourceGather --> pool1 ----'
TEST_F(NodePolicyTest, LookupsGoApartWithWhatPreparesAndPoolsThem) {
  options_.policy = Policy::kEmbedding;
  options_.groups = 2;
  Nodes lookups, pools;
  for (const char* i : {"0", "1"}) {
    Node* ids = Ids(absl::StrCat("ids", i));
    lookups.push_back(Lookup(absl::StrCat("lookup", i), ids));
    pools.push_back(Op(absl::StrCat("pool", i), {lookups.back()}));
  }
  Node* concat = Op("concat", {pools[0], pools[1]});
  Node* product = MatMul("product", concat, Read("weights"));
  Place();
  EXPECT_EQ((std::set<Group>{Of(lookups[0]), Of(lookups[1])}),
            (std::set<Group>{0, 1}));
  for (int i : {0, 1}) {
    EXPECT_EQ(Of(pools[i]), Of(lookups[i]));
    EXPECT_EQ(Of(absl::StrCat("ids", i)), Of(lookups[i]));
    EXPECT_EQ(Of(absl::StrCat("lookup", i, "_table")), Of(lookups[i]));
  }
  EXPECT_EQ(Of(concat), 0);
  EXPECT_EQ(Of(product), 0);
}

// The table is read in the group that looks up its rows.
TEST_F(NodePolicyTest, LookupsInValuesOfVariablesGoApartToo) {
  options_.policy = Policy::kEmbedding;
  options_.groups = 2;
  Node* bottom = Op("bottom");
  Node* table = Read("table");
  Node* lookup = Gather("lookup", Identity("identity", table), Ids("ids"));
  MatMul("product", lookup, bottom);
  Place();
  EXPECT_EQ(Of(bottom), 0);
  EXPECT_EQ(Of(lookup), 1);
  EXPECT_EQ(Of(table), 1);
  EXPECT_EQ(Of("product"), 0);
}

// A node with inputs from one lookup only goes with the lookup, unless the
// model's dense part starts there.
//
//   lookup --> next
//   bottom ----'
//         '--> other
class AfterALookupTest : public NodePolicyTest,
                         public ::testing::WithParamInterface<const char*> {
 protected:
  // The group of node `next`, an op of `type`.
  Group GroupOfNext(const std::string& type) {
    options_.policy = Policy::kEmbedding;
    options_.groups = 2;
    Node* bottom = Chain("bottom", Op("x"), 30);  // the caller's group is busy
    Op("other", {bottom});  // else bottom would join the lookup
    Node* lookup = Lookup("lookup", Ids("ids"));
    NodeBuilder next("next", type);
    if (type == "Einsum") {
      next.Input(Outputs{lookup, bottom}).Attr("equation", "ij,jk->ik");
    } else {
      next.Input(lookup).Input(bottom);
    }
    if (absl::StrContains(type, "Conv")) {
      next.Attr("padding", "SAME")
          .Attr("strides", std::vector<int>(type == "Conv3D" ? 5 : 4, 1));
    }
    Add(std::move(next));
    Place();
    EXPECT_EQ(Of(lookup), 1);
    return Of("next");
  }
};

class DenseTest : public AfterALookupTest {};
TEST_P(DenseTest, StaysInTheCallersGroup) {
  EXPECT_EQ(GroupOfNext(GetParam()), 0);
}
INSTANTIATE_TEST_SUITE_P(Types, DenseTest,
                         ::testing::Values("MatMul", "BatchMatMulV2", "Einsum",
                                           "Conv2D", "Conv3D",
                                           "DepthwiseConv2dNative"));

class NotDenseTest : public AfterALookupTest {};
TEST_P(NotDenseTest, GoesWithTheLookup) {
  EXPECT_EQ(GroupOfNext(GetParam()), 1);
}
INSTANTIATE_TEST_SUITE_P(Types, NotDenseTest,
                         ::testing::Values("AddV2", "Mul", "BiasAdd"));

class IsEmbeddingLookupTest : public NodePolicyTest {
 protected:
  Node* Cast(const std::string& name, Node* input) {
    return Add(NodeBuilder(name, "Cast").Input(input).Attr("DstT", DT_HALF));
  }
  Node* Variable(const std::string& name) {
    return Add(NodeBuilder(name, "VariableV2")
                   .Attr("dtype", DT_FLOAT)
                   .Attr("shape", TensorShape({})));
  }
  // Whether GatherV2 on `table` counts as a lookup.
  bool IsTable(Node* table) {
    return IsEmbeddingLookup(
        *Gather(table->name() + "_gather", table, Ids(table->name() + "_ids")));
  }
};

TEST_F(IsEmbeddingLookupTest, GathersOfResourcesAre) {
  EXPECT_TRUE(IsEmbeddingLookup(*Lookup("a", Ids("a_ids"))));
  EXPECT_TRUE(IsEmbeddingLookup(*Add(NodeBuilder("b", "ResourceGatherNd")
                                         .Input(Handle("b_table"))
                                         .Input(Ids("b_ids"))
                                         .Attr("dtype", DT_FLOAT))));
}

TEST_F(IsEmbeddingLookupTest, OtherGathersAreIfTheyTakeAVariablesValue) {
  EXPECT_TRUE(IsTable(Read("read")));
  EXPECT_TRUE(IsTable(Variable("variable")));
  EXPECT_TRUE(IsTable(Const("constant")));
  EXPECT_TRUE(IsTable(Identity("of_read", Read("read1"))));
  EXPECT_TRUE(IsTable(Identity("of_variable", Variable("variable1"))));
  EXPECT_TRUE(IsTable(Cast("cast", Identity("of_read2", Read("read2")))));

  EXPECT_FALSE(IsTable(Op("computed")));
  EXPECT_FALSE(IsTable(Identity("of_computed", Op("computed1"))));
  EXPECT_FALSE(IsTable(Op("of_read3", {Read("read3")})));
  EXPECT_FALSE(IsTable(Reshape("reshape", Read("read4"))));
}

TEST_F(IsEmbeddingLookupTest, TheTableIsTheFirstInput) {
  Node* table = Read("table");
  for (const char* type : {"Gather", "GatherNd"}) {
    Node* ids = Ids(absl::StrCat(type, "_ids"));
    EXPECT_TRUE(IsEmbeddingLookup(*Add(
        NodeBuilder(absl::StrCat(type, "_a"), type).Input(table).Input(ids))))
        << type;
    Node* fixed_ids = Const(absl::StrCat(type, "_const"), Tensor(1));
    EXPECT_FALSE(
        IsEmbeddingLookup(*Add(NodeBuilder(absl::StrCat(type, "_b"), type)
                                   .Input(Op(absl::StrCat(type, "_computed")))
                                   .Input(fixed_ids))))
        << type;
  }
}

TEST_F(IsEmbeddingLookupTest, SegmentsOfRowsAreAndTheirGradientsAreNot) {
  Node* table = Read("table");
  Node* ids = Ids("ids");
  Node* computed = Op("computed");
  auto is_lookup = [&](const std::string& name, const std::string& type,
                       Node* from, bool last) {
    NodeBuilder builder(name, type);
    builder.Input(from).Input(ids).Input(ids);
    if (last) builder.Input(ids);
    return IsEmbeddingLookup(*Add(std::move(builder)));
  };
  for (const char* type :
       {"SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"}) {
    const std::string name = type;
    EXPECT_TRUE(is_lookup(name, name, table, false));
    EXPECT_TRUE(
        is_lookup(name + "_more", name + "WithNumSegments", table, true));
    EXPECT_FALSE(is_lookup(name + "_of_computed", name, computed, false));
    EXPECT_FALSE(is_lookup(name + "_gradient", name + "Grad", table, true));
    EXPECT_FALSE(is_lookup(name + "_gradient2", name + "GradV2", table, true));
  }
}

TEST_F(IsEmbeddingLookupTest, NothingElseIs) {
  Node* table = Read("table");
  EXPECT_FALSE(IsEmbeddingLookup(*table));
  EXPECT_FALSE(IsEmbeddingLookup(*MatMul("product", table, table)));
  EXPECT_FALSE(IsEmbeddingLookup(*Add(NodeBuilder("sum", "UnsortedSegmentSum")
                                          .Input(table)
                                          .Input(Ids("ids"))
                                          .Input(Ids("count")))));
  EXPECT_FALSE(
      IsEmbeddingLookup(*Add(NodeBuilder("gradient", "ResourceScatterAdd")
                                 .Input(Handle("handle"))
                                 .Input(Ids("rows"))
                                 .Input(Op("by")))));
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
