"""The result in words and tables: for a terminal, and for a page."""

import environment


def brief(sample):
    """One measurement in a few figures, for the progress line."""
    load = sample.load
    return (f"{number(load.requests / load.seconds, '/s'):>12}  "
            f"{number(sample.body / load.seconds, 'B/s'):>11}  p99 {number(load.p99, 's'):>8}  "
            f"core {sample.used.server_core / load.seconds:4.0%}")


def table(result):
    lines = []
    for case in result["cases"]:
        for metric in case["metrics"]:
            lines += ["", heading(case, metric)]
            lines += aligned(rows(metric, result))
        lines += notes(case)
    return "\n".join(lines[1:])


def markdown(result):
    lines = ["# AFPA beside its peers", "", *setting(result), "", "![figure](results.svg)"]
    for case in result["cases"]:
        for metric in case["metrics"]:
            lines += ["", f"## {heading(case, metric)}", ""]
            header, *body = rows(metric, result)
            lines += [row(header), "|---|" + "---:|" * (len(header) - 1), *map(row, body)]
        lines += [f"\n> {note}" for note in notes(case)]
    lines += ["", "## Commands", "", "```", *result["commands"]["servers"].values(), "",
              *result["commands"]["load"].values(), "```", ""]
    return "\n".join(lines)


def heading(case, metric):
    return f"{case['title']}: {lower_first(metric['title'])} " \
           f"({'more' if metric['more_is_better'] else 'less'} is better)"


def rows(metric, result):
    header = ["server", "median", "min", "max", f"to {result['baseline']}", "pair by pair"]
    return [header, *(figures(name, metric) for name in result["servers"])]


def figures(name, metric):
    own, unit = metric["servers"][name], metric["unit"]
    ratio = own["ratio"]
    return [name, number(own["median"], unit), number(own["min"], unit), number(own["max"], unit),
            f"{ratio['median']:.2f}x", f"{ratio['min']:.2f} .. {ratio['max']:.2f}"]


def notes(case):
    """What a reader must know about a case before believing it."""
    lines = []
    for name in case["client_bound"]:
        lines.append(f"{case['title']}: with {name} the client's core was the bottleneck "
                     f"({shares(case, name)}): its rates are the client's; what holds is the cost, "
                     f"bytes per server-core second.")
    for name, busy in case["busy"].items():
        if busy["stolen"] > 0.02:
            lines.append(f"{case['title']}: the hypervisor took {busy['stolen']:.0%} of a core "
                         f"while {name} was measured.")
    return lines


def shares(case, name):
    busy = case["busy"][name]
    return f"client {busy['client_core']:.0%}, server {busy['server_core']:.0%} busy"


def setting(result):
    settings = result["settings"]
    return [
        environment.told(result["environment"]),
        "",
        f"Medians of {settings['rounds']} interleaved rounds of {settings['seconds']} s; servers on "
        f"core {settings['server_core']} with one worker, wrk on core {settings['client_core']}; "
        f"{settings['network']['note']}; access logs off. The ratio is the median of the rounds' "
        f"own ratios, with their smallest and largest.",
        "",
        "On loopback the kernel does part of each side's packet work on the other side's core: "
        "compare servers by these figures, and do not take them for the cost behind a network card.",
    ]


def number(value, unit):
    """Three significant digits with the unit's usual prefix: 94.1 k/s, 5.02 GB/s, 689 us."""
    steps = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "u"))
    if unit == "s":
        steps = steps[3:]
    elif value >= 1 or value == 0:
        steps = steps[:4]
    for size, prefix in steps:
        if float(f"{value:.3g}") >= size:
            return f"{digits(value / size)} {prefix}{unit}"
    return f"{digits(value / steps[-1][0])} {steps[-1][1]}{unit}"


def digits(value):
    """Three significant digits without an exponent."""
    rounded = float(f"{value:.3g}")
    decimals = 2 if rounded < 10 else 1 if rounded < 100 else 0
    return f"{rounded:.{decimals}f}"


def aligned(lines):
    widths = [max(map(len, column)) for column in zip(*lines)]
    return ["  " + "  ".join([line[0].ljust(widths[0])]
                             + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])])
            for line in lines]


def row(cells):
    return f"| {' | '.join(cells)} |"


def lower_first(text):
    return text[:1].lower() + text[1:]
