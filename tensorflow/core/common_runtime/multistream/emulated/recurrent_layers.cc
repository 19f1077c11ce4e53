// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_gpu.h"
#include "tensorflow/core/framework/kernel_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/op_requires.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
namespace {

using Values = std::vector<float>;

struct Sizes {
  int64_t batch, time, width, units;
  friend bool operator<(const Sizes& a, const Sizes& b) {
    return std::tie(a.batch, a.time, a.width, a.units) <
           std::tie(b.batch, b.time, b.width, b.units);
  }
};

// One step of one sequence, with what its gradient needs.
struct Step {
  Values x, state, cell;  // before the step
  // By gate and unit: of x, of the state, and what opens or fills.
  Values of_x, of_state, gates;
  Values next_state, next_cell;
};

// What CudnnRNNV3 and its gradient share. The equations and the order of the
// parameters are those of cuDNN's documentation of cudnnRNNMode_t: the matrices
// of all gates for the input, then for the state, then the vectors that are
// added to the products of each.
template <typename T>
class RecurrentKernel : public OpKernel {
 public:
  explicit RecurrentKernel(OpKernelConstruction* context) : OpKernel(context) {
    std::string mode, direction, input_mode;
    float dropout = 0;
    OP_REQUIRES_OK(context, context->GetAttr("rnn_mode", &mode));
    OP_REQUIRES_OK(context, context->GetAttr("direction", &direction));
    OP_REQUIRES_OK(context, context->GetAttr("input_mode", &input_mode));
    OP_REQUIRES_OK(context, context->GetAttr("dropout", &dropout));
    OP_REQUIRES_OK(context, context->GetAttr("time_major", &time_major_));
    is_lstm_ = mode == "lstm";
    OP_REQUIRES(
        context,
        (is_lstm_ || mode == "gru") && direction == "unidirectional" &&
            input_mode == "linear_input" && dropout == 0,
        absl::UnimplementedError(absl::StrCat(
            "An emulated GPU has ", context->def().op(),
            " only for lstm and gru, unidirectional, with linear_input and "
            "without dropout; here with ",
            mode, ", ", direction, ", ", input_mode, " and dropout ",
            dropout)));
  }

 protected:
  bool is_lstm() const { return is_lstm_; }
  int64_t gates() const { return is_lstm_ ? 4 : 3; }

  // InvalidArgument if the inputs that both ops have do not fit each other.
  absl::StatusOr<Sizes> CheckedSizes(OpKernelContext* context) const {
    const std::string& op = this->type_string();
    const Tensor& input = context->input(0);
    const Tensor& first_state = context->input(1);
    const Tensor& lengths = context->input(4);
    if (input.dims() != 3 || first_state.dims() != 3) {
      return absl::InvalidArgumentError(
          absl::StrCat(op, " takes an input and a state of 3 dimensions, not ",
                       input.dims(), " and ", first_state.dims()));
    }
    const int batch_dim = time_major_ ? 1 : 0;
    const Sizes sizes = {input.dim_size(batch_dim),
                         input.dim_size(1 - batch_dim), input.dim_size(2),
                         first_state.dim_size(2)};
    const bool fits =
        first_state.dim_size(batch_dim) == sizes.batch &&
        first_state.dim_size(1 - batch_dim) == 1 &&
        (!is_lstm_ || context->input(2).shape() == first_state.shape()) &&
        context->input(3).NumElements() ==
            gates() * sizes.units * (sizes.width + sizes.units + 2) &&
        lengths.NumElements() == sizes.batch;
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat(
          op,
          ": the shapes of the state, the parameters and the lengths do not "
          "fit those of one layer with the input ",
          input.shape().DebugString(), ": state ",
          first_state.shape().DebugString(), ", ",
          context->input(3).NumElements(), " parameters, ",
          lengths.NumElements(), " lengths"));
    }
    for (int64_t b = 0; b < sizes.batch; ++b) {
      const int32_t length = lengths.flat<int32_t>()(b);
      if (length < 0 || length > sizes.time) {
        return absl::InvalidArgumentError(
            absl::StrCat(op, ": the length ", length, " of sequence ", b,
                         " is not in 0..", sizes.time));
      }
    }
    return sizes;
  }

  // As cuDNN's kernel, this one keeps memory for each of its shapes, from the
  // first step of the shape on.
  absl::Status KeepScratch(OpKernelContext* context, const Sizes& sizes) {
    absl::MutexLock lock(&mu_);
    Tensor& kept = kept_[sizes];
    if (kept.NumElements() > 0) return absl::OkStatus();
    return context->allocate_temp(DT_UINT8, TensorShape({64}), &kept);
  }

  // Where the vector of `width` values of a sequence at a time is in a tensor.
  int64_t Offset(const Sizes& sizes, int64_t b, int64_t t,
                 int64_t width) const {
    return (time_major_ ? t * sizes.batch + b : b * sizes.time + t) * width;
  }

  static Values Row(const Tensor& tensor, int64_t offset, int64_t width) {
    const T* row = tensor.flat<T>().data() + offset;
    Values values(width);
    for (int64_t i = 0; i < width; ++i) values[i] = static_cast<float>(row[i]);
    return values;
  }

  static void SetRow(const Values& values, int64_t offset, Tensor* tensor) {
    T* row = tensor->flat<T>().data() + offset;
    for (size_t i = 0; i < values.size(); ++i) row[i] = T(values[i]);
  }

  // All steps of a sequence.
  std::vector<Step> Steps(OpKernelContext* context, const Sizes& sizes,
                          int64_t b) const {
    const int64_t units = sizes.units;
    Values state = Row(context->input(1), b * units, units);
    Values cell =
        is_lstm_ ? Row(context->input(2), b * units, units) : Values();
    std::vector<Step> steps(context->input(4).flat<int32_t>()(b));
    for (size_t t = 0; t < steps.size(); ++t) {
      Step& step = steps[t];
      step.x = Row(context->input(0),
                   Offset(sizes, b, static_cast<int64_t>(t), sizes.width),
                   sizes.width);
      step.state = std::move(state);
      step.cell = std::move(cell);
      Take(context->input(3), &step);
      state = step.next_state;
      cell = step.next_cell;
    }
    return steps;
  }

 private:
  // A row of `matrices` times `of`; `at` is the gate and unit.
  static float Product(const T* matrices, int64_t at, const Values& of) {
    const T* row = matrices + at * of.size();
    float sum = 0;
    for (size_t i = 0; i < of.size(); ++i) {
      sum += static_cast<float>(row[i]) * of[i];
    }
    return sum;
  }

  void Take(const Tensor& parameters, Step* step) const {
    const int64_t units = step->state.size(), all = gates() * units;
    const T* of_x = parameters.flat<T>().data();
    const T* of_state = of_x + all * step->x.size();
    const T* added = of_state + all * units;
    step->of_x.resize(all);
    step->of_state.resize(all);
    step->gates.resize(all);
    for (int64_t at = 0; at < all; ++at) {
      step->of_x[at] =
          Product(of_x, at, step->x) + static_cast<float>(added[at]);
      step->of_state[at] = Product(of_state, at, step->state) +
                           static_cast<float>(added[all + at]);
    }
    const auto open = [&](int64_t at) {
      step->gates[at] =
          1 / (1 + std::exp(-(step->of_x[at] + step->of_state[at])));
      return step->gates[at];
    };
    step->next_state.resize(units);
    if (is_lstm_) step->next_cell.resize(units);
    for (int64_t u = 0; u < units; ++u) {
      float& made = step->gates[2 * units + u];
      const float first = open(u), second = open(units + u);
      if (is_lstm_) {
        made = std::tanh(step->of_x[2 * units + u] +
                         step->of_state[2 * units + u]);
        step->next_cell[u] = second * step->cell[u] + first * made;
        step->next_state[u] =
            open(3 * units + u) * std::tanh(step->next_cell[u]);
      } else {
        made = std::tanh(step->of_x[2 * units + u] +
                         first * step->of_state[2 * units + u]);
        step->next_state[u] = (1 - second) * made + second * step->state[u];
      }
    }
  }

  bool is_lstm_ = false;
  bool time_major_ = false;
  absl::Mutex mu_;
  std::map<Sizes, Tensor> kept_ ABSL_GUARDED_BY(mu_);
};

template <typename T>
class RecurrentLayer : public RecurrentKernel<T> {
 public:
  using RecurrentKernel<T>::RecurrentKernel;

  void Compute(OpKernelContext* context) override {
    const absl::StatusOr<Sizes> sizes = this->CheckedSizes(context);
    OP_REQUIRES_OK(context, sizes.status());
    OP_REQUIRES_OK(context, this->KeepScratch(context, *sizes));
    TensorShape shape = context->input(0).shape();
    shape.set_dim(2, sizes->units);
    const TensorShape state = context->input(1).shape(), none;
    const TensorShape shapes[] = {shape, state, this->is_lstm() ? state : none,
                                  none, none};
    Tensor* outputs[5];
    for (int i = 0; i < 5; ++i) {
      OP_REQUIRES_OK(context,
                     context->allocate_output(i, shapes[i], &outputs[i]));
    }
    outputs[3]->flat<T>()(0) = T(0);
    outputs[4]->flat<int8_t>()(0) = 0;
    if (!this->is_lstm()) outputs[2]->flat<T>()(0) = T(0);
    for (int64_t b = 0; b < sizes->batch; ++b) Run(context, *sizes, b, outputs);
  }

 private:
  void Run(OpKernelContext* context, const Sizes& sizes, int64_t b,
           Tensor** outputs) {
    const int64_t units = sizes.units;
    const std::vector<Step> steps = this->Steps(context, sizes, b);
    const int64_t length = steps.size();
    for (int64_t t = 0; t < sizes.time; ++t) {
      this->SetRow(t < length ? steps[t].next_state : Values(units),
                   this->Offset(sizes, b, t, units), outputs[0]);
    }
    for (int i = 1; i < (this->is_lstm() ? 3 : 2); ++i) {
      if (length == 0) {
        this->SetRow(this->Row(context->input(i), b * units, units), b * units,
                     outputs[i]);
      } else {
        this->SetRow(i == 1 ? steps.back().next_state : steps.back().next_cell,
                     b * units, outputs[i]);
      }
    }
  }
};

template <typename T>
class RecurrentLayerGrad : public RecurrentKernel<T> {
 public:
  using RecurrentKernel<T>::RecurrentKernel;

  void Compute(OpKernelContext* context) override {
    const absl::StatusOr<Sizes> sizes = this->CheckedSizes(context);
    OP_REQUIRES_OK(context, sizes.status());
    TensorShape shape = context->input(0).shape();
    shape.set_dim(2, sizes->units);
    const TensorShape state = context->input(1).shape();
    OP_REQUIRES(
        context,
        context->input(8).shape() == shape &&
            context->input(9).shape() == state &&
            (!this->is_lstm() || context->input(10).shape() == state),
        absl::InvalidArgumentError(
            "CudnnRNNBackpropV3: the gradients do not have the shapes of the "
            "outputs"));
    OP_REQUIRES_OK(context, this->KeepScratch(context, *sizes));
    const TensorShape shapes[] = {context->input(0).shape(), state,
                                  this->is_lstm() ? state : TensorShape(),
                                  context->input(3).shape()};
    Tensor* outputs[4];
    for (int i = 0; i < 4; ++i) {
      OP_REQUIRES_OK(context,
                     context->allocate_output(i, shapes[i], &outputs[i]));
    }
    if (!this->is_lstm()) outputs[2]->flat<T>()(0) = T(0);
    Values parameters(context->input(3).NumElements());
    for (int64_t b = 0; b < sizes->batch; ++b) {
      Run(context, *sizes, b, outputs, &parameters);
    }
    this->SetRow(parameters, 0, outputs[3]);
  }

 private:
  void Run(OpKernelContext* context, const Sizes& sizes, int64_t b,
           Tensor** outputs, Values* of_parameters) {
    const int64_t units = sizes.units;
    const std::vector<Step> steps = this->Steps(context, sizes, b);
    Values of_state = this->Row(context->input(9), b * units, units);
    Values of_cell = this->is_lstm()
                         ? this->Row(context->input(10), b * units, units)
                         : Values();
    for (int64_t t = sizes.time; t-- > 0;) {
      Values of_x(sizes.width);
      if (t < static_cast<int64_t>(steps.size())) {
        const Values of_output = this->Row(
            context->input(8), this->Offset(sizes, b, t, units), units);
        for (int64_t u = 0; u < units; ++u) of_state[u] += of_output[u];
        Back(context->input(3), steps[t], &of_state, &of_cell, &of_x,
             of_parameters);
      }
      this->SetRow(of_x, this->Offset(sizes, b, t, sizes.width), outputs[0]);
    }
    this->SetRow(of_state, b * units, outputs[1]);
    if (this->is_lstm()) this->SetRow(of_cell, b * units, outputs[2]);
  }

  // From the gradients of what the step gives to those of what it takes.
  void Back(const Tensor& parameters, const Step& step, Values* of_state,
            Values* of_cell, Values* of_x, Values* of_parameters) const {
    const int64_t units = step.state.size(), all = this->gates() * units;
    Values by_x(all), by_state(all);  // gradients of Step::of_x and of_state
    Values before(units);
    const auto opened = [](float gate) { return gate * (1 - gate); };
    const auto made = [](float value) { return 1 - value * value; };
    for (int64_t u = 0; u < units; ++u) {
      const auto gate = [&](int i) { return step.gates[i * units + u]; };
      const float given = (*of_state)[u];
      if (this->is_lstm()) {
        const float cell = std::tanh(step.next_cell[u]);
        const float of = (*of_cell)[u] + given * gate(3) * made(cell);
        by_x[u] = of * gate(2) * opened(gate(0));
        by_x[units + u] = of * step.cell[u] * opened(gate(1));
        by_x[2 * units + u] = of * gate(0) * made(gate(2));
        by_x[3 * units + u] = given * cell * opened(gate(3));
        (*of_cell)[u] = of * gate(1);
      } else {
        const float of = given * (1 - gate(1)) * made(gate(2));
        by_x[u] = of * step.of_state[2 * units + u] * opened(gate(0));
        by_x[units + u] = given * (step.state[u] - gate(2)) * opened(gate(1));
        by_x[2 * units + u] = of;
        before[u] = given * gate(1);
      }
      for (int i = 0; i < this->gates(); ++i) {
        by_state[i * units + u] = by_x[i * units + u];
      }
      if (!this->is_lstm()) by_state[2 * units + u] *= gate(0);
    }
    const int64_t width = step.x.size();
    const T* matrices = parameters.flat<T>().data();
    float* of = of_parameters->data();
    const auto add = [&](const Values& by, const Values& taken, Values* of_it) {
      const int64_t size = taken.size();
      for (int64_t at = 0; at < all; ++at) {
        for (int64_t i = 0; i < size; ++i) {
          (*of_it)[i] += by[at] * static_cast<float>(matrices[at * size + i]);
          of[at * size + i] += by[at] * taken[i];
        }
      }
      matrices += all * size;
      of += all * size;
    };
    of_x->resize(width);
    add(by_x, step.x, of_x);
    add(by_state, step.state, &before);
    for (int64_t at = 0; at < all; ++at) {
      of[at] += by_x[at];
      of[all + at] += by_state[at];
    }
    *of_state = before;
  }
};

template <class Kernel>
void Register(const char* op, DataType type) {
  new kernel_factory::OpKernelRegistrar(
      KernelDefBuilder(op).Device(DEVICE_CPU).TypeConstraint("T", type).Build(),
      op, [](OpKernelConstruction* context) -> OpKernel* {
        return new Kernel(context);
      });
}

template <typename T>
void RegisterFor(DataType type) {
  Register<RecurrentLayer<T>>("CudnnRNNV3", type);
  Register<RecurrentLayerGrad<T>>("CudnnRNNBackpropV3", type);
}

}  // namespace

void RegisterRecurrentLayers() {
  [[maybe_unused]] static const bool once = [] {
    RegisterFor<float>(DT_FLOAT);
    RegisterFor<Eigen::half>(DT_HALF);
    return true;
  }();
}

}  // namespace tensorflow::multistream
