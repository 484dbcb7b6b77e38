"""What tests ask of a page in a browser."""

from __future__ import annotations

import struct
import zlib


def shown(view, selector):
    """How many of these take room on the screen."""
    return view.evaluate(
        "s => [...document.querySelectorAll(s)].filter(e => e.getClientRects().length).length",
        selector,
    )


def background(view):
    return view.evaluate("getComputedStyle(document.body).backgroundColor")


def pixels(png: bytes) -> set[bytes]:
    """The distinct pixels of a PNG of eight bits, to tell a picture from a blank."""
    width, height, _, colour = struct.unpack(">IIBB", png[16:26])
    channels = {2: 3, 6: 4}[colour]
    data, at = b"", 8
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + size]
        at += size + 12
    raw = zlib.decompress(data)
    stride = width * channels
    seen, before = set(), bytes(stride)
    for y in range(height):
        kind, line = (
            raw[y * (stride + 1)],
            bytearray(raw[y * (stride + 1) + 1 : (y + 1) * (stride + 1)]),
        )
        for i in range(stride):
            left = line[i - channels] if i >= channels else 0
            up = before[i]
            corner = before[i - channels] if i >= channels else 0
            if kind == 1:
                line[i] = (line[i] + left) & 255
            elif kind == 2:
                line[i] = (line[i] + up) & 255
            elif kind == 3:
                line[i] = (line[i] + (left + up) // 2) & 255
            elif kind == 4:
                guess = left + up - corner
                near = min((left, up, corner), key=lambda one: abs(guess - one))
                line[i] = (line[i] + near) & 255
        before = bytes(line)
        seen |= {before[i : i + channels] for i in range(0, stride, channels)}
    return seen
