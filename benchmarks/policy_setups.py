# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""Who may say what runs on which stream group, and with which variables.

`benchmark_policies.py` compares these setups.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from benchmark_inference import GROUP_VARIABLES

POLICY = "TF_MULTI_STREAM_POLICY"
# What says which node has which group, and is for the setups to set.
SETUP_VARIABLES = (*GROUP_VARIABLES, POLICY, "TF_STREAM_FROM_FILE")


@dataclasses.dataclass(frozen=True)
class Setup:
    """Who says what runs on which stream group.

    Args:
        name: in the table and on the command line.
        groups: whether there are several; without, it is stock TensorFlow.
        marks: whether the model's branches are in scopes.
        policy: of `TF_MULTI_STREAM_POLICY`; empty for none.
    """

    name: str
    groups: bool = True
    marks: bool = False
    policy: str = ""


STOCK = Setup("stock", groups=False)
ONE_STREAM = Setup("one_stream")
SETUPS = {
    setup.name: setup
    for setup in (
        STOCK,
        ONE_STREAM,
        Setup("hand_marks", marks=True),
        *(Setup(policy, policy=policy) for policy in ("embedding", "full_graph", "cost")),
    )
}


def is_ours(name: str) -> bool:
    """Whether a variable is one of the multi-stream runtime's, so not for stock TensorFlow."""
    others = ("TF_SEGMENT_OWN_CONST", "TF_GPU_CONTEXT_COUNT", "TF_BFC_EXTEND_LIMIT_MB")
    return name in others or (name.startswith("TF_") and "STREAM" in name)


def environment_of(setup: Setup, groups: int, environment: Mapping[str, str]) -> dict[str, str]:
    """Makes the environment of a run.

    Args:
        setup: what is run.
        groups: stream groups.
        environment: variables to start from; those that the setups differ in are
            replaced, and stock TensorFlow gets none of ours.

    Returns:
        The variables.
    """
    result = {
        name: value
        for name, value in environment.items()
        if name not in SETUP_VARIABLES and (setup.groups or not is_ours(name))
    }
    if setup.groups:
        result["TF_GPU_STREAM_GROUP_COUNT"] = str(groups)
        result["TF_NODE_LEVEL_MULTISTREAM"] = "true"
    if setup.policy:
        result[POLICY] = setup.policy
    # Which algorithm is the fastest is not the same in each process.
    result.setdefault("TF_CUDNN_USE_AUTOTUNE", "0")
    # Deterministic updates of rows copy a table to the host, for the sake of ids that are
    # twice in a batch. None is here.
    result.setdefault("TF_DISABLE_SCATTER_OP_DETERMINISM", "true")
    # Warnings, too, which say when a variable has no effect.
    result.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    return result
