"""From an image file's bytes to the JPEG that goes into a record.

A JPEG is kept as it is, once it has been decoded as a whole; PNG, BMP and GIF become JPEGs. What cannot be taken
as it is raises BrokenImageError: an empty, cut-off or unknown file; and, as odd ones, CMYK, 16 bits and
animations, unless `odd` asks to convert them too.
"""

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tfjob_trainer import handwritten, records

QUALITY = 95
DIGIT_SIZE = 32

_FOREIGN = (
    (b"II*\0", "a TIFF"),
    (b"MM\0*", "a TIFF"),
    (b"RIFF", "a WebP"),
    (b"<", "text (HTML or XML)"),
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself"),
)


class BrokenImageError(Exception):
    """An image that cannot be taken; the message says why."""


class OddImageError(BrokenImageError):
    """An image that could be taken with a loss: CMYK, 16 bits, an animation."""


@dataclass(frozen=True, slots=True)
class Jpeg:
    """What goes into a record."""

    encoded: bytes
    height: int
    width: int
    channels: int


def to_jpeg(data: bytes, *, odd: bool = False) -> Jpeg:
    """The JPEG of a file; with `odd` also of a CMYK, 16-bit or animated one (its first frame)."""
    if not data:
        raise BrokenImageError("is empty (0 bytes)")
    try:
        if data.startswith(b"\xff\xd8\xff"):
            return _of_jpeg(data, odd)
        return _encode(_pixels(data, odd))
    except tf.errors.OpError as error:
        raise BrokenImageError(f"cannot be decoded: cut off or damaged ({records.short(error)})") from None
    except (struct.error, IndexError):
        raise BrokenImageError("cannot be decoded: cut off") from None


def _of_jpeg(data: bytes, odd: bool) -> Jpeg:
    channels = _jpeg_components(data)
    if channels == 4 and not odd:
        raise OddImageError("is a JPEG in CMYK")
    pixels = tf.io.decode_jpeg(data, channels=3)
    if channels == 4:
        return _encode(pixels.numpy())
    return Jpeg(data, int(pixels.shape[0]), int(pixels.shape[1]), channels)


def _jpeg_components(data: bytes) -> int:
    """Colour components, from the frame header; 3 where there is none (the decoder will say what is wrong)."""
    position = 2
    while position + 10 <= len(data):
        marker = data[position + 1]
        if data[position] != 0xFF:
            break
        if marker == 0xFF:  # fill bytes
            position += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return data[position + 9]
        else:
            position += 2 + int.from_bytes(data[position + 2 : position + 4])
    return 3


def _pixels(data: bytes, odd: bool) -> Any:
    """(Height, width, 3) uint8 of a file that is no JPEG."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        if data[24] == 16 and not odd:
            raise OddImageError("is a PNG with 16 bits a channel")
        if b"acTL" in data[: data.find(b"IDAT")] and not odd:
            raise OddImageError("is an animated PNG")
        return tf.io.decode_png(data, channels=3).numpy()
    if data.startswith((b"GIF87a", b"GIF89a")):
        frames = tf.io.decode_gif(data).numpy()
        if len(frames) > 1 and not odd:
            raise OddImageError(f"is an animated GIF with {len(frames)} frames")
        return frames[0]
    if data.startswith(b"BM"):
        return _of_bmp(data)
    known = next((what for begin, what in _FOREIGN if data.startswith(begin)), None)
    raise BrokenImageError(
        f"is {known}" if known else f"is no JPEG, PNG, BMP or GIF (begins with {data[:8]!r})"
    )


def _of_bmp(data: bytes) -> Any:
    header, bits = struct.unpack_from("<I", data, 14)[0], struct.unpack_from("<H", data, 28)[0]
    pixels = tf.io.decode_bmp(data).numpy()
    if bits == 8:  # TensorFlow gives the numbers of colours, not the colours
        first = struct.unpack_from("<I", data, 10)[0]
        table = np.frombuffer(data[14 + header : first], np.uint8)
        table = table[: len(table) // 4 * 4].reshape(-1, 4)[:, 2::-1]
        return table[np.minimum(pixels[..., 0], len(table) - 1)] if len(table) else np.repeat(pixels, 3, -1)
    return pixels[..., :3]


def _encode(pixels: Any) -> Jpeg:
    encoded = tf.io.encode_jpeg(pixels, quality=QUALITY, optimize_size=True, chroma_downsampling=False)
    return Jpeg(bytes(encoded.numpy()), pixels.shape[0], pixels.shape[1], pixels.shape[2])


def digit(index: int, digits: handwritten.Digits) -> Jpeg:
    """One of scikit-learn's digits as a grey JPEG of 32x32, white on black."""
    pixels = tf.image.resize(digits.images[index][..., np.newaxis] * (255 / 16), [DIGIT_SIZE, DIGIT_SIZE])
    return _encode(tf.cast(tf.round(pixels), tf.uint8).numpy())
