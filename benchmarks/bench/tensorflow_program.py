# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Workloads with TensorFlow: on one stream, on stream groups, on virtual devices, with XLA."""

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

from .models import Weights
from .program import EPSILON, NumpyOps, Program, Spec
from .workloads import Workload

# Smaller weights are constants of the graph, as in a frozen one; larger ones are variables.
LARGEST_CONSTANT = 2**20
# Of each virtual device. Memory grows, so that this is a limit only.
VIRTUAL_DEVICE_MIB = 6144
RATE = 0.01


class TensorFlowOps(NumpyOps):
    """The operations of program.py with TensorFlow's."""

    module = tf
    gather = staticmethod(tf.gather)
    sigmoid = staticmethod(tf.sigmoid)
    softsign = staticmethod(tf.nn.softsign)
    relu = staticmethod(tf.nn.relu)
    gelu = staticmethod(tf.nn.gelu)

    def __init__(self, marks: bool, trained: bool) -> None:
        self._marks = marks
        self._trained = trained

    def concat(self, parts: Sequence[Any]) -> Any:
        return tf.concat(parts, -1)

    def dense(self, x: Any, kernel: Any, bias: Any) -> Any:
        """As NumpyOps; more than two dimensions are rows of one product."""
        if len(x.shape) == 2:
            # The gradient of bias_add is added up in any order, that of a sum in the same one.
            return x @ kernel + bias if self._trained else tf.nn.bias_add(x @ kernel, bias)
        rows = tf.reshape(x, [-1, x.shape[-1]])
        return tf.reshape(self.dense(rows, kernel, bias), [-1, *x.shape[1:-1], kernel.shape[1]])

    def layer_norm(self, x: Any, scale: Any, bias: Any) -> Any:
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, bias, scale, EPSILON)

    def attention(self, query: Any, key: Any, value: Any) -> Any:
        products = tf.matmul(query * query.shape[-1] ** -0.5, key, transpose_b=True)
        return tf.matmul(tf.nn.softmax(products), value)

    def mean(self, x: Any) -> Any:
        return tf.reduce_mean(x, 1)

    def loop(self, count: int, body: Callable[[Any, Any], Any], state: Any) -> Any:
        """As NumpyOps, with a while loop."""
        return tf.while_loop(
            lambda i, _: i < count, lambda i, state: (i + 1, body(i, state)), (0, state)
        )[1]

    def branch(self, number: int) -> Any:
        """A scope of a stream group, counted round, where the peer marks branches."""
        if not self._marks:
            return contextlib.nullcontext()
        return tf.cuda.stream_scope(tf.cuda.get_stream(number % tf.cuda.stream_group_count()))


class _Copy:
    """One copy of the model, on one device."""

    def __init__(self, workload: Workload, spec: Spec, device: str) -> None:
        self.device = device
        self._trained = workload.training
        compute = workload.compute(spec.size)
        ops = TensorFlowOps(bool(spec.options.get("marks")), workload.training)
        has_variables = workload.training or workload.convolutions

        def make(value: np.ndarray) -> Any:
            large = value.nbytes > LARGEST_CONSTANT
            return tf.Variable(value) if has_variables or large else value

        weights = Weights(make)
        with tf.device(device):  # draws them
            compute(
                TensorFlowOps(False, False), weights, tf.constant(workload.inputs(spec.size, 1)[0])
            )
        self.model = lambda x: compute(ops, weights, x)
        self.variables = [w for w in weights.values.values() if isinstance(w, tf.Variable)]
        self._first = [v.numpy() for v in self.variables] if workload.training else []
        compiled = bool(spec.options.get("compiled"))
        self._function = tf.function(self.compute, jit_compile=compiled or None, autograph=False)

    def compute(self, x: Any) -> Any:
        """A query: what the model makes of `x`, or the loss of a step of gradient descent."""
        with tf.device(self.device):
            if not self._trained:
                return tf.identity(self.model(x))
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self.model(x) - 0.5))
            gradients = tape.gradient(loss, self.variables)
            for variable, gradient in zip(self.variables, gradients, strict=True):
                if isinstance(gradient, tf.IndexedSlices):
                    change = tf.IndexedSlices(RATE * gradient.values, gradient.indices)
                    variable.scatter_sub(change)
                else:
                    variable.assign_sub(RATE * gradient)
            return loss

    def make_call(self, example: np.ndarray, call: str) -> Callable[[np.ndarray], np.ndarray]:
        """Traces the model for such inputs; returns how to call it, in `tf.device`."""
        with tf.device(self.device):
            concrete = self._function.get_concrete_function(
                tf.TensorSpec(example.shape, example.dtype, "x")
            )
        if call == "serving":
            serve: Callable[[np.ndarray], np.ndarray] = tf.cuda.serving_callable(concrete)
            return serve
        return lambda x: concrete(tf.constant(x)).numpy()

    def rewind(self) -> None:
        with tf.device(self.device):
            for variable, value in zip(self.variables, self._first, strict=True):
                variable.assign(value)


class TensorFlowProgram(Program):
    """See Program. Options: `virtual`, `compiled`, `marks`."""

    def __init__(self, workload: Workload, spec: Spec) -> None:
        super().__init__(workload, spec)
        devices = ["/GPU:0"]
        gpus = tf.config.list_physical_devices("GPU")
        if not gpus:
            raise RuntimeError("TensorFlow finds no GPU")
        if spec.options.get("virtual"):
            one = tf.config.LogicalDeviceConfiguration(memory_limit=VIRTUAL_DEVICE_MIB)
            tf.config.set_logical_device_configuration(gpus[0], [one] * spec.parallel)
            devices = [f"/GPU:{i}" for i in range(spec.parallel)]
        self._copies = [_Copy(workload, spec, device) for device in devices]
        self._calls: list[Callable[[np.ndarray], np.ndarray]] = []
        self._made: dict[tuple[Any, ...], list[Callable[[np.ndarray], np.ndarray]]] = {}

    def prepare(self, inputs: Sequence[np.ndarray], clients: int, call: str) -> None:
        key = (inputs[0].shape, call)
        if key not in self._made:
            self._made[key] = [copy.make_call(inputs[0], call) for copy in self._copies]
        self._calls = self._made[key]

    def query(self, client: int, x: np.ndarray) -> np.ndarray:
        return self._calls[client % len(self._calls)](x)

    def around(self, client: int) -> contextlib.AbstractContextManager[object]:
        device: contextlib.AbstractContextManager[object] = tf.device(
            self._copies[client % len(self._copies)].device
        )
        return device

    def rewind(self) -> None:
        for copy in self._copies:
            copy.rewind()

    def counters(self) -> dict[str, float]:
        if not hasattr(tf, "cuda") or self.spec.options.get("virtual"):
            return {}  # stream groups are not for virtual devices
        groups = tf.cuda.stream_stats()
        peak = sum(group.peak_bytes_in_use for group in groups)
        return {
            "replays": sum(group.steps_replayed for group in groups),
            "peak_mib": peak / 2**20,
        }

    def version(self) -> str:
        return f"TensorFlow {tf.__version__}"


def save(workload: Workload, size: str, folder: str) -> None:
    """Saves the model of a served workload; its signature has an argument `x` and a result `y`."""
    copy = _Copy(workload, Spec("tensorflow_program", workload.name, size, 1, {}), "/GPU:0")
    x = workload.inputs(size, 1)[0]

    @tf.function(input_signature=[tf.TensorSpec([None, *x.shape[1:]], x.dtype, "x")])
    def serve(x: Any) -> Any:
        # Without a device of its own: a server has the model on several.
        return {"y": tf.identity(copy.model(x))}

    module = tf.Module()
    module.variables_of_model, module.serve = copy.variables, serve
    tf.saved_model.save(module, folder, signatures=serve)


make = TensorFlowProgram  # which every program's module has
