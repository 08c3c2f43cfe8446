"""The result as a picture: one panel a metric, one bar a server, whiskers from min to max."""

from html import escape

from report import number

WIDTH, MARGIN, GAP = 900, 28, 24
COLUMNS = 2
HEAD, ROW, FOOT = 46, 30, 14     # of a panel
LABEL, VALUE = 62, 150           # beside the bars
TITLE = 66                       # of the whole figure

STYLE = """
  .ground { fill: #fbfaf7 } .panel { fill: #fff; stroke: #e4e0d6 }
  text { font: 13px system-ui, sans-serif; fill: #23262b } .soft { fill: #6b6f76 }
  .title { font-size: 19px; font-weight: 650 } .head { font-weight: 600 }
  .bar { fill: #b9bec7 } .bar.afpa { fill: #e2603a } .bar.nginx { fill: #5f9e76 }
  .bar.h2o { fill: #5b82b8 } .whisker { stroke: #23262b; stroke-width: 1.5; fill: none }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #14171c } .panel { fill: #1b1f26; stroke: #2c323c } text { fill: #e8e6e1 }
    .soft { fill: #9aa0aa } .whisker { stroke: #e8e6e1 } .bar.afpa { fill: #f0764f } }
"""


def draw(result):
    panels = [(case, metric) for case in result["cases"] for metric in case["metrics"]]
    panel_width = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GAP) / COLUMNS
    panel_height = HEAD + ROW * len(result["servers"]) + FOOT
    lines = -(-len(panels) // COLUMNS)
    height = TITLE + lines * (panel_height + GAP) + 18
    parts = [start(height, result)]
    for index, (case, metric) in enumerate(panels):
        x = MARGIN + index % COLUMNS * (panel_width + GAP)
        y = TITLE + index // COLUMNS * (panel_height + GAP)
        parts.append(panel(x, y, panel_width, panel_height, case, metric, result["servers"]))
    return "\n".join([*parts, "</svg>", ""])


def start(height, result):
    environment, settings = result["environment"], result["settings"]
    below = (f"Medians of {settings['rounds']} interleaved rounds, whiskers min to max. "
             f"{environment['processor']}, Linux {environment['kernel']}; one core each.")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img" '
            f'aria-label="AFPA beside its peers"><style>{STYLE}</style>'
            f'<rect class="ground" width="{WIDTH}" height="{height:g}" rx="10"/>'
            f'<text class="title" x="{MARGIN}" y="32">AFPA beside its peers</text>'
            f'<text class="soft" x="{MARGIN}" y="52">{escape(below)}</text>')


def panel(x, y, width, height, case, metric, servers):
    largest = max(metric["servers"][name]["max"] for name in servers)
    scale = (width - 24 - LABEL - VALUE) / largest
    better = "more is better" if metric["more_is_better"] else "less is better"
    parts = [f'<g transform="translate({x:g} {y:g})">',
             f'<rect class="panel" width="{width:g}" height="{height:g}" rx="8"/>',
             f'<text class="head" x="14" y="22">{escape(case["title"])}</text>',
             f'<text class="soft" x="14" y="38">{escape(metric["title"])}, {better}</text>']
    for index, name in enumerate(servers):
        parts.append(bar(name, metric, HEAD + index * ROW, scale))
    return "\n".join([*parts, "</g>"])


def bar(name, metric, top, scale):
    own = metric["servers"][name]
    middle, left = top + ROW / 2, 14 + LABEL
    low, high = left + own["min"] * scale, left + own["max"] * scale
    label = f"{number(own['median'], metric['unit'])}  ({own['ratio']['median']:.2f}x)"
    return (f'<text x="14" y="{middle + 4:g}">{escape(name)}</text>'
            f'<rect class="bar {escape(name)}" x="{left}" y="{top + 6}" rx="2" '
            f'width="{own["median"] * scale:.1f}" height="{ROW - 12}"/>'
            f'<path class="whisker" d="M{low:.1f} {middle:g}H{high:.1f}M{low:.1f} {middle - 4:g}v8'
            f'M{high:.1f} {middle - 4:g}v8"/>'
            f'<text x="{high + 10:.1f}" y="{middle + 4:g}">{escape(label)}</text>')
