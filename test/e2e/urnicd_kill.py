#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""kill -9 of busy programs, one after the other, under a urnicd that serves sixteen.

The others see no error, and nothing leaks: the limits of the configuration leave room for
the programs that run and a few more, so queue pairs, regions or clients that stay behind are
soon missed; the packets of the adapters are few; descriptors, threads and mappings of urnicd
are as many in the end as in the beginning.

usage: urnicd_kill.py URNICD URNIC_PERF [--kills N] [--programs N]"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

SPARE = 4  # programs that may be on their way out
CONFIG = """[urnicd]
socket = {socket}
idle = pause
empty_polls = 4
[limits]
clients = {clients}
qp_per_uid = {clients}
cq_per_uid = {cqs}
mr_per_uid = {mrs}
[adapter a0]
node = a
switch = wire
ipv4 = 10.0.0.1
mbufs = 4k
max_qp = {clients}
max_mr = {mrs}
[adapter b0]
node = b
switch = wire
ipv4 = 10.0.0.2
mbufs = 4k
max_qp = {clients}
max_mr = {mrs}
[switch wire]
"""
OPS = ("write_bw", "send_bw", "read_bw", "atomic_bw", "send_lat")


def fail(text):
    print(f"urnicd_kill: {text}", file=sys.stderr)
    sys.exit(1)


class Kill:
    def __init__(self, args):
        self.args = args
        self.dir = tempfile.TemporaryDirectory(prefix="urnic-kill.")
        self.socket = os.path.join(self.dir.name, "nicd.sock")
        self.chance = random.Random(args.seed)
        self.programs = []
        self.started = 0

    def start_nicd(self):
        path = os.path.join(self.dir.name, "c.ini")
        with open(path, "w", encoding="utf-8") as f:
            # A program is two clients, each with a QP, a CQ or two, and a region or two.
            clients = 2 * (self.args.programs + SPARE)
            f.write(CONFIG.format(socket=self.socket, clients=clients, cqs=2 * clients, mrs=2 * clients))
        self.nicd = subprocess.Popen([self.args.urnicd, "-c", path], stderr=subprocess.PIPE, text=True)
        if "listening at" not in self.nicd.stderr.readline():
            fail("urnicd does not start")

    def perf(self, op, *more):
        cmd = [self.args.perf, op, "--attach", self.socket, "--idle", "pause", *more]
        if self.started % 4 == 3:
            cmd.append("--foreign")
        self.started += 1
        return subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def start_program(self):
        self.programs.append(self.perf(self.chance.choice(OPS), "--duration", "3600"))

    def check(self, p):
        """A program works and says nothing."""
        if p.poll() is not None:
            out, err = p.communicate()
            fail(f"{' '.join(p.args)} ended with {p.returncode}: {out}{err}")

    def state(self):
        """Of urnicd: descriptors, threads, mappings of shared memory."""
        base = f"/proc/{self.nicd.pid}"
        with open(f"{base}/maps", encoding="utf-8") as f:
            shared = sum("memfd:urnic" in line for line in f)
        return len(os.listdir(f"{base}/fd")), len(os.listdir(f"{base}/task")), shared

    def settled(self, want):
        """What went away takes a moment to be taken back."""
        end = time.time() + 20
        while self.state() != want and time.time() < end:
            time.sleep(0.02)
        return self.state()

    def transfer(self):
        """One program by itself: everything still works, and there are packets."""
        p = self.perf("send_bw", "--iters", "3000", "--json")
        out, err = p.communicate(timeout=120)
        if p.returncode != 0 or json.loads(out)["messages"] != 3000:
            fail(f"nothing goes over any more: {err}")

    def run(self):
        self.start_nicd()
        self.transfer()
        before = self.settled(self.state())
        time.sleep(0.2)
        before = self.state()
        for _ in range(self.args.programs):
            self.start_program()
        for n in range(self.args.kills):
            time.sleep(self.chance.uniform(0, 0.1))
            for p in self.programs:
                self.check(p)
            p = self.programs.pop(self.chance.randrange(len(self.programs)))
            p.send_signal(signal.SIGKILL)
            p.communicate()
            self.start_program()
            if sys.stdout.isatty() or n % 100 == 99:
                print(f"{n + 1} killed", flush=True)
        time.sleep(0.5)
        for p in self.programs:
            self.check(p)
            p.send_signal(signal.SIGTERM)
        for p in self.programs:
            _, err = p.communicate(timeout=120)
            if p.returncode != 128 + signal.SIGTERM or "error" in err:
                fail(f"{' '.join(p.args)} ended with {p.returncode}: {err}")
        self.programs = []
        after = self.settled(before)
        if after != before:
            fail(f"(descriptors, threads, shared mappings) of urnicd were {before} and are {after}")
        self.transfer()
        self.nicd.send_signal(signal.SIGTERM)
        _, err = self.nicd.communicate(timeout=60)
        if self.nicd.returncode != 0 or err:
            fail(f"urnicd ended with {self.nicd.returncode}: {err}")
        if os.path.exists(self.socket):
            fail("the socket is still there")
        print(f"{self.args.kills} of {self.args.programs} programs killed; nobody else noticed, nothing leaked")

    def close(self):
        for p in [*self.programs, getattr(self, "nicd", None)]:
            if p is not None and p.poll() is None:
                p.kill()
                p.wait()
        self.dir.cleanup()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("urnicd")
    parser.add_argument("perf")
    parser.add_argument("--kills", type=int, default=50, help="how many (50)")
    parser.add_argument("--programs", type=int, default=16, help="programs that run at a time (16)")
    parser.add_argument("--seed", type=int, default=1, help="of who is killed, and when (1)")
    k = Kill(parser.parse_args())
    try:
        k.run()
    finally:
        k.close()


if __name__ == "__main__":
    main()
