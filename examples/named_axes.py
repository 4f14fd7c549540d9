"""Geometry with named axes: which rotation turns one set of points into another?

Arrays of points have axes that are easy to mix up. `xt.types.LabeledTensor` matches them by name:
in products, sums and differences, inside `tf.function` and with gradients.

    $ python examples/named_axes.py
"""

import numpy as np
import tensorflow as tf

import extensor as xt

Labeled = xt.types.LabeledTensor


def rotation(angle):
    """Returns the matrix that turns points around the z axis."""
    c, s, zero, one = tf.cos(angle), tf.sin(angle), tf.zeros_like(angle), tf.ones_like(angle)
    rows = [c, -s, zero], [s, c, zero], [zero, zero, one]
    return Labeled(tf.stack([tf.stack(row) for row in rows]), ["turned", "xyz"])


def turn(points, angle):
    # The axis that both have, "xyz", is summed over, wherever it is.
    return (rotation(angle) @ points).rename(turned="xyz")


def centered(points):
    return points - tf.reduce_mean(points, axis="point")


@tf.function
def distance(points, others):
    """Returns the mean squared distance between pairs of points; the axes may be in any order."""
    squares = tf.reduce_sum((centered(points) - centered(others)) ** 2, axis="xyz")
    return tf.reduce_mean(squares, axis=["cloud", "point"]).values


def clouds(angle, seed=0):
    """Clouds of points; and the same clouds turned and moved, as another tool stores them."""
    random = np.random.default_rng(seed)
    axes = ["cloud", "point", "xyz"]
    points = Labeled(random.normal(size=[5, 40, 3]).astype("float32"), axes)
    moved = turn(points, tf.constant(angle)) + Labeled([3.0, -1.0, 0.5], ["xyz"])
    return points, tf.transpose(moved, ["xyz", "cloud", "point"])


def main():
    truth = 0.7
    points, others = clouds(truth)
    print("points:", points, "others:", others)
    angle = tf.Variable(0.0)
    first = float(distance(points, others))
    for _ in range(60):
        with tf.GradientTape() as tape:
            loss = distance(turn(points, angle), others)
        angle.assign_sub(0.2 * tape.gradient(loss, angle))
    print("distance:", round(first, 3), "->", round(abs(float(loss)), 3))
    print("angle:", round(float(angle), 3), "of", truth)
    try:
        points - points.rename(xyz="rgb").isel(rgb=[0, 1]).rename(rgb="xyz")
    except xt.errors.StructureError as error:
        print("error:", str(error).splitlines()[0])
    return truth, float(angle)


if __name__ == "__main__":
    main()
