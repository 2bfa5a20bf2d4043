# SPDX-License-Identifier: BSD-3-Clause
"""Medians over rounds, and quantiles of a distribution. usage: test_stats.py MODULES"""
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import stats # pylint: disable=wrong-import-position


def row(rnd, series, value, x=64, metric="gbps"):
    return stats.Row(rnd, "size", x, series, x, metric, value)


class Stats(unittest.TestCase):
    def test_summary(self):
        rows = [row(1, "a", 5), row(1, "b", 1), row(2, "a", 1), row(2, "b", 3), row(3, "a", 2)]
        a, b = stats.summarize(rows)
        self.assertEqual((a.series, a.median, a.low, a.high, a.rounds), ("a", 2, 1, 5, 3))
        self.assertEqual((b.series, b.median, b.rounds), ("b", 2, 2))

    def test_points_and_metrics_are_kept_apart(self):
        rows = [row(1, "a", 1), row(1, "a", 2, x=128), row(1, "a", 3, metric="us")]
        self.assertEqual([s.median for s in stats.summarize(rows)], [1, 2, 3])

    def test_by_round(self):
        rows = [row(1, "a", 1), row(2, "a", 2), row(2, "b", 3), row(2, "b", 4, x=128)]
        self.assertEqual(stats.by_round(rows, "size", 64),
                         {1: {"a": {"gbps": 1}}, 2: {"a": {"gbps": 2}, "b": {"gbps": 3}}})

    def test_quantile(self):
        hist = [[100, 50], [200, 49], [300, 1]]
        for q, value in ((0.01, 100), (0.5, 100), (0.51, 200), (0.99, 200), (0.999, 300), (1, 300)):
            self.assertEqual(stats.quantile(hist, q), value, q)
        self.assertRaises(ValueError, stats.quantile, [], 0.5)


if __name__ == "__main__":
    unittest.main()
