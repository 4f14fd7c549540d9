"""What `keras.utils.plot_model` shows of a model of nested records."""

from __future__ import annotations

import re

import keras
import tensorflow as tf

import extensor as xt
from pictures.drawing import Drawing

WIDTH, HEIGHT, STEP = 236, 46, 78


def model() -> Drawing:
    """Returns the picture: one box a layer, below the layers whose results it takes.

    The boxes and edges are those of `keras.utils.model_to_dot`, which `plot_model` gives to
    Graphviz. They are placed here, because Graphviz may be missing, and has no dark colors.
    """
    names, edges = _graph(_late_orders())
    level: dict[str, int] = {}
    for node in names:  # in the order of the graph: sources come first
        level[node] = 1 + max((level[a] for a, b in edges if b == node), default=-1)
    rows = [[n for n in names if level[n] == i] for i in range(max(level.values()) + 1)]
    width = 48 + 3 * WIDTH + 2 * 24
    drawing = Drawing(width, 70 + STEP * len(rows), "A Keras model of nested records, as a graph")
    drawing.text(24, 34, "keras.utils.plot_model(model, show_layer_names=True)", 13, mono=True)
    at: dict[str, tuple[float, float]] = {}
    for i, row in enumerate(rows):
        # Below the sources, so that edges do not cross.
        row.sort(key=lambda node: (_mean([at[a][0] for a, b in edges if b == node]), names[node]))
        start = (width - len(row) * WIDTH - (len(row) - 1) * 24) / 2
        for j, node in enumerate(row):
            at[node] = start + j * (WIDTH + 24), 54 + i * STEP
    for source, target in sorted(edges, key=lambda edge: (at[edge[0]], at[edge[1]])):
        (x, y), (to_x, to_y) = at[source], at[target]
        drawing.arrow((x + WIDTH / 2, y + HEIGHT), (to_x + WIDTH / 2, to_y))
    for node, (x, y) in at.items():
        name, kind = names[node]
        shape = {"InputLayer": "warm", "Field": "good"}.get(kind, "box")
        drawing.box(x, y, WIDTH, HEIGHT, shape)
        drawing.text(x + WIDTH / 2, y + 20, name, 13, anchor="middle", mono=True)
        drawing.text(x + WIDTH / 2, y + 37, kind, 11, "soft", anchor="middle")
    return drawing


def _mean(positions: list[float]) -> float:
    return sum(positions) / len(positions) if positions else 0.0


def _graph(drawn: keras.Model) -> tuple[dict[str, tuple[str, str]], list[tuple[str, str]]]:
    """Returns the name and the class of each layer by the node's key, and the edges."""
    dot = keras.utils.model_to_dot(drawn, show_layer_names=True)
    names: dict[str, tuple[str, str]] = {}
    for node in dot.get_nodes():
        found = re.search(r"<b>(.+?)</b> \((\w+)\)", node.get_label() or "")
        if found:  # the node that has the style of all nodes has no label
            # Keras numbers the layers that it names itself by those of the whole process.
            name = re.sub(r"_\d+$", "", found[1]) if found[2] == "Assemble" else found[1]
            names[node.get_name()] = name, found[2]
    return names, [(edge.get_source(), edge.get_destination()) for edge in dot.get_edges()]


def _late_orders() -> keras.Model:
    """Returns a model of orders, each with a city and a list of items."""
    orders = xt.struct.constant([{"city": "Oslo", "items": [{"name": "tea", "price": 4.0}]}])
    spec = tf.data.Dataset.from_tensor_slices(orders).batch(2).element_spec
    order = xt.keras.Input(spec, name="order")
    city = keras.layers.Hashing(16, name="hashed_city")(order["city"])
    city = keras.layers.Embedding(16, 4, name="city")(city)
    city = keras.layers.Dropout(0.1, name="some_cities")(city)
    price = xt.keras.layers.ListPooling("mean", name="mean_price")(order["items.price"])
    price = keras.layers.Reshape([1], name="price")(price)
    features = keras.layers.Concatenate(name="features")([city, price])
    late = keras.layers.Dense(1, "sigmoid", name="late")(features)
    return xt.keras.Model(order, late, name="late_orders")
