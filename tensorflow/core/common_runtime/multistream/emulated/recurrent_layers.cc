// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/emulated/recurrent_layers.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/op_requires.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
namespace {

// The equations and the order of the parameters are those of cuDNN's
// documentation of cudnnRNNMode_t: the matrices of all gates for the input,
// then for the state, then the vectors that are added to the products of each.
template <typename T>
class RecurrentLayer : public OpKernel {
 public:
  explicit RecurrentLayer(OpKernelConstruction* context) : OpKernel(context) {
    std::string mode, direction, input_mode;
    float dropout = 0;
    OP_REQUIRES_OK(context, context->GetAttr("rnn_mode", &mode));
    OP_REQUIRES_OK(context, context->GetAttr("direction", &direction));
    OP_REQUIRES_OK(context, context->GetAttr("input_mode", &input_mode));
    OP_REQUIRES_OK(context, context->GetAttr("dropout", &dropout));
    OP_REQUIRES_OK(context, context->GetAttr("time_major", &time_major_));
    is_lstm_ = mode == "lstm";
    OP_REQUIRES(context,
                (is_lstm_ || mode == "gru") && direction == "unidirectional" &&
                    input_mode == "linear_input" && dropout == 0,
                absl::UnimplementedError(absl::StrCat(
                    "An emulated GPU has CudnnRNNV3 only for lstm and gru, "
                    "unidirectional, with linear_input and without dropout; "
                    "here with ",
                    mode, ", ", direction, ", ", input_mode, " and dropout ",
                    dropout)));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& input = context->input(0);
    const Tensor& first_state = context->input(1);
    const Tensor& lengths = context->input(4);
    OP_REQUIRES(context, input.dims() == 3 && first_state.dims() == 3,
                absl::InvalidArgumentError(
                    absl::StrCat("CudnnRNNV3 takes an input and a state of 3 "
                                 "dimensions, not ",
                                 input.dims(), " and ", first_state.dims())));
    const int batch_dim = time_major_ ? 1 : 0;
    const Sizes sizes = {input.dim_size(batch_dim),
                         input.dim_size(1 - batch_dim), input.dim_size(2),
                         first_state.dim_size(2)};
    const auto& [batch, time, width, units] = sizes;
    const int64_t gates = is_lstm_ ? 4 : 3;
    const bool fits =
        first_state.dim_size(batch_dim) == batch &&
        first_state.dim_size(1 - batch_dim) == 1 &&
        (!is_lstm_ || context->input(2).shape() == first_state.shape()) &&
        context->input(3).NumElements() ==
            gates * units * (width + units + 2) &&
        lengths.NumElements() == batch;
    OP_REQUIRES(context, fits,
                absl::InvalidArgumentError(absl::StrCat(
                    "CudnnRNNV3: the shapes of the state, the parameters and "
                    "the lengths do not fit those of one layer with the input ",
                    input.shape().DebugString(), ": state ",
                    first_state.shape().DebugString(), ", ",
                    context->input(3).NumElements(), " parameters, ",
                    lengths.NumElements(), " lengths")));
    for (int64_t b = 0; b < batch; ++b) {
      const int32_t length = lengths.flat<int32_t>()(b);
      OP_REQUIRES(context, length >= 0 && length <= time,
                  absl::InvalidArgumentError(absl::StrCat(
                      "CudnnRNNV3: the length ", length, " of sequence ", b,
                      " is not in 0..", time)));
    }
    OP_REQUIRES_OK(context, KeepScratch(context, sizes));
    TensorShape shape = input.shape();
    shape.set_dim(2, units);
    Tensor* outputs[5];
    const TensorShape none;
    for (const auto& [i, of_output] :
         std::map<int, TensorShape>{{0, shape},
                                    {1, first_state.shape()},
                                    {2, is_lstm_ ? first_state.shape() : none},
                                    {3, none},
                                    {4, none}}) {
      OP_REQUIRES_OK(context,
                     context->allocate_output(i, of_output, &outputs[i]));
    }
    outputs[3]->flat<T>()(0) = T(0);
    outputs[4]->flat<int8_t>()(0) = 0;
    if (!is_lstm_) outputs[2]->flat<T>()(0) = T(0);
    for (int64_t b = 0; b < batch; ++b) Run(context, sizes, b, outputs);
  }

 private:
  using Sizes = std::tuple<int64_t, int64_t, int64_t, int64_t>;
  using Values = std::vector<float>;

  // As cuDNN's kernel, this one keeps memory for each of its shapes, from the
  // first step of the shape on.
  absl::Status KeepScratch(OpKernelContext* context, const Sizes& sizes) {
    absl::MutexLock lock(&mu_);
    Tensor& kept = kept_[sizes];
    if (kept.NumElements() > 0) return absl::OkStatus();
    return context->allocate_temp(DT_UINT8, TensorShape({64}), &kept);
  }

  void Run(OpKernelContext* context, const Sizes& sizes, int64_t b,
           Tensor** outputs) {
    const auto& [batch, time, width, units] = sizes;
    const auto input = context->input(0).tensor<T, 3>();
    auto output = outputs[0]->tensor<T, 3>();
    const int32_t length = context->input(4).flat<int32_t>()(b);
    Values state = Row(context->input(1), b, units);
    Values cell = is_lstm_ ? Row(context->input(2), b, units) : Values();
    Values x(width);
    for (int64_t t = 0; t < time; ++t) {
      const int64_t first = time_major_ ? t : b, second = time_major_ ? b : t;
      if (t < length) {
        for (int64_t i = 0; i < width; ++i) {
          x[i] = static_cast<float>(input(first, second, i));
        }
        Step(context->input(3), x, &state, &cell);
      }
      for (int64_t u = 0; u < units; ++u) {
        output(first, second, u) = t < length ? T(state[u]) : T(0);
      }
    }
    for (int64_t u = 0; u < units; ++u) {
      outputs[1]->flat<T>()(b * units + u) = T(state[u]);
      if (is_lstm_) outputs[2]->flat<T>()(b * units + u) = T(cell[u]);
    }
  }

  static Values Row(const Tensor& states, int64_t b, int64_t units) {
    const T* row = states.flat<T>().data() + b * units;
    Values values(units);
    for (int64_t u = 0; u < units; ++u) values[u] = static_cast<float>(row[u]);
    return values;
  }

  void Step(const Tensor& parameters, const Values& x, Values* state,
            Values* cell) const {
    const int64_t units = state->size(), gates = is_lstm_ ? 4 : 3;
    const T* of_x = parameters.flat<T>().data();
    const T* of_state = of_x + gates * units * x.size();
    const T* added = of_state + gates * units * units;
    const Values before = *state;
    const auto product = [units](const T* matrices, int64_t gate, int64_t unit,
                                 const Values& of) {
      const T* row = matrices + (gate * units + unit) * of.size();
      float sum = 0;
      for (size_t i = 0; i < of.size(); ++i) {
        sum += static_cast<float>(row[i]) * of[i];
      }
      return sum;
    };
    for (int64_t u = 0; u < units; ++u) {
      float sums[2][4];  // of x, of the state
      for (int64_t gate = 0; gate < gates; ++gate) {
        const int64_t at = gate * units + u;
        sums[0][gate] =
            product(of_x, gate, u, x) + static_cast<float>(added[at]);
        sums[1][gate] = product(of_state, gate, u, before) +
                        static_cast<float>(added[gates * units + at]);
      }
      const auto opened = [&sums](int gate) {
        return 1 / (1 + std::exp(-(sums[0][gate] + sums[1][gate])));
      };
      if (is_lstm_) {
        (*cell)[u] = opened(1) * (*cell)[u] +
                     opened(0) * std::tanh(sums[0][2] + sums[1][2]);
        (*state)[u] = opened(3) * std::tanh((*cell)[u]);
      } else {
        const float made = std::tanh(sums[0][2] + opened(0) * sums[1][2]);
        (*state)[u] = (1 - opened(1)) * made + opened(1) * before[u];
      }
    }
  }

  bool is_lstm_ = false;
  bool time_major_ = false;
  absl::Mutex mu_;
  std::map<Sizes, Tensor> kept_ ABSL_GUARDED_BY(mu_);
};

template <typename T>
void Register() {
  new kernel_factory::OpKernelRegistrar(
      KernelDefBuilder("CudnnRNNV3")
          .Device(DEVICE_CPU)
          .TypeConstraint<T>("T")
          .Build(),
      "RecurrentLayer", [](OpKernelConstruction* context) -> OpKernel* {
        return new RecurrentLayer<T>(context);
      });
}

}  // namespace

void RegisterRecurrentLayers() {
  [[maybe_unused]] static const bool once = [] {
    Register<float>();
    Register<Eigen::half>();
    return true;
  }();
}

}  // namespace tensorflow::multistream
