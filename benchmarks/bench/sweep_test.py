# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of sweep.py and peers.py."""

from __future__ import annotations

import dataclasses

from .fleet import FRAMEWORK_VARIABLES, clean_environment, environment_of
from .peers import PEERS
from .pictures import _STYLES
from .sweep import Sweep, Team, configurations, order_of_round
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


def test_most_clients_come_first_and_every_batch_is_there() -> None:
    found = configurations(WORKLOADS["bert"], [PEERS["stock"]], SWEEP)
    assert [(one.clients, one.batch) for one in found] == [
        (8, 1), (8, 8), (4, 1), (4, 8), (1, 1), (1, 8)
    ]  # fmt: skip


def test_each_peer_is_measured_before_another_setting_of_one() -> None:
    found = settings("recommender", "stock", "processes", "groups", "captured")
    assert [peer for peer, *_ in found[:4]] == ["stock", "processes", "groups", "captured"]
    assert found[2:5] == [
        ("groups", 8, 8, "function"), ("captured", 8, 8, "function"), ("groups", 8, 8, "serving")
    ]  # fmt: skip


def test_a_training_has_one_client_and_peers_that_train() -> None:
    found = settings("wide_and_deep_8", *PEERS)
    assert {peer for peer, *_ in found} == {
        "stock", "xla_auto", "xla", "captured", "marks", "policy"
    }  # fmt: skip
    assert {call for *_, call in found} == {"function"}
    assert {clients for _, _, clients, _ in found} == {1}
    assert ("marks", 8, 1, "function") in found


def test_each_later_round_has_another_order() -> None:
    found = configurations(WORKLOADS["recommender"], list(PEERS.values()), SWEEP)
    rounds = [order_of_round(found, number) for number in range(3)]
    assert rounds[0] == found
    assert rounds[0] != rounds[1] != rounds[2]
    assert set(rounds[1]) == set(rounds[2]) == set(found)


def test_only_stock_kernels_must_give_the_same_bits() -> None:
    recommender, inception = WORKLOADS["recommender"], WORKLOADS["inception"]
    assert PEERS["captured"].tolerance(recommender) == 0
    assert PEERS["captured"].tolerance(inception) == TOLERANCE
    for name in ("xla", "captured_xla", "pytorch", "jax", "onnxruntime"):
        assert PEERS[name].tolerance(recommender) == TOLERANCE


def test_every_peer_has_a_style_of_its_own() -> None:
    assert _STYLES.keys() == PEERS.keys()
    served = [_STYLES[name] for name, peer in PEERS.items() if peer.serves]
    trained = [_STYLES[name] for name, peer in PEERS.items() if peer.trains]
    assert len(set(served)) == len(served) and len(set(trained)) == len(trained)


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
    more = {"TF_MULTI_STREAM_PYTHON_TURNS": "0"}
    groups = environment_of(Team("mlp", "groups", 4), {"PATH": "p"}, more)
    assert groups == {"PATH": "p", "TF_GPU_STREAM_GROUP_COUNT": "4", **more}
    assert environment_of(Team("mlp", "stock", 1), {"PATH": "p"}, more) == {"PATH": "p"}


def test_a_peer_says_which_configuration_it_is() -> None:
    one = configurations(WORKLOADS["recommender"], [PEERS["captured"]], SWEEP)[-1]
    assert str(one) == "recommender, batch 16, 1 client: captured, serving"
    more = dataclasses.replace(one, team=dataclasses.replace(one.team, parallel=8), clients=8)
    assert str(more) == "recommender, batch 16, 8 clients: captured 8, serving"
