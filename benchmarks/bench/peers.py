# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The peers: with what each runs a workload, what it needs, and what is swept for it."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from .workloads import TOLERANCE, Workload

AUTO_JIT = "--tf_xla_auto_jit=2"
CAPTURABLE_XLA = {"TF_XLA_FLAGS": f"{AUTO_JIT} --tf_xla_enable_lazy_compilation=false"}
GROUPS = "TF_GPU_STREAM_GROUP_COUNT"
CAPTURE = {"TF_MULTI_STREAM_CAPTURE": "auto"}
TENSORFLOW = ("tensorflow_program", "tensorflow")


@dataclasses.dataclass(frozen=True)
class Peer:
    """A way to run workloads."""

    name: str  # in command lines and results
    title: str  # in reports
    program: tuple[str, str] = TENSORFLOW  # module that runs it, and the package that this needs
    # Of its processes, beside the number of groups.
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    parallel: str = ""  # what is swept beside clients: `groups`, `copies` or nothing (empty)
    least: int = 1  # the smallest number of groups or copies that is meant
    # Ways to call that are swept; a training is called the first way.
    calls: tuple[str, ...] = ("function",)
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # for the program
    processes: bool = False  # whether each copy is a process of its own
    mps: bool = False  # whether these run under NVIDIA's MPS
    needs_gpu: str = ""  # why it runs on a real GPU only; empty if it does not
    serves: bool = True
    trains: bool = False
    tensorflow_kernels: bool = True  # whether its results should have the bits of stock TensorFlow
    models: tuple[str, ...] = ()  # workloads that it has; empty for all

    @property
    def ours(self) -> bool:
        return self.parallel == "groups"

    def environment(self, parallel: int) -> dict[str, str]:
        """The variables of its processes, for a number of groups or copies."""
        return {**({GROUPS: str(parallel)} if self.ours else {}), **self.variables}

    def runs(self, workload: Workload) -> bool:
        """Tells whether it is meant for a workload."""
        right_kind = self.trains if workload.training else self.serves
        has_it = not self.models or workload.name in self.models
        return right_kind and has_it

    def tolerance(self, workload: Workload) -> float:
        """The tolerance of its results, as Judge takes it; 0: the same bits."""
        return 0.0 if self.tensorflow_kernels and workload.same_bits else TOLERANCE


_NODE_LEVEL = {"TF_NODE_LEVEL_MULTISTREAM": "true"}
_COPIES: Any = {"parallel": "copies", "least": 2}
_GROUPS: Any = {"parallel": "groups"}
_BRANCHES: Any = {"parallel": "groups", "least": 2, "serves": False, "trains": True}
_XLA: Any = {"trains": True, "tensorflow_kernels": False}
# Other frameworks have the models of models.py that are not trained.
_ONCE = ("recommender", "dlrm", "bert", "lstm", "mlp", "transformer")
_OTHER: Any = {"tensorflow_kernels": False, "models": _ONCE}
_GRAPHS: Any = {"options": {"graphs": True}, "needs_gpu": "CUDA graphs are of real GPUs", **_OTHER}
_TORCH = ("torch_program", "torch")
_ONNX = ("onnx_program", "onnxruntime")
_NO_XLA = "XLA compiles for no emulated GPU"

_ALL = (
    Peer("stock", "TensorFlow, one stream", trains=True),
    Peer(
        "virtual",
        "TensorFlow, virtual devices",
        options={"virtual": True},
        needs_gpu="an emulated GPU cannot be split into virtual devices",
        **_COPIES,
    ),
    Peer("processes", "TensorFlow, processes", processes=True, **_COPIES),
    Peer(
        "mps",
        "TensorFlow, processes under MPS",
        processes=True,
        mps=True,
        needs_gpu="MPS is of real GPUs",
        **_COPIES,
    ),
    Peer("xla_auto", "TensorFlow, XLA auto-jit", variables={"TF_XLA_FLAGS": AUTO_JIT}, **_XLA),
    Peer(
        "xla",
        "TensorFlow, XLA (jit_compile)",
        options={"compiled": True},
        needs_gpu=_NO_XLA,
        **_XLA,
    ),
    Peer(
        "groups",
        "stream groups",
        variables={"TF_MULTI_STREAM_CAPTURE": "marked"},
        least=2,
        calls=("function", "serving"),
        **_GROUPS,
    ),
    Peer(
        "captured",
        "stream groups, captured",
        variables=CAPTURE,
        calls=("function", "serving"),
        trains=True,
        **_GROUPS,
    ),
    Peer(
        "captured_xla",
        "stream groups, XLA captured",
        variables={**CAPTURE, **CAPTURABLE_XLA},
        calls=("serving",),
        tensorflow_kernels=False,
        needs_gpu=_NO_XLA,
        **_GROUPS,
    ),
    Peer(
        "marks",
        "stream groups, branches marked",
        variables=_NODE_LEVEL,
        options={"marks": True},
        **_BRANCHES,
    ),
    Peer(
        "policy",
        "stream groups, policy cost",
        variables={**_NODE_LEVEL, "TF_MULTI_STREAM_POLICY": "cost"},
        **_BRANCHES,
    ),
    Peer("pytorch", "PyTorch, eager", _TORCH, **_OTHER),
    Peer("pytorch_graphs", "PyTorch, CUDA graphs", _TORCH, **_GRAPHS),
    Peer("onnxruntime", "ONNX Runtime", _ONNX, calls=("one_session", "session_a_client"), **_OTHER),
    Peer(
        "onnxruntime_graphs",
        "ONNX Runtime, CUDA graphs",
        _ONNX,
        calls=("session_a_client",),
        **_GRAPHS,
    ),
    Peer(
        "jax",
        "JAX",
        ("jax_program", "jax"),
        variables={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        **_OTHER,
    ),
)
PEERS: dict[str, Peer] = {peer.name: peer for peer in _ALL}
REFERENCE = PEERS["stock"]
