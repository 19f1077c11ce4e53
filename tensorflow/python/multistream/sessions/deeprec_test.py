# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Programs written for DeepRec run: tf.stream in a v1 graph, streams asked for in a ConfigProto.

Processes have one emulated GPU and no variable that makes stream groups, unless the test sets one.
"""

import tensorflow.compat.v1 as tf
from google.protobuf import text_format
from google.protobuf.internal import api_implementation

from multistream.testing.deeprec import OFF, POLICIES, Clicks, config, run, waits
from multistream.testing.kit import in_process, same


def trains(streams_used: int) -> None:
    """Training succeeds, on the given number of groups."""
    losses = Clicks(tables=(0, 1), branches=(0, 1)).trained(config())
    assert losses[19] < losses[0]
    assert tf.cuda.stream_group_count() == max(1, streams_used)
    assert len(waits()) == streams_used
    assert all(count > 0 for count in waits()), waits()


@in_process(run, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")
def test_message_fields_need_no_compiled_protocol_buffers() -> None:
    assert api_implementation.Type() == "python"
    with tf.Session(graph=tf.Graph(), config=config()):
        assert tf.cuda.stream_group_count() == 2
    read = type(config()).FromString(config(3, "COST_PARTITION").SerializeToString())
    assert read == config(3, "COST_PARTITION")


def test_without_a_gpu_the_program_runs_on_the_cpu_and_is_warned() -> None:
    stderr = run(trains, 0, TF_MULTI_STREAM_EMULATED_GPUS="", TF_MULTI_STREAM_SANITIZER="")
    assert stderr.count("a session asks for 2 streams of a GPU, and there is no GPU") == 1


def same_bits() -> None:
    """With streams, without scopes, and without streams; by any form of the ConfigProto."""
    trains(2)
    scoped, unscoped = Clicks(tables=(0, 1), branches=(0, 1)), Clicks()
    before = waits()
    expected = unscoped.trained(config())
    assert len({float(loss) for loss in expected[:20]}) == 20
    assert waits() == before
    text = """
        graph_options { rewrite_options { use_multi_stream: ON
          multi_stream_opts { multi_stream_num: 2 partition_policy: USER_DEFINED_PARTITION } } }
    """
    serialized = tf.ConfigProto.FromString(config().SerializeToString())
    for form in (config(), text_format.Parse(text, tf.ConfigProto()), serialized):
        before = waits()
        assert same(scoped.trained(form), expected), form
        assert all(a > b for a, b in zip(waits(), before, strict=True)), form
    # One stream, though the process has two, in the same graph with its scopes.
    before = waits()
    for form in (None, tf.ConfigProto(), config(use=OFF)):
        assert same(scoped.trained(form), expected), form
        assert waits() == before, form


def test_training_gives_the_bits_of_one_stream() -> None:
    """Only the ConfigProto asks for streams; a session without one, or with OFF, has one stream."""
    assert "there is no GPU" not in run(same_bits)


@in_process(run, TF_MULTI_STREAM_MEASURE="false")
def test_every_policy_gives_the_same_bits() -> None:
    """Policies that split use the groups; the others leave all nodes on one group."""
    unmarked, marked = Clicks(), Clicks(tables=(0, 1, 2), branches=(1, 2))
    expected = unmarked.trained(config(3))
    for policy in POLICIES:
        before = waits()
        assert same(unmarked.trained(config(3, policy)), expected), policy
        grown = [a - b for a, b in zip(waits(), before, strict=True)]
        if policy in POLICIES[:2]:
            assert grown == [0, 0, 0], (policy, grown)
        elif policy != "COST_PARTITION":  # COST_PARTITION may find no gain at once
            assert all(count > 0 for count in grown), (policy, grown)
        before = waits()
        assert same(marked.trained(config(3, policy)), expected), policy
        assert all(a > b + 20 for a, b in zip(waits(), before, strict=True)), policy
