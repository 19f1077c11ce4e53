# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""The devices that --device names."""

import re
from collections.abc import Sequence

import tensorflow as tf

ALL_GPUS = "all-gpus"
_NAME = re.compile(r"/?(?:device:)?([a-z]+):([0-9]+)", re.IGNORECASE)


def stream_groups_of(device: str) -> int:
    """How many stream groups a device has, by its name; 1 for a CPU."""
    kind, _, index = device.rpartition(":")
    return tf.cuda.stream_group_count(int(index)) if kind == "/GPU" else 1


def devices_of(given: Sequence[str]) -> list[str]:
    """The devices' names, such as /GPU:0.

    Args:
      given: names, or lists of them separated by commas, or ALL_GPUS; if there are none, the first
        GPU, or the CPU where there is no GPU.

    Raises:
      OSError: a name is wrong, or does not go with the others.
    """
    there = [device.name.replace("/device:", "/") for device in tf.config.list_logical_devices()]
    gpus = [name for name in there if name.startswith("/GPU:")]
    names = [name.strip() for text in given for name in text.split(",")]
    if not names:
        return gpus[:1] or ["/CPU:0"]
    if names == [ALL_GPUS] and gpus:
        return gpus
    found: list[str] = []
    for name in names:
        parts = _NAME.fullmatch(name)
        device = f"/{parts[1].upper()}:{int(parts[2])}" if parts else ""
        if device not in there:
            raise OSError(
                f"--device {name!r} is not a device of this process, which has {', '.join(there)}. "
                f"Give one of these, several GPUs separated by commas, or {ALL_GPUS} alone for all "
                "GPUs that there are."
            )
        if device in found:
            raise OSError(f"--device {device} is given twice. Give each device once.")
        found.append(device)
    kinds = {name.partition(":")[0] for name in found}
    if len(kinds) > 1:
        raise OSError(
            f"--device {','.join(found)} has a CPU beside GPUs. Give GPUs alone, or a CPU alone."
        )
    return found
