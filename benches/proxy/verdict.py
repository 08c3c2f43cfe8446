"""The last lines: AFPA beside each other proxy, round by round. No clock, no process, no file."""

from statistics import median, quantiles

OURS = ("afpa", "afpa-kernel")


def lines(result):
    """One line for each case and other proxy."""
    names = result["servers"]
    return [line(case, ours, other)
            for case in result["cases"]
            for ours in OURS if ours in names
            for other in names if other not in OURS]


def line(case, ours, other):
    shown = ", ".join(f"{short(metric['name'])} {ratio(metric, ours, other)}{calm(metric, ours, other)}"
                      for metric in case["metrics"])
    return f"{case['title']}: {ours} to {other}: {shown}"


def calm(metric, ours, other):
    """Of a latency that was taken in many turns: the ratio of the lower quartiles."""
    own, theirs = (metric["servers"][name]["values"] for name in (ours, other))
    if metric["more_is_better"] or len(own) < 8:
        return ""
    return f" and in the calm quarter {quantiles(own, n=4)[0] / quantiles(theirs, n=4)[0]:.2f}x"


def ratio(metric, ours, other):
    """Median of the rounds' own ratios, and their smallest and largest."""
    pairs = [a / b for a, b in zip(metric["servers"][ours]["values"],
                                   metric["servers"][other]["values"], strict=True) if b]
    if not pairs:
        return "-"
    return f"{median(pairs):.2f}x ({min(pairs):.2f} to {max(pairs):.2f})"


def short(name):
    return {"requests_per_core": "requests a core", "bytes_per_core": "bytes a core",
            "requests": "requests/s", "bytes": "bytes/s", "p999": "p99.9"}.get(name, name)


def rate(case, share, samples, names):
    """Requests a second for an open loop: a share of what the least capable proxy answered in the
    median round of a closed one."""
    def most(name):
        return median(sample.load.requests / sample.load.seconds for sample in samples
                      if (sample.server, sample.case) == (name, case))
    return share * min(most(name) for name in names)
