# SPDX-License-Identifier: BSD-3-Clause
"""Child processes: pinned to a core, bounded in time, and gone afterwards."""
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PR_SET_PDEATHSIG = 1
TCP_LISTEN = "0A"


class Missing(Exception):
    """Raised with the reason when this machine cannot do a measurement, now or later."""


class Failed(Exception):
    """Raised with the reason when one measurement failed."""


class Runner:
    """Starts processes; close() ends those that are left and removes what they left."""

    def __init__(self):
        cores = sorted(os.sched_getaffinity(0))
        self.cores = (cores[0], cores[1 if len(cores) > 1 else 0])
        self.dir = tempfile.mkdtemp(prefix="urnic-bench.")
        shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        # Shared memory of programs that take a path is removed with this folder.
        self.shm = tempfile.mkdtemp(prefix="urnic-bench.", dir=shm)
        self.said = sys.stderr # stream for progress
        self.running = []
        self.libc = ctypes.CDLL(None)

    def close(self):
        for process in list(self.running):
            self.end(process)
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.rmtree(self.shm, ignore_errors=True)

    def env(self, extra):
        return dict(os.environ, LC_ALL="C.UTF-8", TMPDIR=self.dir, RUNTIME_DIRECTORY=self.dir,
                    XDG_RUNTIME_DIR=self.dir, UCX_POSIX_DIR=self.shm, UCX_WARN_UNUSED_ENV_VARS="n",
                    **extra)

    def start(self, command, core=None, env=None, said=subprocess.PIPE, name=None, alone=True):
        """Start a program on a core (None: any of ours). Missing when there is none.
        said: where its standard error goes. name: for messages, if the command's first word is not. alone: the
        program has a session of its own, else only a process group"""
        if shutil.which(command[0]) is None:
            raise Missing(f"there is no {os.path.basename(command[0])}; "
                          "scripts/setup.sh --bench installs it")

        def before():
            self.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if not alone:
                os.setpgid(0, 0)
            if core is not None:
                os.sched_setaffinity(0, {core})

        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=said, text=True, errors="replace",
                                   env=self.env(env or {}), start_new_session=alone,
                                   preexec_fn=before)
        process.name = name or os.path.basename(command[0])
        self.running.append(process)
        return process

    def end(self, process, how=signal.SIGTERM):
        """Ask a process to end, then kill it; returns its output. Removes its shared memory."""
        for sign in (how, signal.SIGKILL):
            if process.poll() is None:
                try:
                    os.killpg(process.pid, sign)
                except ProcessLookupError:
                    pass
            try:
                out, err = process.communicate(timeout=3)
                break
            except subprocess.TimeoutExpired:
                out = err = ""
        return self.ended(process, out, err)

    def ended(self, process, out, err):
        if process in self.running:
            self.running.remove(process)
        # libfabric's shm provider names its files PID:..., and leaves them when killed.
        try:
            for name in os.listdir("/dev/shm"):
                if name.startswith(f"{process.pid}:"):
                    os.unlink(os.path.join("/dev/shm", name))
        except OSError:
            pass
        return out, err

    def finish(self, process, timeout):
        """Wait for a process. Returns its standard output; raises Failed when the process fails."""
        name = process.name
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            out, err = self.end(process, signal.SIGINT)
            raise Failed(f"{name} was not done after {timeout:.0f} s{last(err or out)}") from None
        self.ended(process, out, err)
        if process.returncode != 0:
            raise Failed(f"{name} ended with {process.returncode}{last(err or out)}")
        return out

    def run(self, command, timeout, core=None, env=None, name=None):
        return self.finish(self.start(command, core, env, name=name), timeout)

    def pair(self, server, client, port, timeout, env=None):
        """Run a server, then a client once the server listens on `port`. Returns the client's output."""
        process = self.start(server, self.cores[1], env)
        try:
            self.wait_listening(process, port)
            return self.run(client, timeout, self.cores[0], env)
        finally:
            self.end(process)

    def wait_listening(self, process, port, seconds=30):
        end = time.monotonic() + seconds
        while not listens(port):
            if process.poll() is not None:
                out, err = self.end(process)
                raise Failed(f"{process.name} as a server ended with {process.returncode}{last(err or out)}")
            if time.monotonic() > end:
                raise Failed(f"{process.name} as a server did not listen "
                             f"within {seconds} s")
            time.sleep(0.01)


def last(text):
    """The last line that is not empty, as the end of a sentence."""
    lines = [l.strip() for l in (text or "").splitlines() if l.strip()]
    return f": {lines[-1][:200]}" if lines else ""


def listens(port, pid="self"):
    """True when a socket listens on this TCP port, in the network namespace of that process. Read from
    /proc, because a connection would disturb the server."""
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{name}", encoding="ascii") as f:
                for line in f.readlines()[1:]:
                    words = line.split()
                    if words[3] == TCP_LISTEN and words[1].endswith(f":{port:04X}"):
                        return True
        except OSError:
            pass
    return False


def free_port():
    """A TCP port that no program uses now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
