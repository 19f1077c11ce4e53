# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Workloads with ONNX Runtime: a graph of ONNX's nodes, in one session or a session a client."""

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from .models import Weights
from .program import EPSILON, NumpyOps, Program, Spec
from .workloads import Workload

OPSET = 20  # has Gelu
IR = 9
# While ONNX Runtime records a CUDA graph, a Concat takes no more inputs.
MOST_CONCATENATED = 32
# The first runs of a session in a thread record a CUDA graph for that thread. Meanwhile CUDA
# refuses other threads what might wait for the GPU, so that they must not do this side by side.
RUNS_THAT_CAPTURE = 3
CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"


def _node(op: str) -> "Callable[..., Value]":
    """A method that writes a node of this op, of what it is given."""
    return lambda self, *inputs: self.ops.node(op, self, *inputs)


class Value:
    """A tensor of the graph that is being written; the shape is for the model's own questions."""

    __add__, __sub__, __mul__, __matmul__ = map(_node, ("Add", "Sub", "Mul", "MatMul"))

    def __init__(self, ops: "OnnxOps", name: str, shape: Sequence[int] = ()) -> None:
        self.ops = ops
        self.name = name
        self.shape = tuple(shape)


class OnnxOps(NumpyOps):
    """The operations of program.py write nodes; a loop is unrolled."""

    sigmoid, tanh, relu, gelu = map(staticmethod, map(_node, ("Sigmoid", "Tanh", "Relu", "Gelu")))

    def __init__(self, head_width: int) -> None:
        self._head_width = head_width
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self._names = (f"t{i}" for i in itertools.count())

    def node(self, op: str, *inputs: Value, outputs: int = 1, **attributes: Any) -> Any:
        """Writes a node; returns its output, or a list of several."""
        made = [Value(self, next(self._names)) for _ in range(outputs)]
        names = [[value.name for value in values] for values in (inputs, made)]
        self.nodes.append(helper.make_node(op, *names, **attributes))
        return made if outputs > 1 else made[0]

    def weight(self, value: np.ndarray) -> Value:
        """Writes an initializer."""
        name = next(self._names)
        self.weights.append(numpy_helper.from_array(value, name))
        return Value(self, name, value.shape)

    def _numbers(self, *values: int) -> Value:
        return self.weight(np.array(values, np.int64))

    def gather(self, table: Value, ids: Value) -> Any:
        return self.node("Gather", table, ids, axis=0)

    def at(self, x: Value, i: int) -> Any:
        return self.node("Gather", x, self.weight(np.array(i, np.int64)), axis=1)

    def concat(self, parts: Sequence[Value]) -> Any:
        """As NumpyOps; a CUDA graph takes it in pieces only."""
        while len(parts) > MOST_CONCATENATED:
            pieces = range(0, len(parts), MOST_CONCATENATED)
            parts = [
                self.node("Concat", *parts[i : i + MOST_CONCATENATED], axis=-1) for i in pieces
            ]
        return self.node("Concat", *parts, axis=-1)

    def split(self, x: Value, parts: int) -> Any:
        return self.node("Split", x, outputs=parts, axis=-1, num_outputs=parts)

    def stack(self, rows: Sequence[Value]) -> Any:
        axis = self._numbers(1)
        return self.node("Concat", *(self.node("Unsqueeze", row, axis) for row in rows), axis=1)

    def reshape(self, x: Value, shape: Sequence[int]) -> Any:
        return self.node("Reshape", x, self._numbers(*shape))

    def transpose(self, x: Value, order: Sequence[int]) -> Any:
        return self.node("Transpose", x, perm=list(order))

    def softsign(self, x: Value) -> Any:
        """As NumpyOps, of two nodes that run on a GPU, which Softsign does not."""
        one = self.weight(np.array(1, np.float32))
        return self.node("Div", x, self.node("Abs", x) + one)

    def layer_norm(self, x: Value, scale: Value, bias: Value) -> Any:
        return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=EPSILON)

    def attention(self, query: Value, key: Value, value: Value) -> Any:
        scale = self.weight(np.array(self._head_width**-0.5, np.float32))
        products = query * scale @ self.transpose(key, (0, 1, 3, 2))
        return self.node("Softmax", products, axis=-1) @ value

    def mean(self, x: Value) -> Any:
        return self.node("ReduceMean", x, self._numbers(1), keepdims=0)


def graph(workload: Workload, size: str, example: np.ndarray) -> bytes:
    """Writes a workload as an ONNX model, with an input `x` like the example, and an output `y`."""
    sizes = workload.sizes[size]
    ops = OnnxOps(head_width=sizes.get("width", 1) // sizes.get("heads", 1))
    result = workload.compute(size)(ops, Weights(ops.weight), Value(ops, "x", example.shape))
    ops.nodes.append(helper.make_node("Identity", [result.name], ["y"]))
    kind = helper.np_dtype_to_tensor_dtype(example.dtype)
    x = helper.make_tensor_value_info("x", kind, example.shape)
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    made = helper.make_graph(ops.nodes, workload.name, [x], [y], ops.weights)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
    data: bytes = model.SerializeToString()
    return data


class _Bound:
    """A session whose input and output stay where they are, as CUDA graphs need it."""

    def __init__(self, session: Any, device: str, x: np.ndarray, y: np.ndarray) -> None:
        self._session = session
        self._example = x
        self._threads: set[int] = set()
        self._x, self._y = (
            onnxruntime.OrtValue.ortvalue_from_numpy(value, device, 0) for value in (x, y)
        )
        self._binding = session.io_binding()
        self._binding.bind_ortvalue_input("x", self._x)
        self._binding.bind_ortvalue_output("y", self._y)

    def record(self) -> None:
        """Records a CUDA graph for the calling thread, if it has none."""
        if threading.get_ident() not in self._threads:
            for _ in range(RUNS_THAT_CAPTURE):
                self(self._example)
            self._threads.add(threading.get_ident())

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Copies the input there, runs, and copies the result."""
        self._x.update_inplace(x)
        self._session.run_with_iobinding(self._binding)
        result: np.ndarray = self._y.numpy()
        return result


class OnnxProgram(Program):
    """See Program. Options: `graphs`. Calls: `one_session` and `session_a_client`."""

    def __init__(self, workload: Workload, spec: Spec) -> None:
        super().__init__(workload, spec)
        self._made: dict[Any, list[Callable[[np.ndarray], np.ndarray]]] = {}
        self._calls: list[Callable[[np.ndarray], np.ndarray]] = []
        self._cuda = CUDA in onnxruntime.get_available_providers()

    def prepare(self, inputs: Sequence[np.ndarray], clients: int, call: str) -> None:
        made = self._made.setdefault((inputs[0].shape, call), [])
        wanted = clients if call == "session_a_client" else 1
        if len(made) < wanted:
            data = graph(self.workload, self.spec.size, inputs[0])
            made += [self._session(data, inputs[0]) for _ in range(wanted - len(made))]
        self._calls = made[:wanted]

    def _session(self, data: bytes, example: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        graphs = bool(self.spec.options.get("graphs"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # the clients are the threads

        def session(providers: list[Any]) -> Any:
            return onnxruntime.InferenceSession(data, options, providers=[*providers, CPU])

        cuda = [(CUDA, {"enable_cuda_graph": "1" if graphs else "0"})] if self._cuda else []
        made = session(cuda)
        if not graphs:
            return lambda x: made.run(["y"], {"x": x})[0]
        (result,) = session([]).run(["y"], {"x": example})
        return _Bound(made, "cuda" if self._cuda else "cpu", example, result)

    def prepare_thread(self, client: int) -> None:
        call = self._calls[client % len(self._calls)]
        if isinstance(call, _Bound):
            call.record()

    def query(self, client: int, x: np.ndarray) -> np.ndarray:
        return self._calls[client % len(self._calls)](x)

    def version(self) -> str:
        return f"ONNX Runtime {onnxruntime.__version__}{'' if self._cuda else ' (CPU)'}"


make = OnnxProgram  # which every program's module has
