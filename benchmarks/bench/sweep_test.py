# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of sweep.py and peers.py."""

from .fleet import FRAMEWORK_VARIABLES, clean_environment, environment_of
from .peers import PEERS
from .sweep import Sweep, Team, configurations
from .workloads import INPUTS, SIZES, TOLERANCE, WORKLOADS

SWEEP = Sweep(clients=(1, 4, 8), groups=(1, 2, 8), copies=(4,))


def settings(workload: str, *peers: str) -> list[tuple[str, int, int, str]]:
    found = configurations(WORKLOADS[workload], [PEERS[name] for name in peers], SWEEP)
    return [(one.team.peer, one.team.parallel, one.clients, one.call) for one in found]


def test_what_could_not_use_all_it_has_is_left_out() -> None:
    """More copies than clients; more groups than clients, but for the fewest groups."""
    found = settings("recommender", "processes", "groups", "captured")
    assert ("processes", 4, 4, "function") in found
    assert not any(peer == "processes" and clients < 4 for peer, _, clients, _ in found)
    groups = {(n, clients) for peer, n, clients, _ in found if peer == "groups"}
    assert groups == {(2, 1), (2, 4), (2, 8), (8, 8)}
    captured = {(n, clients) for peer, n, clients, _ in found if peer == "captured"}
    assert captured == {(1, 1), (1, 4), (1, 8), (2, 4), (2, 8), (8, 8)}
    assert {call for peer, *_, call in found if peer == "groups"} == {"function", "serving"}


def test_a_training_has_one_client_and_peers_that_train() -> None:
    found = settings("wide_and_deep_8", *PEERS)
    assert {peer for peer, *_ in found} == {
        "stock", "xla_auto", "xla", "captured", "marks", "policy"
    }  # fmt: skip
    assert {call for *_, call in found} == {"function"}
    assert {clients for _, _, clients, _ in found} == {1}
    assert ("marks", 8, 1, "function") in found


def test_only_stock_kernels_must_give_the_same_bits() -> None:
    recommender, inception = WORKLOADS["recommender"], WORKLOADS["inception"]
    assert PEERS["captured"].tolerance(recommender) == 0
    assert PEERS["captured"].tolerance(inception) == TOLERANCE
    for name in ("xla", "captured_xla", "pytorch", "jax", "onnxruntime"):
        assert PEERS[name].tolerance(recommender) == TOLERANCE


def test_inputs_differ_and_are_the_same_each_time() -> None:
    for workload in WORKLOADS.values():
        for size in SIZES:
            drawn = [workload.inputs(size, workload.batches[-1]) for _ in range(2)]
            bits, again = ([x.tobytes() for x in inputs] for inputs in drawn)
            assert bits == again
            assert len(set(bits)) == INPUTS


def test_ids_of_a_training_come_once_in_a_batch() -> None:
    """Gradients of one row would be added in any order."""
    for x in WORKLOADS["wide_and_deep_4"].inputs("small", 128):
        assert all(len(set(column)) == 128 for column in x.T)


def test_workers_have_no_variables_of_frameworks_but_emulated_gpus() -> None:
    given = {
        "PATH": "p",
        "TF_XLA_FLAGS": "x",
        "TF_MULTI_STREAM_EMULATED_GPUS": "1",
        "XLA_FLAGS": "",
    }
    clean = clean_environment(given)
    assert clean["PATH"] == "p" and clean["TF_MULTI_STREAM_EMULATED_GPUS"] == "1"
    assert {name for name in clean if name.startswith(FRAMEWORK_VARIABLES)} == {
        "TF_MULTI_STREAM_EMULATED_GPUS", "TF_FORCE_GPU_ALLOW_GROWTH", "TF_CPP_MIN_LOG_LEVEL"
    }  # fmt: skip
    assert "TF_MULTI_STREAM_EMULATED_GPUS" not in clean_environment({"PATH": "p"})


def test_variables_are_of_peers_with_stream_groups() -> None:
    more = {"TF_MULTI_STREAM_SPIN_LOCKS": "0"}
    groups = environment_of(Team("mlp", "groups", 4), {"PATH": "p"}, more)
    marked = {"TF_MULTI_STREAM_CAPTURE": "marked"}
    assert groups == {"PATH": "p", "TF_GPU_STREAM_GROUP_COUNT": "4", **marked, **more}
    assert environment_of(Team("mlp", "stock", 1), {"PATH": "p"}, more) == {"PATH": "p"}
