# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The settings: what the processes of both tenants are started with, and what sets them apart."""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Setting:
    """A way to run a tenant that is in a hurry beside a neighbour. A new one is a row of `_ALL`."""

    name: str  # in command lines and results
    title: str
    variables: Mapping[str, str]  # of the processes
    # Stream groups that threads of a tenant have in turn, by tf.cuda.stream_group; none for any.
    hurry_groups: tuple[int, ...] = ()
    neighbour_groups: tuple[int, ...] = ()
    serving: bool = True  # by tf.cuda.serving_callable, or else by calls of a tf.function
    apart: bool = False  # whether each of the two has a process
    mps: bool = False  # whether these run under NVIDIA's MPS


_GROUPS = {"TF_GPU_STREAM_GROUP_COUNT": "8", "TF_MULTI_STREAM_CAPTURE": "off"}
_CAPTURED = {**_GROUPS, "TF_MULTI_STREAM_CAPTURE": "auto"}
# The lowest of an H100 and an H200.
_PRIORITIES = {"TF_GPU_STREAM_GROUP_PRIORITIES": "0,0,0,0,-5,-5,-5,-5"}
# A training runs on group 0 wherever its thread calls.
_PRIOR, _OTHERS = (4, 5, 6, 7), (0, 1, 2, 3)

_ALL = (
    Setting("stock", "one stream", {}, serving=False),
    Setting("groups", "8 stream groups", _GROUPS),
    Setting(
        "groups_priority",
        "4 stream groups, and 4 of the highest priority",
        {**_GROUPS, **_PRIORITIES},
        _PRIOR,
        _OTHERS,
    ),
    Setting("captured", "8 stream groups, captured", _CAPTURED),
    Setting(
        "captured_priority",
        "4 stream groups, and 4 of the highest priority, captured",
        {**_CAPTURED, **_PRIORITIES},
        _PRIOR,
        _OTHERS,
    ),
    *(
        Setting(
            f"captured_sms_{sms}",
            f"4 stream groups, and 4 that share {sms} SMs of their own, captured",
            {**_CAPTURED, **_PRIORITIES, "TF_GPU_STREAM_GROUP_SMS": f"4-7:{sms}"},
            _PRIOR,
            _OTHERS,
        )
        for sms in (16, 24, 32)
    ),
    Setting("processes", "two processes, captured", _CAPTURED, apart=True),
    Setting("processes_mps", "two processes, captured, under MPS", _CAPTURED, apart=True, mps=True),
)
SETTINGS: dict[str, Setting] = {setting.name: setting for setting in _ALL}
