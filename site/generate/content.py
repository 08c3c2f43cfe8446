"""The bytes of the generated files: words, numbers, pictures and styles, the same at every run."""

import json
import random

WORDS = """request response cache object pinned payload header connection socket packet kernel
worker thread arena range segment window latency round median spread router module policy file
descriptor coherent stale fresh watch event path prefix host group server affinity weight the a of
in to and with for from under over before after while until small large warm cold quick steady
serves keeps finds drops sends waits asks answers moves counts measures returns""".split()


def text(chance, size):
    """Paragraphs of sentences; exactly `size` bytes, the last of them a line break."""
    made = []
    length = 0
    while length < size:
        sentence = " ".join(chance.choices(WORDS, k=chance.randint(6, 16))).capitalize()
        end = ".\n\n" if chance.random() < 0.15 else ".\n"
        made.append(sentence + end)
        length += len(made[-1])
    return fit("".join(made), size, "\n")


def record(chance, size):
    """A JSON document: measurements, padded with a note to exactly `size` bytes."""
    samples = []
    while True:
        samples.append({"round": len(samples), "server": chance.choice(("a", "b", "c")),
                        "requests": chance.randint(10_000, 200_000),
                        "p99_us": round(chance.uniform(200, 2000), 1)})
        document = {"unit": "microseconds", "note": "", "samples": samples}
        length = len(json.dumps(document))
        if length > size:
            document["samples"] = samples[:-1]
            break
    room = size - len(json.dumps(document)) - 1
    document["note"] = text(chance, room).replace("\n", " ") if room > 0 else ""
    return json.dumps(document) + "\n"


def picture(chance, size):
    """An SVG with as many dots as fit, padded by a comment to exactly `size` bytes."""
    head = '<svg xmlns="http://www.w3.org/2000/svg">'
    tail, made = "</svg>\n", [head]
    length = len(head) + len(tail)
    while True:
        x, y, radius = chance.randint(5, 95), chance.randint(5, 95), chance.randint(1, 8)
        hue = chance.randint(0, 359)
        dot = f'<circle cx="{x}" cy="{y}" r="{radius}" fill="hsl({hue} 60% 55%)"/>'
        if length + len(dot) > size:
            break
        made.append(dot)
        length += len(dot)
    return pad("".join(made) + tail, size, "<!--", "-->")


def style(chance, size):
    """A style sheet, padded by a comment to exactly `size` bytes."""
    made, length = [], 0
    while True:
        name, hue = chance.choice(WORDS), chance.randint(0, 359)
        rule = f".{name} {{ color: hsl({hue} 40% 40%); margin: {chance.randint(0, 32)}px }}\n"
        if length + len(rule) > size:
            break
        made.append(rule)
        length += len(rule)
    return pad("".join(made), size, "/*", "*/")


def noise(name, size):
    """Bytes that nothing can compress."""
    return random.Random(name).randbytes(size)


def pad(document, size, opening, closing):
    """Appends a comment of the length that is missing; blanks where none fits."""
    room = size - len(document)
    if room < len(opening) + len(closing):
        return document + "\n" * room
    return document + opening + "." * (room - len(opening) - len(closing)) + closing


def fit(document, size, last):
    return document[:size - 1] + last
