# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Workloads with JAX: one compiled function, which all clients call."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .models import Weights
from .program import EPSILON, NumpyOps, Program, Spec
from .workloads import Workload


class JaxOps(NumpyOps):
    """The operations of program.py with JAX's."""

    module = jnp
    sigmoid = staticmethod(jax.nn.sigmoid)
    softsign = staticmethod(jax.nn.soft_sign)
    relu = staticmethod(jax.nn.relu)

    def gather(self, table: Any, ids: Any) -> Any:
        return jnp.take(table, ids, 0, mode="clip")

    def at(self, x: Any, i: Any) -> Any:
        return jax.lax.dynamic_index_in_dim(x, i, 1, keepdims=False)

    def gelu(self, x: Any) -> Any:
        return jax.nn.gelu(x, approximate=False)

    def layer_norm(self, x: Any, scale: Any, bias: Any) -> Any:
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + EPSILON) * scale + bias

    def attention(self, query: Any, key: Any, value: Any) -> Any:
        """As NumpyOps; JAX has the heads behind the tokens."""
        parts = (jnp.swapaxes(part, 1, 2) for part in (query, key, value))
        return jnp.swapaxes(jax.nn.dot_product_attention(*parts), 1, 2)

    def loop(self, count: int, body: Callable[[Any, Any], Any], state: Any) -> Any:
        """As NumpyOps, compiled as a loop."""
        return jax.lax.fori_loop(0, count, body, state)


class JaxProgram(Program):
    """See Program."""

    def __init__(self, workload: Workload, spec: Spec) -> None:
        super().__init__(workload, spec)
        jax.config.update("jax_enable_x64", True)  # ids are int64
        compute, ops, drawn = workload.compute(spec.size), JaxOps(), Weights(jnp.asarray)
        with jax.disable_jit():  # a loop would draw weights of its own
            compute(ops, drawn, workload.inputs(spec.size, 1)[0])
        self._weights = drawn.values
        self._function = jax.jit(lambda weights, x: compute(ops, Weights(values=weights), x))

    def query(self, client: int, x: np.ndarray) -> np.ndarray:
        return np.asarray(self._function(self._weights, x))

    def version(self) -> str:
        return f"JAX {jax.__version__}"


make = JaxProgram  # which every program's module has
