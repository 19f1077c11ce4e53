# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""Serves the model of tensorflow/examples/multistream/make_model.py with PyTorch.

    python tensorflow/examples/multistream/make_model.py --out /tmp/model.npz
    python benchmarks/pytorch_recommender.py /tmp/model.npz [--threads 1,8,16,64] [--seconds 3]

Needs PyTorch and a GPU, and no TensorFlow. Each thread has a stream and a CUDA graph of its own;
with `--eager`, a stream only. A query copies ids from pinned memory, runs the model and copies the
result back. Each client is first compared with TensorFlow's result for the file's sample.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from client_threads import run_clients

BATCH = 16


class Recommender:
    """The same kernels as the graph's, one PyTorch op for each node."""

    def __init__(self, path: str) -> None:
        arrays = dict(np.load(path))
        self.sample = arrays.pop("sample/ids"), arrays.pop("sample/output")
        self.features = self.sample[0].shape[1]
        self._weights = {
            name: torch.from_numpy(value).cuda()
            for name, value in arrays.items()
            if value.dtype == np.float32
        }

    def __call__(self, ids: Any) -> Any:
        """Probabilities [batch, 1] of ids, int64 [batch, features]."""
        w = self._weights
        normal, gated, crossed = [], [], []
        for i in range(self.features):
            at = f"feature{i}/"
            embedding = torch.index_select(w[at + "table"], 0, ids[:, i])
            scaled = (embedding - w[at + "mean"]) * w[at + "scale"]
            gate = torch.sigmoid(scaled * w[at + "gate_slope"] + w[at + "gate_bias"])
            gated.append(scaled * gate)
            normal.append(torch.tanh(gated[-1]))
        for i in range(self.features):
            product = gated[i] * normal[(i + 1) % self.features] * w[f"cross{i}/weight"]
            crossed.append(torch.nn.functional.softsign(product))
        stack = torch.stack(gated, 1)
        dots = torch.bmm(stack, stack.transpose(1, 2)).reshape(-1, self.features**2)
        x = torch.cat([*normal, *crossed, dots @ w["pairs/weights"]], 1)
        for i in range(3):
            x = torch.addmm(w[f"dense{i}/bias"], x, w[f"dense{i}/weights"])
            x = torch.relu(x) if i < 2 else torch.sigmoid(x)
        return x


class Client:
    """A stream, and the memory and the graph of one thread."""

    def __init__(self, model: Recommender, graph: bool) -> None:
        self._model = model
        self.stream = torch.cuda.Stream()
        self.ids = torch.zeros(BATCH, model.features, dtype=torch.int64).pin_memory()
        self._on_gpu = self.ids.cuda()
        self.result = torch.zeros(BATCH, 1).pin_memory()
        self._graph = None
        with torch.cuda.stream(self.stream):
            for _ in range(3):
                self._output = model(self._on_gpu)
            self.stream.synchronize()
            if graph:
                self._graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._graph, stream=self.stream):
                    self._output = model(self._on_gpu)

    def query(self) -> Any:
        """Runs the model on `ids`; returns `result`. In the stream's context."""
        self._on_gpu.copy_(self.ids, non_blocking=True)
        if self._graph is None:
            self._output = self._model(self._on_gpu)
        else:
            self._graph.replay()
        self.result.copy_(self._output, non_blocking=True)
        self.stream.synchronize()
        return self.result


def measure(clients: list[Client], seconds: float) -> str:
    """Queries from one thread for each client."""

    @contextlib.contextmanager
    def on_stream(number: int) -> Iterator[None]:
        with torch.inference_mode(), torch.cuda.stream(clients[number].stream):
            yield

    load = run_clients(lambda number, _: clients[number].query(), len(clients), seconds, on_stream)
    free, total = torch.cuda.mem_get_info()
    return f"{load}; GPU memory {(total - free) / 2**20:.0f} MiB"


def main() -> None:
    """Measures each number of threads."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights", help="an .npz of make_model.py")
    parser.add_argument("--threads", default="1,8,16,64")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--eager", action="store_true", help="launch the ops one by one")
    options = parser.parse_args()
    numbers = [int(number) for number in options.threads.split(",")]
    with torch.inference_mode():
        model = Recommender(options.weights)
        clients = [Client(model, not options.eager) for _ in range(max(numbers))]
        for client in clients:
            client.ids.copy_(torch.from_numpy(model.sample[0]))
            with torch.cuda.stream(client.stream):
                difference = np.abs(client.query().numpy() - model.sample[1]).max()
            if not difference < 1e-4:
                raise SystemExit(f"The result is off by {difference} from TensorFlow's.")
    name = "PyTorch, eager" if options.eager else "PyTorch, a CUDA graph a thread"
    for threads in numbers:
        print(
            f"{name}, {threads} threads: {measure(clients[:threads], options.seconds)}", flush=True
        )


if __name__ == "__main__":
    main()
