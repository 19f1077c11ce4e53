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
"""A model of tensorflow/examples/multistream/make_model.py as a function for Python clients."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import text_format

MODEL = (
    pathlib.Path(__file__).resolve().parent.parent
    / "tensorflow/examples/multistream/data/model_test.pbtxt"
)
WEIGHTS = "dense0/weights"


class FrozenModel(tf.Module):
    """A frozen graph of one input; some of its weights may be a variable.

    Args:
        path: the graph, as text if its name ends in .pbtxt.
        changing: whether `WEIGHTS` are a variable, `weights`, of multiples of 1/1024, so that
            adding such a number and taking it away gives the same bits.
        device: where all of it is.
        compiled: whether XLA compiles it.
    """

    def __init__(
        self,
        path: str,
        changing: bool = False,
        device: str = "/GPU:0",
        compiled: bool = False,
    ) -> None:
        super().__init__()
        self._device = device
        self.graph = tf.compat.v1.GraphDef()
        if path.endswith(".pbtxt"):
            text_format.Parse(pathlib.Path(path).read_text(encoding="utf-8"), self.graph)
        else:
            self.graph.ParseFromString(pathlib.Path(path).read_bytes())
        nodes = {node.name: node for node in self.graph.node}
        attributes = nodes["input0"].attr
        self.features = attributes["shape"].shape.dim[1].size
        self.rows = attributes["_input_range"].i
        self.graph.node.remove(nodes["input0"])  # it is mapped, and XLA knows no placeholder
        self.weights: Any = None
        if changing:
            value = tf.make_ndarray(nodes[WEIGHTS].attr["value"].tensor)
            with tf.device(device):
                self.weights = tf.Variable(np.round(value * 1024) / 1024)
        spec = tf.TensorSpec([None, self.features], tf.int64, "ids")
        self._run = tf.function(self._import, jit_compile=compiled, autograph=False)
        function = self._run_compiled if compiled else self._import
        self.predict = tf.function(function, input_signature=[spec], autograph=False)

    def _run_compiled(self, ids: Any) -> Any:
        # A function that is called by itself is run by no executor, and never captured.
        with tf.device(self._device):
            return self._run(tf.identity(ids))

    def _import(self, ids: Any) -> Any:
        with tf.device(self._device):
            fed = {"input0": ids}
            if self.weights is not None:
                fed[WEIGHTS] = self.weights.read_value()
            return tf.graph_util.import_graph_def(self.graph, fed, ["output:0"])[0]

    def inputs(self, batch: int, count: int, seed: int = 1) -> list[np.ndarray]:
        """Returns `count` arrays of ids, int64 [batch, features]."""
        random = np.random.default_rng(seed)
        return [random.integers(0, self.rows, (batch, self.features)) for _ in range(count)]
