# SPDX-License-Identifier: BSD-3-Clause
"""Send signals to programs that were just started: a signal would kill one that does not catch it yet."""

import time

SECONDS = 60


def catches(pid, sig):
    """True when the process runs and catches the signal."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
            caught = next((int(line.split()[1], 16) for line in f if line.startswith("SigCgt:")), 0)
    except OSError:
        return False
    return bool(caught >> (sig - 1) & 1)


def send(p, sig):
    """Send a signal to a subprocess once it catches this signal; a subprocess that ends before gets none."""
    end = time.monotonic() + SECONDS
    while p.poll() is None and not catches(p.pid, sig):
        if time.monotonic() > end:
            raise TimeoutError(f"process {p.pid} does not catch signal {sig}")
        time.sleep(0.01)
    if p.poll() is None:
        p.send_signal(sig)
