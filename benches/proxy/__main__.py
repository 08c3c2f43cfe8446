"""Measures AFPA's proxy beside HAProxy and nginx: one command, one table.

    python3 benches/proxy [--quick] [--rounds N] [--seconds S] [--proxies a,b,...]

Each proxy has one core and one thread; three servers (nginx) and wrk share another core; all in a
network namespace of their own, with keep-alive on both sides. In each round every case is measured
once for every proxy, in rotating order. Progress goes to stderr, the table to stdout, and JSON,
Markdown and the configurations to build/proxy/<time>/.

Exit status: 0 measured; 1 a proxy gave a wrong answer or an error, or could not be started;
2 wrong usage.
"""

import argparse
import json
import shutil
import signal
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "benches" / "compare"))

import bed  # noqa: E402  (of the comparison of servers, as the others below)
import environment  # noqa: E402
import report  # noqa: E402
import rounds  # noqa: E402
from failure import Failure  # noqa: E402
from usage import Meter  # noqa: E402

import proxies  # noqa: E402
import workload  # noqa: E402

# A proxy's cost is what counts: requests per second in which its core was busy.
rounds.METRICS["requests_per_core"] = rounds.Metric(
    "Requests per proxy-core second", "/s", True,
    lambda sample: sample.load.requests / sample.used.server_core)
rounds.BASELINE = "haproxy"


def main():
    options = parse_options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("proxy: ended by SIGTERM"))
    try:
        return compare(options)
    except Failure as failure:
        say(f"proxy: {failure}")
        return 1
    except KeyboardInterrupt:
        say("proxy: interrupted")
        return 130


def compare(options):
    chosen = proxies.choose(options.proxies, options.afpa, say)
    results = REPOSITORY / "build" / "proxy" / time.strftime("%Y-%m-%d-%H%M%S")
    results.mkdir(parents=True)
    work = results / "work"
    try:
        network = bed.enter_namespace()
        say(f"network: {network['note']}")
        files = workload.write_files(work / "root")
        with proxies.running(chosen, work, options) as started:
            heads = workload.check(started, files, say)
            samples = measure(started, heads, options)
            names = [proxy.name for proxy in chosen]
            result = rounds.summarise(samples, names, workload.CASES)
            kept = ("rounds", "seconds", "server_core", "client_core")
            result["settings"] = {name: getattr(options, name) for name in kept} \
                | {"network": network}
            result["environment"] = environment.describe(started, REPOSITORY)
        (results / "results.json").write_text(json.dumps(result, indent=2) + "\n")
        (results / "results.txt").write_text(report.table(result) + "\n")
        for config in sorted(work.glob("*/proxy.*")):
            shutil.copy(config, results / f"{config.parent.name}{config.suffix}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(report.table(result))
    say(f"written: {results}/")
    return 0


def measure(started, heads, options):
    """All rounds; the samples in the order in which they were taken."""
    for case in workload.CASES:
        for proxy in started:
            workload.run(case, proxy.port, options.client_core, 1)
    samples = []
    for number in range(options.rounds):
        for case in workload.CASES:
            for proxy in rounds.rotated(started, number):
                meter = Meter(proxy.pid, options.server_core, options.client_core)
                load = workload.run(case, proxy.port, options.client_core, options.seconds)
                used = meter.stop()
                if load.errors:
                    raise Failure(f"{proxy.name}, {case.title}: {load.errors}")
                body = load.bytes - load.requests * heads[proxy.name, case.name]
                samples.append(rounds.Sample(proxy.name, case.name, number, load, used, body))
                say(f"round {number + 1}/{options.rounds}  {case.title:34} {proxy.name:8} "
                    f"{report.brief(samples[-1])}")
    return samples


def parse_options():
    parser = argparse.ArgumentParser(
        prog="proxy", description="Measure AFPA's proxy beside HAProxy and nginx, each on one core.")
    add = parser.add_argument
    add("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    add("--seconds", type=int, default=5, help="length of one measurement (default 5)")
    add("--proxies", help="comma-separated, of: " + ", ".join(proxies.KNOWN))
    add("--afpa", type=Path, default=REPOSITORY / "target/release/afpa", help="the program")
    add("--quick", action="store_true", help="one second, two rounds: a look, not a result")
    add("--server-core", type=int, default=0, help="core of the proxies (default 0)")
    add("--client-core", type=int, default=1, help="core of wrk and the servers (default 1)")
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.rounds = 1, min(options.rounds, 2)
    if options.rounds < 1 or options.seconds < 1:
        parser.error("rounds and seconds are above zero")
    if {options.server_core, options.client_core} - environment.usable_cores() \
            or options.server_core == options.client_core:
        parser.error("proxies and clients need a core each that is available here")
    return options


def say(line):
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
