"""From turns to ratios. No clock, no process, no file."""

from statistics import median

from cases import KERNEL, REFLECTOR, STEERED, TOGETHER, UNSTEERED

MOST_FOREIGN = 0.03  # share of a core; the same limit as afpa-netlab's


def measured(turn, steering):
    """What is kept of a turn: the rate, and the cost of a request in microseconds.

    On the steered bed the cost is the server's core's. On the others the work of both sides mixes, so
    it is everything: the one core's, or both cores' without what others used in user mode.
    """
    seconds = turn["interval"]["seconds"]
    requests = turn["interval"]["counts"]["responses"]
    cost = sum(turn["cost"][kind] for kind in ("user", "system", "interrupts"))
    if steering == UNSTEERED:
        server, client = turn["server_core"], turn["client_core"]
        busy = 2 * seconds - sum(time(core, "idle") + time(core, "steal") for core in (server, client))
        cost = (busy - turn["foreign"] * seconds - time(client, "user")) / requests * 1e6
    return {
        "rate": requests / seconds,
        "cost": cost,
        "user": turn["cost"]["user"],
        "latency": turn["interval"]["latency"],
        "errors": turn["interval"]["errors"],
        "saturated": turn["saturated"],
        "foreign": turn["foreign"],
        "doubtful": turn["foreign"] > MOST_FOREIGN,
    }


def time(core, kind):
    return core[kind]["secs"] + core[kind]["nanos"] / 1e9


def spread(values):
    values = list(values)
    return {"median": median(values), "min": min(values), "max": max(values), "values": values}


def of(samples, case, server, key):
    """A figure of one server in one case, in the order of rounds."""
    return [s[key] for s in samples if (s["case"], s["server"]) == (case.name, server)]


def per_core(samples, case, server):
    """Requests per second of core time."""
    return [1e6 / cost for cost in of(samples, case, server, "cost")]


def ratio(ones, others):
    """Round by round: what slowed a whole round falls out."""
    return spread(a / b for a, b in zip(ones, others, strict=True))


def client_share(samples, case):
    """The client's part of a cost in which both sides are mixed, round by round.

    Half of what a request to the reflector costs: the generator does at least what the reflector
    does, so this is too little rather than too much, and what is left is not to our favour.
    """
    return [cost / 2 for cost in of(samples, case, REFLECTOR, "cost")]


def server_ratio(samples, case, other):
    """Like `ratio` of the kernel's figure to another's, without the client's part."""
    shares = client_share(samples, case)
    own = [c - s for c, s in zip(of(samples, case, KERNEL, "cost"), shares, strict=True)]
    theirs = [c - s for c, s in zip(of(samples, case, other, "cost"), shares, strict=True)]
    return ratio(theirs, own)


def speed(samples, case):
    """Everything told about a case of SPEED."""
    figures = {
        server: {
            "rate": spread(of(samples, case, server, "rate")),
            "per_core": spread(per_core(samples, case, server)),
            "cost": spread(of(samples, case, server, "cost")),
            "p99": spread(l["p99"] for l in of(samples, case, server, "latency")),
            "saturated": sum(of(samples, case, server, "saturated")),
            "doubtful": sum(of(samples, case, server, "doubtful")),
            "rounds": len(of(samples, case, server, "cost")),
        }
        for server in case.servers
    }
    own = per_core(samples, case, KERNEL)
    ratios = {server: ratio(own, per_core(samples, case, server))
              for server in case.servers if server != KERNEL}
    result = {"name": case.name, "title": case.title, "bed": case.steering, "size": case.size,
              "connections": case.connections, "browser": case.browser,
              "visitors": case.visitors, "servers": figures, "kernel_to": ratios}
    if case.steering in (UNSTEERED, TOGETHER):
        result["kernel_to_without_client"] = {
            server: server_ratio(samples, case, server)
            for server in case.servers if server not in (KERNEL, REFLECTOR)}
    return result


def least(results, server, key="kernel_to"):
    """The least favourable median over some results, with its spread and the case it is from."""
    found = [(r[key][server]["median"], r) for r in results if server in r.get(key, {})]
    if not found:
        return None
    _, result = min(found, key=lambda pair: pair[0])
    return result[key][server] | {"case": result["title"]}


def steered(results):
    return [r for r in results if r["bed"] == STEERED]


def mixed(results):
    return [r for r in results if r["bed"] != STEERED]


def browser_share(samples, plain, browser):
    """What is left of the kernel's figure with a browser's header fields."""
    return ratio(per_core(samples, browser, KERNEL), per_core(samples, plain, KERNEL))


def overhead(samples, case):
    """What the first server's requests cost more than the second's: 0.05 is five per cent."""
    with_programs, without = case.servers
    more = ratio(of(samples, case, with_programs, "cost"), of(samples, case, without, "cost"))
    return spread(value - 1 for value in more["values"])
