# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which configurations are measured."""

import dataclasses
import itertools
import random
from collections.abc import Iterator, Sequence

from .peers import Peer
from .workloads import Workload


@dataclasses.dataclass(frozen=True)
class Team:
    """The process, or processes, that run a workload for a peer."""

    workload: str
    peer: str
    parallel: int  # stream groups, copies of the model, or 1

    @property
    def setting(self) -> str:
        """The peer, and the number of groups or copies if there are several."""
        return f"{self.peer} {self.parallel}" if self.parallel > 1 else self.peer

    @property
    def slug(self) -> str:
        """Its name in names of files."""
        return f"{self.workload}-{self.peer}-{self.parallel}"

    def __str__(self) -> str:
        return f"{self.setting}, {self.workload}"


@dataclasses.dataclass(frozen=True)
class Configuration:
    """What is measured."""

    team: Team  # who runs it
    batch: int  # rows of a query
    clients: int  # threads that query, of all processes together
    call: str  # of the peer's ways to call

    def __str__(self) -> str:
        call = f", {self.call}" if self.call != "function" else ""
        clients = f"{self.clients} client{'s' if self.clients > 1 else ''}"
        return f"{self.team.workload}, batch {self.batch}, {clients}: {self.team.setting}{call}"


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What is swept."""

    clients: tuple[int, ...] = (1, 4, 8, 16)  # numbers of client threads
    groups: tuple[int, ...] = (1, 4, 8, 16)  # numbers of stream groups
    # Numbers of copies of the model: virtual devices and processes.
    copies: tuple[int, ...] = (4, 8)


QUICK = Sweep(clients=(1, 4), groups=(1, 2), copies=(2,))


def configurations(workload: Workload, peers: Sequence[Peer], sweep: Sweep) -> list[Configuration]:
    """Lists what is measured of a workload.

    Left out is what could not use all it has: more copies than clients, and more groups than
    clients, but for the fewest groups. A training has one client.

    The configurations of the most clients are first, and of these one of each peer, then another
    one of each; so that if time is short, every peer has been measured.
    """
    of_peers = [peer for peer in peers if peer.runs(workload)]
    return [
        one
        for clients in ((1,) if workload.training else sorted(sweep.clients, reverse=True))
        for in_turn in itertools.zip_longest(
            *(_settings(workload, peer, sweep, clients) for peer in of_peers)
        )
        for one in in_turn
        if one is not None
    ]


def _settings(
    workload: Workload, peer: Peer, sweep: Sweep, clients: int
) -> Iterator[Configuration]:
    """Those of one peer, each batch in turn, and the most groups or copies first."""
    swept = {"groups": sweep.groups, "copies": sweep.copies, "": (1,)}[peer.parallel]
    numbers = sorted((number for number in swept if number >= peer.least), reverse=True)
    for parallel in numbers:
        useful = workload.training or parallel <= clients
        fewest = peer.ours and parallel == min(numbers)
        if useful or fewest:
            team = Team(workload.name, peer.name, parallel)
            for call in peer.calls[:1] if workload.training else peer.calls:
                for batch in workload.batches:
                    yield Configuration(team, batch, clients, call)


def order_of_round(found: Sequence[Configuration], number: int) -> list[Configuration]:
    """Orders a round: the first as listed, the others drawn, so that none follows the same one."""
    if number == 0:
        return list(found)
    return random.Random(number).sample(list(found), len(found))
