"""The arithmetic of ratios, and the commands that figures come from."""

import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "compare"))

import alternating
import arithmetic
import bed
import coherence
import figure
import hooks
import programs
import report
from cases import H2O, KERNEL, LARGER, NGINX, PASSES, REFLECTOR, SPEED, STEERED, TOGETHER, UNSTEERED, crowd
from contenders import Contender


def core(user=0.0, system=0.0, softirq=0.0, idle=0.0):
    def duration(seconds):
        return {"secs": int(seconds), "nanos": round(seconds % 1 * 1e9)}
    return {"user": duration(user), "system": duration(system), "softirq": duration(softirq),
            "irq": duration(0), "idle": duration(idle), "steal": duration(0)}


def turn(responses=1_000_000, cost=(0.1, 0.2, 0.7), server=None, client=None, foreign=0.0):
    return {
        "interval": {"seconds": 1.0, "counts": {"responses": responses}, "errors": 0,
                     "latency": {"p50": 10.0, "p99": 20.0}},
        "cost": dict(zip(("user", "system", "interrupts"), cost)),
        "saturated": True, "foreign": foreign,
        "server_core": server or core(), "client_core": client or core(),
    }


def sample(case, server, number, cost, rate=1e5):
    return {"case": case.name, "server": server, "round": number, "rate": rate, "cost": cost,
            "user": 0.0, "latency": {"p50": 1.0, "p99": 2.0}, "errors": 0, "saturated": True,
            "foreign": 0.0, "doubtful": False}


def samples(case, costs):
    return [sample(case, server, number, cost)
            for server, own in costs.items() for number, cost in enumerate(own)]


def case_named(name):
    return next(case for case in SPEED + PASSES if case.name == name)


class Measured(unittest.TestCase):
    def test_the_steered_bed_counts_the_servers_core(self):
        self.assertAlmostEqual(arithmetic.measured(turn(), STEERED)["cost"], 1.0)

    def test_the_unsteered_bed_counts_both_cores_without_what_others_did(self):
        one = turn(responses=100_000, foreign=0.1,
                   server=core(user=0.3, softirq=0.5, idle=0.2), client=core(user=0.1, idle=0.6))
        # 0.8 + 0.4 busy, less 0.1 of others on each.
        self.assertAlmostEqual(arithmetic.measured(one, UNSTEERED)["cost"], 10.0)

    def test_what_others_disturbed_is_marked(self):
        self.assertTrue(arithmetic.measured(turn(foreign=0.2), TOGETHER)["doubtful"])
        self.assertFalse(arithmetic.measured(turn(foreign=0.01), TOGETHER)["doubtful"])


class Ratios(unittest.TestCase):
    def test_ratios_are_taken_round_by_round(self):
        case = case_named("512-64")
        costs = {server: (2.0, 4.0, 2.0) for server in case.servers} | {
            KERNEL: (1.0, 2.0, 1.0), NGINX: (10.0, 24.0, 11.0)}
        result = arithmetic.speed(samples(case, costs), case)
        self.assertEqual(result["kernel_to"][NGINX],
                         {"median": 11.0, "min": 10.0, "max": 12.0, "values": [10.0, 12.0, 11.0]})
        self.assertNotIn("kernel_to_without_client", result)

    def test_the_clients_part_is_half_of_the_reflectors(self):
        case = case_named("512-64-together")
        costs = {KERNEL: (1.0,), NGINX: (7.0,), H2O: (5.0,), REFLECTOR: (0.8,)}
        result = arithmetic.speed(samples(case, costs), case)
        self.assertAlmostEqual(result["kernel_to"][NGINX]["median"], 7.0)
        self.assertAlmostEqual(result["kernel_to_without_client"][NGINX]["median"], 11.0)

    def test_the_least_favourable_case_is_found(self):
        results = [{"title": title, "kernel_to": {NGINX: {"median": value}}}
                   for title, value in (("one", 12.0), ("other", 9.0))]
        self.assertEqual(arithmetic.least(results, NGINX), {"median": 9.0, "case": "other"})
        self.assertIsNone(arithmetic.least(results, H2O))

    def test_an_overhead_is_what_is_more_than_without(self):
        case = case_named("pass-afpa")
        more = arithmetic.overhead(
            samples(case, {case.servers[0]: (5.2, 5.0, 5.5), case.servers[1]: (5.0, 5.0, 5.0)}), case)
        self.assertAlmostEqual(more["median"], 0.04)
        self.assertAlmostEqual(more["max"], 0.1)


class Commands(unittest.TestCase):
    def test_the_reflector_gives_bodies_of_the_same_size(self):
        words = bed.command("netlab", case_named("1024-64"), None, 1, 0.2, 0)
        self.assertEqual(words[-2:], ["--reflector", "1024"])

    def test_a_server_is_told_with_how_it_is_known_to_be_ready(self):
        words = bed.command("netlab", case_named("512-256-browser"),
                            Contender("it", "run", "look"), 1, 0.2, 0)
        self.assertIn("--browser", words)
        self.assertEqual(words[-4:], ["--server", "it=run", "--ready", "it=look"])

    def test_few_and_very_many_connections_are_asked_alike(self):
        few, many = (bed.command("netlab", case, None, 1, 0.2, 0) for case in crowd(200_000))
        self.assertIn("--late-acks", few)
        differences = [pair for pair in zip(few, many) if pair[0] != pair[1]]
        self.assertEqual(differences, [("64", "200000"), ("1", "4")])


class Coherence(unittest.TestCase):
    def test_only_answers_asked_for_after_the_close_are_stale(self):
        closed = [0.0, 10.0, 20.0]
        record = [(9.0, 10.5, 0), (10.1, 10.2, 0), (10.3, 10.4, 1), (20.1, 20.2, 2)]
        told = coherence.judge(closed, record)
        self.assertEqual((told["changes"], told["backwards"], told["last_seen"]), (2, 0, 2))
        self.assertAlmostEqual(told["most"], 0.2)
        self.assertEqual(told["p50"], told["most"])

    def test_an_old_version_after_a_newer_one_is_counted(self):
        told = coherence.judge([0.0, 1.0], [(1.1, 1.2, 1), (1.3, 1.4, 0)])
        self.assertEqual(told["backwards"], 1)


class Programs(unittest.TestCase):
    def test_every_request_is_one_run_of_the_program_that_ran_most(self):
        before = {1: (0, 0), 2: (0, 0)}
        after = {1: (300_000, 1000), 2: (50_000, 500), 3: (7, 7)}
        self.assertAlmostEqual(programs.each([before, after]), 350.007)

    def test_the_kernels_figures_are_read(self):
        text = "prog_type:\t3\nprog_id:\t17\nrun_time_ns:\t900\nrun_cnt:\t3\n"
        self.assertEqual(programs.parse(text), (17, (900, 3)))
        self.assertIsNone(programs.parse("pos:\t0\n"))


class Reports(unittest.TestCase):
    def result(self):
        case = case_named("512-256")
        costs = {server: (2.0, 4.0) for server in case.servers}
        speed = [arithmetic.speed(samples(case, costs), case)]
        costs = ((4.0,), (9.0,), (4.5,), (22.0,), (2.0,))
        larger = [arithmetic.speed(samples(case, dict(zip(case.servers, costs))), case)
                  for case in (LARGER[0], LARGER[-1])]
        return {
            "environment": {"time": "now", "commit": "c", "processor": "<p>", "cores": 2,
                            "kernel": "6", "system": "s", "versions": {"nginx": "nginx 1"}},
            "settings": {"rounds": 2, "seconds": 1}, "speed": speed,
            "larger": larger, "browser": [], "passes": [],
            "alternating": [{"name": "alternating-download", "title": "a download"}
                            | alternating.added([[3.0, 1.0, 1.0, 1.0], [1.1, 1.0, 1.0, 1.1], [1.0, 1.0, 1.0, 1.0]])],
            "programs": [{"title": "a hit"} | arithmetic.spread([400.0, 500.0])],
            "least": {"bed": {NGINX: arithmetic.least(speed, NGINX), H2O: None}}, "flows": None,
            "changes": None, "repeated": ["why"], "failed": [],
            "commands": {"512-256, nginx": "run"},
        }

    def test_every_server_has_its_line_and_the_ratio_its_goal(self):
        text = report.markdown(self.result())
        self.assertIn("| afpa kernel | 100.0 k", text)
        self.assertIn("| turns that failed and were taken again | 1 |", text)
        self.assertIn("| 1.00x (1.00 to 1.00) | at least 10x |", text)
        self.assertIn("| 4 KB | 4.00 (4.00 to 4.00) | 9.00 (9.00 to 9.00) |", text)
        self.assertIn("a download | +10.0 % (half of 3 groups +0.0 to +100.0, standard error 31.8) | at most 2 %", text)
        self.assertIn("| 5.50x (5.50 to 5.50) | at least 5x | 0.50x (0.50 to 0.50) |", text)

    def test_what_the_reflector_does_not_give_is_left_open(self):
        self.assertNotIn(REFLECTOR, LARGER[-1].servers)
        self.assertIn("| 22.00 (22.00 to 22.00) |  | 5.50x (5.50 to 5.50) |  |  |", report.markdown(self.result()))

    def test_the_figure_is_well_formed(self):
        import xml.etree.ElementTree
        picture = figure.draw(self.result())
        root = xml.etree.ElementTree.fromstring(picture)
        bars = [e for e in root.iter() if e.get("class", "").startswith("bar ")]
        self.assertEqual(len(bars), len(case_named("512-256").servers))


class Hooks(unittest.TestCase):
    def test_a_link_to_a_tcx_hook_is_told_from_other_descriptors(self):
        text = "pos:\t0\nlink_type:\ttcx\nlink_id:\t7\nprog_id:\t9\nifindex:\t2\nattach_type:\t46 (ingress)\n"
        self.assertEqual(hooks.parse(text), {"link": 7, "program": 9, "ifindex": 2, "hook": "ingress"})
        self.assertIsNone(hooks.parse("pos:\t0\nprog_id:\t9\n"))

    def test_bytes_sent_are_the_ninth_figure_of_the_interface(self):
        devices = "Inter-| Receive\n    lo: 1 2 3 4 5 6 7 8 9 10\n  eth0:11 12 13 14 15 16 17 18 19 20\n"
        self.assertEqual(hooks.sent(devices, "eth0"), 19)

    def test_what_drifts_evenly_adds_nothing(self):
        groups = [[1.0, 1.1, 1.2, 1.3], [2.0, 1.9, 1.8, 1.7]]
        self.assertAlmostEqual(alternating.added(groups)["median"], 0.0)


if __name__ == "__main__":
    unittest.main()
