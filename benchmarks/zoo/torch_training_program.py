# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains models of the zoo in PyTorch: python -m zoo.torch_training_program SECONDS.

Run it in benchmarks/. It needs a GPU, PyTorch, torchvision and transformers. The models have the
sizes of sizes.py and models.py; torchvision has ResNet50 and not its second version. Adam and the
mean squared error, as in program.py; the labels stay on the GPU. Each model trains twice: eagerly,
and with a step as one CUDA graph. A time is that of 60 steps, by step. The output is JSON, a line
for each.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from zoo.sizes import BATCH, BERT, GPT2, TOKENS, WORDS

_INPUTS, _STEPS = 6, 60
_OF_IMAGES = {
    "ResNet50": "resnet50",
    "MobileNetV3Small": "mobilenet_v3_small",
    "ConvNeXtTiny": "convnext_tiny",
}
_Arrays = list[np.ndarray]


def main(seconds: float) -> None:
    """Measures all models."""
    for name in ("Bert", "GPT2", *_OF_IMAGES):
        for graphs in (False, True):
            times, loss = _train(name, graphs, seconds)
            figures = {
                "median_ms": float(np.median(times)),
                "lowest_ms": min(times),
                "highest_ms": max(times),
            }
            print(json.dumps({"model": name, "cuda_graph": graphs, **figures, "loss": loss}))


def _make(name: str) -> tuple[Any, Callable[[], _Arrays], Callable[..., Any]]:
    """Returns a model, what draws its inputs, and how to call it."""
    random = np.random.RandomState(0)

    def ids() -> np.ndarray:
        return random.randint(0, WORDS, (BATCH, TOKENS))

    if name in _OF_IMAGES:
        models = importlib.import_module("torchvision.models")
        model = getattr(models, _OF_IMAGES[name])(num_classes=10)

        def images() -> _Arrays:
            return [random.normal(0, 1, (2, 3, 64, 64)).astype(np.float32)]

        return model, images, model
    transformers = importlib.import_module("transformers")
    if name == "GPT2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2))
        return model, lambda: [ids()], lambda x: model(input_ids=x, use_cache=False).logits
    model = transformers.BertForSequenceClassification(transformers.BertConfig(**BERT))
    return (
        model,
        lambda: [ids(), np.ones([BATCH, TOKENS], np.int64)],
        lambda x, mask: model(input_ids=x, attention_mask=mask).logits,
    )


def _train(name: str, graphs: bool, seconds: float) -> tuple[list[float], float]:
    """Returns the milliseconds of a step in each epoch, and the last loss."""
    torch.manual_seed(0)
    model, draw, call = _make(name)
    model.cuda().train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, capturable=graphs)
    batches = [[torch.from_numpy(x).pin_memory() for x in draw()] for _ in range(_INPUTS)]
    inputs = [x.cuda() for x in batches[0]]
    with torch.no_grad():
        labels = torch.randint(0, 2, call(*inputs).shape, device="cuda").float()

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = ((call(*inputs) - labels) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    run = _captured(step) if graphs else step
    times: list[float] = []
    end = time.monotonic() + seconds
    while True:
        start = time.perf_counter()
        for i in range(_STEPS):
            for place, x in zip(inputs, batches[i % _INPUTS], strict=True):
                place.copy_(x, non_blocking=True)
            loss = run()
        last = float(loss)  # waits
        times.append((time.perf_counter() - start) * 1e3 / _STEPS)
        if time.monotonic() >= end:
            return times, last


def _captured(step: Callable[[], Any]) -> Callable[[], Any]:
    """The step as a CUDA graph, after five eager ones on a stream of their own."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay() -> Any:
        graph.replay()
        return loss

    return replay


if __name__ == "__main__":
    main(float(sys.argv[1]))
