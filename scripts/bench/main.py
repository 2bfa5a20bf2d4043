# SPDX-License-Identifier: BSD-3-Clause
"""Options, rounds and output files of the benchmark. Started by scripts/bench.sh.

runner    child processes: their cores, their end, the files they leave
parse     numbers from the output of each program beside urnic
peers     commands of the programs beside urnic
switched  kernel TCP through the switch
urnic     commands of urnic-perf
sections  the measurements: series, points, plots
speed     the table of figures that urnic must reach
urnicd    the table for programs attached to a dataplane process
congestion many senders into one port, simulated and over net_ring
msg       the table for messages without connections
session   the table for sessions that lose an adapter
adapters  nodes with a session each, whose adapters can be killed
dropin    the table for unmodified programs under urnic-run
am        the table and plots for active messages and remote memory access
attached  commands of a dataplane process and its programs
stats     rows of raw data, medians
report    text and CSV
page      plots and the HTML page
quiet     the reference loop between rounds: is the machine quiet?
terms     words of the tables, explained
facts     the machine and the commit
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import time

import am
import attached
import facts
import page
import quiet
import report
import sections
import speed
import stats
from runner import Failed, Missing, Runner
from urnic import Urnic


class Interrupted(BaseException):
    """A signal ended the run."""


def interrupt(number, _frame):
    raise Interrupted(number)


class Progress:
    """One line on stderr that is overwritten, or a line for each section when stderr is no terminal."""

    def __init__(self, steps):
        self.steps = steps
        self.done = 0
        self.started = time.monotonic()
        self.live = sys.stderr.isatty()
        self.said = None

    def step(self, rnd, rounds, section, point, series):
        if not self.live:
            if self.said != (rnd, section):
                print(f"bench.sh: round {rnd} of {rounds}: {section}", file=sys.stderr, flush=True)
            self.said = (rnd, section)
        else:
            spent = time.monotonic() - self.started
            left = spent / self.done * (self.steps - self.done) if self.done > 5 else None
            when = "" if left is None else f", {left // 60:.0f}:{left % 60:02.0f} to go"
            line = f"round {rnd} of {rounds}: {section} {report.point_name(point)}: {series}{when}"
            print(f"\r\033[K{line[:110]}", end="", file=sys.stderr, flush=True)
        self.done += 1

    def more(self, steps):
        """A round is measured again."""
        self.steps += steps
        if not self.live:
            print("bench.sh: the machine drifted; the round is measured again", file=sys.stderr, flush=True)

    def end(self):
        if self.live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class Bench:
    def __init__(self, chosen, rounds, raw, watch):
        self.sections = chosen
        self.rounds = rounds
        self.raw = raw
        self.watch = watch # quiet.Watch
        self.rows = []
        self.notes = {}   # (section, series): the reason why the series could not be measured
        self.missing = set()
        self.failed = False # True when a measurement of urnic itself failed
        self.progress = Progress(rounds * sum(len(s.points) * len(s.series) for s in chosen))

    def measure(self, rnd, section, point, series, first):
        """Measure one series at one point. A failure is noted, and the series is tried again next round."""
        key = (section.name, series.name)
        if key in self.missing or (series.once and point != section.points[0]) or \
                (series.first and not first):
            return
        try:
            found = series.measure(point)
        except Missing as e:
            self.missing.add(key)
            self.notes[key] = str(e)
            return
        except (Failed, KeyError, ValueError, OSError, subprocess.TimeoutExpired) as e:
            why = str(e) if isinstance(e, Failed) else f"{type(e).__name__}: {e}"
            self.notes[key] = f"at {report.point_name(point)}, round {rnd}: {why}"
            self.failed |= why.startswith("urnic")
            return
        for x, metric, value in found:
            row = stats.Row(rnd, section.name, point, series.name, x, metric, float(value))
            self.rows.append(row)
            self.raw.write(row)

    def round(self, rnd, first):
        for section in self.sections:
            for point in section.points:
                # Every other round has the reverse order, so that no series is always first.
                for series in section.series[::1 if rnd % 2 else -1]:
                    self.progress.step(rnd, self.rounds, section.name, point, series.name)
                    self.measure(rnd, section, point, series, first)

    def run(self):
        """Measure rounds; one in two at most is measured again, when the machine drifted meanwhile."""
        repeats, done, rnd = self.rounds // 2, 0, 0
        while done < self.rounds:
            rnd += 1
            kept = len(self.rows)
            self.watch.begin()
            self.round(rnd, first=done == 0)
            if self.watch.end(rnd, repeats > 0):
                # raw.csv keeps the round; rounds of the watch say that it does not count.
                del self.rows[kept:]
                repeats -= 1
                self.progress.more(sum(len(s.points) * len(s.series) for s in self.sections))
            else:
                done += 1


def options(argv):
    """Parse the arguments, which scripts/bench.sh has checked."""
    p = argparse.ArgumentParser(prog="bench.sh", add_help=False)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--json", action="store_true")
    p.add_argument("--stages-build")
    p.add_argument("--incast")
    p.add_argument("--session-sim")
    p.add_argument("--kills", type=int, default=0)
    for name in ("project", "build", "perf", "out"):
        p.add_argument(name)
    p.add_argument("rounds", type=int)
    p.add_argument("seconds", type=float)
    p.add_argument("only")
    return p.parse_args(argv)


def write(o, found, bench):
    """Write all files. Returns the text for standard output."""
    summary = stats.summarize(bench.rows)
    verdicts = {s.name: speed.verdicts(bench.rows, s.name, s.rows)
                for s in bench.sections if s.rows}
    rounds = len({r.round for r in bench.rows})
    is_quiet, said = quiet.judge(bench.watch)
    if not is_quiet:
        verdicts = quiet.withhold(verdicts)
    found = {**found, "cores' state": quiet.state(bench.watch)}
    looks = quiet.rows(bench.watch)
    text = report.text(found, bench.sections, summary, verdicts, bench.notes, said, looks)
    for kind, (section, _) in am.BY_SIZE.items():
        if any(s.name == section for s in bench.sections):
            am.draw(o.out, section, summary, kind)
            text += "\n" + am.said(summary, section, kind, is_quiet)
    report.write_summary(os.path.join(o.out, "summary.csv"), summary)
    with open(os.path.join(o.out, "summary.txt"), "w", encoding="utf-8") as f:
        f.write(text)
    with open(os.path.join(o.out, "index.html"), "w", encoding="utf-8") as f:
        f.write(page.page(found, bench.sections, summary, verdicts, bench.notes, rounds, is_quiet, said, looks))
    if o.json:
        return json.dumps({**report.as_json(found, summary, verdicts, bench.notes),
                           "quiet": quiet.as_json(bench.watch)}, indent=2) + "\n"
    return text


def measure(o, runner):
    """Run all measurements. Returns the Bench, and the signal that ended the run early or 0."""
    urnic = Urnic(runner, os.path.join(o.build, o.perf),
                  os.path.join(o.stages_build, o.perf) if o.stages_build else None,
                  os.path.join(o.build, "apps/urnic-switch/urnic-switch"),
                  attached.Programs(o.project, o.build, o.perf, o.incast, o.out, o.session_sim, o.kills))
    wanted = o.only.split(",") if o.only else list(sections.ALL)
    chosen = [sections.ALL[name](urnic, runner, o.seconds, o.quick)
              for name in sections.ALL if name in wanted or name.split("_")[0] in wanted]
    raw = report.RawFile(os.path.join(o.out, "raw.csv"))
    bench = Bench(chosen, o.rounds, raw, quiet.Watch(runner.cores, urnic.hop))
    try:
        bench.run()
        return bench, 0
    except Interrupted as e:
        return bench, e.args[0]
    finally:
        bench.progress.end()
        raw.close()


def main(argv):
    o = options(argv)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    os.makedirs(o.out, exist_ok=True)
    runner = Runner()
    try:
        found = facts.collect(o.project, o.build, runner.cores)
        bench, number = measure(o, runner)
    except Interrupted as e:
        return 128 + e.args[0]
    finally:
        for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(s, signal.SIG_IGN)
        runner.close()
    sys.stdout.write(write(o, found, bench))
    print(f"bench.sh: {'ended early; ' if number else ''}written: {o.out}/index.html, summary.txt, "
          "summary.csv, raw.csv", file=sys.stderr)
    if number:
        return 128 + number
    # A program beside urnic may be missing or fail, and is only named; urnic itself must not fail.
    return 1 if bench.failed or not bench.rows else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
