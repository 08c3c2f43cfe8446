"""The arithmetic: from samples to medians, spreads and ratios. No clock, no process, no file."""

from dataclasses import asdict, dataclass
from statistics import median

from usage import Used
from wrk import Load

BASELINE = "nginx"


@dataclass(frozen=True)
class Sample:
    """One server, one case, one round."""
    server: str
    case: str
    round: int
    load: Load
    used: Used
    body: int  # bytes of bodies that arrived, those of unfinished answers included


@dataclass(frozen=True)
class Metric:
    title: str
    unit: str
    more_is_better: bool
    of: callable


# "Per core" is per second in which the server's core was busy, by /proc/stat: unlike the server's
# own account it contains the interrupt work that the server's packets cause on its core.
METRICS = {
    "requests": Metric("Requests per second", "/s", True,
                       lambda s: s.load.requests / s.load.seconds),
    "bytes": Metric("Body bytes per second", "B/s", True, lambda s: s.body / s.load.seconds),
    "bytes_per_core": Metric("Body bytes per server-core second", "B/s", True,
                             lambda s: s.body / s.used.server_core),
    "p50": Metric("Latency, median", "s", False, lambda s: s.load.p50),
    "p99": Metric("Latency, 99th percentile", "s", False, lambda s: s.load.p99),
    "p999": Metric("Latency, 99.9th percentile", "s", False, lambda s: s.load.p999),
}

# A client that has no time left while the server has some is what was measured.
CLIENT_FULL, SERVER_FREE = 0.95, 0.90


def rotated(items, by):
    """The same items, beginning `by` places further on."""
    by %= len(items)
    return [*items[by:], *items[:by]]


def summarise(samples, names, cases):
    """The result: for every case and metric the figures of each server; and all samples."""
    baseline = BASELINE if BASELINE in names else names[0]
    return {
        "servers": list(names),
        "baseline": baseline,
        "cases": [summarise_case(case, samples, names, baseline) for case in cases],
        "samples": [asdict(sample) for sample in samples],
    }


def summarise_case(case, samples, names, baseline):
    of = {name: [s for s in samples if (s.server, s.case) == (name, case.name)] for name in names}
    return {
        "name": case.name, "title": case.title, "size": case.size,
        "connections": case.connections,
        "metrics": [summarise_metric(metric, of, baseline) for metric in case.metrics],
        "busy": {name: busy(of[name]) for name in names},
        "client_bound": [name for name in names if client_bound(of[name])],
    }


def summarise_metric(name, of, baseline):
    metric = METRICS[name]
    values = {server: [metric.of(s) for s in samples] for server, samples in of.items()}
    return {
        "name": name, "title": metric.title, "unit": metric.unit,
        "more_is_better": metric.more_is_better,
        "servers": {
            server: spread(own) | {"values": own, "ratio": spread(pairs(own, values[baseline]))}
            for server, own in values.items()
        },
    }


def pairs(own, baseline):
    """Ratios round by round: what slowed a whole round falls out of them."""
    return [a / b for a, b in zip(own, baseline, strict=True)]


def spread(values):
    return {"median": median(values), "min": min(values), "max": max(values)}


def busy(samples):
    """Median share of the time in which each core was busy, and the server's processes ran."""
    def share(of):
        return median(min(1.0, of(s) / s.load.seconds) for s in samples)
    return {"server_core": share(lambda s: s.used.server_core),
            "server_process": share(lambda s: s.used.process),
            "client_core": share(lambda s: s.used.client_core),
            "stolen": share(lambda s: s.used.stolen)}


def client_bound(samples):
    """Was the load generator and not the server the bottleneck, in the median round?"""
    share = busy(samples)
    return share["client_core"] > CLIENT_FULL and share["server_core"] < SERVER_FREE
