# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rounds of a soak, drawn from a seed.

A round is a process: settings that TensorFlow reads once, and the kinds of work that run in it
side by side.
"""

import dataclasses
import itertools
import random
from collections.abc import Iterator

# Models with branches: how many branches, and layers of each; a model uses that many groups.
BRANCHES, DEPTH = 4, 3
# For each kind of work, the most worker threads in a round.
KINDS = {
    "function": 2,
    "session": 2,
    "saved_model": 2,
    "serving_callable": 3,
    "keras_predict": 1,
    "auto_stream": 1,
    "session_policy": 1,
    "train_session": 1,
    "train_function": 1,
    "variables": 3,
    "sessions_come_and_go": 1,
    "cancellations": 1,
    "full_memory": 1,
    "pinned": 2,
    "feeds": 2,
    "eager_ops": 16,
    "compiled": 16,
    "evictions": 3,
    "models_come_and_go": 1,
    "strings": 2,
    "recurrent": 2,
    "mixed_precision": 1,
    "prefetched": 1,
    "keras_fit": 1,
    "captured_training": 5,
    "foreign_calls": 1,
    "nested_calls": 16,
}
# At least a writer and a reader; or a thread that disturbs, and two that train.
LEAST_WORKERS = {"variables": 2, "captured_training": 3}
# These kinds are about many threads; on a GPU they always get the most.
MANY_THREADS = {"eager_ops", "compiled", "nested_calls"}
# For each kind, the most worker threads on an emulated GPU, which is the CPU.
MOST_EMULATED = 4
# Not at node level, where calls have no group and are not captured.
GRAPH_LEVEL_ONLY = {"pinned", "captured_training"}
# These need CUDA.
GPU_ONLY = {"foreign_calls"}
LEAST_KINDS = 6
# The stream group that has SMs of its own, in some rounds: only pinned calls use it.
GROUP_WITH_SMS = 1
# Faults that a round injects on purpose, to check that they are noticed.
FAULTS = {"drop_wait": 0, "drop_hold": 1, "release_early": 2}

POLICIES = ("user_defined", "embedding", "full_graph", "cost")
SWITCHES = (
    "TF_GPU_STREAM_GROUP_SHARE_MEM_POOL",
    "TF_GPU_STREAM_AWARE_BFC",
    "TF_GPU_STREAM_MERGE",
    "TF_PER_STREAM_HOST_ALLOCATOR",
    "TF_SEGMENT_OWN_CONST",
)
# Seconds of load: long rounds show growth, many rounds cover many settings.
SECONDS = (45, 60, 90, 150, 300)


@dataclasses.dataclass(frozen=True)
class Round:
    """One process."""

    number: int  # from 0
    seed: int  # of what its workers draw
    seconds: int  # of load
    settings: dict[str, str]  # environment variables
    workers: dict[str, int]  # number of threads of each kind of work

    @property
    def node_level(self) -> bool:
        """Whether nodes of a step have groups."""
        return (
            self.settings.get("TF_NODE_LEVEL_MULTISTREAM") == "true"
            or "TF_MULTI_STREAM_POLICY" in self.settings
        )

    @property
    def policy(self) -> str:
        """The policy that splits steps; empty if there is none."""
        return self.settings.get("TF_MULTI_STREAM_POLICY", "")

    @property
    def sanitized(self) -> bool:
        """Whether the stream sanitizer ends the process at a race."""
        return self.settings.get("TF_MULTI_STREAM_SANITIZER") == "abort"

    def __str__(self) -> str:
        settings = [f"{name}={value}" for name, value in self.settings.items()]
        work = [f"{name} x {count}" for name, count in self.workers.items()]
        return (
            f"round {self.number}: {self.seconds} s, seed {self.seed}\n"
            f"    settings: {' '.join(settings)}\n"
            f"    work: {', '.join(work)}"
        )


def _draw_capture(draw: random.Random) -> dict[str, str]:
    if draw.random() >= 0.7:
        return {}
    settings = {"TF_MULTI_STREAM_CAPTURE": draw.choice(("auto", "auto", "marked"))}
    if draw.random() < 0.5:
        settings["TF_MULTI_STREAM_CAPTURE_MB"] = "1"  # so that recordings are evicted
    if draw.random() < 0.6:
        settings["TF_MULTI_STREAM_CAPTURE_PIECES"] = draw.choice(("1", "4"))
    return settings


def draw_round(seed: int, number: int, groups: int, gpu: bool) -> Round:
    """Draws a round; the same arguments give the same one.

    The first round is at graph level, the second one at node level; each has all kinds of work that
    its settings allow.
    """
    draw = random.Random(f"{seed}:{number}")
    settings = {"TF_GPU_STREAM_GROUP_COUNT": str(groups), "TF_DETERMINISTIC_OPS": "1"}
    if not gpu:
        settings["TF_MULTI_STREAM_EMULATED_GPUS"] = "1"
    level = number if number < 2 else draw.randrange(4)
    if level == 1:
        settings["TF_NODE_LEVEL_MULTISTREAM"] = "true"
    elif level == 2:
        settings["TF_MULTI_STREAM_POLICY"] = draw.choice(POLICIES)
        settings["TF_MULTI_STREAM_MEASURE"] = draw.choice(("true", "false"))
    for switch in SWITCHES:
        if number > 0 and draw.random() < 0.25:
            settings[switch] = "true"
    if number > 0 and draw.random() < 0.3:
        settings["TF_GPU_THREAD_MODE"] = draw.choice(("gpu_private", "gpu_shared"))
    # The sanitizer is slow; on a GPU only tests use it.
    if not gpu and number > 0 and (draw.random() < 0.4 or number == 1):
        settings["TF_MULTI_STREAM_SANITIZER"] = "abort"
    sms = random.Random(f"{seed}:{number}:sms")
    if groups > 1 and sms.random() < 0.3:
        settings["TF_GPU_STREAM_GROUP_SMS"] = f"{GROUP_WITH_SMS}:{sms.choice((8, 16, 32))}"
    node_level = level in (1, 2)
    if not node_level:
        settings |= _draw_capture(random.Random(f"{seed}:{number}:capture"))
    possible = [
        kind
        for kind in KINDS
        if not (node_level and kind in GRAPH_LEVEL_ONLY) and (gpu or kind not in GPU_ONLY)
    ]
    kinds = possible
    if number > 1:
        kinds = draw.sample(possible, draw.randint(LEAST_KINDS, len(possible)))
        kinds.sort(key=possible.index)
    workers = {}
    for kind in kinds:
        most = KINDS[kind] if gpu else min(KINDS[kind], MOST_EMULATED)
        least = most if gpu and kind in MANY_THREADS else LEAST_WORKERS.get(kind, 1)
        workers[kind] = draw.randint(least, most)
    return Round(number, draw.randrange(2**31), draw.choice(SECONDS), settings, workers)


def draw_rounds(seed: int, groups: int, gpu: bool) -> Iterator[Round]:
    """Draws round after round, without end."""
    return (draw_round(seed, number, groups, gpu) for number in itertools.count())
