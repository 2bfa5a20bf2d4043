# SPDX-License-Identifier: BSD-3-Clause
"""One case: a program of urnic's here, one over the kernel's RDMA in the guest."""
import os
import subprocess

import guest

# Seconds for one case. It takes some, but rxe 6.1 may forget to go on when its requester waited for frames
# to leave, 65 each time, and then waits for its timer, 2 s: 1 MiB in packets of 256 bytes has 4,096.
PATIENCE = 240
DEVICES = {"tap": "net_tap0,iface=urnp0", "af_packet": "net_af_packet0,iface=urnveth0"}
IP = {4: "10.77.0.99", 6: "fd77::99"}
# Between what the guest's program says and the counters.
MARK = "== counters"
# Counters of the guest that never move, whatever the wire does: they mean that
# somebody understood the other wrong.
NEVER = ("send_err", "link_downed", "retry_rnr_exceeded_err", "retry_exceeded_err")
RNR = ("rcvd_rnr_err", "send_rnr_err")
# Nor these, when the wire does nothing. (completer_retry_err may: the kernel's timer
# is not stopped by an acknowledgement and then repeats what was on its way.)
CLEAN = ("out_of_seq_request", "rcvd_seq_err")


class Wrong(Exception):
    pass


class Run:
    # Drops of urnic's on a good wire: what others say on the bridge.
    DROPS = {"drop_not_roce", "drop_address", "drop_other"}

    def __init__(self, the_guest, logs, case):
        self.guest = the_guest
        self.case = case
        self.capture = os.path.join(logs, case.name + ".pcapng")
        self.command = [] # urnic's
        self.script = ""  # the guest's
        self.ours_first = False # the guest's starts once ours said a line
        self.urnic_out = self.urnic_err = self.guest_out = ""
        self.before = self.after = {}
        self.counters = {} # urnic's
        self.capture_lost = 0 # frames that the capture does not have

    def go(self, before):
        """before: the guest's counters. Asking it costs time, so this does so but once."""
        self.before = before
        job = code = None
        with subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as urnic:
            try:
                if self.ours_first:
                    self.urnic_err = urnic.stderr.readline()
                job = guest.Job(f"timeout {PATIENCE} {self.script}; code=$?; echo {MARK}; "
                                f"{guest.COUNT}; exit $code")
                self.urnic_out, rest = urnic.communicate(timeout=PATIENCE)
                self.urnic_err += rest
            except subprocess.TimeoutExpired as e:
                raise Wrong(f"urnic's program has not ended in {PATIENCE} s") from e
            finally:
                urnic.kill()
                if job is not None:
                    if urnic.poll() != 0:
                        # It waits for a peer that is gone.
                        self.guest.run("killall ibv_rc_pingpong rw ucmatose 2>/dev/null; true")
                    code, self.guest_out = job.wait(PATIENCE)
        self.guest_out, _, counted = self.guest_out.partition(MARK)
        if urnic.returncode != 0:
            raise Wrong(f"urnic's program ended with {urnic.returncode}")
        if code != 0:
            raise Wrong(f"the guest's program ended with {code}")
        self.after = guest.parse_counters(counted)
        self.judge()
        self.judge_counters()

    def judge(self):
        """Raises Wrong; fills in self.counters."""
        raise NotImplementedError

    def delta(self, name):
        return self.after[name] - self.before[name]

    def forbid(self, ours=(), theirs=()):
        for name in ours:
            if self.counters.get(name):
                raise Wrong(f"urnic counts {self.counters[name]} {name}")
        for name in theirs:
            if self.delta(name):
                raise Wrong(f"the guest counts {self.delta(name)} {name}")

    def judge_counters(self):
        """What holds for every case."""
        self.forbid(("bad_wqe", "nak_invalid_request", "nak_operational", "cq_overrun"), NEVER)
        if not self.case.fault:
            self.forbid([n for n in self.counters if n.startswith("drop_") and n not in self.DROPS])

    def ask(self, script):
        try:
            return self.guest.run(script)
        except (guest.GuestError, OSError):
            return ""  # it does not answer any more

    def tell(self):
        """All that is known, for whoever reads the log."""
        print("  urnic:", " ".join(self.command))
        print("  guest:", self.script)
        for what, text in (("urnic's program", self.urnic_out + self.urnic_err),
                           ("the guest's program", self.guest_out),
                           ("the guest's kernel", self.ask("dmesg | tail -n 20"))):
            print(f"  -- {what} said:\n    " + text.strip().replace("\n", "\n    "))
        now = guest.parse_counters(self.ask(guest.COUNT))
        print("  -- the guest's counters, since the case began:")
        for name, value in sorted(now.items()):
            if value != self.before.get(name, 0):
                print(f"    {name} {value - self.before.get(name, 0)}")
        print(f"  -- capture: {self.capture}", flush=True)
