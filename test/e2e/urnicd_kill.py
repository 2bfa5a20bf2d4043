#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""kill -9 of busy programs, one after the other, under a urnicd that serves sixteen.

The others see no error, and nothing leaks: the limits of the configuration leave room for
the programs that run and a few more, so queue pairs, regions or clients that stay behind are
soon missed; the packets of the adapters are few; descriptors, threads and mappings of urnicd
are as many in the end as in the beginning, so are its clients, queue pairs, completion queues,
regions and packets in use, as urnicctl tells them, and what lies in /dev/shm and in the folder of
runtime files.

usage: urnicd_kill.py URNICD URNIC_PERF [--urnicctl URNICCTL] [--kills N] [--programs N] [--json]"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # no cache of signals
import signals

SPARE = 12  # programs whose objects a busy machine may not have freed yet
PATIENCE = 60  # seconds, until the objects of killed programs must be freed
LEAVINGS = 20  # lines about objects that stayed behind, at most
CONFIG = """[urnicd]
socket = {socket}
log = off
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


READY = 32  # packets that an adapter keeps at hand, at most: a burst
OBJECTS = ("client", "qp", "cq", "srq", "msg", "am", "mr")
ADAPTERS = ("a0", "b0")


class Fault(Exception):
    """A program that was not killed saw an error, or something stayed behind."""


def fail(text):
    raise Fault(text)


def shared_memory():
    """Names of our files in /dev/shm."""
    try:
        return sorted(n for n in os.listdir("/dev/shm") if "urnic" in n and "urnic-bench" not in n)
    except OSError:
        return []


class Kill:
    def __init__(self, args):
        self.args = args
        self.dir = tempfile.TemporaryDirectory(prefix="urnic-kill.")
        self.socket = os.path.join(self.dir.name, "nicd.sock")
        self.chance = random.Random(args.seed)
        self.programs = []
        self.started = 0
        self.kills = 0
        self.before = self.after = None
        # DPDK's and our own runtime files lie in a folder where the test sees files that stay behind.
        self.run_dir = os.path.join(self.dir.name, "run")
        os.mkdir(self.run_dir, 0o700)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=self.run_dir, RUNTIME_DIRECTORY=self.run_dir)

    def start_nicd(self):
        path = os.path.join(self.dir.name, "c.ini")
        with open(path, "w", encoding="utf-8") as f:
            # A program is two clients, each with a QP, a CQ or two, and a region or two.
            clients = 2 * (self.args.programs + SPARE)
            f.write(CONFIG.format(socket=self.socket, clients=clients, cqs=2 * clients, mrs=2 * clients))
        self.nicd = subprocess.Popen([self.args.urnicd, "-c", path], stderr=subprocess.PIPE, text=True,
                                     env=self.env)
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
        """Check that a program still works."""
        if p.poll() is not None:
            out, err = p.communicate()
            counters = self.ctl("show", "counters") if self.args.urnicctl else ""
            fail(f"{' '.join(p.args)} ended with {p.returncode}: {out}{err}{counters}")

    def ctl(self, *command):
        """Run a command of urnicctl. Returns its output as objects."""
        p = subprocess.run([self.args.urnicctl, "--socket", self.socket, "--json", *command],
                           capture_output=True, text=True, timeout=60, check=False)
        if p.returncode != 0:
            fail(f"urnicctl {' '.join(command)}: {p.stderr}")
        return json.loads(p.stdout)

    def state(self):
        """Counts of the things that urnicd holds: the kernel's, and with urnicctl its objects and packets."""
        base = f"/proc/{self.nicd.pid}"
        with open(f"{base}/maps", encoding="utf-8") as f:
            shared = sum("memfd:urnic" in line for line in f)
        found = {"descriptors": len(os.listdir(f"{base}/fd")), "threads": len(os.listdir(f"{base}/task")),
                 "shared mappings": shared, "in /dev/shm": shared_memory()}
        if self.args.urnicctl:
            for what in OBJECTS:
                found[what] = len(self.ctl("show", what))
            for port in ADAPTERS:
                row = self.ctl("show", "port", port)[0]
                found[f"packets in use of {port}"] = max(0, row["mbufs"] - row["mbufs_free"] - READY)
        return found

    def threads(self):
        """Names of urnicd's threads, and the function of the kernel that each waits in (0: none)."""
        base, found = f"/proc/{self.nicd.pid}/task", []
        for task in os.listdir(base):
            try:
                with open(f"{base}/{task}/comm", encoding="utf-8", errors="replace") as f:
                    name = f.read().strip()
                with open(f"{base}/{task}/wchan", encoding="utf-8", errors="replace") as f:
                    found.append(f"{name} ({f.read().strip()})")
            except OSError:  # the thread has ended
                pass
        return ", ".join(sorted(found))

    def leavings(self):
        """Rows of what stayed behind: the log of a run is all that tells why."""
        rows = [f"threads: {self.threads()}"]
        try:
            for what in ("client", "mr") if self.args.urnicctl else ():
                rows += [f"{what}: {json.dumps(row)}" for row in self.ctl("show", what)]
            for qp in self.ctl("show", "qp") if self.args.urnicctl else ():
                one = self.ctl("show", "qp", f"{qp['qpn']}", "adapter", qp["adapter"])
                rows += [f"qp: {json.dumps(row)}" for row in one]
        except (Fault, OSError, subprocess.TimeoutExpired, ValueError) as e:  # it has gone meanwhile
            rows.append(str(e))
        return "\n  ".join(rows[:LEAVINGS])

    def memory(self):
        """Resident memory of urnicd in KiB: printed but not checked, because the kernel's count is not exact."""
        with open(f"/proc/{self.nicd.pid}/status", encoding="utf-8", errors="replace") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))

    def settled(self, want):
        """Wait until the state is the wanted one, because freeing takes a moment. Returns the last state."""
        end = time.time() + PATIENCE
        while True:
            found = self.state()
            if found == want or time.time() > end:
                return found
            time.sleep(0.05)

    def transfer(self):
        """Run one program by itself: urnicd still works, and its adapters have packets."""
        p = self.perf("send_bw", "--iters", "3000", "--json")
        out, err = p.communicate(timeout=120)
        if p.returncode != 0 or json.loads(out)["messages"] != 3000:
            fail(f"nothing goes over any more: {err}")

    def rest(self):
        """Wait until no client is attached and the state is the same twice. Returns the state."""
        end = time.time() + PATIENCE
        found = None
        while True:
            last, found = found, self.state()
            if (found == last and found.get("client", 0) == 0) or time.time() > end:
                return found
            time.sleep(0.2)

    def kill_all(self):
        """Kill programs one after the other, at random moments, and start a new one for each."""
        said = started = time.monotonic()
        while self.kills < self.args.kills:
            time.sleep(self.chance.uniform(0, 0.1))
            for p in self.programs:
                self.check(p)
            p = self.programs.pop(self.chance.randrange(len(self.programs)))
            p.send_signal(signal.SIGKILL)
            p.communicate()
            self.start_program()
            self.kills += 1
            now = time.monotonic()
            if now - said > 5:
                said, left = now, (now - started) / self.kills * (self.args.kills - self.kills)
                print(f"urnicd_kill: {self.kills} of {self.args.kills} killed, {left:.0f} s to go",
                      file=sys.stderr, flush=True)

    def run(self):
        self.start_nicd()
        self.transfer()
        self.before = self.rest()
        rss = self.memory()
        for _ in range(self.args.programs):
            self.start_program()
        self.kill_all()
        time.sleep(0.5)
        for p in self.programs:
            self.check(p)
            signals.send(p, signal.SIGTERM)
        for p in self.programs:
            _, err = p.communicate(timeout=120)
            if p.returncode != 128 + signal.SIGTERM or "error" in err:
                fail(f"{' '.join(p.args)} ended with {p.returncode}: {err}")
        self.programs = []
        self.after = self.settled(self.before)
        if self.after != self.before:
            fail("left behind: " + ", ".join(f"{k}: {self.before[k]} before, {v} after"
                                             for k, v in self.after.items() if v != self.before[k]) +
                 f"\n  {self.leavings()}")
        self.transfer()
        # The growth of memory is added after the comparison, because it is printed and not compared.
        self.after = {**self.after, "memory growth, KiB": self.memory() - rss}
        self.rest()  # urnicd says at its end which programs it could not let go
        self.nicd.send_signal(signal.SIGTERM)
        _, err = self.nicd.communicate(timeout=60)
        if self.nicd.returncode != 0 or err:
            fail(f"urnicd ended with {self.nicd.returncode}: {err}")
        if os.path.exists(self.socket) or os.listdir(self.run_dir):
            fail(f"still there: {self.socket} or one of {os.listdir(self.run_dir)}")
        if shared_memory() != self.before["in /dev/shm"]:
            fail(f"left in /dev/shm: {shared_memory()}")

    def tell(self, seconds, faults):
        if self.args.json:
            print(json.dumps({"kills": self.kills, "programs": self.args.programs, "seconds": round(seconds, 1),
                              "faults": faults, "before": self.before, "after": self.after}))
        elif not faults:
            print(f"{self.kills} programs killed, {self.args.programs} running, in {seconds:.0f} s; nobody else "
                  f"noticed, nothing leaked")
            for k, v in self.before.items():
                print(f"  {k}: {v} before, {self.after[k]} after")
        for text in faults:
            print(f"urnicd_kill: {text}", file=sys.stderr)

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
    parser.add_argument("--urnicctl", help="compare what it shows before and after, too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--kills", type=int, default=50, help="how many (50)")
    parser.add_argument("--programs", type=int, default=16, help="programs that run at a time (16)")
    parser.add_argument("--seed", type=int, default=1, help="of who is killed, and when (1)")
    # SIGTERM ends this test like an error, so that its programs are killed, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    k = Kill(parser.parse_args())
    started = time.monotonic()
    faults = []
    try:
        k.run()
    except (Fault, OSError, subprocess.TimeoutExpired, ValueError) as e:
        faults.append(str(e) if isinstance(e, Fault) else f"{type(e).__name__}: {e}")
    finally:
        k.close()
    k.tell(time.monotonic() - started, faults)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
