"""What the two clients share: nested orders with nulls, and a model that is trained on them."""

import keras
import numpy as np
import tensorflow as tf

import extensor as xt

NEW = [
    {"city": "Oslo", "items": [{"name": "pot", "price": 30.0}, {"name": "tea", "price": None}]},
    {"city": None, "items": []},
]


def orders(count=400, seed=0):
    """Orders that are late if they have many items, or a pot."""
    random = np.random.default_rng(seed)
    records = []
    for _ in range(count):
        names = random.choice(["tea", "cup", "jug", "pot"], size=random.integers(0, 5))
        items = [
            {"name": str(name), "price": round(float(random.uniform(1, 40)), 2)} for name in names
        ]
        for item in items[:1]:
            item["price"] = None if random.random() < 0.3 else item["price"]
        city = random.choice(["Oslo", "Rome", None])
        records.append({"city": city, "items": items, "late": float("pot" in names)})
    return records


def saved_model(path):
    """Trains a model, and writes it with a signature of plain tensors; returns the model."""
    keras.utils.set_random_seed(1)
    records = xt.struct.constant(orders(), nulls={"city": "mask", "items[*].price": "mask"})
    batches = tf.data.Dataset.from_tensor_slices((records.without("late"), records["late"]))
    batches = batches.batch(40)
    features = xt.keras.layers.RecordFeatures()
    features.adapt(batches.map(lambda order, late: order))
    order = xt.keras.Input(batches.element_spec[0], name="order")
    model = xt.keras.Model(order, keras.layers.Dense(1, "sigmoid")(features(order)))
    model.compile(keras.optimizers.Adam(0.1), "binary_crossentropy")
    model.fit(batches, epochs=15, verbose=0)
    xt.serving.save(model, path)
    return model
