"""The result for people: Markdown, and lines of progress."""

import environment
from cases import BEDS, H2O, NGINX, REFLECTOR

LARGER_GOALS = {4 << 10: "at least 5x", 8 << 10: "at least 5x", 14 << 10: "at least 4x"}
GOALS = {NGINX: "at least 10x", H2O: "at least 8x", REFLECTOR: "aim 0.60x"}


def markdown(result):
    parts = ["# The fast path", "", *setting(result), ""]
    for case in result["speed"]:
        parts += speed_table(case)
    parts += larger_table(result["larger"])
    parts += ["## All ratios", "", *ratio_lines(result), "",
              "## Commands", "", "Those of one case; all of them are in results.json.", "", "```", *first_commands(result["commands"]), "```", ""]
    return "\n".join(parts)


def setting(result):
    settings = result["settings"]
    return [
        environment.told(result["environment"]),
        "",
        f"Medians of {settings['rounds']} interleaved rounds, turns of {settings['seconds']} s, with "
        f"their smallest and largest. Each server has one worker on core 0; the generator (TC, closed "
        f"loop, every answer's status and length checked) has core 1. Cubic, checksum and segmentation "
        f"left to the device, access logs off. *Per core*: requests per second in which the core was "
        f"busy, by /proc/stat; on beds where the two sides mix, both sides' work.",
    ]


def speed_table(case):
    lines = [f"## {case['title']}", "", f"Bed: {BEDS[case['bed']]}.", "",
             "| server | requests/s | per core | core time a request | p99 | kernel is |",
             "|---|---:|---:|---:|---:|---:|"]
    for name, own in case["servers"].items():
        ratio = case["kernel_to"].get(name)
        lines.append(f"| {name} | {count(own['rate'])} | {count(own['per_core'])} "
                     f"| {own['cost']['median']:.2f} us ({own['cost']['min']:.2f} to "
                     f"{own['cost']['max']:.2f}) | {own['p99']['median']:.0f} us "
                     f"| {times(ratio) if ratio else ''} |")
    notes = [f"{name} left its core idle for more than 5 % in {own['rounds'] - own['saturated']} turns"
             for name, own in case["servers"].items() if own["saturated"] < own["rounds"]]
    notes += [f"others disturbed {own['doubtful']} turns of {name}"
              for name, own in case["servers"].items() if own["doubtful"]]
    return lines + ["", *([f"> {'; '.join(notes)}.", ""] if notes else [])]


def larger_table(cases):
    """Core time by size, and the rate per core to nginx's."""
    if not cases:
        return []
    names = list(cases[0]["servers"])
    lines = ["## Objects of several segments", "",
             "Core time a request in us, median (min to max); 64 connections, a core for each side. The "
             "reflector sends all segments of a constant at once, without state, and hears no "
             "acknowledgement: no program of its kind can take less.", "",
             f"| size | {' | '.join(names)} | kernel is, to nginx | goal | kernel is, to the reflector |",
             "|---:|" + "---:|" * (len(names) + 1) + "---|---:|"]
    for case in cases:
        cells = [cost(case["servers"][name]) if name in case["servers"] else "" for name in names]
        share = case["kernel_to"].get(REFLECTOR)
        lines.append(f"| {case['size'] >> 10} KB | {' | '.join(cells)} "
                     f"| {times(case['kernel_to'][NGINX])} | {LARGER_GOALS.get(case['size'], '')} "
                     f"| {times(share) if share else ''} |")
    return lines + [""]


def cost(own):
    return f"{own['cost']['median']:.2f} ({own['cost']['min']:.2f} to {own['cost']['max']:.2f})"


def ratio_lines(result):
    lines = ["| what | figure | goal |", "|---|---:|---|"]
    for bed, ratios in result["least"].items():
        for name, least in ratios.items():
            if least:
                lines.append(f"| least ratio to {name}, {bed} ({least['case']}) | {times(least)} "
                             f"| {GOALS[name]} |")
    for share in result["browser"]:
        lines.append(f"| left of the rate per core: {share['title']} | {times(share)} "
                     f"| at least 0.5x |")
    for extra in result["passes"]:
        lines.append(f"| what the programs add to {extra['title']} | {percent(extra)} | {goal_of(extra['name'])} |")
    for extra in result["alternating"]:
        goal = "" if extra["name"].endswith("nothing") else goal_of(extra["name"])
        lines.append(f"| what is added, there and away by turns of 20 ms: {extra['title']} | {slices(extra)} | {goal} |")
    for program in result["programs"]:
        lines.append(f"| time of the programs alone, their own clock included: {program['title']} "
                     f"| {program['median']:.0f} ns ({program['min']:.0f} to {program['max']:.0f}) | |")
    flows = result["flows"]
    if flows:
        lines.append(f"| a request with {flows['many']:,} connections to one with {flows['few']} "
                     f"({flows['cost_many']['median']:.2f} and {flows['cost_few']['median']:.2f} us) "
                     f"| {times(flows['ratio'])} | at most 1.3x |")
        lines.append(f"| most connections seen in the kernel's table | {flows['in_table']:,} | |")
        if flows["memory"]:
            each = flows["memory"]["bytes"] / flows["memory"]["flows"]
            lines.append(f"| memory of the table of flows, for each it has room for | {each:.0f} B | |")
    if result["changes"]:
        changes = result["changes"]
        lines.append(f"| close-after-write to the last stale answer, p99 of {changes['changes']} "
                     f"changes (p50 {changes['p50'] * 1e3:.2f} ms, most {changes['most'] * 1e3:.2f} ms) "
                     f"| {changes['p99'] * 1e3:.2f} ms | at most 5 ms |")
        lines.append(f"| answers older than one seen before, of {changes['answers']:,} "
                     f"| {changes['backwards']} | 0 |")
    for failure in result["failed"]:
        lines.append(f"| NOT MEASURED | {failure.splitlines()[-1]} | |")
    if result["repeated"]:
        lines.append(f"| turns that failed and were taken again | {len(result['repeated'])} | 0 |")
    return lines


def goal_of(name):
    return "at most 2 %" if "download" in name else "at most 5 %"


def added_line(extra):
    return f"there and away: {extra['title']}: {slices(extra)}"


def slices(extra):
    return (f"{extra['median'] * 100:+.1f} % (half of {extra['groups']} groups {extra['quarter'] * 100:+.1f} to "
            f"{extra['three_quarters'] * 100:+.1f}, standard error {extra['error'] * 100:.1f})")


def first_commands(commands):
    """Those of the first case; the others differ in their case's numbers only."""
    first = next(iter(commands), "").split(",")[0]
    return [f"# {name}\n{command}" for name, command in commands.items()
            if name.split(",")[0] in (first, "coherence")]


def sample_line(sample):
    line = f"{sample['server']:15} {sample['rate'] / 1e3:8.1f} k/s  {sample['cost']:7.2f} us"
    if not sample["saturated"]:
        line += "  core not full"
    if sample["doubtful"]:
        line += f"  DISTURBED by {sample['foreign']:.0%}"
    return line


def change_line(changes):
    return (f"{changes['changes']} changes under {changes['load']['rate'] / 1e3:.0f} k/s: last stale "
            f"answer p50 {changes['p50'] * 1e3:.2f} ms, p99 {changes['p99'] * 1e3:.2f} ms")


def count(spread):
    return f"{short(spread['median'])} ({short(spread['min'])} to {short(spread['max'])})"


def short(value):
    return f"{value / 1e6:.2f} M" if value >= 999_500 else f"{value / 1e3:.1f} k"


def times(spread):
    return f"{spread['median']:.2f}x ({spread['min']:.2f} to {spread['max']:.2f})"


def percent(spread):
    return (f"{spread['median'] * 100:+.1f} % ({spread['min'] * 100:+.1f} to "
            f"{spread['max'] * 100:+.1f})")


