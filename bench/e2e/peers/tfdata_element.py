"""Shared by both sides of `tfdata`: the name of the dataset and the types of its elements."""

import tensorflow as tf

NAME = "photos"


def spec(crop: int) -> tuple[tf.TensorSpec, ...]:
    """Names, values, and whether it is the last batch of an epoch. Values are pixels, or bytes of objects if `crop` is 0."""
    values = tf.TensorSpec([None, crop, crop, 3], tf.uint8) if crop else tf.TensorSpec([None], tf.string)
    return tf.TensorSpec([None], tf.string), values, tf.TensorSpec([], tf.bool)
