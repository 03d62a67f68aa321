"""What both sides of `tfdata` have to know of the dataset: its name, and what its elements are."""

import tensorflow as tf

NAME = "photos"


def spec(crop: int) -> tuple[tf.TensorSpec, ...]:
    """Names, values, and whether it is the last batch of an epoch; pixels of a square, or with none the bytes of objects."""
    values = tf.TensorSpec([None, crop, crop, 3], tf.uint8) if crop else tf.TensorSpec([None], tf.string)
    return tf.TensorSpec([None], tf.string), values, tf.TensorSpec([], tf.bool)
