# SPDX-License-Identifier: BSD-3-Clause
"""Rows of raw data, and their medians."""
import statistics
from collections import namedtuple

# round: from 1; section; point: the value that was set (a size, a number of QPs, ...); series: who;
# x: where the value stands, mostly the point, else a percentile or a stage; metric; value
Row = namedtuple("Row", "round section point series x metric value")
Summary = namedtuple("Summary", "section point series x metric median low high rounds")


def summarize(rows):
    """Median, lowest and highest over the rounds, in the order in which they came."""
    groups = {}
    for r in rows:
        groups.setdefault((r.section, r.point, r.series, r.x, r.metric), []).append(r.value)
    return [Summary(*key, statistics.median(v), min(v), max(v), len(v))
            for key, v in groups.items()]


def by_round(rows, section, point):
    """{round: {series: {metric: value}}} of one point."""
    out = {}
    for r in rows:
        if r.section == section and r.point == point:
            out.setdefault(r.round, {}).setdefault(r.series, {})[r.metric] = r.value
    return out


def quantile(hist, q):
    """The value that a share q of all does not exceed. hist: [[value, how many], ...], sorted"""
    total = sum(n for _, n in hist)
    seen = 0
    for value, n in hist:
        seen += n
        if seen >= q * total:
            return value
    raise ValueError("an empty distribution")
