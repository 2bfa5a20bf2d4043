#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Judge the frames that urnic sends in its tests.

usage: judge_tests.py [OPTION...] PROGRAM...

Runs each PROGRAM, captures all frames that the program sends, then has judge.py
judge them. The name of a program decides its arguments: tests of packets and of
verbs and replays of fuzzers' findings run without any, urnic-sim with every
scenario, urnic-perf over good and bad wires, urnic-cp with several options. Frames
are captured at the sender, before wires change them.

  --scapy N      as for judge.py (default: all)
  --seeds A..B   seeds of each scenario of urnic-sim (default: 1..36)
  --least N      fail when there are fewer than N RoCEv2 frames (default: 500000)
  --opcodes L    fail unless each of these opcodes (hexadecimal, with commas between)
                 was there (default: all that urnic sends)
  --less         take less time: leave out some programs, most frames for scapy
                 and most seeds
  --all          give scapy every frame, whatever --scapy says; URNIC_TEST_ALL in
                 the environment does the same
  --help         this text

Exit code: 0 no fault, 1 a frame is faulty or a program failed, 2 wrong usage.
"""
import concurrent.futures
import dataclasses
import getopt
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import judge

# Every opcode that urnic sends on RC, UC and UD.
OPCODES = (*range(0x15), 0x16, 0x17, *range(0x20, 0x2c), 0x64, 0x65, 0xc0)
LEAST = {False: "500000", True: "50000"} # frames, --less; fewer show that something was not captured
TIMEOUT = 900  # seconds for one program; generous, for sanitizers on a busy machine
LONG = ("test_verbs_threads", "test_verbs_stress", "test_verbs_control")
FUZZ = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz")

# Runs of about a thousand frames each, so that captures keep up: every operation, all MTUs, both
# address families, sizes around the limits of pad and packet.
PERF = """
send_lat --size 8 --iters 200
write_lat --size 61 --ip 6 --iters 200
read_lat --size 3001 --mtu 1024 --iters 100
atomic_lat --iters 200 --ip 6
write_bw --size 3000 --qps 2 --iters 300
write_bw --size 1 --ip 6 --mtu 256 --iters 500
write_bw --size 262147 --mtu 4096 --iters 5
read_bw --size 5000 --iters 200
read_bw --size 70002 --mtu 2048 --ip 6 --iters 10
send_bw --size 65535 --mtu 512 --qps 3 --srq yes --depth 1 --iters 4
send_bw --size 3 --inline 64 --iters 400
atomic_bw --qps 4 --iters 400
send_bw --size 1025 --link memif --iters 300
"""
BAD_WIRES = ("--loss 5", "--dup 10", "--reorder 20", "--corrupt 5",
             "--loss 3 --dup 3 --reorder 10 --corrupt 2 --delay 20")
CP = ("", "--mtu 256 --chunk 4K", "--mtu 1024 --depth 2", "--mtu 2048 --no-check")


class Failed(Exception):
    pass


@dataclasses.dataclass
class Job:
    """A program to run. {} in its arguments stands for a folder of its own, for captures."""
    args: list
    sent: bool = False # True when captures have both directions
    files: tuple = ()  # files to make in the folder: (name, size)
    lost: int = 0      # frames that the program reports as missing in its capture
    out: str = ""

    def run(self, folder):
        for name, size in self.files:
            with open(os.path.join(folder, name), "wb") as f:
                f.write(os.urandom(size))
        env = dict(os.environ, URNIC_TEST_PCAP=folder, URNIC_TEST_PCAP_ONCE="1", TMPDIR=folder)
        args = [word.replace("{}", folder) for word in self.args]
        done = subprocess.run(args, env=env, cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                              timeout=TIMEOUT)
        self.out = done.stdout
        if done.returncode != 0:
            raise Failed(f"{' '.join(args)} ended with {done.returncode}:\n"
                         f"{(done.stdout + done.stderr)[-4000:]}")

    def check(self, taken):
        """Raise Failed unless the capture is complete. taken: frames that the judge took from the capture."""
        if not taken:
            raise Failed(f"{' '.join(self.args)}: nothing of what it sent was captured")


class Sim(Job):
    def check(self, taken):
        super().check(taken)
        sent = json.loads(self.out)["frames"]
        if taken != sent:
            raise Failed(f"{' '.join(self.args)}: {taken} frames of {sent} were captured")


class Perf(Job):
    def check(self, taken):
        super().check(taken)
        r = json.loads(self.out)
        self.lost, sent = r["capture_lost"], r["counters"]["tx_packets"]
        if self.lost:
            print(f"{' '.join(self.args[1:-2])}: {sent} frames; in both directions its capture lost "
                  f"{self.lost} that crossed a port", flush=True)
        # A frame that a port did not take at once is in the capture once for each attempt.
        if taken + self.lost < sent:
            raise Failed(f"{' '.join(self.args)}: {taken} frames of {sent} were captured")


def perf_jobs(program):
    ways = [line for line in PERF.splitlines() if line]
    ops = itertools.cycle(("write_bw", "read_bw", "send_bw", "atomic_bw"))
    bad = itertools.product(BAD_WIRES, ("selective", "gbn"), ("4", "6"))
    for seed, (wire, recovery, ip) in enumerate(bad):
        for op in itertools.islice(ops, 3): # three of the four in turn
            size = "" if op == "atomic_bw" else "--size 9001 --mtu 1024"
            ways.append(f"{op} {size} {wire} --recovery {recovery} --ip {ip} --seed {seed} "
                        "--depth 4 --iters 40")
    for way in ways:
        yield Perf([program, *way.split(), "--idle", "pause", "--json", "--capture", "{}/a.pcapng"],
                   sent=True)


def sim_jobs(program, seeds):
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    for line in listed.partition("faults:")[0].splitlines()[1:]:
        yield Sim([program, "--scenario", line.split()[0], "--seeds", seeds, "--json",
                   "--capture", "{}/a.pcap"])


def jobs(program, seeds):
    name = os.path.basename(program)
    if name == "urnic-perf":
        yield from perf_jobs(program)
    elif name == "urnic-sim":
        yield from sim_jobs(program, seeds)
    elif name == "urnic-cp":
        # The wire is good: frames that arrived are as the other side sent them.
        for words in CP:
            yield Job([program, *words.split(), "--capture", "{}/a.pcapng", "--to", "{}/to", "{}/one",
                       "{}/none", "{}/byte"], files=(("one", 150_001), ("none", 0), ("byte", 1)))
    elif name.startswith("replay_"):
        target = name.partition("_")[2]
        yield Job([program, os.path.join(FUZZ, "corpus", target), os.path.join(FUZZ, "found", target)])
    else:
        yield Job([program])


def run_all(todo, court):
    """Give the judge the frames of each job. returns: number of frames that captures lost"""
    def run(job):
        with tempfile.TemporaryDirectory(prefix="urnic-sent-", dir="/tmp") as folder:
            job.run(folder)
            captures = sorted(f for f in os.listdir(folder) if ".pcap" in f)
            # Only one thread at a time may use the judge.
            with lock:
                job.check(sum(court.take(os.path.join(folder, f), job.sent) for f in captures))
        return job.lost

    lock = threading.Lock()
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        try:
            return sum(pool.map(run, todo))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def parse(argv):
    options, programs = getopt.gnu_getopt(argv, "h", ["help", "scapy=", "seeds=", "least=", "opcodes=", "less", "all"])
    less = ("--less", "") in options
    values = {"--scapy": "5000" if less else "all", "--seeds": "1..4" if less else "1..36", "--least": LEAST[less],
              **dict(options)}
    if "--all" in values or os.environ.get("URNIC_TEST_ALL"):
        values["--scapy"] = "all"
    if not re.fullmatch(r"[0-9]+|all", values["--scapy"]):
        raise getopt.GetoptError(f"--scapy {values['--scapy']}: a number, or all")
    if not values["--least"].isdecimal():
        raise getopt.GetoptError(f"--least {values['--least']}: a number of frames")
    try:
        values["--opcodes"] = [int(x, 16) for x in values["--opcodes"].split(",")] if "--opcodes" in values else OPCODES
    except ValueError as e:
        raise getopt.GetoptError(f"--opcodes {values['--opcodes']}: hexadecimal numbers, with commas between") from e
    if not programs and "--help" not in values and "-h" not in values:
        raise getopt.GetoptError("no program is named")
    return values, programs


def main():
    try:
        values, programs = parse(sys.argv[1:])
    except getopt.GetoptError as e:
        print(f"judge_tests.py: {e}; see judge_tests.py --help", file=sys.stderr)
        return 2
    if "--help" in values or "-h" in values:
        print(__doc__.strip())
        return 0
    # Tests run in other folders, so the path of their data must be absolute.
    os.environ["URNIC_TEST_DATA"] = os.path.abspath(os.environ.get("URNIC_TEST_DATA", "test/data"))
    todo = [job for p in programs if "--less" not in values or os.path.basename(p) not in LONG
            for job in jobs(os.path.abspath(p), values["--seeds"])]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="urnic-judge-", dir="/tmp") as folder:
        court = judge.Judge(folder)
        try:
            lost = run_all(todo, court)
        except (Failed, subprocess.SubprocessError, OSError) as e:
            print(f"judge_tests: {e}", file=sys.stderr)
            return 1
        print(f"{len(todo)} runs in {time.monotonic() - began:.0f} s; captures lost {lost} frames", flush=True)
        began = time.monotonic()
        scapy = None if values["--scapy"] == "all" else int(values["--scapy"])
        well = court.verdict(scapy, int(values["--least"]), values["--opcodes"])
        print(f"judged in {time.monotonic() - began:.0f} s")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
