"""From the bytes of a JPEG to pixels, in a TensorFlow graph. Only what is kept of an image is decoded."""

from typing import Any

import tensorflow as tf

AREA = (0.08, 1.0)  # of the image that a random crop keeps
ASPECT = (3 / 4, 4 / 3)
CENTRE = 224 / 256  # of the shorter side that is looked at in validation


def random_crop(encoded: Any, size: int, seed: Any) -> Any:
    """A random part of the image, resized to (size, size, 3) uint8, mirrored in half of the cases.

    `seed` (2,) int64 decides all of it.
    """
    begin, extent, _ = tf.image.stateless_sample_distorted_bounding_box(
        tf.io.extract_jpeg_shape(encoded),
        bounding_boxes=tf.zeros([1, 0, 4]),
        seed=seed,
        min_object_covered=0.0,
        aspect_ratio_range=ASPECT,
        area_range=AREA,
        max_attempts=20,
        use_image_if_no_bounding_boxes=True,
    )
    image = _cropped(encoded, tf.concat([begin[:2], extent[:2]], 0), size)
    mirrored = tf.random.stateless_uniform([], seed + 1) < 0.5
    return tf.cond(mirrored, lambda: tf.reverse(image, [1]), lambda: image)


def centre(encoded: Any, size: int) -> Any:
    """The middle of the image, (size, size, 3) uint8: as resizing to size / 0.875 and cropping."""
    shape = tf.io.extract_jpeg_shape(encoded)[:2]
    side = tf.cast(tf.round(tf.cast(tf.reduce_min(shape), tf.float32) * CENTRE), tf.int32)
    side = tf.maximum(side, 1)
    return _cropped(encoded, tf.concat([(shape - side) // 2, [side, side]], 0), size)


def whole(encoded: Any, size: int) -> Any:
    """The whole image, (size, size, 3) uint8."""
    return _resized(tf.io.decode_jpeg(encoded, channels=3, dct_method="INTEGER_FAST"), size)


def _cropped(encoded: Any, window: Any, size: int) -> Any:
    image = tf.io.decode_and_crop_jpeg(encoded, window, channels=3, dct_method="INTEGER_FAST")
    return _resized(image, size)


def _resized(image: Any, size: int) -> Any:
    resized = tf.image.resize(image, [size, size])
    return tf.cast(tf.clip_by_value(tf.round(resized), 0.0, 255.0), tf.uint8)
