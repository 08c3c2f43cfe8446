"""What is made of the generators' words, and the ratios of the last lines."""

import sys
import unittest
from pathlib import Path

# Behind this folder, whose own modules come first.
sys.path.append(str(Path(__file__).resolve().parent.parent / "compare"))

import load
import rounds
import verdict
import workload
import wrk
from usage import Used


def duration(seconds):
    return {"secs": int(seconds), "nanos": round(seconds % 1 * 1e9)}


def core(idle, steal=0.0):
    return {"idle": duration(idle), "steal": duration(steal)}


def sample(server, case, number, requests):
    measured = wrk.Load(requests, 1.0, 0, 0.001, 0.002, "", 0.003)
    return rounds.Sample(server, case, number, measured, Used(0, 1, 1, 0), 0)


class Words(unittest.TestCase):
    def test_a_core_is_busy_when_it_is_not_idle_or_taken_away(self):
        used = load.used([core(0.5, 0.25), core(1.75)], 2.0)
        self.assertAlmostEqual(used.server_core, 1.25)
        self.assertAlmostEqual(used.client_core, 0.25)
        self.assertAlmostEqual(used.stolen, 0.25)

    def test_objects_are_named_by_weight_size_and_path(self):
        words = load.object_words(((4, 512, "/a"), (1, 102, "/b")))
        self.assertEqual(words, ["--object", "4:512:/a", "--object", "1:102:/b"])

    def test_an_open_loop_s_answer_is_read(self):
        told = {"measured": {"requests": 10, "seconds": 2.0, "bytes": 99, "counts": {"not_asked": 3},
                             "latency": {"p50": 100.0, "p99": 200.0, "p999": 300.0}},
                "cores": [core(1.0), core(1.0)]}
        read, used = load.socket_load(told)
        self.assertEqual((read.requests, read.p99, read.p999), (10, 2e-4, 3e-4))
        self.assertIn("3 not asked", read.errors)
        self.assertAlmostEqual(used.server_core, 1.0)
        self.assertEqual(used.client_core, 0.0)

    def test_heads_are_taken_off_by_their_share(self):
        mix = next(case for case in workload.CASES if case.name == "mix")
        heads = {("x", "/small.html"): 200, ("x", "/app/tiny"): 300}
        measured = wrk.Load(100, 1.0, 100_000, 0, 0, "")
        self.assertAlmostEqual(workload.content(mix, measured, heads, "x"), 100_000 - 22_000)


class Ratios(unittest.TestCase):
    def test_a_rate_is_a_share_of_the_slowest_s_median(self):
        samples = [sample("a", "tiny", n, r) for n, r in enumerate((900, 1000, 5000))]
        samples += [sample("b", "tiny", n, 2000) for n in range(3)]
        self.assertAlmostEqual(verdict.rate("tiny", 0.6, samples, ["a", "b"]), 600)

    def test_lines_compare_round_by_round(self):
        samples = [sample("afpa", "tiny", n, r) for n, r in enumerate((100, 220))]
        samples += [sample("nginx", "tiny", n, r) for n, r in enumerate((100, 200))]
        case = workload.Case("tiny", "Tiny", ((1, 1, "/"),), 1, ("requests", "p99"))
        result = rounds.summarise(samples, ["afpa", "nginx"], [case])
        self.assertEqual(verdict.lines(result),
                         ["Tiny: afpa to nginx: requests/s 1.05x (1.00 to 1.10), "
                          "p99 1.00x (1.00 to 1.00)"])

    def test_many_turns_have_a_calm_quarter(self):
        def metric(own, theirs):
            return {"more_is_better": False,
                    "servers": {"afpa": {"values": own}, "nginx": {"values": theirs}}}
        calm = verdict.calm(metric([50, 51, 49, 50, 900, 800, 50, 900], [100] * 8), "afpa", "nginx")
        self.assertEqual(calm, " and in the calm quarter 0.50x")
        self.assertEqual(verdict.calm(metric([50] * 5, [100] * 5), "afpa", "nginx"), "")

    def test_a_case_at_a_rate_belongs_to_one_at_its_most(self):
        names = {case.name for case in workload.CASES}
        for case in workload.AT_RATES:
            self.assertIn(case.of, names)
            self.assertTrue(0 < case.share < 1)


if __name__ == "__main__":
    unittest.main()
