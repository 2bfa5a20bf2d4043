# SPDX-License-Identifier: BSD-3-Clause
"""The table of figures: ratios within a round, medians of them, verdicts.
usage: test_speed.py MODULES"""
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import am # pylint: disable=wrong-import-position
import msg # pylint: disable=wrong-import-position
import speed # pylint: disable=wrong-import-position
import stats # pylint: disable=wrong-import-position
from runner import Failed, Missing # pylint: disable=wrong-import-position


def rows(key, *rounds):
    """Raw data of a row: a dictionary {(run, metric): value} for each round."""
    return [stats.Row(i + 1, "speed", key, run, key, metric, value)
            for i, one in enumerate(rounds) for (run, metric), value in one.items()]


def verdict(raw, key):
    return next(v for v in speed.verdicts(raw) if v.row.key == key)


class Speed(unittest.TestCase):
    def write(self, *pairs):
        return rows("write_ucx", *({("WRITE", "gbps"): w, (speed.UCX_BW, "gbps"): u}
                                   for w, u in pairs))

    def test_ratio_of_a_round_then_median(self):
        # Twice the machine was slow for both: ratios 1, 1, 4. The medians' ratio would be 0.5.
        v = verdict(self.write((10, 10), (10, 10), (400, 100)), "write_ucx")
        self.assertEqual((v.median, v.low, v.high, v.rounds), (1, 1, 4, 3))
        v = verdict(self.write((1, 10), (30, 20), (100, 50)), "write_ucx")
        self.assertEqual(v.median, 1.5)

    def test_verdicts(self):
        for ratio, says in ((0.99, "MISSED"), (1.0, "must reached"), (1.7, "aim reached")):
            self.assertEqual(verdict(self.write((ratio, 1)), "write_ucx").verdict, says)

    def test_less_is_more(self):
        def latency(urnic, ucx):
            raw = rows("lat_ucx", {("ping-pong", "us"): urnic, (speed.UCX_LAT, "us"): ucx})
            return verdict(raw, "lat_ucx").verdict

        self.assertEqual(latency(1.01, 1), "MISSED")
        self.assertEqual(latency(0.9, 1), "must reached")
        self.assertEqual(latency(0.75, 1), "aim reached")

    def test_an_aim_alone(self):
        row = speed.Row("x", "", None, 5, speed.micro, False, ("run",), None)
        self.assertEqual([speed.judge(row, [v]).verdict for v in (4, 5, 6)], ["aim reached", "aim reached", ""])

    def test_half_a_round_is_none(self):
        raw = self.write((1, 1)) + rows("write_ucx", {}, {("WRITE", "gbps"): 7})
        v = verdict(raw, "write_ucx")
        self.assertEqual((v.rounds, v.median), (1, 1))
        self.assertEqual(verdict([], "write_ucx").verdict, "not measured")

    def test_rows_of_endpoints_have_their_runs(self):
        """AM-4, AM-8: figures are ratios, of ways that the dataplane has."""
        for row in am.ROWS:
            self.assertLessEqual(set(row.runs), set(am.RUNS), row.key)
            row.form(row.figure({run: {"msg_rate": 2e6, "us": 2.0, "gbps": 1.0} for run in row.runs}))
        self.assertEqual(am.special(am.RUNS["a reply for the transfer"]),
                         ("--rma", "pipelined", "--reply-every", "transfer"))
        self.assertEqual(am.special(am.RUNS["WRITE 64 B"]), ())

    def test_a_way_that_is_not_there_is_missing(self):
        class Urnic:
            runs = 0

            def rate(self, _op, _t, *args):
                return self.perf(_op, _t, *args)

            def perf(self, _op, _t, *args):
                self.runs += 1
                if "tagged" in args:
                    raise Failed("urnic-perf ended with 1: ... by a way that is known")
                return {"gbps": 1, "msg_rate": 1, "us": 1}

        urnic = Urnic()
        measure = am.measures(urnic, 1)
        self.assertEqual(measure["tagged 1 MiB"]("small"), [])
        self.assertRaises(Missing, measure["tagged 1 MiB"], "tagged")
        self.assertRaises(Missing, measure["tagged 1 MiB"], "tagged")
        self.assertEqual(urnic.runs, 1) # a way is tried once
        self.assertEqual(len(measure["pipelined 1 MiB"]("pipelined")), 3)
        ways = am.ways(urnic, 1)
        self.assertEqual(ways["direct"](am.DIRECT_MOST + 1), [])
        self.assertRaises(Missing, ways["tagged"], 64)

    def test_ways_of_reads(self):
        """AM-8: the ways of reads are measured by reads, beside RC READ."""
        class Urnic:
            ops = []

            def rate(self, op, _t, *args):
                self.ops.append((op, args[-1]))
                return {"gbps": 1, "msg_rate": 1, "us": 1}

            def perf(self, _op, _t, *args):
                return self.rate("known", _t, *args)

        for kind in am.BY_SIZE:
            Urnic.ops = []
            for measure in am.ways(Urnic(), 1, kind).values():
                measure(64)
            self.assertEqual({op for op, _ in Urnic.ops} - {"known"}, {f"{kind}_bw", f"rma_{kind}_bw", f"rma_{kind}_lat"})
            self.assertIn(am.beside(kind), am.ways(Urnic(), 1, kind))

    def test_crossover(self):
        def one(series, x, value):
            return stats.Summary("am_ways", x, series, x, "gbps", value, value, value, 1)

        found = [one("pipelined", x, v) for x, v in ((64, 1), (1024, 5), (65536, 8))]
        found += [one("tagged", x, v) for x, v in ((64, 2), (1024, 4), (65536, 9))]
        self.assertEqual(am.crossover(found, "am_ways", "pipelined", "tagged"), 65536)
        self.assertIsNone(am.crossover(found, "am_ways", "direct", "tagged"))
        self.assertIn("tagged against pipelined, as a stream: at least as good from 65536 B on",
                      am.said(found, "am_ways"))

    def test_rows_of_messages_have_their_runs(self):
        for row in msg.ROWS:
            self.assertLessEqual(set(row.runs), set(msg.RUNS), row.key)
            row.form(row.figure({run: {"msg_rate": 2e6, "us": 2.0} for run in row.runs}))
        raw = [stats.Row(1, "msg", "lat", run, "lat", "us", us)
               for run, us in (("ping-pong of messages", 1.3), ("ping-pong of SENDs", 1.0))]
        v = next(v for v in speed.verdicts(raw, "msg", msg.ROWS) if v.row.key == "lat")
        self.assertEqual(v.verdict, "MISSED")

    def test_every_row_has_its_runs(self):
        known = set(speed.RUNS) | {speed.UCX_BW, speed.UCX_LAT}
        for row in speed.ROWS:
            self.assertLessEqual(set(row.runs), known, row.key)
            found = {run: {m: 2.0 for m in ("gbps", "msg_rate", "us", "ratio", "qp_bytes")}
                     for run in row.runs}
            self.assertIn(row.figure(found), (1.0, 2.0), row.key)
            row.form(row.figure(found))


if __name__ == "__main__":
    unittest.main()
