"""What is read from wrk, from /proc and from servers, and how numbers are written."""

import os
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

import check
import figure
import report
import servers
import usage
import wrk
from cases import CASES, write_files
from failure import Failure
from rounds import Sample, summarise
from usage import Used

OUTPUT = """Running 1s test @ http://127.0.0.1:8080/small.html
  1 threads and 64 connections
summary: {"requests": 93400, "duration_us": 1000214, "bytes": 71450000, "p50_us": 666, \
"p99_us": 1012, "errors": {"connect": 0, "read": 0, "write": 0, "status": 0, "timeout": 0}}
Requests/sec:  93380.02
"""


class Wrk(unittest.TestCase):
    def test_summary_line(self):
        load = wrk.parse(OUTPUT)
        self.assertEqual((load.requests, load.bytes, load.errors), (93400, 71450000, ""))
        self.assertAlmostEqual(load.seconds, 1.000214)
        self.assertAlmostEqual(load.p99, 0.001012)

    def test_errors_are_named(self):
        text = OUTPUT.replace('"read": 0', '"read": 3').replace('"status": 0', '"status": 7')
        self.assertEqual(wrk.parse(text).errors, "3 read errors, 7 status errors")

    def test_silence_is_an_error(self):
        self.assertEqual(wrk.parse(OUTPUT.replace("93400", "0")).errors, "no request was answered")
        with self.assertRaises(Failure):
            wrk.parse("unable to connect to 127.0.0.1:8080 Connection refused\n")


class Proc(unittest.TestCase):
    def test_process_name_may_look_like_fields(self):
        stat = "7 (nginx: a) R 1 2) S 1 7 7 0 -1 4194560 90 0 0 0 250 150 9 9 20 0 1 0 100 0 0"
        self.assertAlmostEqual(usage.process_seconds(stat), 400 * usage.TICK)

    def test_core_counts_interrupts_but_not_idle_or_guest(self):
        stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 1 2 4 1000 2000 8 16 32 500 600\n"
        busy, stolen = usage.core_seconds(stat, 1)
        self.assertAlmostEqual(busy, 31 * usage.TICK)
        self.assertAlmostEqual(stolen, 32 * usage.TICK)

    def test_no_such_core(self):
        with self.assertRaises(ValueError):
            usage.core_seconds("cpu0 1 2 3 4 5 6 7 8\n", 1)

    def test_this_process_is_of_its_own_family(self):
        self.assertIn(os.getpid(), usage.family(os.getpid()))


class Answers(unittest.TestCase):
    case = CASES[0]
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 512\r\n\r\n"

    def test_a_right_answer_passes(self):
        check.verify("nginx", self.case, self.head, b"x" * 512, b"x" * 512)

    def test_wrong_status_length_and_bytes_do_not(self):
        for head, body in ((b"HTTP/1.1 404 Not Found\r\n\r\n", b"x" * 512),
                           (self.head, b"x" * 511), (self.head, b"x" * 511 + b"y")):
            with self.subTest(body=body[-2:]), self.assertRaises(Failure):
                check.verify("nginx", self.case, head, body, b"x" * 512)

    def test_files_are_the_same_at_every_run(self):
        with tempfile.TemporaryDirectory() as folder:
            first = write_files(Path(folder) / "a")
            self.assertEqual(first, write_files(Path(folder) / "b"))
            for case in CASES:
                self.assertEqual(len(first[case.name]), case.size)
                self.assertEqual((Path(folder) / "a" / case.file).read_bytes(), first[case.name])


class Configurations(unittest.TestCase):
    def test_every_placeholder_is_filled(self):
        for config in servers.CONFIGS.iterdir():
            text = servers.fill(config.read_text(), host="h", port=1, root="/r", folder="/f",
                                user="u")
            code = "\n".join(line.split("#")[0] for line in text.splitlines())
            self.assertNotIn("@", code, config.name)

    def test_only_root_names_a_user(self):
        for config in servers.CONFIGS.iterdir():
            self.assertIn("@user@", config.read_text())
            self.assertNotIn("@user@", servers.without_user(config.read_text()))


class Words(unittest.TestCase):
    def test_numbers_have_three_digits_and_a_prefix(self):
        for value, unit, text in ((93_412, "/s", "93.4 k/s"), (305, "/s", "305 /s"),
                                  (3.2e9, "B/s", "3.20 GB/s"), (0.001012, "s", "1.01 ms"),
                                  (0.000666, "s", "666 us"), (2.5, "s", "2.50 s"),
                                  (999_999, "/s", "1.00 M/s"), (0, "/s", "0.00 /s")):
            self.assertEqual(report.number(value, unit), text)

    def test_all_three_forms_of_a_result_tell_the_median(self):
        result = small_result()
        for text in (report.table(result), report.markdown(result), figure.draw(result)):
            self.assertIn("46.7 k/s", text)

    def test_table_and_page_tell_the_bottleneck(self):
        result = small_result()
        for text in (report.table(result), report.markdown(result)):
            self.assertIn("the client's core was the bottleneck", text)

    def test_figure_is_well_formed_whatever_the_processor_is_called(self):
        root = xml.fromstring(figure.draw(small_result()))
        self.assertIn("P <&> Q", "".join(root.itertext()))


def small_result():
    load = wrk.parse(OUTPUT.replace("1000214", "2000000"))
    used = Used(0.9, 1.0, 2.0, 0.0)
    samples = [Sample("nginx", case.name, 0, load, used, 512 * load.requests) for case in CASES]
    result = summarise(samples, ["nginx"], CASES)
    result["settings"] = {"rounds": 1, "seconds": 1, "server_core": 0, "client_core": 1,
                          "network": {"note": "own namespace"}}
    result["environment"] = {"time": "now", "commit": "0", "processor": "P <&> Q", "cores": 2,
                             "kernel": "6", "system": "Debian", "versions": {"nginx": "1"}}
    result["commands"] = {"servers": {"nginx": "nginx"}, "load": {"small": "wrk"}}
    return result


if __name__ == "__main__":
    unittest.main()
