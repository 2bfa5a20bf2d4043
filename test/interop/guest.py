# SPDX-License-Identifier: BSD-3-Clause
"""The guest of guest.sh, from Python: scripts in it, and its counters."""
import base64
import os
import socket
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ADDRESS = {4: "10.77.0.11", 6: "fd77::b"}
HOST = {4: "10.77.0.1", 6: "fd77::1"}
GID = {4: 1, 6: 2}
AGENT = 2323
# A command that prints the counters of soft-RoCE, for parse_counters().
COUNT = "grep . /sys/class/infiniband/rxe0/ports/1/hw_counters/*"


class GuestError(Exception):
    pass


class Job:
    """A script that runs in the guest."""

    def __init__(self, script):
        self.text = b""
        self.socket = socket.create_connection((ADDRESS[4], AGENT), timeout=30)
        self.socket.sendall(base64.b64encode(script.encode()) + b"\n")

    def wait(self, timeout):
        """Returns (exit code, output); exit code None when it has not ended in time."""
        limit = time.monotonic() + timeout
        try:
            while True:
                self.socket.settimeout(max(0.01, limit - time.monotonic()))
                more = self.socket.recv(65536)
                if not more:
                    break
                self.text += more
        except TimeoutError:
            return None, self.text.decode(errors="replace")
        finally:
            self.socket.close()
        out, _, code = self.text.decode(errors="replace").rpartition("\nguest: exit ")
        if not code.strip().isdigit():
            raise GuestError(f"the guest's agent gave up; it said: {self.text!r}")
        return int(code), out


def parse_counters(text):
    return {os.path.basename(path): int(value) for path, value in
            (line.split(":") for line in text.split())}


class Guest:
    """Boots at once; ends with its process namespace at the latest."""

    def __init__(self, state):
        self.env = dict(os.environ, GUEST_STATE=state)
        self.sh("net")
        self.sh("start")

    def sh(self, *words):
        done = subprocess.run([os.path.join(HERE, "guest.sh"), *words], env=self.env,
                              capture_output=True, text=True, check=False, timeout=900)
        if done.returncode != 0:
            raise GuestError(f"guest.sh {words[0]} failed: {done.stderr}{done.stdout}")
        return done.stdout

    def run(self, script, timeout=60):
        """Output of a script, which must succeed."""
        code, out = Job(script).wait(timeout)
        if code != 0:
            raise GuestError(f"in the guest, `{script}` ended with {code}: {out}")
        return out

    def counters(self):
        return parse_counters(self.run(COUNT))

    def stop(self):
        self.sh("stop")
