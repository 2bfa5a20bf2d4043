# SPDX-License-Identifier: BSD-3-Clause
"""Send signals to programs that were just started: a signal would kill one that does not catch it yet."""

import os
import time

STARTED = 1  # seconds of processors, all threads together: far more than a program that polls needs for its start
SECONDS = 300  # a loaded machine starts no program for a while


def catches(pid, sig):
    """True when the process runs and catches the signal."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
            caught = next((int(line.split()[1], 16) for line in f if line.startswith("SigCgt:")), 0)
    except OSError:
        return False
    return bool(caught >> (sig - 1) & 1)


def processor(pid):
    """returns: the seconds of processors that a process has used; 0 when the process has ended"""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measures(p):
    """Wait until a subprocess that polls is in the midst of its work, or has ended."""
    end = time.monotonic() + SECONDS
    while p.poll() is None and processor(p.pid) < STARTED:
        if time.monotonic() > end:
            raise TimeoutError(f"process {p.pid} has used {processor(p.pid)} s of processors only")
        time.sleep(0.01)


def send(p, sig):
    """Send a signal to a subprocess once it catches this signal; a subprocess that ends before gets none."""
    end = time.monotonic() + SECONDS
    while p.poll() is None and not catches(p.pid, sig):
        if time.monotonic() > end:
            raise TimeoutError(f"process {p.pid} does not catch signal {sig}")
        time.sleep(0.01)
    if p.poll() is None:
        p.send_signal(sig)
