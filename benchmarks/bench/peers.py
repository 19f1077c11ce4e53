# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The peers: with what each runs a workload, what it needs, and what is swept for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from .workloads import TOLERANCE, Workload

AUTO_JIT = "--tf_xla_auto_jit=2"
CAPTURABLE_XLA = {
    "TF_XLA_FLAGS": f"{AUTO_JIT} --tf_xla_enable_lazy_compilation=false",
    "XLA_FLAGS": "--xla_gpu_enable_command_buffer=",
}
GROUPS = "TF_GPU_STREAM_GROUP_COUNT"
CAPTURE = {"TF_MULTI_STREAM_CAPTURE": "auto"}
TENSORFLOW = ("tensorflow_program", "tensorflow")


def _nothing(parallel: int) -> dict[str, str]:
    del parallel
    return {}


def _always(variables: Mapping[str, str]) -> Callable[[int], dict[str, str]]:
    return lambda parallel: dict(variables)


def _groups(variables: Mapping[str, str] | None = None) -> Callable[[int], dict[str, str]]:
    return lambda parallel: {GROUPS: str(parallel), **(variables or {})}


@dataclasses.dataclass(frozen=True)
class Peer:
    """A way to run workloads.

    Args:
        name: in command lines and results.
        title: in reports.
        program: module that runs it, and the package that this needs.
        environment: of its processes, for a number of groups or copies.
        parallel: what is swept beside clients: `groups`, `copies` or nothing (empty).
        least: the smallest number of groups or copies that is meant.
        calls: ways to call that are swept; a training is called the first way.
        options: for the program.
        processes: whether each copy is a process of its own.
        mps: whether these run under NVIDIA's MPS.
        needs_gpu: why it runs on a real GPU only; empty if it does not.
        serves: whether it serves.
        trains: whether it trains.
        tensorflow_kernels: whether its results should have the bits of stock TensorFlow.
        models: workloads that it has; empty for all.
    """

    name: str
    title: str
    program: tuple[str, str] = TENSORFLOW
    environment: Callable[[int], dict[str, str]] = _nothing
    parallel: str = ""
    least: int = 1
    calls: tuple[str, ...] = ("function",)
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    processes: bool = False
    mps: bool = False
    needs_gpu: str = ""
    serves: bool = True
    trains: bool = False
    tensorflow_kernels: bool = True
    models: tuple[str, ...] = ()

    @property
    def ours(self) -> bool:
        """Whether it uses stream groups."""
        return self.parallel == "groups"

    def runs(self, workload: Workload) -> bool:
        """Tells whether it is meant for a workload."""
        right_kind = self.trains if workload.training else self.serves
        has_it = not self.models or workload.name in self.models
        return right_kind and has_it

    def tolerance(self, workload: Workload) -> float:
        """The tolerance of its results, see judge.py; 0: the same bits."""
        return 0.0 if self.tensorflow_kernels and workload.same_bits else TOLERANCE


# Of models.py, without training.
_WRITTEN_ONCE = ("recommender", "dlrm", "bert", "lstm", "mlp", "transformer")
_NODE_LEVEL = {"TF_NODE_LEVEL_MULTISTREAM": "true"}

_ALL = (
    Peer("stock", "TensorFlow, one stream", trains=True),
    Peer(
        "virtual",
        "TensorFlow, virtual devices",
        parallel="copies",
        least=2,
        options={"virtual": True},
        needs_gpu="an emulated GPU cannot be split into virtual devices",
    ),
    Peer("processes", "TensorFlow, processes", parallel="copies", least=2, processes=True),
    Peer(
        "mps",
        "TensorFlow, processes under MPS",
        parallel="copies",
        least=2,
        processes=True,
        mps=True,
        needs_gpu="MPS is of real GPUs",
    ),
    Peer(
        "xla_auto",
        "TensorFlow, XLA auto-jit",
        environment=_always({"TF_XLA_FLAGS": AUTO_JIT}),
        trains=True,
        tensorflow_kernels=False,
    ),
    Peer(
        "xla",
        "TensorFlow, XLA (jit_compile)",
        options={"compiled": True},
        trains=True,
        tensorflow_kernels=False,
        needs_gpu="XLA compiles for no emulated GPU",
    ),
    Peer(
        "groups",
        "stream groups",
        environment=_groups(),
        parallel="groups",
        least=2,
        calls=("function", "serving"),
    ),
    Peer(
        "captured",
        "stream groups, captured",
        environment=_groups(CAPTURE),
        parallel="groups",
        calls=("function", "serving"),
        trains=True,
    ),
    Peer(
        "captured_xla",
        "stream groups, XLA captured",
        environment=_groups({**CAPTURE, **CAPTURABLE_XLA}),
        parallel="groups",
        calls=("serving",),
        tensorflow_kernels=False,
        needs_gpu="XLA compiles for no emulated GPU",
    ),
    Peer(
        "marks",
        "stream groups, branches marked",
        environment=_groups(_NODE_LEVEL),
        parallel="groups",
        least=2,
        options={"marks": True},
        serves=False,
        trains=True,
    ),
    Peer(
        "policy",
        "stream groups, policy cost",
        environment=_groups({**_NODE_LEVEL, "TF_MULTI_STREAM_POLICY": "cost"}),
        parallel="groups",
        least=2,
        serves=False,
        trains=True,
    ),
    Peer(
        "pytorch",
        "PyTorch, eager",
        ("torch_program", "torch"),
        tensorflow_kernels=False,
        models=_WRITTEN_ONCE,
    ),
    Peer(
        "pytorch_graphs",
        "PyTorch, CUDA graphs",
        ("torch_program", "torch"),
        options={"graphs": True},
        tensorflow_kernels=False,
        needs_gpu="CUDA graphs are of real GPUs",
        models=_WRITTEN_ONCE,
    ),
    Peer(
        "onnxruntime",
        "ONNX Runtime",
        ("onnx_program", "onnxruntime"),
        calls=("one_session", "session_a_client"),
        tensorflow_kernels=False,
        models=_WRITTEN_ONCE,
    ),
    Peer(
        "onnxruntime_graphs",
        "ONNX Runtime, CUDA graphs",
        ("onnx_program", "onnxruntime"),
        calls=("session_a_client",),
        options={"graphs": True},
        tensorflow_kernels=False,
        needs_gpu="CUDA graphs are of real GPUs",
        models=_WRITTEN_ONCE,
    ),
    Peer(
        "jax",
        "JAX",
        ("jax_program", "jax"),
        environment=_always({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
        tensorflow_kernels=False,
        models=_WRITTEN_ONCE,
    ),
)
PEERS: dict[str, Peer] = {peer.name: peer for peer in _ALL}
REFERENCE = PEERS["stock"]
