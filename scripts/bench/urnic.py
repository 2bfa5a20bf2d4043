# SPDX-License-Identifier: BSD-3-Clause
"""Run urnic-perf."""
import json
import re
import subprocess

import stats
from runner import Failed, Missing

# Operations of queue pairs. On wires that lose nothing a timeout only tells that the other side had no processor,
# so it is long (1 s, eight times): a host that takes a core away for half a second ends no measurement.
QUEUE_PAIRS = re.compile(r"(write|read|send|atomic)_(bw|lat)")
PATIENT = ("--timeout", "18")


def loses(args):
    """Do these options ask for a wire that loses packets?"""
    return "--loss" in args and args[args.index("--loss") + 1] != "0"


class Urnic:
    """Two builds of urnic-perf: the one whose figures count, and one with stages (or None).
    A switch and programs of a dataplane process are optional."""

    def __init__(self, runner, program, stages_program=None, switch=None, programs=None):
        self.runner = runner
        self.switch = switch
        self.programs = programs # attached.Programs
        self.program = program
        self.stages_program = stages_program
        text = subprocess.run([program, "--help"], capture_output=True, text=True,
                              check=True).stdout
        self.options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))

    def perf(self, op, seconds, *args, program=None):
        """Run an operation; returns its JSON. Missing when this build has no such option."""
        for option in args:
            if option.startswith("--") and option not in self.options:
                raise Missing(f"not built: urnic-perf has no {option}")
        if QUEUE_PAIRS.fullmatch(op) and not loses(args):
            args += PATIENT
        cores = ",".join(str(c) for c in self.runner.cores)
        command = [program or self.program, op, "--duration", f"{seconds:g}", "--lcores", cores,
                   "--json", *args]
        try:
            return json.loads(self.runner.run(command, 60 + 10 * seconds))
        except ValueError as e:
            raise Failed(f"urnic-perf {op} printed no JSON: {e}") from None

    def rate(self, op, seconds, *args):
        """Run an operation. Returns gbps, msg_rate, p50 of the latency and, with --with-limit, the ratio."""
        r = self.perf(op, seconds, *args)
        found = {"gbps": r["gbps"], "msg_rate": r["msg_rate"], "us": r["lat_us"]["p50"]}
        for key in ("ratio", "limit_gbps", "limit_msg_rate", "qp_bytes", "retransmits"):
            if key in r:
                found[key] = r[key]
        return found

    def hop(self):
        """Half a round trip of a bare frame between the cores, in us; None: it could not be measured."""
        if self.runner.cores[0] == self.runner.cores[1]:
            return None
        try:
            return self.perf("limit", 0.02, "--lat", "--size", "8")["lat_us"]["p50"]
        except (Failed, Missing, KeyError):
            return None

    def ranks(self, op, seconds, ranks, *args):
        """{percentile: us} of a latency operation."""
        r = self.perf(op, seconds, "--hist", *args)
        return {p: stats.quantile(r["hist_ns"], p / 100) / 1000 for p in ranks}

    def stages(self, op, seconds, *args):
        """{"a": {stage: cycles a packet}, "b": ...}"""
        if self.stages_program is None:
            raise Missing("not built: a urnic-perf with stages")
        return self.perf(op, seconds, "--stages", *args, program=self.stages_program)["stages"]
