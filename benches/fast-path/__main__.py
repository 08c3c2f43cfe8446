"""The fast path's figures: one command, all of them.

    python3 benches/fast-path [--quick] [--rounds N] [--seconds S] [--only NAME,...]

Servers take turns on the test bed of afpa-netlab: two network namespaces, the server on one core, a
closed-loop generator in TC on the other. In each round every case is measured once for every server;
the order rotates from round to round. Then: what a request costs that is passed on, 200,000
connections against 64, and how long an old version of a file is given.

Progress goes to stderr, Markdown to stdout, and results.json, results.md and results.svg to
build/fast-path/<time>/. Needs root, and two cores with nothing else to do.

Exit status: 0 measured, whatever the figures are; 1 something could not be measured; 2 wrong usage.
"""

import argparse
import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path

# What the benchmarks share: command, environment, children, failure, the peers' configurations.
sys.path.append(str(Path(__file__).resolve().parents[1] / "compare"))

import alternating
import arithmetic
import bed
import cases
import command
import contenders
import environment
import figure
import programs
import report
import told
from cases import H2O, LARGER, NGINX, PASSES, REFLECTOR, SPEED
from command import REPOSITORY, say
from failure import Failure

TRIES = 3


def measure(options):
    folder = command.new_folder("fast-path", options.out)
    # Not below the repository: servers that give up root's rights must reach it.
    with tempfile.TemporaryDirectory(prefix="afpa-fast-path-") as work:
        os.chmod(work, 0o755)
        bench = Bench(options, Path(work))
        for part in (bench.speed, bench.larger, bench.passes, bench.alternating, bench.programs,
                     bench.flows, bench.coherence):
            try:
                part()
            except Failure as failure:  # the other parts are worth having
                bench.failed.append(str(failure))
                say(f"fast-path: {failure}")
        result = bench.result()
    (folder / "results.json").write_text(json.dumps(result, indent=1) + "\n")
    (folder / "results.md").write_text(report.markdown(result))
    (folder / "results.svg").write_text(figure.draw(result))
    print(report.markdown(result))
    say(f"written: {folder}/ (results.json, results.md, results.svg)")
    return 1 if result["failed"] else 0


class Bench:
    """The parts of the run, and what they have found so far."""

    def __init__(self, options, work):
        self.options, self.begun = options, time.monotonic()
        self.root = work / "root"
        cases.write_files(self.root)
        (work / "files").mkdir()
        self.contenders = contenders.Contenders(
            options.afpa, work / "files", self.root, int(options.flows * 1.25))
        self.samples, self.commands, self.changes = [], {}, None
        self.memory, self.most_flows, self.program_times = None, 0, []
        self.repeated, self.failed, self.added = [], [], []
        self.crowd = cases.crowd(options.flows)

    def chosen(self, all_of_them):
        wanted = self.options.only
        return [case for case in all_of_them
                if (case.quick or not self.options.quick)
                and (not wanted or any(word in case.name for word in wanted))]

    def speed(self):
        self.rounds(self.chosen(SPEED))

    def larger(self):
        self.rounds(self.chosen(LARGER))

    def passes(self):
        self.rounds(self.chosen(PASSES))

    def alternating(self):
        for case in self.chosen(cases.ALTERNATING):
            seconds = self.options.seconds * case.seconds
            words = bed.command(self.options.netlab, case, self.contenders.of(case.servers[0]),
                                seconds + alternating.MARGIN, 0, self.options.patience)
            self.commands[case.name] = shlex.join(words)
            groups = alternating.measure(words, case, self.contenders.folder / "pid", seconds)
            self.added.append({"name": case.name, "title": case.title} | alternating.added(groups))
            say(f"[{self.elapsed():4.0f} s] {report.added_line(self.added[-1])}")

    def programs(self):
        chosen = self.chosen(cases.PROGRAMS)
        with programs.Counting():
            for _ in range(max(1, round(self.options.rounds * cases.PROGRAM_ROUNDS))):
                for case in chosen:
                    self.program_times.append((case, self.program_time(case)))

    def program_time(self, case):
        """Nanoseconds a request."""
        words = bed.command(self.options.netlab, case, self.contenders.of(case.servers[0]),
                            self.options.seconds * case.seconds, 0, self.options.patience)
        self.commands[case.name] = shlex.join(words)
        watch = programs.Watch(self.contenders.folder / "pid")
        bed.turn(words, 60, watch.look)
        say(f"[{self.elapsed():4.0f} s] programs, {case.title}: {watch.each():.0f} ns")
        return watch.each()

    def flows(self):
        self.rounds(self.chosen(self.crowd))
        memory = self.contenders.folder / "memory"
        if memory.exists() and memory.read_text():
            bytes_locked, flows = map(int, memory.read_text().split()[:2])
            self.memory = {"bytes": bytes_locked, "flows": flows}

    def coherence(self):
        if self.options.only and "coherence" not in self.options.only:
            return
        server = self.contenders.of(cases.KERNEL)
        core = f"taskset -c 0 {server.command}"
        words = [str(self.options.netlab), "run", "--steer", "--server", core, "--", sys.executable,
                 str(HERE / "coherence.py"), contenders.HOST, str(contenders.PORT),
                 str(self.root / "changing.html"), "/changing.html",
                 str(100 if self.options.quick else 400), str(self.options.netlab),
                 str(self.contenders.control)]
        self.commands["coherence"] = shlex.join(words)
        self.changes = json.loads(bed.run(words, 120))
        say(f"[{self.elapsed():4.0f} s] {report.change_line(self.changes)}")

    def rounds(self, chosen):
        for number in range(self.options.rounds):
            for case in chosen:
                if number < max(1, round(self.options.rounds * case.rounds)):
                    self.take(case, number)

    def take(self, case, number):
        """One round of one case: every server has a turn, and another begins each time."""
        names = case.servers
        for name in names[number % len(names):] + names[:number % len(names)]:
            flows = case.connections if case in self.crowd else 0
            contender = self.contenders.of(name, flows)
            words = bed.command(self.options.netlab, case, contender,
                                self.options.seconds * case.seconds,
                                max(self.options.warm_up, case.warm_up),
                                self.options.patience)
            self.commands[f"{case.name}, {name}"] = shlex.join(words)
            turn = self.turn(case, name, words)
            sample = {"case": case.name, "server": name, "round": number} \
                | arithmetic.measured(turn, case.steering)
            if sample["errors"]:
                raise Failure(f"{case.title}, {name}: {sample['errors']} wrong answers")
            self.samples.append(sample)
            say(f"[{self.elapsed():4.0f} s] round {number + 1}  {case.title:44} "
                f"{report.sample_line(sample)}")

    def turn(self, case, name, words):
        """A turn that cannot be had is tried again, and the result says how often: for example, who
        only holds connections cannot answer what the kernel passed up because the machine stood
        still for a moment."""
        limit = 60 + case.connections / 500
        for left in reversed(range(TRIES)):
            try:
                return bed.turn(words, limit, self.look if case in self.crowd else None)
            except Failure as failure:
                told_of = f"{case.title}, {name}: {failure}"
                if not left:
                    raise Failure(told_of) from None
                self.repeated.append(told_of)
                say(f"again: {told_of}")
        raise AssertionError("the last try returns or raises")

    def look(self):
        """How many connections the kernel has in its table, at most."""
        seen = told.statistics(self.contenders.control)
        # Its own figure of them is seconds old; these are counted as it happens.
        packets = seen["fast_path"].get("packets", {}) if seen else {}
        flows = packets.get("flow_opened", 0) - packets.get("flow_closed", 0)
        self.most_flows = max(self.most_flows, flows)

    def elapsed(self):
        return time.monotonic() - self.begun

    def is_complete(self, case):
        """Every server has had its turn, in as many rounds as the others."""
        rounds = {len(arithmetic.of(self.samples, case, name, "cost")) for name in case.servers}
        return len(rounds) == 1 and rounds != {0}

    def result(self):
        measured = [case for case in SPEED if self.is_complete(case)]
        speed = [arithmetic.speed(self.samples, case) for case in measured]
        named = {case.name: case for case in SPEED}
        pairs = [(case, named[case.name.split("-browser")[0]])
                 for case in measured if case.browser]
        few, many = self.crowd
        have_flows = self.is_complete(few) and self.is_complete(many)
        return {
            "environment": describe(self.options),
            "settings": settings(self.options) | {"took_seconds": self.elapsed()},
            "speed": speed,
            "larger": [arithmetic.speed(self.samples, case) for case in LARGER
                       if self.is_complete(case)],
            "least": {
                "bed with a core for each side": {
                    name: arithmetic.least(arithmetic.steered(speed), name)
                    for name in (NGINX, H2O, REFLECTOR)},
                "mixed beds, totals of both sides": {
                    name: arithmetic.least(arithmetic.mixed(speed), name)
                    for name in (NGINX, H2O, REFLECTOR)},
                "mixed beds, less the client's part": {
                    name: arithmetic.least(arithmetic.mixed(speed), name, "kernel_to_without_client")
                    for name in (NGINX, H2O)},
            },
            "browser": [{"title": case.title} | arithmetic.browser_share(self.samples, plain, case)
                        for case, plain in pairs
                        if plain in measured],
            "passes": [{"name": case.name, "title": case.title}
                       | arithmetic.overhead(self.samples, case)
                       for case in PASSES if self.is_complete(case)],
            "alternating": self.added,
            "flows": have_flows and {
                "few": few.connections, "many": many.connections,
                "cost_few": arithmetic.spread(arithmetic.of(self.samples, few, cases.KERNEL, "cost")),
                "cost_many": arithmetic.spread(arithmetic.of(self.samples, many, cases.KERNEL, "cost")),
                "ratio": arithmetic.ratio(arithmetic.of(self.samples, many, cases.KERNEL, "cost"),
                                          arithmetic.of(self.samples, few, cases.KERNEL, "cost")),
                "in_table": self.most_flows, "memory": self.memory},
            "programs": [
                {"title": case.title} | arithmetic.spread(
                    taken for other, taken in self.program_times if other == case)
                for case in cases.PROGRAMS if any(case == other for other, _ in self.program_times)],
            "changes": self.changes,
            "repeated": self.repeated, "failed": self.failed,
            "commands": self.commands,
            "samples": self.samples,
        }


def describe(options):
    started = [type("Known", (), {"name": name, "program": program})
               for name, program in (("afpa", str(options.afpa)),
                                     (NGINX, contenders.program("nginx")),
                                     (H2O, contenders.program("h2o")))]
    described = environment.describe(started, REPOSITORY)
    del described["versions"]["wrk"]
    return described


def settings(options):
    return {name: getattr(options, name)
            for name in ("rounds", "seconds", "warm_up", "patience", "quick", "flows")}


def parse_options():
    parser = argparse.ArgumentParser(prog="fast-path", description="Measure the fast path.")
    add = parser.add_argument
    add("--rounds", type=int, help="interleaved rounds (default 5; with --quick 2)")
    add("--seconds", type=float, help="length of a turn (default 0.5; with --quick 0.4)")
    add("--warm-up", type=float, default=0.2, help="load before each turn, in seconds")
    add("--patience", type=float, default=0.0,
        help="seconds that a turn may wait until the machine has nothing else to do")
    add("--flows", type=int, help="established connections (default 200,000; with --quick 40,000)")
    add("--only", type=lambda text: text.split(","), help="cases whose names contain one of these")
    add("--afpa", type=Path, default=REPOSITORY / "target/release/afpa", help="the program")
    add("--netlab", type=Path, help="afpa-netlab (default beside afpa)")
    add("--quick", action="store_true", help="some two minutes: a look, not a result")
    add("--out", help="folder for the results (default build/fast-path/<time>)")
    options = parser.parse_args()
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.seconds = options.seconds or (0.4 if options.quick else 0.5)
    options.flows = options.flows or (40_000 if options.quick else 200_000)
    options.netlab = (options.netlab or options.afpa.with_name("afpa-netlab")).resolve()
    options.afpa = options.afpa.resolve()
    if os.geteuid() != 0:
        parser.error("this needs root: namespaces, and programs in the kernel")
    if (os.cpu_count() or 1) < 2:
        parser.error("server and client need a core each")
    for program in (options.afpa, options.netlab):
        if not program.is_file():
            parser.error(f"{program} is not there")
    if not shutil.which("curl"):
        parser.error("curl is not there")
    return options


if __name__ == "__main__":
    sys.exit(command.run("fast-path", measure, parse_options()))
