// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/values_on_device.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/memory_types.h"
#include "tensorflow/core/common_runtime/multistream/base/host_kernels.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capturable.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_fixture.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/integer_ops.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
namespace {

// A part of a step with the copies between host and GPU that TensorFlow adds.
class Part : public PartGraph {
 public:
  explicit Part(const std::string& text) : PartGraph(kGpu, kHost) {
    Define("ids", "_Arg T=int32 index=0");
    Define("rows", "_Arg T=float index=1");
    Define("from_host",
           absl::StrCat("_HostRecv _multi_stream_early=true tensor_type=int32 "
                        "tensor_name=$name send_device_incarnation=7 "
                        "send_device=",
                        kHost, " recv_device=", kGpu));
    Add(text);
    TF_CHECK_OK(EnsureMemoryTypes(DEVICE_GPU, kGpu, &graph));
  }
};

// The value as an expression: op<type>(inputs), with the type of the output.
std::string Text(const Node& node) {
  std::vector<std::string> inputs;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Node* input;
    TF_CHECK_OK(node.input_node(i, &input));
    inputs.push_back(Text(*input));
  }
  std::string op = node.type_string();
  if (op == kCopyOfDecided) op = "copy";
  if (op == kKeptDecided) op = "kept";
  if (node.attrs().Find(kRunsOnHostAttr) != nullptr) op = "host " + op;
  if (node.num_outputs() > 0 && node.output_type(0) != DT_FLOAT) {
    absl::StrAppend(&op, "<", DataTypeString(node.output_type(0)), ">");
  }
  return inputs.empty()
             ? op
             : absl::StrCat(op, "(", absl::StrJoin(inputs, ", "), ")");
}

// The recorded graph's first result, or why there is none.
std::string Recorded(const std::string& text) {
  const Part part(text);
  const ValuesOnDevice values = PutValuesOnDevice(part.graph);
  if (!values.obstacle.empty()) return values.obstacle;
  if (values.graph == nullptr) return "as it is";
  const Capturable found = ClassifyForCapture(*values.graph, nullptr);
  if (!found.obstacle.empty()) return found.obstacle;
  for (const Node* node : values.graph->op_nodes()) {
    if (node->IsRetval() || node->IsSend()) return Text(*node);
  }
  return "no result";
}

TEST(ValuesOnDeviceTest, IntegersAreComputedOnTheDevice) {
  struct Case {
    std::string text;
    std::string recorded;
  };
  for (
      const auto& [text, recorded] : std::vector<Case>{
          {"result(Tanh(rows()))", "as it is"},
          // What the GPU reads as int32 needs no detour.
          {"result(GatherV2(rows(), ids(), 0))",
           "_Retval(GatherV2(_Arg, _Arg<int32>, Const<int32>))"},
          {"result(Cast(from_host()) DstT=float)",
           "_Retval(Cast(_Recv<int32>))"},
          {"result(GatherV2(rows(), Reshape(ids(), {-1}), 0))",
           "_Retval(GatherV2(_Arg, Bitcast<int32>(Reshape(Bitcast("
           "_Arg<int32>), Const<int32>)), Const<int32>))"},
          {"x = AddV2(ids(), 7); result(Cast(Equal(x, 5)) DstT=float)",
           "_Retval(Cast(Equal<bool>(Bitcast<uint32>(Bitcast<int32>(AddV2"
           "<uint32>(Bitcast<uint32>(_Arg<int32>), Const<uint32>))), "
           "Const<uint32>)))"},
          // A sum may exceed 32 bits; a comparison may not.
          {"x = Sum(ids(), 0); result(Cast(Less(x, 5)) DstT=float)",
           "_Retval(Cast(Less<bool>(Cast<int64>(Cast<int32>(Sum<int64>("
           "Cast<int64>(_Arg<int32>), Const<int32>))), Const<int64>)))"},
          // What is int64 already remains so.
          {"x = Minimum(ids(), 7); y = Equal(Reshape(x, {-1}), 5);"
           "result(Cast(y) DstT=float)",
           "_Retval(Cast(Equal<bool>(Reshape<int64>(Minimum<int64>(Cast<int64>"
           "(_Arg<int32>), Const<int64>), Const<int32>), Const<int64>)))"},
          // No kernel reverses int64.
          {"x = ReverseV2(Minimum(ids(), 7), {0});"
           "result(GatherV2(rows(), x, 0))",
           "_Retval(GatherV2(_Arg, Bitcast<int32>(ReverseV2(Bitcast(Cast<int32>"
           "(Minimum<int64>(Cast<int64>(_Arg<int32>), Const<int64>))), "
           "Const<int32>)), Const<int32>))"},
          {"result(Cast(FloorMod(ids(), 10)) DstT=float)",
           "_Retval(Cast(Cast<int32>(FloorMod<int64>(Cast<int64>("
           "_Arg<int32>), Const<int64>))))"},
          // An int32 result is computed on the GPU, too.
          {"result(Neg(ids()))",
           "_Retval(Cast<int32>(Neg<int64>(Cast<int64>(_Arg<int32>))))"},
          {"send(Neg(ids()))",
           "_Send(Cast<int32>(Neg<int64>(Cast<int64>(_Arg<int32>))))"},
          // Values that shapes decide stay on the host, and are copied.
          {"result(Reshape(rows(), Shape(ids())))",
           "_Retval(Reshape(_Arg, Shape<int32>(Bitcast(_Arg<int32>))))"},
          {"result(GatherV2(rows(), Range(0, Size(rows()), 1), 0))",
           "_Retval(GatherV2(_Arg, copy<int32>(Range<int32>(Const<int32>, "
           "Size<int32>(_Arg), Const<int32>)), Const<int32>))"},
          {"n = Size(rows()); result(Cast(Mul(ids(), n)) DstT=float)",
           "_Retval(Cast(Bitcast<int32>(Mul<uint32>(Bitcast<uint32>(_Arg<int32>"
           "), Bitcast<uint32>(copy<int32>(Size<int32>(_Arg)))))))"},
          // A constant of the GPU that an op reads on the host.
          {"zero = Const() dtype=float "
           "value='{dtype: DT_FLOAT tensor_shape {} float_val: 0}';"
           "result(MatrixDiagV3(rows(), 0, -1, -1, zero))",
           "_Retval(MatrixDiagV3(_Arg, Const<int32>, Const<int32>, "
           "Const<int32>, HostConst))"},
          // Integers that enter a loop.
          {"result(Cast(Exit(Enter(ids()) frame_name=l)) DstT=float)",
           "_Retval(Cast(Cast<int32>(Exit<int64>(Enter<int64>(Cast<int64>("
           "_Arg<int32>))))))"},
          // What is computed of decided values is computed on the host.
          {"n = Prod(GatherV2(Shape(rows()), {0}, 0), {0});"
           "result(Reshape(rows(), Pack(n, 1) N=2))",
           "_Retval(Reshape(_Arg, Pack<int32>(host Prod<int32>(host GatherV2"
           "<int32>(Shape<int32>(_Arg), Const<int32>, Const<int32>), "
           "Const<int32>), Const<int32>)))"},
          {"n = Cast(Size(rows())) DstT=int64;"
           "result(Cast(n) DstT=float)",
           "_Retval(Cast(copy<int64>(host Cast<int64>(Size<int32>(_Arg)))))"},
          {"n = Size(rows());"
           "c = LogicalAnd(LogicalNot(Less(n, 5)), Less(n, 9));"
           "result(Switch(rows(), c))",
           "_Retval(Switch(_Arg, host LogicalAnd<bool>("
           "host LogicalNot<bool>(Less<bool>(Size<int32>(_Arg), "
           "Const<int32>)), Less<bool>(Size<int32>(_Arg), Const<int32>))))"},
          {"n = Size(rows());"
           "result(Cast(LogicalOr(Less(n, 5), Less(n, 9))) DstT=float)",
           "_Retval(Cast(copy<bool>(host LogicalOr<bool>(Less<bool>("
           "Size<int32>(_Arg), Const<int32>), Less<bool>(Size<int32>(_Arg), "
           "Const<int32>)))))"},
          {"c = LogicalAnd(Less(ids(), 5), Less(ids(), 9));"
           "result(Cast(c) DstT=float)",
           "_Retval(Cast(LogicalAnd<bool>(Less<bool>(Cast<int64>(_Arg<int32>),"
           " Const<int64>), Less<bool>(Cast<int64>(_Arg<int32>), "
           "Const<int64>))))"},
          // cuDNN's kernel copies its lengths to the GPU itself.
          {"n = Fill(Pack(Size(rows())) N=1, 7);"
           "result(CudnnRNNV3(rows(), rows(), rows(), rows(), n))",
           "_Retval(CudnnRNNV3(_Arg, _Arg, _Arg, _Arg, kept<int32>(Fill<int32>"
           "(Pack<int32>(Size<int32>(_Arg)), Const<int32>))))"},
          // From the GPU to the host and back.
          {"x = GatherV2(ids(), ids(), 0);"
           "result(GatherV2(rows(), ExpandDims(x, 0), 0))",
           "_Retval(GatherV2(_Arg, Bitcast<int32>(ExpandDims(Bitcast("
           "GatherV2<int32>(_Arg<int32>, _Arg<int32>, Const<int32>)), "
           "Const<int32>)), Const<int32>))"}}) {
    EXPECT_EQ(Recorded(text), recorded) << text;
  }
}

TEST(ValuesOnDeviceTest, WhatNeedsAValueOnTheHostIsNamed) {
  struct Case {
    std::string text;
    std::string obstacle;
  };
  for (const auto& [text, obstacle] : std::vector<Case>{
           {"t = Tile(rows(), ids()); result(t)", "Tile 't' reads a value on"},
           {"s = Slice(ids(), from_host(), {1}); result(s)", "Slice 's"},
           {"r = Range(0, ids(), 1); result(Cast(r) DstT=float)", "Range 'r'"},
           // On the host these divisions fail.
           {"d = FloorDiv(10, ids()); result(Cast(d) DstT=float)",
            "FloorDiv 'd' divides"},
           {"d = FloorMod(ids(), 0); result(Cast(d) DstT=float)",
            "FloorMod 'd' divides"},
           {"l = CudnnRNNV3(rows(), rows(), rows(), rows(), ids()); result(l)",
            "CudnnRNNV3 'l' reads a value on"},
           {"l = CudnnRNNV3(rows(), rows(), rows(), rows(), {4}) dropout=0.5;"
            "result(l)",
            "CudnnRNNV3 'l' has dropout"},
           {"l = CudnnRNNV3(rows(), rows(), rows(), rows(), {4});"
            "result(Cast(l:4) DstT=float)",
            "Cast 'Cast' takes what 'l' computes on the host"},
           // The largest of no numbers is another one in 64 bits.
           {"m = Max(ids(), 0); result(Cast(m) DstT=float)", "Max 'm'"}}) {
    const std::string found = Recorded(text);
    EXPECT_TRUE(absl::StrContains(found, obstacle)) << text << ": " << found;
  }
}

// A value that changes in each iteration stays on the host, if it is decided.
TEST(ValuesOnDeviceTest, LoopsThatShapesDecideStayAsTheyAre) {
  for (const bool decided : {true, false}) {
    Part part(absl::StrCat(
        "start = ", decided ? "Size(ids())" : "ids()",
        "; i = Merge(enter(start), enter(start)); c = LoopCond(Less(i, 9));"
        "s = Switch(i, c); next = NextIteration(AddV2(s:1, 1));"
        "result(Cast(Exit(s)) DstT=float)"));
    part.Close("next", "i");
    const ValuesOnDevice values = PutValuesOnDevice(part.graph);
    EXPECT_EQ(values.obstacle.empty(), decided) << values.obstacle;
  }
}

TEST(ValuesOnDeviceTest, AConditionIsSentInPlaceOfItsAssert) {
  for (const bool changes : {false, true}) {
    Part part(absl::StrCat(
        "a = Assert(Less(Size(rows()), 9), ids());",
        changes ? "v = handle(); add = AssignAddVariableOp(v, rows(), ^a);"
                : "",
        "y = Identity(rows(), ^a); result(y)"));
    for (Node* node : part.graph.op_nodes()) node->set_requested_device(kGpu);
    const ValuesOnDevice values = PutValuesOnDevice(part.graph);
    ASSERT_NE(values.graph, nullptr) << values.obstacle;
    const Capturable found = ClassifyForCapture(*values.graph, nullptr);
    EXPECT_EQ(found.obstacle,
              changes ? "it changes variables, and an Assert may fail" : "");
    ASSERT_EQ(found.checks.size(), 1);
    EXPECT_TRUE(absl::StrContains(found.checks[0], ";a;0:0"));
    EXPECT_TRUE(found.sends.empty());
  }
}

TEST(ValuesOnDeviceTest, InputsAndResultsSayWhereTheyAre) {
  const Part part("result(Neg(ids())); send(Tanh(rows()))");
  const ValuesOnDevice values = PutValuesOnDevice(part.graph);
  ASSERT_NE(values.graph, nullptr) << values.obstacle;
  const Capturable found = ClassifyForCapture(*values.graph, nullptr);
  ASSERT_EQ(found.obstacle, "");
  ASSERT_EQ(found.arguments.size(), 2);
  for (const Capturable::Argument& it : found.arguments) {
    EXPECT_EQ(it.on_host, it.index == 0);
  }
  ASSERT_EQ(found.results.size(), 1);
  EXPECT_TRUE(found.results[0].on_host);
  EXPECT_TRUE(found.results[0].on_device);
}

}  // namespace
}  // namespace tensorflow::multistream
