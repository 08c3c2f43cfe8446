"""The clients: who asks on which bed, and what is kept of what they say."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import children
import wrk
from failure import Failure
from network import CLIENT
from usage import Meter, Used

HERE = Path(__file__).parent


def run(case, proxy, network, options, rate=None, seconds=None):
    """Loads a proxy: what was asked and answered, and what the cores did meanwhile."""
    seconds = seconds or options.seconds
    if network.name == "loopback":
        return by_wrk(case, proxy, network, options, seconds)
    words = network.at_clients + ["taskset", "-c", str(options.client_core)]
    words += socket_words(case, proxy, network, options, rate) if rate else \
        tc_words(case, proxy, network, options)
    words += ["--seconds", f"{seconds:g}", "--warm-up", f"{options.warm_up:g}",
              "--connections", str(case.connections),
              "--watch", str(options.server_core), "--watch", str(options.client_core)]
    told = json.loads(output_of(words, seconds + 30).splitlines()[-1])
    return socket_load(told) if rate else tc_load(told)


def tc_words(case, proxy, network, options):
    """A closed loop in TC: the client's work is a few hundred nanoseconds a request. It holds every
    answer to its status and its length."""
    words = [str(options.netlab), "load", "--to", f"{network.proxy}:{proxy.port}", "--source", CLIENT]
    for weight, _, path in case.objects:
        words += ["--path", f"{weight}:{path}"]
    return words


def tc_load(told):
    latency, counts = told["latency"], told["counts"]
    load = wrk.Load(counts["responses"], told["seconds"], counts["response_bytes"],
                    latency["p50"] / 1e6, latency["p99"] / 1e6, "", latency["p999"] / 1e6)
    return load, used(told["cores"], load.seconds)


def socket_words(case, proxy, network, options, rate):
    """An open loop over sockets: requests come when they come, and one that has to wait for a
    connection counts from when it was due. Every byte is compared."""
    return [str(options.lab), "ask", "--to", f"{network.proxy}:{proxy.port}", "--rate", f"{rate:.0f}",
            *object_words(case.objects)]


def socket_load(told):
    measured = told["measured"]
    latency, counts = measured["latency"], measured["counts"]
    load = wrk.Load(measured["requests"], measured["seconds"], measured["bytes"],
                    latency["p50"] / 1e6, latency["p99"] / 1e6,
                    f"{counts['not_asked']} not asked" if counts.get("not_asked") else "",
                    latency["p999"] / 1e6)
    found = used(told["cores"], load.seconds)
    # The generator waits awake for what is due next: its core is always full, and says nothing.
    return load, replace(found, client_core=0.0)


def object_words(objects):
    return [word for weight, size, path in objects
            for word in ("--object", f"{weight}:{size}:{path}")]


def used(cores, seconds):
    """Busy is what is left by idle time, which alone is measured exactly: packets that are processed
    from idle escape the tick."""
    server, client = ((seconds - time(core, "idle") - time(core, "steal")) for core in cores)
    stolen = sum(time(core, "steal") for core in cores)
    return Used(0.0, max(server, 0.0), max(client, 0.0), stolen)


def time(core, kind):
    return core[kind]["secs"] + core[kind]["nanos"] / 1e9


def by_wrk(case, proxy, network, options, seconds):
    script = HERE / case.script if case.script else wrk.SCRIPT
    path = case.objects[0][2]
    words = ["taskset", "-c", str(options.client_core), "wrk", "--threads", "1", "--connections",
             str(case.connections), "--duration", f"{max(1, round(seconds))}s", "--timeout", "10s",
             "--latency", "--script", str(script), f"http://{network.proxy}:{proxy.port}{path}"]
    meter = Meter(proxy.pid, options.server_core, options.client_core)
    said = output_of(words, seconds + 30, {"SUMMARY": str(wrk.SCRIPT)})
    return wrk.parse(said), meter.stop()


def output_of(words, limit, environment=None):
    """Of a command that has to end in time, or else is ended and is a failure."""
    process = children.start(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=os.environ | (environment or {}))
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise Failure(f"this did not end in time: {' '.join(words)}") from None
    finally:
        children.end(process)
    if process.returncode != 0:
        raise Failure(f"{' '.join(words)} ended with status {process.returncode}: "
                      f"{(errors.strip() or output.strip())[-1000:]}")
    return output
