# SPDX-License-Identifier: BSD-3-Clause
"""The wire of a congested case: a switch of urnic's between a program of urnic's and the guest, which
paces frames and marks those that wait. And the judge of the notifications (CNPs) that urnic sent."""
import json
import os
import shutil
import signal
import subprocess
import tempfile

import frames

# Rates are below those of the ends, so that frames wait: the guest's processor is emulated. 4 KiB is a frame of
# the largest MTU.
TO_URNIC, TO_GUEST, KMIN, KMAX = "20M", "200M", 4096, 8192
PATIENCE = 60 # seconds for the switch to start or end
CNP, CE = 0x81, 3


class WireError(Exception):
    """Raised when the switch does not start, or fails."""


class Wire:
    """The ports of the switch are `near`, urnic's, and `far`, the guest's."""

    def __init__(self, switch, interface):
        self.folder = tempfile.mkdtemp(prefix="urnic-")
        path = os.path.join(self.folder, "memif")
        self.device = f"net_memif0,role=client,socket={path}" # urnic's program opens it
        self.command = [switch, "--port", f"near=memif:{path}", "--port", f"far=af_packet:{interface}",
                        "--kmin", str(KMIN), "--kmax", str(KMAX), "--json",
                        "--impair", f"near.out:rate={TO_URNIC}", "--impair", f"far.out:rate={TO_GUEST}"]
        self.process = None
        self.ports = {} # after stop(): counters by the port's name

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        said = self.process.stderr.readline()
        if "ports are up" not in said:
            self.process.kill()
            raise WireError(f"the switch does not start: {said}{self.process.communicate()[1]}")

    def stop(self):
        """End the switch. returns: its counters, by the port's name"""
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            try:
                out, said = self.process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                out, said = self.process.communicate()
            code, self.process = self.process.returncode, None
            if code != 128 + signal.SIGTERM:
                raise WireError(f"the switch ended with {code}: {said}")
            self.ports = {p["name"]: p for p in json.loads(out)["switches"][0]["ports"]}
        return self.ports

    def marks(self, port, counter):
        return self.ports[port].get("marks", {}).get(counter, 0)

    def remove(self):
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def ecn(frame):
    """The ECN field of the IP header (RFC 3168)."""
    return frame.data[15] >> 4 & 3 if frame.v6 else frame.data[15] & 3


def cnp_of_scapy(frame):
    """The BTH and what follows, without the ICRC, of the CNP that scapy makes for the frame's queue pair."""
    from scapy.contrib.roce import cnp
    dqpn = int.from_bytes(frame.data[frame.bth + 5:frame.bth + 8], "big")
    made = cnp(dqpn)
    made.icrc = 0 # the judge of all frames computes it
    return bytes(made)[:-4]


def look(path):
    """Read a capture of urnic's port. returns: (CNPs that urnic sent, CNPs and marked frames that came,
    faults of CNPs that urnic sent)"""
    sent = came = marked = 0
    faults = []
    for number, data, way in frames.read(path):
        frame = frames.Frame(data)
        if not frame.roce:
            continue
        if way == frames.IN:
            came += frame.opcode() == CNP
            marked += ecn(frame) == CE
        elif frame.opcode() == CNP:
            sent += 1
            fault = fault_of(frame)
            if fault:
                faults.append(f"frame {number}: {fault}")
    return sent, came, marked, faults


def fault_of(frame):
    """The difference between a CNP and the standard's (IBTA A17.9.2), or None."""
    made, ours = cnp_of_scapy(frame), frame.data[frame.bth:frame.end - 4]
    if ours != made:
        return f"a CNP of {ours.hex()}, and scapy makes {made.hex()}"
    if ecn(frame) == CE:
        return "a CNP was sent with a mark"
    return None
