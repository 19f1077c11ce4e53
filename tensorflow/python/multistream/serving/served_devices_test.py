# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Served signatures that two GPUs have: each call runs on the GPU that runs the fewest."""

import textwrap

import pytest

from multistream.testing import kit, serving_messages

ON_BOTH = """
import collections, gc, tempfile, weakref
GPUS = ["/GPU:0", "/GPU:1"]
devices = served_models.Devices(GPUS)
class Scorer(tf.Module):
    def __init__(self):
        self.w = tf.Variable(floats(4, 3))
    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
    def scores(self, x):
        return {"y": tf.tanh(x @ self.w)}
    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
    def checked(self, x):
        return {"y": tf.debugging.check_numerics(x, "not a number") @ self.w}
folder = tempfile.mkdtemp()
scorer = Scorer()
tf.saved_model.save(scorer, folder, signatures={"f": scorer.scores, "checked": scorer.checked})
class OnBoth:
    # A signature on each GPU, published as the default one of a model.
    def __init__(self, version=1, batch_sizes=(), model="m", signature="f"):
        self.loaded = []
        for gpu in GPUS:
            with tf.device(gpu): self.loaded.append(tf.saved_model.load(folder))
        self.callables = [tf.cuda.serving_callable(x.signatures[signature]) for x in self.loaded]
        self.predictor = served_models.Predictor(
            self.callables, "f", devices, 1 << 20, batch_sizes)
        models.publish(model, version, {"serving_default": self.predictor})
    def on(self, i, x):
        with tf.device(GPUS[i]): return self.callables[i](x=x)["y"]
    def want(self, i, x):
        # The signature itself, called directly on the GPU.
        with tf.device("/CPU:0"): given = tf.constant(x)
        with tf.device(GPUS[i]): return self.loaded[i].signatures["f"](x=given)["y"].numpy()
    def learn(self):
        for i in range(2): self.on(i, x)
def steps():
    found = collections.Counter()
    for group in tf.cuda.stream_stats(): found[group.gpu] += group.steps_started
    return [found[0], found[1]]
class Steps:
    # The steps of each GPU since it was made.
    def __init__(self): self.before = steps()
    def __call__(self): return [a - b for a, b in zip(steps(), self.before)]
def same(answer, want):
    y = outputs_of(answer)["y"]
    return y.shape == want.shape and y.tobytes() == want.tobytes()
random = np.random.default_rng(3)
x = random.normal(size=(2, 4)).astype(np.float32)
"""


def run(code: str, capture: str = "auto") -> None:
    kit.run_captured(
        serving_messages.MESSAGES,
        ON_BOTH,
        textwrap.dedent(code),
        capture=capture,
        TF_MULTI_STREAM_EMULATED_GPUS="2",
    )


@pytest.mark.parametrize("capture", ["off", "auto"])
def test_calls_take_turns_and_have_the_bits_of_their_gpu(capture: str) -> None:
    """Also the calls that Python runs, and after calls that failed or were left to Python."""
    run(
        """
        both, lane = OnBoth(), Lane(models)
        want = [both.want(i, x) for i in range(2)]
        done = Steps()
        for _ in range(6):
            answer = lane(request(x=x))
            check(any(same(answer, each) for each in want), "bits")
        check(done() == [3, 3], f"in turn: {done()}")
        for turn in range(4):
            with devices.chosen() as i: check(i == turn % 2, "Python's")
        checked = OnBoth(model="checked", signature="checked")
        for _ in range(3):
            fails(tf.errors.InvalidArgumentError,
                  lambda: lane(request("checked", x=x * np.nan)), "not a number")
            check(lane(request(z=x)) is None, "not plain")
        done = Steps()
        for _ in range(4): lane(request(x=x))
        check(done() == [2, 2], f"nothing is left of calls that ended: {done()}")
        lane.close()
        """,
        capture=capture,
    )


def test_a_gpu_that_is_busy_gets_no_calls_of_others() -> None:
    """Whether C++ or Python runs the call that keeps it busy."""
    run("""
        both, lane = OnBoth(), Lane(models)
        both.learn()
        for held in range(2):
            with devices.chosen() as busy:
                done = Steps()
                for _ in range(5): lane(request(x=x))
                check(done()[busy] == 0 and done()[1 - busy] == 5, f"not {busy}: {done()}")
                with devices.chosen() as other: check(other != busy, "Python's")
        with devices.chosen(), devices.chosen():
            done = Steps()
            for _ in range(4): lane(request(x=x))
            check(done() == [2, 2], f"equally busy: {done()}")

        began, may_end = threading.Event(), threading.Event()
        def wait(x):
            began.set()
            may_end.wait(60)
            return x
        def waits():
            @tf.function(input_signature=[tf.TensorSpec([2, 4], name="x")])
            def f(x):
                return {"y": tf.ensure_shape(tf.numpy_function(wait, [x], tf.float32), [2, 4])}
            return f
        slow = [tf.cuda.serving_callable(waits()) for _ in GPUS]
        models.publish("slow", 1, {"serving_default": served_models.Predictor(
            slow, "f", devices, 1 << 20)})
        other_lane, answers = Lane(models), []
        client = threading.Thread(
            target=lambda: answers.append(other_lane(request("slow", x=x))), daemon=True)
        client.start()
        check(began.wait(60), "the call of another model runs")
        done = Steps()
        for _ in range(5): lane(request(x=x))
        check(sorted(done()) == [0, 5], f"the other GPU: {done()}")
        with devices.chosen() as i: check(done()[i] == 5, "Python's")
        check(not answers, "it still runs")
        may_end.set()
        client.join()
        check(same(answers[0], x), "its answer")
        done = Steps()
        for _ in range(4): lane(request(x=x))
        check(done() == [2, 2], f"it has ended: {done()}")
        lane.close(), other_lane.close()
    """)


def test_a_batch_is_one_step_on_one_gpu() -> None:
    """Batches take turns; why there are none is told with the GPU."""
    run("""
        both, lane = OnBoth(batch_sizes=[1, 4]), Lane(models)
        both.on(0, x)
        why = both.predictor.why_not_shared()
        check("GPU:1: the function was never called" in why, why)
        both.on(1, x)
        check(both.predictor.why_not_shared() == "", "may")
        asked = [random.normal(size=(1, 4)).astype(np.float32) for _ in range(4)]
        want = [both.want(i, np.concatenate(asked)) for i in range(2)]
        before = None
        for turn in range(4):
            done = Steps()
            answers = lane.batch([request(x=each) for each in asked])
            check(sorted(done()) == [0, 1] and done() != before, f"in turn: {done()}")
            before = done()
            gpu = done().index(1)
            check(all(same(a, want[gpu][i : i + 1]) for i, a in enumerate(answers)), "bits")
        lane.close()
    """)


def test_versions_come_and_go_on_both_gpus_under_load() -> None:
    """Nothing of a version that is withdrawn is left on either."""
    run("""
        version = OnBoth()
        version.learn()
        want, wrong = version.want(0, x), []
        ended = threading.Event()
        def client(k):
            lane = Lane(models)
            while not ended.is_set():
                if not same(lane(request(x=x)), want): wrong.append(k)
            lane.close()
        clients = [threading.Thread(target=client, args=(k,), daemon=True) for k in range(4)]
        done = Steps()
        for c in clients: c.start()
        for number in range(2, 8):
            old, version = version, OnBoth(number)
            gone = [weakref.ref(each) for each in (*old.loaded, *old.callables)]
            models.withdraw("m", number - 1)()
            del old
            gc.collect()
            check([found() for found in gone] == [None] * 4, "dropped from both")
        ended.set()
        for c in clients: c.join()
        check(not wrong and min(done()) > 10, f"right, and on both: {done()}")
        lane = Lane(models)
        done = Steps()
        for _ in range(4): lane(request(x=x))
        check(done() == [2, 2], f"nothing is left of the calls: {done()}")
        lane.close()
    """)
