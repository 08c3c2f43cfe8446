#!/usr/bin/env python3
"""Draws the gallery's PNG pictures into pages/pictures. They are committed; this is their source.

    python3 site/draw.py

Pictures are grey images of 960 x 540 that a palette of 64 colours turns into colour: small files,
and nothing needed beyond the standard library.
"""

import math
import random
import struct
import zlib
from pathlib import Path

PICTURES = Path(__file__).parent / "pages" / "pictures"
WIDTH, HEIGHT = 960, 540
SHADES = 64

EMBER = ((15, 17, 22), (52, 28, 30), (150, 52, 30), (242, 122, 66), (255, 232, 190))
DEEP = ((13, 18, 25), (20, 48, 66), (45, 106, 131), (127, 192, 216), (246, 250, 245))
MOSS = ((18, 19, 18), (38, 50, 36), (86, 112, 58), (178, 192, 112), (252, 244, 206))


def main():
    for name, palette, draw in (("working-set", EMBER, working_set), ("arrivals", DEEP, arrivals),
                                ("eviction", MOSS, eviction)):
        path = PICTURES / f"{name}.png"
        path.write_bytes(png(draw(random.Random(name)), palette))
        print(f"{path.name}: {path.stat().st_size} bytes")


def working_set(chance):
    """Squares that glow by Zipf's law, in an order that nobody sorted."""
    image, pitch = Image(), 15
    columns, rows = WIDTH // pitch, HEIGHT // pitch
    ranks = list(range(1, columns * rows + 1))
    chance.shuffle(ranks)
    for index, rank in enumerate(ranks):
        left, top = index % columns * pitch + 2, index // columns * pitch + 2
        wanted = rank ** -0.34  # the exponent of the light; of the requests it would be nearer one
        image.square(left, top, pitch - 4, 0.07 + 0.93 * wanted * chance.uniform(0.8, 1.0))
        if rank <= 40:
            image.glow(left + pitch / 2, top + pitch / 2, 70 * wanted + 14, 0.55 * wanted)
    return image


def arrivals(chance):
    """Lines from three sides, each bent towards one point and brighter the nearer they are."""
    image, core = Image(), (0.68 * WIDTH, 0.5 * HEIGHT)
    for _ in range(420):
        x, y = chance.choice(((-10.0, chance.uniform(0, HEIGHT)), (chance.uniform(0, WIDTH), -10.0),
                              (chance.uniform(0, WIDTH), HEIGHT + 10.0)))
        heading, swirl = chance.uniform(-0.5, 0.5), chance.uniform(-0.9, 0.9)
        for _ in range(1600):
            away = math.hypot(core[0] - x, core[1] - y)
            if away < 9:
                break
            angle = math.atan2(core[1] - y, core[0] - x) + (heading + swirl) * min(1, away / 500)
            x, y = x + math.cos(angle), y + math.sin(angle)
            image.add(x, y, 0.055 + 0.10 * math.exp(-away / 140))
    image.glow(*core, 110, 1.6)
    return image


def eviction(chance):
    """A cache of sixty places under a Zipf load; LRU decides which thread ends."""
    image, places, steps = Image(), 60, WIDTH
    resting, heat, owner = [0] * places, [0.0] * places, [None] * places
    objects = range(1, 400)
    weights = [rank ** -0.8 for rank in objects]
    for step in range(steps):
        for wanted in chance.choices(objects, weights, k=3):
            place = owner.index(wanted) if wanted in owner else None
            if place is None:
                place = max(range(places), key=resting.__getitem__)
                owner[place], heat[place] = wanted, 0.0
            resting[place], heat[place] = 0, min(1.0, heat[place] + 0.34)
        for place in range(places):
            resting[place] += 1
            heat[place] *= 0.988
            image.thread(step, place * HEIGHT / places, HEIGHT / places, heat[place])
    return image


class Image:
    """Light between 0 (dark) and 1, added up."""

    def __init__(self):
        self.light = [0.0] * (WIDTH * HEIGHT)

    def add(self, x, y, light):
        """One point, shared among the four pixels it touches."""
        left, top = math.floor(x), math.floor(y)
        for column, row, share in ((left, top, (1 - x + left) * (1 - y + top)),
                                   (left + 1, top, (x - left) * (1 - y + top)),
                                   (left, top + 1, (1 - x + left) * (y - top)),
                                   (left + 1, top + 1, (x - left) * (y - top))):
            if 0 <= column < WIDTH and 0 <= row < HEIGHT:
                self.light[row * WIDTH + column] += light * share

    def square(self, left, top, side, light):
        for row in range(top, min(HEIGHT, top + side)):
            for column in range(left, min(WIDTH, left + side)):
                self.light[row * WIDTH + column] += light

    def glow(self, x, y, radius, light):
        for row in range(max(0, int(y - radius)), min(HEIGHT, int(y + radius) + 1)):
            for column in range(max(0, int(x - radius)), min(WIDTH, int(x + radius) + 1)):
                away = math.hypot(column - x, row - y) / radius
                if away < 1:
                    self.light[row * WIDTH + column] += light * (1 - away) ** 2.5

    def thread(self, column, top, height, heat):
        """A slice of one object's life: thicker and brighter the more it is wanted."""
        middle, half = top + height / 2, 0.6 + heat * (height / 2 - 1.4)
        for row in range(math.ceil(middle - half), math.floor(middle + half) + 1):
            self.light[row * WIDTH + column] += 0.10 + 0.85 * heat


def png(image, palette):
    """An indexed PNG (RFC 2083): one byte a pixel, filter type 0 on every line."""
    shades = [min(SHADES - 1, int(light * SHADES)) for light in image.light]
    lines = b"".join(b"\0" + bytes(shades[row * WIDTH:(row + 1) * WIDTH]) for row in range(HEIGHT))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0)
    colours = b"".join(bytes(blend(palette, shade / (SHADES - 1))) for shade in range(SHADES))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"PLTE", colours)
            + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def blend(palette, where):
    """The colour at 0..1 along a palette of evenly spaced stops."""
    place = where * (len(palette) - 1)
    index = min(int(place), len(palette) - 2)
    share = place - index
    return [round(a + (b - a) * share) for a, b in zip(palette[index], palette[index + 1])]


if __name__ == "__main__":
    main()
