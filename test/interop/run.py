# SPDX-License-Identifier: BSD-3-Clause
"""One case: a program of urnic's here, one over the kernel's RDMA in the guest."""
import os
import subprocess

import guest

# Seconds for one case. Most take a few, but the requester of rxe 6.1 may stall until its timer of 2 s
# after each 65 frames that it waited to send, and 1 MiB in packets of 256 bytes has 4,096 frames.
PATIENCE = 240
DEVICES = {"tap": "net_tap0,iface=urnp0", "af_packet": "net_af_packet0,iface=urnveth0"}
IP = {4: "10.77.0.99", 6: "fd77::99"}
# Separates the output of the guest's program from the counters.
MARK = "== counters"
# Counters of the guest that must not move over any wire: they count failures that
# only a protocol error of one of the two stacks can cause.
NEVER = ("send_err", "link_downed", "retry_rnr_exceeded_err", "retry_exceeded_err")
RNR = ("rcvd_rnr_err", "send_rnr_err")
# Counters of the guest that must not move over a good wire. (completer_retry_err may: an acknowledgement
# does not stop the kernel's timer, which then retransmits packets in flight.)
CLEAN = ("out_of_seq_request", "rcvd_seq_err")


class Wrong(Exception):
    pass


class Run:
    # Drop counters of urnic that may move on a good wire: the bridge floods frames of other hosts.
    DROPS = {"drop_not_roce", "drop_address", "drop_other"}

    def __init__(self, the_guest, logs, case):
        self.guest = the_guest
        self.case = case
        self.capture = os.path.join(logs, case.name + ".pcapng")
        self.command = [] # urnic's
        self.script = ""  # the guest's
        self.ours_first = False # the guest's program starts once urnic's has printed a line
        self.urnic_out = self.urnic_err = self.guest_out = ""
        self.before = self.after = {}
        self.counters = {} # urnic's
        self.capture_lost = 0 # frames that are missing in the capture

    def go(self, before):
        """Run the case. before: the guest's counters; they are read once a case, because reading takes time."""
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
                        # The guest's program waits for a peer that has ended.
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

    def never(self):
        """Counters of the guest that must not move."""
        return NEVER

    def judge_counters(self):
        """Check the counters that every case has in common; raises Wrong."""
        self.forbid(("bad_wqe", "nak_invalid_request", "nak_operational", "cq_overrun"), self.never())
        if not self.case.fault:
            self.forbid([n for n in self.counters if n.startswith("drop_") and n not in self.DROPS])

    def ask(self, script):
        try:
            return self.guest.run(script)
        except (guest.GuestError, OSError):
            return ""  # the guest does not answer any more

    def tell(self):
        """Print all that is known of a failed case."""
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
