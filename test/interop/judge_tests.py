#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Frames that the tests have urnic send, judged.

usage: judge_tests.py FRAMES PROGRAM...

Runs each test program with what it sends captured (its first FRAMES frames),
and each of our own programs that has --capture, then judge.py on all of it.
"""
import os
import subprocess
import sys
import tempfile

JUDGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "judge.py")
# Every opcode that urnic sends on RC and UD.
OPCODES = "0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f,10,11,12,13,14,16,17,64,65,c0"
TIMEOUT = 900  # seconds for one program; generous, for sanitizers on a busy machine


def run(args, env, where):
    done = subprocess.run(args, env=env, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, text=True, timeout=TIMEOUT)
    if done.returncode != 0:
        sys.exit(f"judge_tests: {' '.join(args)} ended with {done.returncode}:\n{done.stdout[-4000:]}")


def capture(program, frames, folder):
    """Have a program send something, into the folder."""
    name = os.path.basename(program)
    env = dict(os.environ, URNIC_TEST_PCAP=folder, URNIC_TEST_PCAP_FRAMES=frames, TMPDIR=folder)
    if name == "urnic-perf":
        for i, what in enumerate((["send_lat", "--size", "8"], ["write_bw", "--size", "3000", "--qps", "2"],
                                  ["read_bw", "--size", "5000"])):
            run([program, *what, "--iters", "200", "--idle", "pause",
                 "--capture", f"{folder}/perf{i}.pcapng"], env, folder)
    elif name == "urnic-cp":
        with open(f"{folder}/file", "wb") as f:
            f.write(os.urandom(300_001))
        run([program, "--capture", f"{folder}/cp.pcapng", "--to", f"{folder}/to", f"{folder}/file"],
            env, folder)
    else:
        run([program], env, folder)


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: judge_tests.py FRAMES PROGRAM...")
    # Data that tests read is named from where this was started.
    os.environ["URNIC_TEST_DATA"] = os.path.abspath(os.environ.get("URNIC_TEST_DATA", "test/data"))
    with tempfile.TemporaryDirectory(prefix="urnic-judge-", dir="/tmp") as folder:
        for program in sys.argv[2:]:
            capture(os.path.abspath(program), sys.argv[1], folder)
        files = sorted(f for f in os.listdir(folder) if ".pcap" in f)
        for program in sys.argv[2:]:
            name = os.path.basename(program)
            if name.startswith("test_") and not any(f.startswith(name + "-") for f in files):
                sys.exit(f"judge_tests: {name} has sent nothing")
        done = subprocess.run([JUDGE, "--at-least", "3000", "--opcodes", OPCODES,
                               *(os.path.join(folder, f) for f in files)])
    sys.exit(done.returncode)


main()
