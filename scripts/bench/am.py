# SPDX-License-Identifier: BSD-3-Clause
"""Active messages and remote memory access beside queue pairs: the table of figures that they must reach, and how long
each way of a write and of a read takes by size, also drawn with gnuplot. Rows, ratios and verdicts are those of speed."""
import os
import shutil
import subprocess

from runner import Failed, Missing
from speed import Row, percent, runs_of, share, times

BIG = ("--size", "1M")
LOST = ("--loss", "1")
WRITE = ("write_bw",) + BIG
RMA = ("rma_write_bw",) + BIG
MERGED = 8 # packets that one reply answers, between one and all
DIRECT_MOST = 4096 # bytes of a packet at a path MTU of 4096, on a port with room for the headers
WAYS = ("direct", "pipelined", "tagged")
# Kinds of operations that are measured by size: the section, whose picture has its name, and the operation of queue pairs.
BY_SIZE = {"write": ("am_ways", "write_bw"), "read": ("am_ways_read", "read_bw")}

RUNS = {
    "WRITE 1 MiB": WRITE,
    "WRITE 1 MiB, 1 % lost": WRITE + LOST,
    "WRITE 64 B": ("write_bw", "--size", "64"),
    "ping-pong of SENDs": ("send_lat", "--size", "8"),
    "WRITE then SEND 4 KiB": ("write_send_bw", "--size", "4096"),
    "tagged 1 MiB": RMA + ("--rma", "tagged"),
    "tagged 1 MiB, 1 % lost": RMA + ("--rma", "tagged") + LOST,
    "pipelined 1 MiB": RMA + ("--rma", "pipelined"),
    "pipelined 1 MiB, 1 % lost": RMA + ("--rma", "pipelined") + LOST,
    "auto 1 MiB": RMA,
    "auto 1 MiB, 1 % lost": RMA + LOST,
    "request and reply 8 B": ("am_lat", "--size", "8"),
    "RMA 64 B": ("rma_write_bw", "--size", "64"),
    "message with payload 4 KiB": ("am_payload", "--size", "4096"),
    "message written in place 4 KiB": ("am_payload", "--size", "4096", "--prepare"),
    "message written and copied 4 KiB": ("am_payload", "--size", "4096", "--fill"),
    "written, then WRITE and SEND 4 KiB": ("write_send_bw", "--size", "4096", "--fill"),
    f"a reply for {MERGED} packets": RMA + ("--rma", "pipelined", "--reply-every", str(MERGED)),
    "a reply for the transfer": RMA + ("--rma", "pipelined", "--reply-every", "transfer"),
}


def of_write(key, what, way, must=None, aim=None, lost=""):
    """A row: RMA writes of 1 MiB by a way, of WRITEs."""
    runs = (f"{way} 1 MiB{lost}", f"WRITE 1 MiB{lost}")
    return Row(key, what, must, aim, percent, True, runs, share("gbps", *runs))


def of_packets(key, what, run):
    """A row: replies for several packets, of replies for each."""
    return Row(key, what, None, None, percent, True, (run, "pipelined 1 MiB"), share("gbps", run, "pipelined 1 MiB"))


def of_write_send(key, what, run, beside, must=None, aim=None):
    """A row: messages with a payload of 4 KiB, of WRITE then SEND that write their bytes alike."""
    return Row(key, what, must, aim, times, True, (run, beside), share("msg_rate", run, beside))


ROWS = [
    of_write("tagged", "1 MiB RMA write, tagged, of WRITE", "tagged", 0.9, 1.0),
    of_write("pipelined", "  the same, pipelined", "pipelined"),
    of_write("auto", "  the same, way by size", "auto"),
    of_write("tagged_loss", "1 MiB RMA write, tagged, 1 % lost, of WRITE", "tagged", 0.95, 1.1, ", 1 % lost"),
    of_write("pipelined_loss", "  the same, pipelined", "pipelined", lost=", 1 % lost"),
    of_write("auto_loss", "  the same, way by size", "auto", lost=", 1 % lost"),
    Row("lat", "8 B request and reply, p50, against SENDs", 1.3, 1.0, times, False,
        ("request and reply 8 B", "ping-pong of SENDs"),
        share("us", "request and reply 8 B", "ping-pong of SENDs")),
    Row("small", "64 B RMA writes, of WRITE with one QP", 0.7, 1.0, percent, True,
        ("RMA 64 B", "WRITE 64 B"), share("msg_rate", "RMA 64 B", "WRITE 64 B")),
    # A program makes each payload: in the lane, or in the memory that WRITE reads.
    of_write_send("payload", "4 KiB payload made in place, with a handler, of WRITE then SEND",
                  "message written in place 4 KiB", "written, then WRITE and SEND 4 KiB", 1.3, 2.0),
    of_write_send("payload_made", "  the same, made elsewhere and copied",
                  "message written and copied 4 KiB", "written, then WRITE and SEND 4 KiB"),
    of_write_send("payload_copied", "  copied from memory where it is already, of WRITE then SEND from there",
                  "message with payload 4 KiB", "WRITE then SEND 4 KiB"),
    of_packets("merged", f"  pipelined, a reply for {MERGED} packets, of one each", f"a reply for {MERGED} packets"),
    of_packets("transfer", "  pipelined, a reply for the transfer, of one each", "a reply for the transfer"),
]


class Known:
    """Ways and replies that this dataplane has; a way is tried once."""

    def __init__(self, urnic):
        self.urnic = urnic
        self.tried = {}

    def need(self, *args):
        """Raise Missing when the dataplane refuses operations with these options."""
        if not args:
            return
        if args not in self.tried:
            try:
                self.urnic.perf("rma_write_bw", 0.001, "--size", "1000", *args)
                self.tried[args] = None
            except Failed as e:
                self.tried[args] = e
        if self.tried[args] and any(word in str(self.tried[args]) for word in ("way that is known", "bad-command")):
            raise Missing(f"not built: the dataplane has no operations with {' '.join(args)}")


def special(args):
    """The options of a run that a dataplane may not know."""
    at = [i for i, a in enumerate(args) if a in ("--rma", "--reply-every")]
    return tuple(word for i in at for word in args[i:i + 2])


def measures(urnic, t):
    """{run: function of a row's key}, as speed.measures()."""
    known, found = Known(urnic), {}

    def guarded(name, measure):
        def run(key):
            if any(name in row.runs for row in ROWS if row.key == key):
                known.need(*special(RUNS[name]))
            return measure(key)
        return run

    for name, measure in runs_of(urnic, t, ROWS, RUNS).items():
        found[name] = guarded(name, measure)
    return found


# ---- the ways by size

def sizes(quick):
    return (64, 1024, DIRECT_MOST, 16384, 262144) if quick else \
        (8, 64, 256, 1024, DIRECT_MOST, 8192, 16384, 32768, 65536, 262144, 1048576, 4194304)


def beside(kind):
    """The series of queue pairs beside the ways of a kind of operations."""
    return "RC " + kind.upper()


def ways(urnic, t, kind="write"):
    """{way: function of a size}: rates of a stream, and the time of one operation. kind: write or read"""
    known = Known(urnic)

    def both(stream, alone, size, *args):
        found = urnic.rate(stream, t, "--size", str(size), *args)
        one = urnic.rate(alone, t, "--size", str(size), *args)
        return [(size, "gbps", found["gbps"]), (size, "msg_rate", found["msg_rate"]), (size, "us", one["us"])]

    def by(way):
        def measure(size):
            if way == "direct" and size > DIRECT_MOST:
                return []
            known.need("--rma", way)
            return both(f"rma_{kind}_bw", f"rma_{kind}_lat", size, "--rma", way)
        return measure

    found = {way: by(way) for way in WAYS}
    plain = BY_SIZE[kind][1]
    found[beside(kind)] = lambda size: [(size, m, v) for m, v in urnic.rate(plain, t, "--size", str(size)).items()
                                        if m in ("gbps", "msg_rate")]
    return found


def crossover(summary, section, one, other, metric="gbps"):
    """The least size from which on a way is at least as good as another; None: there is none, or one was not
    measured."""
    of = {name: {s.x: s.median for s in summary if (s.section, s.series, s.metric) == (section, name, metric)}
          for name in (one, other)}
    both = sorted(set(of[one]) & set(of[other]))
    better = [of[other][x] >= of[one][x] if metric == "gbps" else of[other][x] <= of[one][x] for x in both]
    for i, x in enumerate(both):
        if all(better[i:]):
            return x
    return None


def said(summary, section, kind="write", is_quiet=True):
    """Sentences about the sizes at which one way begins to be better than the way before; none for a machine that was not quiet."""
    if not is_quiet:
        return f"Crossover of ways of a {kind}\n  withheld, since the machine was not quiet\n"
    text = []
    for one, other in zip(WAYS, WAYS[1:]):
        for metric, what in (("gbps", "as a stream"), ("us", "one at a time")):
            at = crossover(summary, section, one, other, metric)
            text.append(f"{other} against {one}, {what}: " +
                        ("never the better one of the sizes measured" if at is None else f"at least as good from {at} B on"))
    return f"Crossover of ways of a {kind}\n" + "\n".join("  " + line for line in text) + "\n"


def draw(out, section, summary, kind="write"):
    """Draw the ways by size into SECTION.png: the rate of a stream, and the time of one operation."""
    if not shutil.which("gnuplot"):
        return
    lines = ["set terminal pngcairo size 1300,520 font 'sans,11'",
             f"set output '{os.path.join(out, section + '.png')}'", "set multiplot layout 1,2", "set grid",
             "set logscale x 2", "set logscale y", f"set xlabel 'bytes of a {kind}'", "set key top left",
             "set format x '%.0f'", "set xtics rotate by -45"]
    for metric, label in (("gbps", "Gbit/s, a stream"), ("us", f"us, one {kind} at a time, p50")):
        drawn = []
        for name in WAYS + (beside(kind),):
            of = sorted((s.x, s.median) for s in summary
                        if (s.section, s.series, s.metric) == (section, name, metric))
            if not of:
                continue
            block = f"${metric}_{name.replace(' ', '_')}"
            lines += [f"{block} << EOD"] + [f"{x} {v:.6g}" for x, v in of] + ["EOD"]
            drawn.append(f"{block} with linespoints lw 2 pt 7 ps 0.6 title '{name}'")
        if drawn:
            lines += [f"set ylabel '{label}'", "plot " + ", ".join(drawn)]
    path = os.path.join(out, section + ".gp")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines + ["unset multiplot", ""]))
    subprocess.run(["gnuplot", path], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
