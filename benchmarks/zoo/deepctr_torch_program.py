# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Serves DeepCTR-Torch's DeepFM: python -m zoo.deepctr_torch_program SECONDS, in benchmarks/.

It needs a GPU, PyTorch with scikit-learn, and `pip install --no-deps deepctr-torch`. The model has
the columns of models.py's DeepFM. 16 threads, each with a stream and a CUDA graph of its own,
compare each result with what they got alone. The package takes one matrix of float32: "matrix"
gives it, and "columns" is called with the arrays that TensorFlow's model takes, which each call
concatenates as the package's `predict` does. The output is JSON, a line for each.
"""

import functools
import json
import sys
from typing import Any

import deepctr_torch.inputs
import numpy as np
import torch
from bench.torch_program import Client
from client_threads import run_clients
from deepctr_torch.inputs import DenseFeat, SparseFeat, VarLenSparseFeat
from deepctr_torch.models import DeepFM

from zoo.sizes import BATCH, ROWS, deepfm_inputs

_CLIENTS, _INPUTS = 16, 6


def main(seconds: float) -> None:
    """Measures both ways to call."""
    # The layer copies a constant to the GPU when it is made, which the package does in each call:
    # in a CUDA graph, that would be a copy of memory of the host that is freed.
    deepctr_torch.inputs.SequencePoolingLayer = functools.cache(
        deepctr_torch.inputs.SequencePoolingLayer
    )
    columns = [SparseFeat(f"C{i}", ROWS, embedding_dim=8) for i in range(26)]
    columns += [DenseFeat(f"I{i}", 1) for i in range(13)]
    columns += [VarLenSparseFeat(SparseFeat("genres", 50, embedding_dim=8), 10, "mean")]
    model = DeepFM(columns, columns, device="cuda:0").eval()

    random = np.random.RandomState(0)
    inputs = [deepfm_inputs(random) for _ in range(_INPUTS)]
    matrices = [_matrix(model, x) for x in inputs]
    clients = [Client(model, matrices[0], graphs=True) for _ in range(_CLIENTS)]
    expected = []
    for client in clients:
        with client.around():
            expected.append([client.query(x).tobytes() for x in matrices])
    with torch.inference_mode():
        eager = model(torch.from_numpy(matrices[0]).cuda()).cpu().numpy()
    np.testing.assert_allclose(
        np.frombuffer(expected[0][0], np.float32), eager.ravel(), rtol=1e-4, atol=1e-6
    )
    for name in ("matrix", "columns"):

        def call(number: int, count: int, name: str = name) -> None:
            i = (number + count) % _INPUTS
            x = matrices[i] if name == "matrix" else _matrix(model, inputs[i])
            if clients[number].query(x).tobytes() != expected[number][i]:
                raise RuntimeError(f"client {number} got another result than alone")

        load = run_clients(call, _CLIENTS, seconds, lambda i: clients[i].around())
        p50, p99, highest = load.percentiles
        figures = {"per_second": load.calls_per_second, "p50_ms": p50, "p99_ms": p99}
        print(json.dumps({"inputs": name, **figures, "highest_ms": highest}), flush=True)


def _matrix(model: Any, arrays: dict[str, Any]) -> np.ndarray:
    """The rows that the package's `predict` makes of columns."""
    of_columns = [arrays[name].reshape(BATCH, -1) for name in model.feature_index]
    return np.concatenate(of_columns, axis=-1).astype(np.float32)


if __name__ == "__main__":
    main(float(sys.argv[1]))
