# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the scopes around `strategy.run` apply to replica functions.

Each thread has scopes of its own. `tf.distribute.MirroredStrategy` and others call a replica
function in one thread for each replica; a function passed to `merge_call`, such as an all-reduce,
runs in the thread that called `strategy.run`. TensorFlow hands devices, name scopes and control
dependencies over to the other thread; this module hands over the stream scopes.
"""

import functools
from collections.abc import Callable
from typing import Any

from tensorflow.python.distribute import mirrored_run
from tensorflow.python.multistream.scopes import scope_stack


def _with_scopes(hand_over: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(hand_over)
    def with_scopes(
        owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return hand_over(owner, scope_stack.carry(function), args, kwargs)

    return with_scopes


def attach() -> None:
    """Makes TensorFlow hand over stream scopes; called once, when TensorFlow is imported."""
    context = mirrored_run._MirroredReplicaContext
    mirrored_run._call_for_each_replica = _with_scopes(mirrored_run._call_for_each_replica)
    context._merge_call = _with_scopes(context._merge_call)
