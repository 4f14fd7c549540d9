"""Graph classification: which workflows will be late?

A workflow is a graph of tasks; an edge says that a task waits for another. It is late if two tasks
in a chain take more than 1.4 days together, so the model has to look along the edges.

    $ python examples/graphs.py
"""

import keras
import numpy as np
import tensorflow as tf

import extensor as xt


def workflows(count, seed=0):
    """Graphs of different sizes as one value, and whether each is late."""
    random = np.random.default_rng(seed)
    graphs, labels = [], []
    for _ in range(count):
        size = random.integers(3, 9)
        days = random.uniform(0, 1, size).astype("float32")
        source, target = np.nonzero(np.triu(random.random([size, size]) < 0.25, 1))
        graphs.append(xt.types.TensorDigraph(source, target, nodes={"days": days}))
        labels.append(float(len(source) and (days[source] + days[target]).max() > 1.4))
    return xt.types.TensorDigraph.batch(graphs), np.array(labels, "float32")[:, np.newaxis]


@keras.saving.register_keras_serializable("graphs")
class Messages(xt.keras.Layer):
    """Sends to each task the states of the tasks that it waits for."""

    def __init__(self, size=16, **kwargs):
        super().__init__(**kwargs)
        self.message = keras.layers.Dense(size, "relu")
        self.update = keras.layers.Dense(size, "relu")

    def call(self, graph):
        state = graph.nodes["days"][:, tf.newaxis]
        graph = graph.with_nodes(state=state)
        ends = tf.concat([graph.at_source("state"), graph.at_target("state")], axis=1)
        received = graph.collect(self.message(ends), "max")
        return graph.with_nodes(state=self.update(tf.concat([state, received], axis=1)))


@keras.saving.register_keras_serializable("graphs")
class Late(xt.keras.Layer):
    """Gives the probability of a graph from the states of its nodes."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.out = keras.layers.Dense(1, "sigmoid")

    def call(self, graph):
        return self.out(graph.readout("state", "max"))


def main():
    keras.utils.set_random_seed(0)
    graphs, labels = workflows(2000)
    others, truth = workflows(500, seed=1)
    graph = xt.keras.Input(tf.data.Dataset.from_tensors(graphs).element_spec)
    model = xt.keras.Model(graph, Late()(Messages()(graph)))
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
    model.fit(graphs, labels, batch_size=100, epochs=12, verbose=0)
    _, accuracy = model.evaluate(others, truth, batch_size=100, verbose=0)
    baseline = float(max(truth.mean(), 1 - truth.mean()))
    print("accuracy of the more frequent answer:", round(baseline, 2))
    print("accuracy of the graph network:", round(accuracy, 2))
    # One graph is a batch of one.
    slow = xt.types.TensorDigraph([0, 1], [1, 2], nodes={"days": [0.9, 0.8, 0.1]})
    fast = xt.types.TensorDigraph([0], [1], nodes={"days": [0.2, 0.1]})
    both = xt.types.TensorDigraph.batch([slow, fast])
    print("late:", model.predict(both, verbose=0).round()[:, 0].tolist())
    return baseline, float(accuracy)


if __name__ == "__main__":
    main()
