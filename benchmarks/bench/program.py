# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The base of the frameworks: the program of a workload, and the operations of its model."""

import abc
import contextlib
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .workloads import Workload

EPSILON = 1e-5  # of layer_norm


@dataclasses.dataclass(frozen=True)
class Spec:
    """What a worker is started with."""

    program: str  # the module that runs the workload, such as `tensorflow_program`
    workload: str
    size: str  # `small` or `full`
    parallel: int  # stream groups, copies of the model, or 1
    options: dict[str, Any]  # what else the program should know, see peers.py.


class Program(abc.ABC):
    """A workload, ready to be queried from several threads."""

    def __init__(self, workload: Workload, spec: Spec) -> None:
        self.workload = workload
        self.spec = spec

    def prepare(self, inputs: Sequence[np.ndarray], clients: int, call: str) -> None:
        """Makes what clients below `clients` need for such inputs and this way to call."""
        del inputs, clients, call

    def prepare_thread(self, client: int) -> None:
        """Prepares the calling thread, which is to be a client's; one after the other."""
        del client

    @abc.abstractmethod
    def query(self, client: int, x: np.ndarray) -> np.ndarray:
        """Runs one query, as `prepare` has said; returns its result, in memory of the host."""

    def around(self, client: int) -> contextlib.AbstractContextManager[object]:
        """What a client's thread is in while it queries."""
        del client
        return contextlib.nullcontext()

    def rewind(self) -> None:
        """Gives a model that is trained its first weights again."""
        raise NotImplementedError(f"{self.version()} trains nothing here")

    def counters(self) -> dict[str, float]:
        """What the framework has counted: `replays` and `peak_mib`, if it does."""
        return {}

    @abc.abstractmethod
    def version(self) -> str:
        """Name and version of the framework."""


class NumpyOps:
    """The operations; each framework has a class with the same methods for its own tensors.

    Tensors also have `+`, `-`, `*` and `@` as NumPy's arrays have them. `tensor` is float32.
    `module` is the framework's, where it has NumPy's functions by NumPy's names.
    """

    module: Any = np

    def gather(self, table: Any, ids: Any) -> Any:
        """Rows [..., width] of a table [rows, width], for ids [...]."""
        return table[ids]

    def at(self, x: Any, i: Any) -> Any:
        """What is at `i` of the second dimension."""
        return x[:, i]

    def concat(self, parts: Sequence[Any]) -> Any:
        """Tensors put together along the last dimension."""
        return self.module.concatenate(parts, -1)

    def split(self, x: Any, parts: int) -> Any:
        """The reverse of `concat`, for parts of equal size."""
        return self.module.split(x, parts, -1)

    def stack(self, rows: Sequence[Any]) -> Any:
        """Tensors put together along a new second dimension."""
        return self.module.stack(rows, 1)

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """The same numbers in another shape, of which one dimension may be -1."""
        return self.module.reshape(x, shape)

    def transpose(self, x: Any, order: Sequence[int]) -> Any:
        """Dimensions in another order."""
        return self.module.transpose(x, order)

    def dense(self, x: Any, kernel: Any, bias: Any) -> Any:
        """A dense layer: x [..., inputs], kernel [inputs, width], bias [width]."""
        return x @ kernel + bias

    def sigmoid(self, x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    def tanh(self, x: Any) -> Any:
        return self.module.tanh(x)

    def softsign(self, x: Any) -> Any:
        return x / (1 + np.abs(x))

    def relu(self, x: Any) -> Any:
        """The number, or 0 if it is below."""
        return np.maximum(x, 0)

    def gelu(self, x: Any) -> Any:
        return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2

    def layer_norm(self, x: Any, scale: Any, bias: Any) -> Any:
        """The last dimension with mean 0 and variance 1, times `scale`, plus `bias`."""
        centred = x - x.mean(-1, keepdims=True)
        variance = np.square(centred).mean(-1, keepdims=True)
        return centred / np.sqrt(variance + EPSILON) * scale + bias

    def attention(self, query: Any, key: Any, value: Any) -> Any:
        """Scaled dot products' softmax times the values; all [batch, heads, tokens, width]."""
        products = query @ np.swapaxes(key, 2, 3) / math.sqrt(query.shape[-1])
        powers = np.exp(products - products.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True) @ value

    def mean(self, x: Any) -> Any:
        """Mean over the second dimension."""
        return x.mean(1)

    def loop(self, count: int, body: Callable[[Any, Any], Any], state: Any) -> Any:
        """Calls `body(i, state)`, which returns the next state, a tuple, for i below `count`."""
        for i in range(count):
            state = body(i, state)
        return state

    def branch(self, number: int) -> Any:
        """A context of what may run beside other branches; where this does nothing, none."""
        del number
        return contextlib.nullcontext()
