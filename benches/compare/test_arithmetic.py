"""From samples to the figures that are quoted."""

import unittest
from types import SimpleNamespace

import rounds
from cases import CASES
from rounds import Sample, client_bound, pairs, rotated, spread, summarise
from usage import Used
from wrk import Load

SMALL = CASES[0]


def sample(server, number, requests, *, case="small", seconds=2.0, body=0, server_core=2.0,
           client_core=1.0, p99=0.001):
    load = Load(requests, seconds, body, p99 / 2, p99, "")
    return Sample(server, case, number, load, Used(1.0, server_core, client_core, 0.0), body)


class Rotation(unittest.TestCase):
    def test_every_server_takes_every_place(self):
        names = ["a", "b", "c"]
        orders = [rotated(names, number) for number in range(4)]
        self.assertEqual(orders, [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"],
                                  ["a", "b", "c"]])


class Figures(unittest.TestCase):
    def test_median_of_even_and_odd_numbers_of_rounds(self):
        self.assertEqual(spread([3, 1, 2]), {"median": 2, "min": 1, "max": 3})
        self.assertEqual(spread([4, 1, 2, 3])["median"], 2.5)

    def test_ratio_is_taken_pair_by_pair(self):
        # A machine that halves its speed between rounds leaves the ratio alone.
        samples = [sample("nginx", 0, 200), sample("afpa", 0, 300),
                   sample("afpa", 1, 150), sample("nginx", 1, 100)]
        metric = self.metric(samples, "requests")
        self.assertEqual(metric["afpa"]["values"], [150.0, 75.0])
        self.assertEqual(metric["afpa"]["ratio"], {"median": 1.5, "min": 1.5, "max": 1.5})
        self.assertEqual(metric["nginx"]["ratio"]["median"], 1.0)

    def test_a_missing_round_is_an_error(self):
        with self.assertRaises(ValueError):
            pairs([1.0, 2.0], [1.0])

    def test_bytes_per_core_uses_busy_seconds_not_the_clock(self):
        of = rounds.METRICS["bytes_per_core"].of
        self.assertEqual(of(sample("afpa", 0, 1, body=1000, seconds=4.0, server_core=0.5)), 2000.0)
        self.assertEqual(rounds.METRICS["bytes"].of(sample("afpa", 0, 1, body=1000, seconds=4.0)),
                         250.0)

    def test_without_nginx_the_first_server_is_the_baseline(self):
        result = summarise([sample("h2o", 0, 1)], ["h2o"], [self.only("requests")])
        self.assertEqual(result["baseline"], "h2o")

    def metric(self, samples, name):
        result = summarise(samples, ["afpa", "nginx"], [self.only(name)])
        return result["cases"][0]["metrics"][0]["servers"]

    @staticmethod
    def only(name):
        return SimpleNamespace(name="small", title="small", size=512, connections=64,
                               metrics=(name,))


class Bottleneck(unittest.TestCase):
    def test_a_full_client_beside_a_free_server_is_told(self):
        self.assertTrue(client_bound([sample("a", 0, 1, server_core=1.6, client_core=2.0)]))

    def test_a_full_server_is_the_bottleneck_itself(self):
        self.assertFalse(client_bound([sample("a", 0, 1, server_core=1.9, client_core=2.0)]))
        self.assertFalse(client_bound([sample("a", 0, 1, server_core=1.0, client_core=1.0)]))

    def test_one_odd_round_does_not_decide(self):
        full = sample("a", 0, 1, server_core=2.0, client_core=2.0)
        odd = sample("a", 1, 1, server_core=0.2, client_core=2.0)
        self.assertFalse(client_bound([full, odd, full]))


class Cases(unittest.TestCase):
    def test_every_case_names_known_metrics_and_its_own_file(self):
        self.assertEqual(len({case.file for case in CASES}), len(CASES))
        for case in CASES:
            for name in case.metrics:
                self.assertIn(name, rounds.METRICS)

    def test_the_promised_cases_are_there(self):
        self.assertEqual([case.size for case in CASES], [512, 4096, 1 << 20, 10 << 20])
        self.assertEqual(SMALL.connections, 64)


if __name__ == "__main__":
    unittest.main()
