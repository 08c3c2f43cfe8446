"""Measures AFPA beside nginx and h2o: one command, one table.

    python3 benches/compare [--quick] [--rounds N] [--seconds S] [--servers a,b,...]

Every server runs on one core with one worker, wrk on another core, both in a network namespace of
their own. In each round every case is measured once for every server; the order of the servers
rotates from round to round, so that a machine that grows slower or busier is not held against the
last in line. Progress goes to stderr, the table to stdout, and JSON, Markdown, the figure and
the servers' configurations to build/compare/<time>/.

Exit status: 0 measured; 1 a server gave a wrong answer or an error, or could not be started;
2 wrong usage.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

import bed
import check
import command
import environment
import figure
import report
import servers
import wrk
from cases import CASES, write_files
from command import REPOSITORY, say
from failure import Failure
from rounds import Sample, rotated, summarise
from usage import Meter


def compare(options):
    chosen = servers.choose(options.servers, options.afpa, say)
    results = command.new_folder("compare", options.out)
    work = results / "work"
    try:
        network = bed.enter_namespace()
        say(f"network: {network['note']}")
        files = write_files(work / "root")
        with servers.running(chosen, work, options.server_core) as started:
            heads = check.answers(started, files, say)
            samples = measure(started, heads, options)
            settings = vars_of(options) | {"network": network}
            result = summarise(samples, [server.name for server in chosen], CASES)
            result["settings"] = settings
            result["environment"] = environment.describe(started, REPOSITORY)
            result["commands"] = commands(started, options)
        keep(results, result, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(json.dumps(result, indent=2) if options.json else report.table(result))
    say(f"written: {results}/ (results.json, results.md, results.svg, configurations)")
    return 0


def measure(started, heads, options):
    """All rounds; the samples in the order in which they were taken."""
    for case in CASES:  # page cache, branch predictors and the servers' own caches: warm for all
        for server in started:
            wrk.run(case, server.url(case), options.client_core, options.warm_up)
    samples = []
    for number in range(options.rounds):
        for case in CASES:
            for server in rotated(started, number):
                sample = one(server, case, number, heads, options)
                samples.append(sample)
                say(f"round {number + 1}/{options.rounds}  {case.title:26} {server.name:6} "
                    f"{report.brief(sample)}")
    return samples


def one(server, case, number, heads, options):
    meter = Meter(server.pid, options.server_core, options.client_core)
    load = wrk.run(case, server.url(case), options.client_core, options.seconds)
    used = meter.stop()
    if load.errors:
        raise Failure(f"{server.name}, {case.title}, round {number + 1}: {load.errors}")
    body = load.bytes - load.requests * heads[server.name, case.name]
    return Sample(server.name, case.name, number, load, used, body)


def keep(folder, result, work):
    (folder / "results.json").write_text(json.dumps(result, indent=2) + "\n")
    (folder / "results.md").write_text(report.markdown(result))
    (folder / "results.svg").write_text(figure.draw(result))
    for config in sorted(work.glob("*/server.*")):
        shutil.copy(config, folder / f"{config.parent.name}{config.suffix}")


def commands(started, options):
    loads = {case.name: " ".join(wrk.command(case, "URL", options.client_core, options.seconds))
             for case in CASES}
    return {"servers": {s.name: " ".join(s.command) for s in started}, "load": loads}


def vars_of(options):
    kept = ("rounds", "seconds", "warm_up", "server_core", "client_core", "quick")
    return {name: getattr(options, name) for name in kept}


def parse_options():
    parser = argparse.ArgumentParser(
        prog="compare", description="Measure AFPA beside nginx and h2o, each on one core.")
    add = parser.add_argument
    add("--rounds", type=positive(int), default=5, help="interleaved rounds (default 5)")
    add("--seconds", type=positive(int), default=5, help="length of one measurement (default 5)")
    add("--warm-up", type=positive(int), default=1, help="seconds per server and case (default 1)")
    add("--servers", help="comma-separated, of: " + ", ".join(servers.KNOWN)
        + " (default: those that are installed)")
    add("--afpa", type=Path, default=REPOSITORY / "target/release/afpa", help="the program")
    add("--quick", action="store_true", help="one second a measurement: a look, not a result")
    add("--json", action="store_true", help="JSON instead of the table on stdout")
    add("--out", help="folder for the results (default build/compare/<time>)")
    add("--server-core", type=int, default=0, help="core of the servers (default 0)")
    add("--client-core", type=int, default=1, help="core of wrk (default 1)")
    options = parser.parse_args()
    if options.quick:
        options.seconds = 1
    usable = environment.usable_cores()
    for core in (options.server_core, options.client_core):
        if core not in usable:
            parser.error(f"core {core} is not available here (there are {sorted(usable)})")
    if options.server_core == options.client_core:
        parser.error("server and client need a core each")
    return options


def positive(kind):
    def convert(text):
        value = kind(text)
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{text} is not above zero")
        return value
    return convert


if __name__ == "__main__":
    sys.exit(command.run("compare", compare, parse_options()))
