"""Measures AFPA's proxy beside HAProxy and nginx: one command, one table.

    python3 benches/proxy [--quick] [--rounds N] [--seconds S] [--proxies a,b,...]
                          [--only case,...] [--bed cores|loopback] [--servers afpa|nginx]

Each proxy has one core and one thread, with keep-alive on both sides. In each round every case is
measured once for every proxy, in rotating order. On the bed *cores* (as root) clients and servers are
light: a closed loop in TC asks, and three servers answer small files in softirq, so that the proxy's
core is the bottleneck, and its requests a second by the clock are those of its core. Then everybody is
asked at the same rates, by an open loop over sockets, for latencies: in many short turns, because a
machine that stands still for some milliseconds decides the 99th percentile of the turn in which it does,
and the calm quarter of the turns says what the proxies do. On *loopback* wrk and the servers share the
other core, which is full first. Progress goes to stderr, the table to stdout, and JSON and
the configurations to build/proxy/<time>/. The usual run takes less than five minutes.

Exit status: 0 measured; 1 a proxy gave a wrong answer or an error, or could not be started;
2 wrong usage.
"""

import argparse
import contextlib
import json
import os
import shutil
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "compare"))

import command  # noqa: E402  (of the comparison of servers, as the others below)
import environment  # noqa: E402
import report  # noqa: E402
import rounds  # noqa: E402
from command import REPOSITORY, say  # noqa: E402
from failure import Failure  # noqa: E402

import load  # noqa: E402
import network as networks  # noqa: E402
import proxies  # noqa: E402
import verdict  # noqa: E402
import workload  # noqa: E402

# A proxy's cost is what counts: requests per second in which its core was busy.
rounds.METRICS["requests_per_core"] = rounds.Metric(
    "Requests per proxy-core second", "/s", True,
    lambda sample: sample.load.requests / sample.used.server_core)
rounds.BASELINE = "haproxy"


def compare(options):
    chosen = proxies.choose(options, say)
    results = command.new_folder("proxy")
    work = results / "work"
    try:
        make_files(work / "root", options)
        with contextlib.ExitStack() as ends:
            net = networks.loopback() if options.bed == "loopback" else \
                networks.cores(ends, options.server_core, options.client_core)
            say(f"network: {net.note}")
            started = ends.enter_context(proxies.running(chosen, work, options, net))
            result = measure(Bench(started, net, work / "root", options))
            result["settings"] = {name: getattr(options, name) for name in
                                  ("rounds", "seconds", "server_core", "client_core", "servers")} \
                | {"network": {"name": net.name, "note": net.note}}
            result["environment"] = environment.describe(started, REPOSITORY)
        (results / "results.json").write_text(json.dumps(result, indent=2) + "\n")
        text = "\n".join([report.table(result), "", *verdict.lines(result)])
        (results / "results.txt").write_text(text + "\n")
        for config in sorted(work.glob("*/proxy.*")):
            shutil.copy(config, results / f"{config.parent.name}{config.suffix}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(text)
    say(f"written: {results}/")
    return 0


def make_files(root, options):
    """Where every byte is compared, the bytes are the generator's own."""
    if options.bed == "loopback":
        return workload.write_files(root)
    root.mkdir(parents=True)
    objects = [(1, size, path) for path, size in workload.objects().items()]
    load.output_of([str(options.lab), "ask", "--make", str(root), *load.object_words(objects)], 30)


def measure(bench):
    """All rounds of the closed loop, then those at given rates."""
    names = [proxy.name for proxy in bench.started]
    options = bench.options
    chosen = [case for case in workload.CASES if case.name in options.only]
    bench.take_all(chosen, options.rounds)
    if bench.network.name == "cores" and options.latency:
        at_rates = [case for case in workload.AT_RATES if case.of in options.only]
        rates = {case.name: verdict.rate(case.of, case.share, bench.samples, names)
                 for case in at_rates}
        bench.take_all(at_rates, workload.TURNS * options.rounds, rates)
        chosen += at_rates
    return rounds.summarise(bench.samples, names, chosen)


class Bench:
    """The run, and the samples in the order in which they were taken."""

    def __init__(self, started, network, root, options):
        self.started, self.network, self.options = started, network, options
        self.heads = workload.check_all(started, network, root, say)
        self.samples = []

    def take_all(self, cases, count, rates=None):
        for case in cases:
            for proxy in self.started:
                load.run(case, proxy, self.network, self.options, (rates or {}).get(case.name), 0.3)
        for number in range(count):
            for case in cases:
                for proxy in rounds.rotated(self.started, number):
                    self.take(case, proxy, (number, count), (rates or {}).get(case.name))

    def take(self, case, proxy, turn, rate):
        number, count = turn
        seconds = workload.TURN if rate else self.options.seconds
        measured, used = load.run(case, proxy, self.network, self.options, rate, seconds)
        if measured.errors:
            raise Failure(f"{proxy.name}, {case.title}: {measured.errors}")
        body = workload.content(case, measured, self.heads, proxy.name)
        sample = rounds.Sample(proxy.name, case.name, number, measured, used, body)
        self.samples.append(sample)
        say(f"round {number + 1}/{count}  {case.title:64} {proxy.name:8} "
            f"{report.brief(sample)}")


def parse_options():
    parser = argparse.ArgumentParser(
        prog="proxy", description="Measure AFPA's proxy beside HAProxy and nginx, each on one core.")
    add = parser.add_argument
    add("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    add("--seconds", type=float, default=1.2, help="length of one measurement (default 1.2)")
    add("--warm-up", type=float, default=0.3, help="load before each, in seconds (default 0.3)")
    add("--proxies", help="comma-separated, of: " + ", ".join(proxies.KNOWN))
    add("--only", default=",".join(case.name for case in workload.CASES),
        help="comma-separated cases (default: %(default)s)")
    add("--bed", choices=("cores", "loopback"), default="cores" if os.geteuid() == 0 else "loopback",
        help="where (default: cores as root, else loopback)")
    add("--servers", choices=("afpa", "nginx"),
        help="what answers behind the proxies (default: afpa on cores, nginx on loopback)")
    add("--no-latency", dest="latency", action="store_false", help="only as fast as they answer")
    add("--afpa", type=Path, default=REPOSITORY / "target/release/afpa", help="the program")
    add("--netlab", type=Path, help="afpa-netlab (default beside afpa)")
    add("--lab", type=Path, help="afpa-lab (default beside afpa)")
    add("--quick", action="store_true", help="0.5 seconds, two rounds: a look, not a result")
    add("--server-core", type=int, default=0, help="core of the proxies (default 0)")
    add("--client-core", type=int, default=1, help="core of clients and servers (default 1)")
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.rounds = 0.5, min(options.rounds, 2)
    options.only = options.only.split(",")
    unknown = set(options.only) - {case.name for case in workload.CASES}
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    options.servers = options.servers or ("nginx" if options.bed == "loopback" else "afpa")
    options.netlab = (options.netlab or options.afpa.with_name("afpa-netlab")).resolve()
    options.lab = (options.lab or options.afpa.with_name("afpa-lab")).resolve()
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("rounds and seconds are above zero")
    if {options.server_core, options.client_core} - environment.usable_cores() \
            or options.server_core == options.client_core:
        parser.error("proxies and clients need a core each that is available here")
    if options.bed == "cores":
        for program in (options.netlab, options.lab):
            if not program.is_file():
                parser.error(f"{program} is not there: `make bench-proxy` builds it, and --bed "
                             f"loopback does without")
    return options


if __name__ == "__main__":
    sys.exit(command.run("proxy", compare, parse_options()))
