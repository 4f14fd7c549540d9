"""Units that types check: amounts in grams, kilograms and litres, in functions and datasets.

`Quantity` is the class of another package (`packages/extensor-quantity`): a tensor and a unit. The
unit is part of its spec, so a function is traced for each unit, and a wrong unit is an error before
anything is computed.

    $ pip install packages/extensor-quantity
    $ python examples/units.py
"""

import numpy as np
import tensorflow as tf
from extensor_quantity import Quantity, QuantitySpec, UnitError


def deliveries(count, seed=0):
    """Deliveries of flour in grams, and the stock in kilograms before each."""
    random = np.random.default_rng(seed)
    grams = random.integers(100, 5000, count).astype("float32")
    stock = random.uniform(0, 50, count).astype("float32")
    return Quantity(grams, "g"), Quantity(stock, "kg")


@tf.function
def stock_after(stock, delivery):
    return stock + delivery  # converts grams to kilograms


@tf.function(input_signature=[QuantitySpec([None], tf.float32, "kg")])
def price(weight):
    """Takes kilograms only."""
    return weight.amounts * 0.9


def main():
    delivery, stock = deliveries(1000)
    after = stock_after(stock, delivery)
    expected = stock.amounts.numpy() + delivery.amounts.numpy() / 1000
    error = float(np.abs(after.amounts.numpy() - expected).max())
    print("stock:", after.unit.name, after.amounts.numpy()[:3].round(2))
    print("largest difference from a computation by hand:", round(error, 4))

    rows = tf.data.Dataset.from_tensor_slices((stock, delivery)).batch(100)
    total = sum(float(tf.reduce_sum(price(stock_after(*batch)))) for batch in rows)
    print("price of all:", round(total), "by hand:", round(float(expected.sum() * 0.9)))

    refused = []
    for name, wrong in {
        "kg + l": lambda: stock + Quantity([1.0], "l"),
        "the price of grams": lambda: price(delivery),
    }.items():
        try:
            wrong()
        except (UnitError, TypeError) as problem:
            refused.append(name)
            print(f"{name}: {type(problem).__name__}")
    return error, refused


if __name__ == "__main__":
    main()
