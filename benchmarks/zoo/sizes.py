# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What models of the zoo share with those that PyTorch runs: sizes, and inputs of DeepFM."""

from typing import Any

import numpy as np

BATCH = 16
ROWS = 1000  # of an embedding
TOKENS = 32
WORDS = 2000
BERT: dict[str, Any] = {
    "vocab_size": WORDS,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}
GPT2: dict[str, Any] = {
    "vocab_size": WORDS,
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
}


def deepfm_inputs(random: np.random.RandomState) -> dict[str, np.ndarray]:
    """A batch of 26 columns of ids, 13 of numbers, and one of up to 10 genres."""
    genres = random.randint(0, 50, (BATCH, 10)) * (random.rand(BATCH, 10) > 0.4)
    return {
        **{f"C{i}": random.randint(0, ROWS, BATCH).astype(np.int32) for i in range(26)},
        **{f"I{i}": random.rand(BATCH, 1).astype(np.float32) for i in range(13)},
        "genres": genres.astype(np.int32),
    }
