# SPDX-License-Identifier: BSD-3-Clause
"""Tables, CSV, plots and the page, of data made up here. usage: test_report.py MODULES"""
import csv
import html.parser
import json
import os
import sys
import tempfile
import types
import unittest

sys.path.insert(0, sys.argv.pop(1))
import page # pylint: disable=wrong-import-position
import report # pylint: disable=wrong-import-position
import sections # pylint: disable=wrong-import-position
import speed # pylint: disable=wrong-import-position
import stats # pylint: disable=wrong-import-position

URNIC = types.SimpleNamespace(switch=None, programs=None)
ALL = [make(URNIC, None, 1, False) for make in sections.ALL.values()]
TABLES = [s for s in ALL if s.rows]
SIZE, STAGES = ALL[0], next(s for s in ALL if s.name == "stages")


def verdicts(raw):
    return {s.name: speed.verdicts(raw, s.name, s.rows) for s in TABLES}


def rows():
    found = []
    for rnd in (1, 2, 3):
        for p in (64, 65536):
            found.append(stats.Row(rnd, "size", p, "urnic WRITE", p, "gbps", 0.5 * p * rnd))
        found.append(stats.Row(rnd, "size", 64, "testpmd io, net_ring", 64, "msg_rate", 3e6))
        for stage, cycles in (("emit", 10), ("idle", 5)):
            for node in "AB":
                found.append(stats.Row(rnd, "stages", "64 KiB WRITE", "ICRC on",
                                       f"node {node}: {stage}", "cycles", cycles * rnd))
    return found


class Html(html.parser.HTMLParser):
    """Every tag that is opened is closed; text is kept."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.wrong = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        self.text.append(data)


class Report(unittest.TestCase):
    def setUp(self):
        self.summary = stats.summarize(rows())
        self.notes = {("size", "iperf3, loopback"): "there is no iperf3 <here>",
                      ("size", "other"): "there is no iperf3 <here>"}

    def test_text(self):
        text = report.text({"machine": "one"}, ALL, self.summary, verdicts([]), self.notes)
        self.assertRegex(text, r"urnic WRITE +64\.00 +65,536")
        self.assertIn("size: iperf3, loopback, other: there is no iperf3 <here>", text)
        self.assertRegex(text, r"64 KiB WRITE, of limit .* 85.0 % +130.0 % +not measured")
        self.assertRegex(text, r"10,000 connections by CM.* 2,000/s +10,000/s +not measured")
        # 10 * 2 of emit; idle does not count as cost.
        self.assertRegex(text, r"all but idle +20\.00")

    def test_what_the_figures_of_a_table_were_made_of(self):
        raw = [stats.Row(1, "urnicd", "write", "WRITE", "write", "gbps", 20.0),
               stats.Row(1, "urnicd", "idle", "asleep", "idle", "cpu", 0.015),
               stats.Row(1, "urnicd", "write", "embedded WRITE", "write", "gbps", 40.0)]
        title, columns, lines = report.speed_runs(stats.summarize(raw), "urnicd")
        self.assertIn("behind the figures", title)
        self.assertEqual(columns, ["Gb/s", "% of a core"])
        self.assertEqual(lines[:2], [("WRITE", [20.0, None]), ("asleep", [None, 1.5])])
        text = report.text({}, TABLES, stats.summarize(raw),
                           {s.name: speed.verdicts(raw, s.name, s.rows) for s in TABLES}, {})
        self.assertRegex(text, r"64 KiB WRITE, program to program, of embedded +50.0 % .* 80.0 %  must reached")
        self.assertRegex(text, r"CPU of urnicd.* 1.5 % .* must reached")

    def test_figures(self):
        for value, text in ((0, "0"), (0.1234, "0.123"), (1.234, "1.23"), (123.45, "123.5"),
                            (12345, "12,345")):
            self.assertEqual(report.figure(value), text)
        self.assertEqual([report.point_name(p) for p in (8, 1024, 65536, 1 << 20, 0.01, "x")],
                         ["8", "1Ki", "64Ki", "1Mi", "0.01", "x"])

    def test_csv_keeps_every_round(self):
        with tempfile.TemporaryDirectory() as d:
            raw = report.RawFile(os.path.join(d, "raw.csv"))
            for row in rows():
                raw.write(row)
            raw.close()
            report.write_summary(os.path.join(d, "summary.csv"), self.summary)
            with open(os.path.join(d, "raw.csv"), encoding="utf-8") as f:
                back = list(csv.DictReader(f))
            self.assertEqual(len(back), len(rows()))
            self.assertEqual([float(r["value"]) for r in back], [r.value for r in rows()])
            with open(os.path.join(d, "summary.csv"), encoding="utf-8") as f:
                first = next(csv.DictReader(f))
            self.assertEqual((float(first["median"]), float(first["high"]), first["rounds"]),
                             (64, 96, "3"))

    def test_json(self):
        data = json.loads(json.dumps(report.as_json({}, self.summary, verdicts(rows()), self.notes)))
        self.assertEqual(data["speed"][0]["verdict"], "not measured")
        self.assertEqual(data["urnicd"][0]["verdict"], "not measured")
        self.assertEqual(data["not_measured"][0]["section"], "size")

    def test_scripts_of_plots(self):
        script = page.lines_script(SIZE, SIZE.plots[0], self.summary)
        self.assertIn("64 64 32 96", script) # x, median, lowest, highest
        self.assertIn("title 'urnic WRITE'", script)
        self.assertIsNone(page.lines_script(SIZE, SIZE.plots[0], []))
        # A figure that was measured once holds from the first x to the last: here there is but one.
        self.assertIn("with lines", page.lines_script(SIZE, SIZE.plots[1], self.summary))
        script = page.bars_script(STAGES, STAGES.plots[0], self.summary)
        self.assertIn('"64 KiB WRITE\\nICRC on\\nnode A" 20 10', script)

    def test_quotes_do_not_end_a_string_of_gnuplot(self):
        self.assertEqual(page.quoted("it's"), "'it''s'")

    def test_every_series_has_a_colour_of_its_own(self):
        for section in ALL:
            if section.plots and section.plots[0].kind == "lines":
                found = page.colors([s.name for s in section.series])
                self.assertEqual(len(set(found)), len(found), section.name)
                self.assertNotIn(page.OTHERS[0], found)

    def test_page_is_whole_and_needs_nothing_else(self):
        text = page.page({"machine": "<b>&"}, ALL, self.summary, verdicts([]), self.notes, 3)
        parser = Html()
        parser.feed(text)
        self.assertEqual((parser.open, parser.wrong), ([], []))
        self.assertIn("<b>&", parser.text)
        self.assertNotIn("http", text)
        self.assertNotIn("<script", text)

    def test_a_plot_without_gnuplot_says_so(self):
        path, os.environ["PATH"] = os.environ["PATH"], "/nonexistent"
        try:
            svg, why = page.draw("plot x")
        finally:
            os.environ["PATH"] = path
        self.assertIsNone(svg)
        self.assertIn("gnuplot", why)


if __name__ == "__main__":
    unittest.main()
