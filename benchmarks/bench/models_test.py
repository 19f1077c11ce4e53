# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of models.py: every framework that is there computes what NumPy does."""

import importlib

import numpy as np
import pytest

from .models import Weights
from .peers import PEERS
from .program import NumpyOps, Spec
from .workloads import WORKLOADS

WRITTEN_ONCE = [name for name, workload in WORKLOADS.items() if workload.model]


def expected(name: str, x: np.ndarray) -> np.ndarray:
    result: np.ndarray = WORKLOADS[name].compute("small")(NumpyOps(), Weights(), x)
    return result


@pytest.mark.parametrize("name", WRITTEN_ONCE)
def test_outputs_depend_on_inputs(name: str) -> None:
    """Or a result of another input would not be a wrong one."""
    workload = WORKLOADS[name]
    results = [expected(name, x) for x in workload.inputs("small", workload.batches[-1])]
    assert all(result.shape[0] == workload.batches[-1] for result in results)
    assert len({result.astype(np.float32).tobytes() for result in results}) == len(results)


@pytest.mark.parametrize("name", WRITTEN_ONCE)
def test_tensorflow_computes_what_numpy_does(name: str) -> None:
    tf = pytest.importorskip("tensorflow")
    # Later, as it imports TensorFlow.
    module = importlib.import_module(f"{__package__}.tensorflow_program")
    workload = WORKLOADS[name]
    ops = module.TensorFlowOps(marks=False, trained=workload.training)
    x = workload.inputs("small", workload.batches[0])[0]
    compute = workload.compute("small")
    result = tf.function(lambda x: compute(ops, Weights(), x))(x).numpy()
    np.testing.assert_allclose(result, expected(name, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("peer", ["pytorch", "onnxruntime", "onnxruntime_graphs", "jax"])
@pytest.mark.parametrize("name", PEERS["jax"].models)
def test_other_frameworks_compute_what_numpy_does(name: str, peer: str) -> None:
    module, package = PEERS[peer].program
    pytest.importorskip(package)
    workload = WORKLOADS[name]
    program = importlib.import_module(f"{__package__}.{module}").make(
        workload, Spec(module, name, "small", 1, dict(PEERS[peer].options))
    )
    for batch in workload.batches:
        inputs = workload.inputs("small", batch)
        for call in PEERS[peer].calls:
            program.prepare(inputs, 2, call)
            program.prepare_thread(1)
            with program.around(1):
                for x in inputs[:2]:
                    result = np.array(program.query(1, x))
                    np.testing.assert_allclose(result, expected(name, x), rtol=1e-3, atol=1e-4)
    assert program.version()
