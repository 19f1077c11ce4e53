# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A request of bytes gets the answer that the signature gives for its arrays, or is left alone."""

import textwrap

import pytest

from multistream.testing import kit, serving_messages


def run(code: str, capture: str = "off", **environment: str) -> None:
    kit.run_captured(
        serving_messages.MESSAGES, textwrap.dedent(code), capture=capture, **environment
    )


@pytest.mark.parametrize("capture", ["off", "auto"])
def test_answers_are_those_of_the_callable(capture: str) -> None:
    """Of all batch sizes, with the model's name and the version; also at once through lanes."""
    run(
        """
        callable_ = served(model.scores)
        def asks(seed, rows):
            random = np.random.default_rng(seed)
            x = random.normal(0, 1, (rows, 4)).astype(np.float32)
            ids = random.integers(0, rows, 5).astype(np.int32)
            return x, ids
        def check_one(lane, seed, rows):
            x, ids = asks(seed, rows)
            answer = lane(request(x=x, ids=ids))
            with tf.device(GPU):
                want = callable_(x=x, ids=ids)
            got = outputs_of(answer)
            check(got.keys() == want.keys() and all(
                got[n].dtype == want[n].dtype and got[n].shape == want[n].shape
                and got[n].tobytes() == want[n].tobytes() for n in want), "bits")
            spec = dict(fields(dict(fields(answer))[2]))
            check((spec[1], dict(fields(spec[2]))[1], spec[3]) == (b"m", 300, b"f"), "spec")
        def client(k):
            lane = Lane(models)
            for i in range(20): check_one(lane, 100 * k + i, 1 + i % 4)
            lane.close()
        client(9)
        run_clients(client)
        """,
        capture=capture,
    )


def test_strings_and_errors() -> None:
    """Strings come as they are; the function's error is that of a call."""
    run("""
        lane = Lane(models)
        served(model.lengths)
        answer = outputs_of(lane(request(s=[[b"", b"a"], [bytes(300), b"\\xff"]])))
        check(answer["n"].tolist() == [[0, 1], [300, 1]], "lengths")
        failing = served(model.fails)
        check(outputs_of(lane(request(x=np.float32(2))))["x"] == 2, "a number")
        for _ in range(3):
            fails(tf.errors.InvalidArgumentError,
                  lambda: lane(request(x=np.float32("nan"))), "not a number")
        check(failing.predictor.answered() == 4, "errors are answers")
        lane.close()
    """)


def test_long_errors_are_cut_between_characters() -> None:
    run("""
        class Fails(tf.Module):
            @tf.function(input_signature=[tf.TensorSpec([], name="x")])
            def fails(self, x):
                with tf.device("/CPU:0"):
                    return {"x": tf.debugging.check_numerics(x, before + 1000 * "\u20ac")}
        lane = Lane(models)
        for before in ("", "x", "xx"):  # a character has three bytes
            module = Fails()
            served(module.fails, of=module)
            try: error = lane(request(x=np.float32("nan")))
            except tf.errors.InvalidArgumentError as raised: error = raised.message
            check(1998 <= len(error.encode()) <= 2000, "bytes of a long error")
            check(before + "\u20ac" in error, "its text")
        lane.close()
    """)


def test_what_is_not_plain_is_left_to_python() -> None:
    """Other names, types, shapes and sizes; labels, filters, and bytes that are no message."""
    run("""
        scores = served(model.scores)
        lane = Lane(models)
        x, ids = np.zeros((2, 4), np.float32), np.zeros(1, np.int32)
        good = request(x=x, ids=ids)
        check(lane(good) is not None, "plain")
        twice = tf.make_tensor_proto(x)
        for what, bad in {
            "an input is missing": request(x=x), "one is unknown": request(x=x, ids=ids, z=x),
            "another name": request(x=x, i=ids), "a type": request(x=x, ids=ids.astype(np.int64)),
            "a shape": request(x=x[:, :3], ids=ids), "a rank": request(x=x[0], ids=ids),
            "a name twice": request(x=x, ids=ids) + field(2, entry("x", twice)),
            "a filter": good + field(3, "y"), "a label": field(1, field(4, "stable")) + good,
            "large": request(x=np.zeros((1 << 17, 4), np.float32), ids=ids),
            "cut off": good[:-1], "no message": b"\\xff" * 20, "nothing": b"",
            "another model": request("n", x=x, ids=ids),
            "another signature": request(signature="g", x=x, ids=ids),
            "another version": request(version=299, x=x, ids=ids),
            "a negative version": request(version=(1 << 64) - 1, x=x, ids=ids),
        }.items():
            check(lane(bad) is None, what)
        check(lane(good) is not None, "plain as before")
        check(scores.predictor.answered() == 2, "the rest is not answered")
        lane.close()
    """)


def test_versions_come_and_go_under_load() -> None:
    """The newest answers, or the one that is named; a withdrawn one is called no more."""
    run("""
        import gc, weakref
        x, ids = np.ones((2, 4), np.float32), np.zeros(1, np.int32)
        asked = request(x=x, ids=ids)
        def version_of(answer):
            spec = dict(fields(dict(fields(answer))[2]))
            return dict(fields(spec[2]))[1]
        served(model.scores, 1)
        lane = Lane(models)
        check(version_of(lane(asked)) == 1, "the only one")
        served(model.scores, 3)
        served(model.scores, 2)
        check(version_of(lane(asked)) == 3, "the newest")
        check(version_of(lane(request(version=2, x=x, ids=ids))) == 2, "the one that is named")
        wait = models.withdraw("m", 3)
        check(lane(request(version=3, x=x, ids=ids)) is None, "at once")
        served(model.scores, 3)  # again, before the first one's requests have ended
        wait()
        check(version_of(lane(asked)) == 3, "the second one stays")
        models.withdraw("m", 3)()
        models.withdraw("m", 3)()
        models.withdraw("unknown", 1)()
        check(version_of(lane(asked)) == 2, "the one before")
        check(lane(request(version=3, x=x, ids=ids)) is None, "withdrawn")
        ended, seen = threading.Event(), set()
        def client(k):
            own = Lane(models)
            while not ended.is_set():
                answer = own(asked)
                seen.add(version_of(answer))
                check(outputs_of(answer)["ids"].tolist() == [0], "right")
            own.close()
        clients = [threading.Thread(target=client, args=(k,), daemon=True) for k in range(4)]
        for c in clients: c.start()
        for version in range(10, 22):
            served(model.scores, version)
            gone = weakref.ref(kept[-2])
            models.withdraw("m", version - 1 if version > 10 else 2)()
            del kept[-2]
            gc.collect()
            check(gone() is None, "nothing keeps a version that is withdrawn")
        ended.set()
        for c in clients: c.join()
        check(len(seen) > 3, "several versions have answered")
        models.withdraw("m", 21)()
        check(version_of(lane(asked)) == 1, "the first")
        models.withdraw("m", 1)()
        check(lane(asked) is None, "none is left")
        lane.close()
    """)


def test_signatures_without_names_are_refused() -> None:
    """A callable whose results are not a dict of tensors has no names to answer with."""
    run("""
        f = tf.function(lambda x: [x, x], input_signature=[tf.TensorSpec([2])])
        callables, devices = [tf.cuda.serving_callable(f)], served_models.Devices([GPU])
        fails(ValueError, lambda: served_models.Predictor(callables, "f", devices, 1),
              "signature f")
        check(True, "done")
    """)
