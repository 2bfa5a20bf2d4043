# SPDX-License-Identifier: BSD-3-Clause
"""The figures that messages without connections must reach beside a queue pair: the runs and marks of each.
Rows, ratios and verdicts are those of speed."""
from speed import Row, alone, percent, runs_of, share, times

RATE = ("msg_rate", "--size", "64")
LAT = ("msg_lat", "--size", "64")


def million(v):
    return f"{v / 1e6:.2f} M/s"


RUNS = {
    "messages": RATE,
    "SEND": ("send_bw", "--size", "64"),
    "messages, one set": RATE + ("--sets", "1"),
    "messages, 4,096 sets": RATE + ("--sets", "4096"),
    "ping-pong of messages": LAT,
    "ping-pong of SENDs": ("send_lat", "--size", "64"),
    "incast": ("msg_incast", "--size", "64", "--senders", "8"),
}

ROWS = [
    Row("rate", "64 B messages, one sender, of SEND with one QP", 0.8, 1.3, percent, True,
        ("messages", "SEND"), share("msg_rate", "messages", "SEND")),
    Row("lat", "64 B ping-pong, half round trip p50, against SENDs", 1.2, 0.9, times, False,
        ("ping-pong of messages", "ping-pong of SENDs"), share("us", "ping-pong of messages", "ping-pong of SENDs")),
    Row("one", "  one register set, of 128", None, None, percent, True,
        ("messages", "messages, one set"), share("msg_rate", "messages, one set", "messages")),
    Row("many", "  4,096 register sets, of 128", None, None, percent, True,
        ("messages", "messages, 4,096 sets"), share("msg_rate", "messages, 4,096 sets", "messages")),
    Row("incast", "  8 nodes to one queue, through a switch", None, None, million, True,
        ("incast",), alone("msg_rate", "incast")),
]


def measures(urnic, t):
    """{run: function of a row's key}, as speed.measures()."""
    return runs_of(urnic, t, ROWS, RUNS)
