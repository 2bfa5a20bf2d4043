# SPDX-License-Identifier: BSD-3-Clause
"""The figures that urnic must reach: the runs, marks and verdict of each."""
import statistics
from collections import namedtuple

import peers
import stats

# Each row's runs are measured one after the other. figure: from {run: {metric: value}} of one
# round. form: prints the figure. more: True when more is better. slow: not with --quick
Row = namedtuple("Row", "key what must aim form more runs figure slow", defaults=[False])
Verdict = namedtuple("Verdict", "row median low high rounds verdict")


def percent(v):
    return f"{100 * v:.1f} %"


def times(v):
    return f"{v:.2f}x"


def micro(v):
    return f"{v:.3f} us"


def number(v):
    return f"{v:.0f} B"


def rate(v):
    return f"{v:,.0f}/s"


def share(metric, of, among):
    return lambda r: r[of][metric] / r[among][metric]


def alone(metric, of):
    return lambda r: r[of][metric]


WRITE = ("write_bw", "--size", "65536")
SMALL = ("send_bw", "--size", "64", "--qps", "16")
# Each row is a point of its own; RUNS has the runs of all rows.
RUNS = {
    "WRITE": WRITE,
    "WRITE beside limit": WRITE + ("--with-limit",),
    "READ": ("read_bw", "--size", "65536"),
    "SEND": ("send_bw", "--size", "65536"),
    "small": SMALL,
    "small beside limit": SMALL + ("--with-limit",),
    "small, 64 Ki idle QPs": SMALL + ("--idle-qps", "65536"),
    "small, 10,000 QPs": ("send_bw", "--size", "64", "--qps", "10000"),
    "ping-pong": ("send_lat", "--size", "8"),
    "bare ping-pong": ("limit", "--lat", "--size", "8"),
    "WRITE through the switch": WRITE + ("--loss", "0"),
    "WRITE, 1 % lost": WRITE + ("--loss", "1"),
    "WRITE, 20 % held back": WRITE + ("--reorder", "20"),
}
UCX_BW, UCX_LAT = "ucx tag_bw posix", "ucx tag_lat posix"

ROWS = [
    Row("write_ucx", "64 KiB WRITE against ucx tag_bw, posix", 1.0, 1.7, times, True,
        ("WRITE", UCX_BW), share("gbps", "WRITE", UCX_BW)),
    Row("write_limit", "64 KiB WRITE, of limit", 0.85, 1.3, percent, True,
        ("WRITE beside limit",), alone("ratio", "WRITE beside limit")),
    Row("read_write", "64 KiB READ, of WRITE", 0.8, 0.95, percent, True,
        ("WRITE", "READ"), share("gbps", "READ", "WRITE")),
    Row("send_write", "64 KiB SEND, of WRITE", 0.8, 0.95, percent, True,
        ("WRITE", "SEND"), share("gbps", "SEND", "WRITE")),
    Row("small_limit", "64 B SEND, 16 QPs, of limit", 0.5, 0.75, percent, True,
        ("small beside limit",), alone("ratio", "small beside limit")),
    Row("lat_ucx", "8 B ping-pong p50 against ucx tag_lat, posix", 1.0, 0.75, times, False,
        ("ping-pong", UCX_LAT), share("us", "ping-pong", UCX_LAT)),
    Row("lat", "8 B ping-pong, half round trip p50", 0.8, 0.6, micro, False,
        ("ping-pong",), alone("us", "ping-pong")),
    Row("bare", "  the same with no protocol (limit --lat)", None, None, micro, False,
        ("bare ping-pong",), alone("us", "bare ping-pong")),
    Row("loss", "64 KiB WRITE, 1 % lost, of no loss", 0.75, 0.9, percent, True,
        ("WRITE through the switch", "WRITE, 1 % lost"),
        share("gbps", "WRITE, 1 % lost", "WRITE through the switch")),
    Row("reorder", "64 KiB WRITE, 20 % held back, of none", 0.9, 0.97, percent, True,
        ("WRITE through the switch", "WRITE, 20 % held back"),
        share("gbps", "WRITE, 20 % held back", "WRITE through the switch")),
    Row("idle", "64 Ki idle and 16 active QPs, of 16 alone", 0.97, 1.0, percent, True,
        ("small", "small, 64 Ki idle QPs"), share("msg_rate", "small, 64 Ki idle QPs", "small")),
    Row("many", "64 B SEND, 10,000 QPs, of 16 QPs", 0.6, 0.85, percent, True,
        ("small", "small, 10,000 QPs"), share("msg_rate", "small, 10,000 QPs", "small")),
    Row("memory", "memory of an idle QP, 16 READs on record", 1024, 512, number, False,
        ("small",), alone("qp_bytes", "small")),
]


def runs_of(urnic, t, table, runs):
    """{run: function of a row's key} for runs of urnic-perf: the function measures, unless the row does not need
    the run."""
    wanted = {row.key: row.runs for row in table}

    def perf(name):
        def measure(key):
            if name not in wanted[key]:
                return []
            op, *args = runs[name]
            return [(key, m, v) for m, v in urnic.rate(op, t, *args).items()]
        return measure

    return {name: perf(name) for name in runs}


def measures(urnic, runner, t):
    """{run: function of a row's key}: the function measures, unless the row does not need the run."""
    wanted = {row.key: row.runs for row in ROWS}

    def ucx(name, test, size, metric):
        def measure(key):
            if name not in wanted[key]:
                return []
            found = peers.ucx(runner, peers.POSIX, test, size, t)
            found["us"] = found["percentile"]
            return [(key, metric, found[metric])]
        return measure

    found = runs_of(urnic, t, ROWS, RUNS)
    found[UCX_BW] = ucx(UCX_BW, "tag_bw", 65536, "gbps")
    found[UCX_LAT] = ucx(UCX_LAT, "tag_lat", 8, "us")
    return found


def judge(row, values):
    """The verdict on a row's figures, one a round."""
    if not values:
        return Verdict(row, None, None, None, 0, "not measured")
    mid = statistics.median(values)

    def reached(mark):
        return mid >= mark if row.more else mid <= mark

    if row.aim is not None and reached(row.aim):
        verdict = "aim reached"
    elif row.must is None:
        verdict = ""
    else:
        verdict = "must reached" if reached(row.must) else "MISSED"
    return Verdict(row, mid, min(values), max(values), len(values), verdict)


def verdicts(rows, section="speed", table=None):
    """A verdict for each row of a table, from raw data."""
    found = []
    for row in ROWS if table is None else table:
        values = []
        for runs in stats.by_round(rows, section, row.key).values():
            try:
                values.append(row.figure(runs))
            except (KeyError, ZeroDivisionError):
                pass # a run of this round is missing, and so is the ratio
        found.append(judge(row, values))
    return found
