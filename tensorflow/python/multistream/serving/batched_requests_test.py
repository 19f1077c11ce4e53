# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Requests whose rows are independent share a step, and each has its own rows of the results."""

import textwrap

import pytest

from multistream.testing import kit, serving_messages

RANKER = """
class Ranker(tf.Module):
    def __init__(self):
        with tf.device(GPU):
            self.table = tf.Variable(floats(50, 4))
            self.w = tf.Variable(floats(4, 3))
            self.steps = tf.Variable(0.0)
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="ids"),
                                  tf.TensorSpec([None, 4], name="x"),
                                  tf.TensorSpec([], name="scale")])
    def scores(self, ids, x, scale):
        with tf.device(GPU):
            seen = tf.reduce_mean(tf.gather(self.table, ids), 1)
            y = tf.tanh((seen + x) @ self.w) * scale
            return {"y": y, "one": y[:, 0], "any": y > 0, "w": self.w + 1.0,
                    "flat": tf.reshape(y, [-1])}
    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
    def mixes(self, x):
        with tf.device(GPU):
            return {"y": x - tf.reduce_mean(x, 0, keepdims=True)}
    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
    def counts(self, x):
        with tf.device(GPU):
            self.steps.assign_add(1.0)
            return {"y": x + self.steps}
    @tf.function(input_signature=[tf.TensorSpec([2, 4], name="x")])
    def fixed(self, x):
        with tf.device(GPU):
            return {"y": x * 2.0}
    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
    def draws(self, x):
        with tf.device(GPU):
            return {"y": x + tf.random.uniform(tf.shape(x))}

ranker, random = Ranker(), np.random.default_rng(5)
def ask(rows, columns=3, scale=1.0):
    return {"ids": random.integers(0, 50, (rows, columns)).astype(np.int32),
            "x": random.normal(size=(rows, 4)).astype(np.float32), "scale": np.float32(scale)}
def steps(): return sum(group.steps_started for group in tf.cuda.stream_stats())
def same(answer, want):
    got = outputs_of(answer)
    return got.keys() == want.keys() and all(
        got[n].shape == want[n].shape and got[n].tobytes() == want[n].tobytes() for n in want)
def direct(callable_, asked):
    with tf.device(GPU): return callable_(**asked)
def shared(callable_, asked, rows):
    # The results of a step of so many rows, of which the last ones repeat another.
    def joined(name):
        parts = [a[name] for a in asked]
        if parts[0].ndim == 0: return parts[0]
        all_ = np.concatenate(parts)
        return np.concatenate([all_, np.repeat(all_[-1:], rows - len(all_), 0)])
    results, begin, found = direct(callable_, {n: joined(n) for n in asked[0]}), 0, []
    for a in asked:
        end = begin + len(a["x"])
        found.append({n: x if n == "w" else x[begin * len(x) // rows:end * len(x) // rows]
                      for n, x in results.items()})
        begin = end
    return found
"""


def run(code: str, capture: str = "auto") -> None:
    setup = serving_messages.MESSAGES + RANKER
    kit.run_captured(setup, textwrap.dedent(code), capture=capture)


@pytest.mark.parametrize("capture", ["off", "auto"])
def test_requests_share_a_step_and_each_has_its_rows(capture: str) -> None:
    """Of 1 to 3 rows, padded to 8: the bits are those of the step of 8 rows."""
    run(
        """
        rank = served(ranker.scores, batch_sizes=[1, 2, 4, 8], of=ranker)
        direct(rank, ask(1))
        check(rank.predictor.why_not_shared() == "", "why not")
        lane = Lane(models)
        for turn in range(6):
            asked = [ask(rows) for rows in (2, 1, 3, 1)]
            want = shared(rank, asked, 8)
            before = steps()
            answers = lane.batch([request(**a) for a in asked])
            check(steps() - before == 1, f"{steps() - before} steps")
            check(all(same(*each) for each in zip(answers, want)), "bits")
        # More rows than a step may have.
        asked = [ask(5) for _ in range(3)]
        want, before = [shared(rank, [a], 8)[0] for a in asked], steps()
        answers = lane.batch([request(**a) for a in asked])
        check(steps() - before == 3, "a step each")
        check(all(same(*each) for each in zip(answers, want)), "bits")
        # A request of more rows than any size is a step as it is.
        large = ask(20)
        check(same(lane(request(**large)), direct(rank, large)), "large")
        lane.close()
        """,
        capture=capture,
    )


def test_only_what_fits_together_shares_a_step() -> None:
    """Not other lengths or scalars; a broken request is left to Python, and no row is no batch."""
    run("""
        rank = served(ranker.scores, batch_sizes=[1, 2, 4, 8], of=ranker)
        direct(rank, ask(1))
        lane = Lane(models)
        asked = [ask(1), ask(1, columns=5), ask(1, scale=2.0), ask(2), ask(1, columns=5),
                 ask(0), ask(1, scale=2.0)]
        plain, longer, scaled = [asked[0], asked[3]], [asked[1], asked[4]], [asked[2], asked[6]]
        plain, longer, scaled = (shared(rank, x, n)
                                 for x, n in ((plain, 4), (longer, 2), (scaled, 2)))
        want = [plain[0], longer[0], scaled[0], plain[1], longer[1], direct(rank, asked[5]),
                scaled[1]]
        before = steps()
        answers = lane.batch([request(**a) for a in asked])
        check(all(same(*each) for each in zip(answers, want)), "bits")
        check(steps() - before == 4, f"{steps() - before} steps: three kinds, and no rows")
        unequal = ask(2)
        unequal["x"] = unequal["x"][:1]  # not as many rows: TensorFlow broadcasts them
        first, second = ask(1), ask(1)
        answers = lane.batch([request(**first), b"no message", request(**unequal),
                              request("n", **first), request(**second)])
        check(answers[1] is None and answers[3] is None, "Python's")
        check(same(answers[0], direct(rank, first)), "the first")
        check(same(answers[2], direct(rank, unequal)), "unequal")
        check(same(answers[4], direct(rank, second)), "the last")
        lane.close()
    """)


# A GPU gives zeros for rows that a table does not have.
@pytest.mark.skipif(kit.ON_GPU, reason="a gather fails only on an emulated GPU")
def test_an_error_is_that_of_its_request_alone() -> None:
    """The step fails, is made again for each request, and the others have their results."""
    run("""
        rank = served(ranker.scores, batch_sizes=[1, 4], of=ranker)
        direct(rank, ask(1))
        lane = Lane(models)
        asked = [ask(1) for _ in range(3)]
        asked[1]["ids"][0, 0] = 77
        answers = lane.batch([request(**a) for a in asked])
        check(lane.steps == 4, f"{lane.steps} steps: all together, then each alone")
        check(rank.predictor.answered() == 3, "each is answered once")
        check(isinstance(answers[1], tf.errors.InvalidArgumentError)
              and "77" in answers[1].message, f"{answers[1]}")
        check(all(same(answers[i], direct(rank, asked[i])) for i in (0, 2)), "the others")
        lane.close()
    """)


def test_requests_that_become_large_are_not_all_in_memory_at_once() -> None:
    """Of 33 bytes, and a tensor of 0.4 MB; an input may have 1 MiB."""
    run("""
        class Doubles(tf.Module):
            @tf.function(input_signature=[tf.TensorSpec([None, None], name="x")])
            def scores(self, x):
                with tf.device(GPU): return {"y": x[:, :4] * 2.0}
        module = Doubles()
        doubles = served(module.scores, batch_sizes=[64], of=module)
        direct(doubles, {"x": np.ones((1, 100000), np.float32)})
        proto = tf.make_tensor_proto(np.float32(3))
        proto.tensor_shape.dim.add(size=1)
        proto.tensor_shape.dim.add(size=100000)
        lane = Lane(models)
        answers = lane.batch([request(x=proto) for _ in range(30)])
        check(all(same(a, {"y": np.full((1, 4), 6, np.float32)}) for a in answers), "right")
        check(lane.steps == 10, f"{lane.steps} steps, of three requests each")
        lane.close()
    """)


def test_functions_whose_rows_depend_on_each_other_are_refused() -> None:
    """With the op's name, and requests are steps of their own."""
    run("""
        lane = Lane(models)
        x = [random.normal(size=(2, 4)).astype(np.float32) for _ in range(3)]
        for name, why in [("mixes", "Mean"), ("counts", "changes variables"),
                          ("draws", "draws random numbers"), ("fixed", "input x has 2 rows")]:
            function = served(getattr(ranker, name), batch_sizes=[1, 8], of=ranker)
            before = function.predictor.why_not_shared()
            check(("never called" in before) == (name != "fixed"), before)
            direct(function, {"x": x[0]})
            found = function.predictor.why_not_shared()
            check(why in found, found)
            before = steps()
            answers = lane.batch([request(x=each) for each in x])
            check(steps() - before == 3, "a step each")
            if name == "mixes":
                want = [direct(function, {"x": each}) for each in x]
                check(all(same(*each) for each in zip(answers, want)), "bits")
        lane.close()
    """)


def test_a_variable_that_gets_another_shape_is_proved_again() -> None:
    """With 1 row a variable is the same for all rows of the batch, with 8 it is not."""
    run("""
        class Added(tf.Module):
            def __init__(self):
                with tf.device(GPU):
                    self.v = tf.Variable(floats(1, 4), shape=tf.TensorShape([None, 4]))
            @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
            def scores(self, x):
                with tf.device(GPU): return {"y": x + self.v}
            @tf.function(input_signature=[tf.TensorSpec([None, 4], name="v")])
            def change(self, v):
                with tf.device(GPU):
                    self.v.assign(v)
                    return {"v": v + 0.0}
        import tempfile
        added, folder = Added(), tempfile.mkdtemp()
        tf.saved_model.save(added, folder, {"f": added.scores, "change": added.change})
        with tf.device(GPU):
            loaded = tf.saved_model.load(folder)
        f = tf.cuda.serving_callable(loaded.signatures["f"])
        devices = served_models.Devices([GPU])
        predictor = served_models.Predictor([f], "f", devices, 1 << 20, [8])
        models.publish("m", 1, {"serving_default": predictor})
        x = [random.normal(size=(4, 4)).astype(np.float32) for _ in range(2)]
        direct(f, {"x": x[0]})
        lane = Lane(models)
        def both(count):
            want = [direct(f, {"x": each}) for each in x]
            before = steps()
            answers = lane.batch([request(x=each) for each in x])
            check(all(same(*each) for each in zip(answers, want)), "bits")
            check(steps() - before == count, f"{steps() - before} steps")
        both(1)
        with tf.device(GPU):
            loaded.signatures["change"](v=tf.constant(random.normal(size=(4, 4)), tf.float32))
        both(2)
        lane.close()
    """)
