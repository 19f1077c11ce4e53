# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""For tests: results that nobody measured."""

import dataclasses
from collections.abc import Sequence

from .results import Results, Round, Row
from .sweep import Configuration, Team


def configuration(
    peer: str = "captured", parallel: int = 1, clients: int = 4, workload: str = "recommender"
) -> Configuration:
    """A configuration of batch 16 that calls a function."""
    return Configuration(Team(workload, peer, parallel), 16, clients, "function")


def row(of: Configuration, rates: Sequence[float], wrong: int = 0) -> Row:
    """A row of a round for each number of queries a second."""
    rounds = [Round(100, wrong, rate, 1.0, 2.0, 3.0, 4.0, 50.0, 0) for rate in rates]
    return Row(of, rounds, memory_mib=100.0 * of.team.parallel)


def results(*rows: Row) -> Results:
    """Results of these rows."""
    return Results(
        date="2026-01-02",
        command="main.py --quick",
        commit="abc",
        machine={"cpu": "A <CPU>", "cores": "2", "gpu": "A GPU", "driver": "1"},
        emulated=False,
        seconds=1.0,
        size="full",
        memory="taken from the GPU by all processes",
        skipped={"jax": "jax is not installed"},
        left_out=["lstm: 1 of 3 rounds"],
        rows=list(rows),
    )


def all_kinds() -> Results:
    """Results of two workloads, a served one and a trained one, with several settings."""
    served = [
        row(configuration(peer, parallel, clients), [100.0 * clients * parallel, 90.0])
        for peer, parallel in (("stock", 1), ("captured", 1), ("captured", 4), ("processes", 4))
        for clients in (1, 4)
    ]
    trained = [
        row(
            dataclasses.replace(configuration(peer, parallel, 1, "wide_and_deep_4"), batch=128),
            [10.0],
        )
        for peer, parallel in (("stock", 1), ("marks", 2), ("marks", 4))
    ]
    return results(*served, *trained)
