# SPDX-License-Identifier: BSD-3-Clause
"""Programs that hang in a test: say where each of them is, and kill them with all that they started."""

import faulthandler
import os
import shutil
import signal
import subprocess
import sys
import threading

PATIENCE = 200 # seconds of one test case after which the processes are told; a debugger stops them for a moment
DEBUGGER = 20  # seconds for the stacks of one process


def parents():
    """returns: the parent of each process of the machine"""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
                found[int(name)] = int(f.read().rpartition(")")[2].split()[1])
        except OSError:
            pass # has ended
    return found


def family(pid):
    """returns: a process and all that descend from it, parents first"""
    known, members = parents(), [pid]
    for member in members:
        members += [child for child, parent in known.items() if parent == member]
    return members


def proc(path):
    try:
        with open(f"/proc/{path}", encoding="utf-8", errors="replace") as f:
            return f.read().replace("\0", " ").strip()
    except OSError as e:
        return f"({e.strerror})"


def stacks(pid):
    """returns: the stacks of all threads by gdb, or what the kernel says where there is no gdb"""
    if shutil.which("gdb") is None:
        return proc(f"{pid}/stack")
    try:
        done = subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "thread apply all backtrace 20"], check=False,
                              capture_output=True, text=True, timeout=DEBUGGER, stdin=subprocess.DEVNULL, errors="replace")
        return "\n".join(line for line in done.stdout.splitlines() if line.startswith(("#", "Thread")))
    except subprocess.TimeoutExpired:
        return "gdb hangs, too"


def told(members):
    """returns: for each process its command, and where each of its threads is"""
    text = []
    for pid in members:
        text.append(f"-- process {pid}, child of {parents().get(pid)}: {proc(f'{pid}/cmdline')}")
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue # has ended
        for thread in threads:
            state = proc(f"{pid}/task/{thread}/stat").rpartition(")")[2].split()[:1]
            text.append(f"   thread {thread} {proc(f'{pid}/task/{thread}/comm')}: state {''.join(state)}, "
                        f"in {proc(f'{pid}/task/{thread}/wchan')}, system call {proc(f'{pid}/task/{thread}/syscall')}")
        if pid != os.getpid():
            text.append(stacks(pid))
    return "\n".join(text)


def end(p):
    """Kill a subprocess with all that descends from it. returns: its output"""
    for pid in reversed(family(p.pid)) if p.poll() is None else ():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    try:
        return p.communicate(timeout=10)[0]
    except subprocess.TimeoutExpired:
        return "(another process has its output)"


class Watch:
    """Tells on the standard error what all processes of the test do when stop() was not called for long."""

    def __init__(self, name, seconds=PATIENCE):
        self.name, self.seconds = name, seconds
        self.timer = threading.Timer(seconds, self.tell)
        self.timer.daemon = True
        self.timer.start()

    def tell(self):
        print(f"{self.name} takes more than {self.seconds} s:\n{told(family(os.getpid()))}", file=sys.stderr, flush=True)
        faulthandler.dump_traceback(all_threads=True)

    def stop(self):
        self.timer.cancel()
