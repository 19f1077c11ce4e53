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
"""How figures of two runs compare, each of which has measured in several rounds."""

from __future__ import annotations

from collections.abc import Sequence

HIGHER, LOWER, NOISE = "higher", "lower", "within noise"


def verdict(old: Sequence[float], new: Sequence[float]) -> str:
    """Tells whether a figure has changed beyond what the rounds of a run differ.

    Args:
        old: of the rounds of the older run.
        new: likewise of the newer one.

    Returns:
        `HIGHER` if all of the new ones are higher than all of the old ones, `LOWER` if all are
        lower, or else `NOISE`; one round shows no noise, so it is `NOISE`, too.
    """
    if min(len(old), len(new)) < 2:
        return NOISE
    if min(new) > max(old):
        return HIGHER
    return LOWER if max(new) < min(old) else NOISE
