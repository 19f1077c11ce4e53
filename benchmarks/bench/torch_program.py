# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Workloads with PyTorch: a stream a client and, with `graphs`, a CUDA graph on it."""

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from .models import Weights
from .program import EPSILON, NumpyOps, Program, Spec
from .workloads import Workload

# Runs before a client's graph is recorded, so that all libraries have their memory.
RUNS_BEFORE = 3


class TorchOps(NumpyOps):
    """The operations of program.py with PyTorch's."""

    module = torch
    sigmoid = staticmethod(torch.sigmoid)
    softsign = staticmethod(torch.nn.functional.softsign)
    relu = staticmethod(torch.relu)
    gelu = staticmethod(torch.nn.functional.gelu)

    def gather(self, table: Any, ids: Any) -> Any:
        if ids.dim() == 1:
            return torch.index_select(table, 0, ids)
        return torch.nn.functional.embedding(ids, table)

    def concat(self, parts: Sequence[Any]) -> Any:
        return torch.cat(list(parts), -1)

    def split(self, x: Any, parts: int) -> Any:
        return torch.chunk(x, parts, -1)

    def transpose(self, x: Any, order: Sequence[int]) -> Any:
        return x.permute(*order)

    def dense(self, x: Any, kernel: Any, bias: Any) -> Any:
        """As NumpyOps; more than two dimensions are rows of one product."""
        rows = x.reshape(-1, x.shape[-1])
        return torch.addmm(bias, rows, kernel).reshape(*x.shape[:-1], kernel.shape[1])

    def layer_norm(self, x: Any, scale: Any, bias: Any) -> Any:
        return torch.nn.functional.layer_norm(x, x.shape[-1:], scale, bias, EPSILON)

    def attention(self, query: Any, key: Any, value: Any) -> Any:
        scale = 1 / math.sqrt(query.shape[-1])
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, scale=scale)


class Client:
    """The stream of one client, its memory and its graph."""

    def __init__(self, model: Any, example: np.ndarray, graphs: bool) -> None:
        self._model = model
        self.stream = torch.cuda.Stream()
        self._x = torch.from_numpy(example).pin_memory()
        self._on_gpu = self._x.cuda()
        self._graph = None
        with torch.inference_mode(), torch.cuda.stream(self.stream):
            for _ in range(RUNS_BEFORE):
                self._output = model(self._on_gpu)
            self.stream.synchronize()
            self._result = torch.zeros(self._output.shape).pin_memory()
            if graphs:
                self._graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._graph, stream=self.stream):
                    self._output = model(self._on_gpu)

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """The thread that queries is in this context."""
        with torch.inference_mode(), torch.cuda.stream(self.stream):
            yield

    def query(self, x: np.ndarray) -> np.ndarray:
        self._x.copy_(torch.from_numpy(x))
        self._on_gpu.copy_(self._x, non_blocking=True)
        if self._graph is None:
            self._output = self._model(self._on_gpu)
        else:
            self._graph.replay()
        self._result.copy_(self._output, non_blocking=True)
        self.stream.synchronize()
        result: np.ndarray = self._result.numpy()
        return result


class TorchProgram(Program):
    """See Program. Options: `graphs`. Without a GPU it runs on the CPU."""

    def __init__(self, workload: Workload, spec: Spec) -> None:
        super().__init__(workload, spec)
        self._cuda = torch.cuda.is_available()
        # As TensorFlow, XLA and ONNX Runtime do by themselves.
        torch.backends.cuda.matmul.allow_tf32 = True
        where = "cuda" if self._cuda else "cpu"
        compute, ops = workload.compute(spec.size), TorchOps()
        weights = Weights(lambda value: torch.from_numpy(value).to(where))
        self._model = lambda x: compute(ops, weights, x)
        with torch.no_grad():  # draws the weights
            self._model(torch.from_numpy(workload.inputs(spec.size, 1)[0]).to(where))
        self._made: dict[Any, list[Client]] = {}
        self._clients: list[Client] = []

    def prepare(self, inputs: Sequence[np.ndarray], clients: int, call: str) -> None:
        if not self._cuda:
            return
        made = self._made.setdefault(inputs[0].shape, [])
        graphs = bool(self.spec.options.get("graphs"))
        while len(made) < clients:
            made.append(Client(self._model, inputs[0], graphs))
        self._clients = made

    def query(self, client: int, x: np.ndarray) -> np.ndarray:
        if self._cuda:
            return self._clients[client].query(x)
        result: np.ndarray = self._model(torch.from_numpy(x)).numpy()
        return result

    @contextlib.contextmanager
    def around(self, client: int) -> Iterator[None]:
        around = self._clients[client].around if self._cuda else torch.inference_mode
        with around():
            yield

    def version(self) -> str:
        return f"PyTorch {torch.__version__}"


make = TorchProgram  # which every program's module has
