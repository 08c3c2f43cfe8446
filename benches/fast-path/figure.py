"""Requests per second of one server core, as a picture: `figure.py RESULTS.json > FILE.svg`."""

import json
import sys
from html import escape
from pathlib import Path

from cases import KERNEL, STEERED

WIDTH, MARGIN, LABEL, VALUE = 900, 28, 128, 190
TITLE, HEAD, ROW, GAP = 78, 40, 30, 16

STYLE = """
  .ground { fill: #fbfaf7 } .panel { fill: #fff; stroke: #e4e0d6 }
  text { font: 13px system-ui, sans-serif; fill: #23262b } .soft { fill: #6b6f76 }
  .title { font-size: 19px; font-weight: 650 } .head { font-weight: 600 }
  .bar { fill: #b9bec7 } .bar.kernel { fill: #e2603a } .bar.nginx-attached { fill: #eda088 }
  .bar.reflector { fill: #e4e0d6 }
  .whisker { stroke: #23262b; stroke-width: 1.5; fill: none }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #14171c } .panel { fill: #1b1f26; stroke: #2c323c } text { fill: #e8e6e1 }
    .soft { fill: #9aa0aa } .whisker { stroke: #e8e6e1 } .bar.kernel { fill: #f0764f }
    .bar { fill: #5a616d } .bar.reflector { fill: #2c323c } }
"""


def draw(result):
    """Two panels: 512 B as a small client asks, and as a browser does."""
    panels = [case for case in result["speed"] if case["bed"] == STEERED and case["size"] == 512]
    most = max((case["connections"] for case in panels), default=0)
    panels = [case for case in panels if case["connections"] == most and case["visitors"] == 1]
    panels.sort(key=lambda case: case["browser"])
    heights = [HEAD + ROW * len(case["servers"]) + GAP for case in panels]
    height = TITLE + sum(heights) + GAP * len(heights) + 12
    parts, top = [start(height, result)], TITLE
    scale_to = max((own["per_core"]["max"] for case in panels for own in case["servers"].values()),
                   default=1)
    for case, panel_height in zip(panels, heights):
        parts.append(panel(case, top, panel_height, scale_to))
        top += panel_height + GAP
    return "\n".join([*parts, "</svg>", ""])


def start(height, result):
    environment, settings = result["environment"], result["settings"]
    below = (f"Medians of {settings['rounds']} interleaved rounds, whiskers min to max. "
             f"{environment['processor']}, Linux {environment['kernel']}.")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img" '
            f'aria-label="Requests per second of one server core"><style>{STYLE}</style>'
            f'<rect class="ground" width="{WIDTH}" height="{height:g}" rx="10"/>'
            f'<text class="title" x="{MARGIN}" y="34">Requests per second of one server core</text>'
            f'<text class="soft" x="{MARGIN}" y="56">{escape(below)}</text>')


def panel(case, top, height, scale_to):
    scale = (WIDTH - 2 * MARGIN - LABEL - VALUE - 28) / scale_to
    parts = [f'<g transform="translate({MARGIN} {top:g})">',
             f'<rect class="panel" width="{WIDTH - 2 * MARGIN}" height="{height:g}" rx="8"/>',
             f'<text class="head" x="14" y="26">{escape(case["title"])}</text>']
    for index, (name, own) in enumerate(case["servers"].items()):
        ratio = case["kernel_to"].get(name)
        parts.append(bar(name, own["per_core"], ratio, HEAD + index * ROW, scale))
    return "\n".join([*parts, "</g>"])


def bar(name, spread, ratio, top, scale):
    middle, left = top + ROW / 2, 14 + LABEL
    low, high = left + spread["min"] * scale, left + spread["max"] * scale
    value = spread["median"]
    text = f"{value / 1e6:.2f} M" if value >= 999_500 else f"{value / 1e3:.0f} k"
    if ratio:
        text += f"  (afpa kernel: {ratio['median']:.1f}x)"
    kind = "kernel" if name == KERNEL else name.replace(" ", "-")
    return (f'<text x="14" y="{middle + 4:g}">{escape(name)}</text>'
            f'<rect class="bar {escape(kind)}" x="{left}" y="{top + 6}" rx="2" '
            f'width="{value * scale:.1f}" height="{ROW - 12}"/>'
            f'<path class="whisker" d="M{low:.1f} {middle:g}H{high:.1f}M{low:.1f} {middle - 4:g}v8'
            f'M{high:.1f} {middle - 4:g}v8"/>'
            f'<text x="{high + 10:.1f}" y="{middle + 4:g}">{escape(text)}</text>')


if __name__ == "__main__":
    print(draw(json.loads(Path(sys.argv[1]).read_text())), end="")
