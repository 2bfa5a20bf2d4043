#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic against the kernel's soft-RoCE, in a guest, over tap and af_packet, IPv4
and IPv6, with all MTUs and the sizes at which the number of packets or the pad changes:

  pingpong  urnic-pingpong and the guest's ibv_rc_pingpong, each in both roles
  rw        WRITE, READ, SEND and atomics, each side as the requester (rw.c)
  cm        connections by RDMA-CM, with the guest's ucmatose, each in both roles (cm.c)
  many      READs and WRITEs of 60,000 bytes, 16 outstanding, to a slow guest (many.c)
  congested rw over a switch of urnic's that paces both directions and marks frames that wait

then all once more over a wire that drops, duplicates, reorders and corrupts in both directions.

usage: interop.py URNIC_PINGPONG RW_URNIC RW_GUEST CM_URNIC LOGS [--keep] [--one-in N] [--many N]
                  [--many-timeout CODE] [PART]

All frames that urnic sent, captured before the wire, are then judged one by one
(judge.py). scapy judges 5,000 frames, and all with URNIC_TEST_ALL in the environment.

LOGS is a folder for the guest's console and a capture of each case that failed
(of every case with --keep). PART picks the cases whose names contain it. many_urnic and
many_guest lie beside RW_URNIC, and urnic-switch in the folder beside URNIC_PINGPONG's.
`--many 20 --many-timeout 14 many`, on an idle machine, measures the figure of doc/inside/recovery.md for a slow peer.

The test runs in namespaces of its own: qemu, the guest and all interfaces are
removed when the test ends, however it ends.
"""
import argparse
import dataclasses
import itertools
import json
import os
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import guest
import judge
import marks
from run import CLEAN, DEVICES, IP, NEVER, RNR, Run, Wrong

SKIPPED = 77
MOST_FAILURES = 5

MTUS = {"tap": (256, 512, 1024), "af_packet": (256, 512, 1024, 2048, 4096)}
# 4 bytes pad, a packet of each MTU, and their neighbours; then many packets.
SIZES = (1, 2, 3, 4, 5, 255, 256, 257, 511, 513, 1023, 1024, 1025, 2047, 2049, 4095, 4096, 4097,
         8191, 16385, 32768, 65533, 65534, 65535, 1 << 20)
FAULTS = {
    "": "",
    "loss": "delay 1ms loss 5%",
    "dup": "delay 1ms duplicate 10%",
    "reorder": "delay 2ms reorder 75% 25%",
    "corrupt": "delay 1ms corrupt 3%",
    "all": "delay 2ms loss 4% duplicate 4% reorder 80% 25% corrupt 1%",
}
# Code of the acknowledgement timeout (4.096 us * 2^code), by whether there is a fault. Long without one: a busy
# machine may not run the guest for seconds, and eight timeouts must cover that. Shorter with a fault: each loss of a
# last packet costs one timeout.
TIMEOUT = {False: "19", True: "17"}
# Counters of urnic and of the guest that a fault must move in all its cases together: otherwise
# the wire did no harm and the test shows nothing.
EFFECTS = {
    "loss": (("retransmits",), ("out_of_seq_request",)),
    "dup": (("duplicates",), ("duplicate_request",)),
    "reorder": (("out_of_order",), ("out_of_seq_request",)),
    "corrupt": (("drop_icrc",), ()),
    "all": (("retransmits", "duplicates", "out_of_order"),
            ("out_of_seq_request", "duplicate_request")),
}

SCAPY = 5000 # frames for scapy besides the first of each kind; judge_frames gives scapy those of every test
LOSSY = 4 # cases on a good wire in which packets may have been lost


@dataclasses.dataclass(frozen=True)
class Case:
    kind: type
    device: str
    ip: int
    role: str # urnic's
    mtu: int
    fault: str = ""
    size: int = 0
    iters: int = 0
    ecn: int = 0 # the ECN field of what the guest sends

    @property
    def name(self):
        return "-".join([self.kind.NAME, self.device, f"ipv{self.ip}", self.role,
                         f"mtu{self.mtu}"] + ([f"{self.size}B"] if self.size else []) +
                        ([self.fault] if self.fault else []))


class Pingpong(Run):
    NAME = "pingpong"
    lossy = [] # names of cases on a good wire in which packets were lost
    ROLES = ("client", "server")

    def __init__(self, the_guest, options, case):
        super().__init__(the_guest, options.logs, case)
        self.ours_first = case.role == "server"
        here = ["--listen", "18515"] if self.ours_first else ["--peer", guest.ADDRESS[4]]
        there = f" {guest.HOST[4]}" if self.ours_first else ""
        self.command = [options.pingpong, *here, "--device", DEVICES[case.device],
                        "--ip", IP[case.ip], "--size", str(case.size), "--mtu", str(case.mtu),
                        "--iters", str(case.iters), "--wait", "200", "--json",
                        "--timeout", TIMEOUT[bool(case.fault)],
                        "--linger", "500ms" if case.fault else "20ms", "--capture", self.capture]
        self.script = (f"ibv_rc_pingpong -d rxe0 -g {guest.GID[case.ip]} -s {case.size} "
                       f"-m {case.mtu} -n {case.iters}{there}")

    def judge(self):
        case, r = self.case, json.loads(self.urnic_out)
        total = case.size * case.iters
        self.counters, self.capture_lost = r["counters"], r["capture_lost"]
        if f"{case.iters} iters in" not in self.guest_out:
            raise Wrong("ibv_rc_pingpong did not do all it was to")
        if r["checked_bytes"] != total or r["echoed"]:
            raise Wrong(f"{r['checked_bytes']} bytes were compared, not {total}")
        self.forbid(("tx_rnr_naks", "rx_rnr_naks", "nak_access"), RNR)
        if case.fault:
            return
        if r["last_unacknowledged"]:
            raise Wrong("the last message was not acknowledged")
        if not self.lost_by_itself():
            self.forbid(("tx_naks", "rx_naks", "out_of_order"), CLEAN)
        if self.delta("duplicate_request") > self.counters.get("retransmits", 0):
            raise Wrong("the guest got requests again that urnic did not repeat")


    def lost_by_itself(self):
        """True when a good wire lost packets all the same, as queues do on a busy machine.

        Then the receiver counts packets out of order, and NAKs come from that receiver only. At most LOSSY cases may.
        """
        ours, theirs = self.counters.get("out_of_order", 0), self.delta("out_of_seq_request")
        if not (ours or theirs) or len(Pingpong.lossy) >= LOSSY:
            return False
        if (self.counters.get("tx_naks") and not ours) or (self.counters.get("rx_naks") and not theirs):
            return False
        Pingpong.lossy.append(self.case.name)
        print(f"{self.case.name}: the wire lost something", flush=True)
        return True


class Rw(Run):
    NAME = "rw"
    ROLES = ("active", "passive")
    # Also drops of packets behind a message without a receive, of packets to a QP that a NAK has ended,
    # and of second responses to requests that were retransmitted because the guest is slow.
    DROPS = Run.DROPS | {"drop_ooo", "drop_no_qp", "drop_qp_state", "drop_response", "drop_psn"}

    def __init__(self, the_guest, options, case):
        super().__init__(the_guest, options.logs, case)
        there = "passive" if case.role == "active" else "active"
        same = [str(case.mtu), TIMEOUT[bool(case.fault)], self.every()]
        self.command = [options.rw_urnic, case.role, guest.ADDRESS[4], "18516",
                        "2" if case.ip == 6 else "1", *same, "0", self.device(), IP[case.ip],
                        self.capture]
        self.script = " ".join(["/tmp/rw", there, guest.HOST[4], "18516",
                                str(guest.GID[case.ip]), *same, str(case.ecn)])

    def never(self):
        """A bad wire may lose the NAK of the last step, and the guest's requester then gives up, once (rw.c)."""
        gave_up = self.case.fault and self.case.role == "passive" and self.delta("retry_exceeded_err") == 1
        return [n for n in NEVER if n != "retry_exceeded_err" or not gave_up]

    def every(self):
        """One size in so many is used."""
        return "4" if self.case.fault else "1"

    def device(self):
        return DEVICES[self.case.device]

    def judge(self):
        words = [line.split() for line in self.urnic_out.splitlines()]
        self.counters = {w[1]: int(w[2]) for w in words if w[0] == "counter"}
        self.capture_lost = sum(int(w[1]) for w in words if w[0] == "capture_lost")
        if "all steps done" not in self.urnic_out or "all steps done" not in self.guest_out:
            raise Wrong("not all steps were done")
        # The steps have receives that are posted late, and one wrong key.
        ours, theirs = ("rx_rnr_naks", "send_rnr_err") if self.case.role == "active" else \
            ("tx_rnr_naks", "rcvd_rnr_err")
        if not self.counters.get(ours) or not self.delta(theirs):
            raise Wrong("nobody was ever not ready to receive")
        if self.counters.get("nak_access", 0) != (self.case.role == "passive"):
            raise Wrong("the wrong key was not refused once")


class Congested(Rw):
    """The guest sets ECN 0 (its packets must not be marked), 2 (ECT: the switch marks them) or 3 (all are
    marked). urnic sends ECT. The guest sends no CNP, and drops those that come."""
    NAME = "congested"

    def __init__(self, the_guest, options, case):
        self.wire = marks.Wire(os.path.join(os.path.dirname(options.pingpong), "..", "urnic-switch",
                                            "urnic-switch"), "urnveth0")
        super().__init__(the_guest, options, case)

    def every(self):
        return "8" # 0, 257, 65535 bytes: rxe 6.1 may stall for 2 s after each 65 frames that waited

    def device(self):
        return self.wire.device

    def go(self, before):
        try:
            self.wire.start()
            super().go(before)
        except marks.WireError as e:
            raise Wrong(str(e)) from e
        finally:
            self.wire.remove()

    def judge(self):
        super().judge()
        self.wire.stop()
        sent, came, marked, faults = marks.look(self.capture)
        ours, theirs = self.wire.marks("far", "ecn_marked"), self.wire.marks("near", "ecn_marked")
        unable = self.wire.marks("near", "ecn_unable")
        print(f"{self.case.name}: the switch marked {ours} frames of urnic's and {theirs} of the guest's, and would "
              f"have marked {unable} more; urnic got {self.counters.get('rx_marked', 0)} marked packets and sent "
              f"{sent} CNPs; the guest sent {came}", flush=True)
        if faults:
            raise Wrong(f"{len(faults)} CNPs are not as the standard has them: {faults[0]}")
        if sent + self.capture_lost < self.counters.get("tx_cnp", 0):
            raise Wrong(f"{self.counters['tx_cnp']} CNPs are counted as sent, and {sent} were captured")
        if self.case.role == "active" and not ours:
            raise Wrong("no frame of urnic's was marked")
        self.judge_theirs(theirs, unable, marked, sent)

    def judge_theirs(self, theirs, unable, marked, sent):
        """Judge the guest's frames: theirs were marked by the switch, unable were not because they had no ECT,
        marked came with a mark; sent: CNPs."""
        if self.case.ecn == 0:
            self.forbid(("rx_marked", "tx_cnp"))
            # An active urnic gets READ responses only, of which a slow guest may send few at a time.
            if theirs or marked or (self.case.role == "passive" and not unable):
                raise Wrong(f"{theirs} frames without ECT were marked, {marked} came so, and {unable} waited")
        elif not self.counters.get("tx_cnp") or not self.counters.get("rx_marked"):
            raise Wrong(f"{marked} frames came with a mark, and urnic sent {sent} CNPs")
        elif self.counters["rx_marked"] > marked + self.capture_lost or (self.case.ecn == 2 and theirs < marked):
            raise Wrong(f"the switch marked {theirs} frames of the guest's, {marked} came with a mark, and urnic counts "
                        f"{self.counters['rx_marked']}")


class Cm(Run):
    NAME = "cm"
    ROLES = ("active", "passive")
    # Also drops of packets on a connection that the guest has ended already.
    DROPS = Run.DROPS | {"drop_qp_state", "drop_no_qp"}
    CONNECTIONS, MESSAGES = 8, 10

    def __init__(self, the_guest, options, case):
        super().__init__(the_guest, options.logs, case)
        self.ours_first = case.role == "passive"
        numbers = [str(self.CONNECTIONS), str(self.MESSAGES), str(case.size)]
        self.command = [options.cm_urnic, case.role, guest.ADDRESS[case.ip], *numbers, str(case.ip),
                        DEVICES[case.device], IP[case.ip], self.capture]
        # The kernel's connection management gives up when a neighbour's MAC address changes, and
        # urnic's port has another one each time.
        # The kernel asks for the path MTU of its own interface, whatever the wire carries, and urnic rejects
        # a path MTU above that of its port: a tap's is 1024.
        mtu = 1500 if case.device == "tap" else 4200
        self.script = ("sh -c 'for f in -4 -6; do ip $f neigh flush dev eth0; done >/dev/null 2>&1; "
                       f"ip link set eth0 mtu {mtu}; "
                       f"ucmatose -c {self.CONNECTIONS} -C {self.MESSAGES} -S {case.size} "
                       f"-b {guest.ADDRESS[case.ip]}" + (f" -s {IP[case.ip]}" if self.ours_first else "") +
                       "; s=$?; ip link set eth0 mtu 4200; exit $s'")

    def judge(self):
        words = [line.split() for line in self.urnic_out.splitlines()]
        self.counters = {w[1]: int(w[2]) for w in words if w[0] == "counter"}
        if "all steps done" not in self.urnic_out or "return status 0" not in self.guest_out:
            raise Wrong("not all steps were done")


class Many(Run):
    NAME = "many"
    DROPS = Run.DROPS | {"drop_response", "drop_psn"}
    SIZE, COUNT = 60000, 200
    # SHARE: part of the request packets that may be retransmitted. STALL: packets that a run may retransmit besides
    # when the guest is not run for a while: a timeout repeats one READ, or 16 packets of WRITEs.
    SHARE, STALL = 0.01, {"read": 4, "write": 64}
    sums = {} # over all runs, by operation: request packets, retransmitted ones

    def __init__(self, the_guest, options, case):
        super().__init__(the_guest, options.logs, case)
        folder = os.path.dirname(options.rw_urnic)
        if "many" not in the_guest.programs:
            the_guest.put(os.path.join(folder, "many_guest"), "many")
        op = case.role.split(".")[0]
        # Four retries suffice for a guest that is run all the time; others may need more.
        retries = "4" if options.many_timeout <= 14 else "7"
        same = [str(case.mtu), str(options.many_timeout), retries, op, str(case.size),
                str(self.COUNT)]
        self.command = [os.path.join(folder, "many_urnic"), "active", guest.ADDRESS[4], "18517",
                        "2" if case.ip == 6 else "1", *same, DEVICES[case.device], IP[case.ip],
                        self.capture]
        self.script = " ".join(["/tmp/many", "passive", guest.HOST[4], "18517",
                                str(guest.GID[case.ip]), *same])

    def judge(self):
        words = [line.split() for line in self.urnic_out.splitlines()]
        self.counters = {w[1]: int(w[2]) for w in words if w[0] == "counter"}
        self.capture_lost = sum(int(w[1]) for w in words if w[0] == "capture_lost")
        if "all steps done" not in self.urnic_out or "all steps done" not in self.guest_out:
            raise Wrong("not all steps were done")
        sent = self.counters["tx_requests"]
        again = self.counters.get("retransmits", 0) + self.counters.get("refetches", 0)
        op = self.case.role.split(".")[0]
        Many.sums[op] = [a + b for a, b in zip(Many.sums.get(op, (0, 0)), (sent, again))]
        print(f"{self.case.name}: {again} of {sent} request packets are repeats", flush=True)
        if again > sent * self.SHARE + self.STALL[op]:
            raise Wrong(f"{again} of {sent} request packets are repeats")


def many_cases(fault, runs):
    for n in range(0 if fault else runs):
        for op in ("read", "write"):
            yield Case(Many, "af_packet", 4, f"{op}.{n}", 4096, fault, Many.SIZE)


def pingpong_cases(fault, one_in):
    """Each size over each device, address family and role, with another MTU each time; a few of them with a fault."""
    if not fault:
        ways = itertools.product(MTUS, (4, 6), Pingpong.ROLES)
        for w, (device, ip, role) in enumerate(ways):
            for s, size in enumerate(SIZES):
                mtu = MTUS[device][(s + w) % len(MTUS[device])]
                iters = 20 if size < 8000 else 5 if size < 1 << 20 else 2
                if (s + w) % one_in:
                    continue
                yield Case(Pingpong, device, ip, role, mtu, "", size, iters)
        return
    some = ((3, 1024, 50), (4097, 256, 20), (65535, 1024, 8), (1 << 20, 4096, 2))
    for s, (size, mtu, iters) in enumerate(some):
        turn = s + list(FAULTS).index(fault)
        yield Case(Pingpong, "tap" if size < 65535 else "af_packet", (4, 6)[turn // 2 % 2],
                   Pingpong.ROLES[turn % 2], mtu, fault, size, iters)


def rw_cases(fault):
    ways = (("tap", 4, 1024), ("tap", 6, 256), ("af_packet", 4, 4096), ("af_packet", 6, 512))
    for device, ip, mtu in ways if not fault else (ways[2],) if fault == "all" else ():
        for role in Rw.ROLES:
            yield Case(Rw, device, ip, role, mtu, fault)


def congested_cases(fault):
    ways = (("active", 4, 0), ("passive", 6, 0), ("passive", 4, 2), ("active", 6, 3))
    for role, ip, ecn in ways if not fault else ():
        yield Case(Congested, "switch", ip, role, 4096, fault, ecn=ecn)


def cm_cases(fault):
    ways = (("tap", 4, 1024), ("tap", 6, 1024), ("af_packet", 4, 4096), ("af_packet", 6, 4096))
    for device, ip, mtu in ways if not fault else ways[:1] if fault in ("loss", "dup", "all") else ():
        for role in Cm.ROLES:
            # The active side sets the MTU: the guest sets its own, which is above the tap's.
            size = 1000 if role == "passive" and device == "tap" else 3000
            yield Case(Cm, device, ip, role, mtu, fault, size)


def run_cases(the_guest, options, cases, court):
    """Returns (runs that passed, failures). court: the judge of the frames that urnic sent"""
    done, failures = [], 0
    counters = the_guest.counters()
    for case in cases:
        if options.part not in case.name:
            continue
        if failures >= MOST_FAILURES:
            print("too many failures: the remaining cases are left out")
            break
        run, error = run_case(the_guest, options, case, counters)
        if error and not the_guest.alive():
            # A kernel that hangs has no counters to read. A hang that urnic caused will happen again.
            print(f"the guest hangs in {case.name} ({error}): it is booted anew, for one more try")
            os.replace(run.capture, run.capture + ".hung")
            the_guest.again()
            run, error = run_case(the_guest, options, case, the_guest.counters())
        if error:
            failures += 1
            print(f"FAILED: {case.name}: {error}")
            run.tell()
            counters = the_guest.counters()
            continue
        counters = run.after
        done.append(run)
        failures += not witness(run, court)
        if not options.keep:
            os.remove(run.capture)
    return done, failures


def witness(run, court):
    """Give the judge the frames that urnic sent. returns: True when the capture has all of them."""
    taken, sent = court.take(run.capture, sent=True), run.counters["tx_packets"]
    if run.capture_lost:
        print(f"  {run.case.name}: {run.capture_lost} frames were too fast for the capture")
    # A frame that a port did not take at once is in the capture once for each attempt.
    if taken + run.capture_lost >= sent:
        return True
    print(f"FAILED: {run.case.name}: {taken} frames of {sent} were captured")
    return False


def run_case(the_guest, options, case, counters):
    """Returns the run, and the error or None."""
    run = case.kind(the_guest, options, case)
    began = time.monotonic()
    try:
        run.go(counters)
        print(f"done: {case.name}, {time.monotonic() - began:.2f} s", flush=True)
        return run, None
    except (Wrong, guest.GuestError, OSError, ValueError, KeyError) as e:
        return run, e


def no_effect(fault, runs):
    """Names of counters that the fault should have moved and that did not move."""
    ours, theirs = EFFECTS[fault]
    return [n for n in ours if not sum(r.counters.get(n, 0) for r in runs)] + \
        [n + " (guest)" for n in theirs if not sum(r.delta(n) for r in runs)]


def run_all(the_guest, options, court):
    passed = failures = 0
    for fault, netem in FAULTS.items():
        the_guest.impair(netem)
        cases = itertools.chain(pingpong_cases(fault, options.one_in), rw_cases(fault), cm_cases(fault),
                                many_cases(fault, options.many), congested_cases(fault))
        done, failed = run_cases(the_guest, options, cases, court)
        passed += len(done)
        failures += failed
        missing = no_effect(fault, done) if fault and not options.part and not failed else []
        if missing:
            failures += 1
            print(f"FAILED: {fault}: the wire did nothing that shows: no {', '.join(missing)}")
    for op, (sent, again) in Many.sums.items():
        print(f"many: {again} of {sent} request packets were repeats: {op}")
        if options.many >= 20 and again > sent * Many.SHARE: # so many that one stall does not count
            failures += 1
            print(f"FAILED: more than {Many.SHARE:.0%}")
    failures += not court.verdict(None if os.environ.get("URNIC_TEST_ALL") else SCAPY)
    print(f"{passed} passed, {failures} failed")
    return 1 if failures or not passed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pingpong")
    parser.add_argument("rw_urnic")
    parser.add_argument("rw_guest")
    parser.add_argument("cm_urnic")
    parser.add_argument("logs")
    parser.add_argument("--keep", action="store_true")
    # N must not be 3 or 5, the numbers of MTUs of the devices: otherwise sizes and MTUs would be left out.
    parser.add_argument("--one-in", type=int, default=1,
                        help="of the ping-pongs over a good wire; URNIC_TEST_ALL in the environment overrides it")
    parser.add_argument("--many", type=int, default=2)
    # A busy machine may not run the guest for longer than 67 ms, which is code 14.
    parser.add_argument("--many-timeout", type=int, default=18)
    parser.add_argument("part", nargs="?", default="")
    options = parser.parse_intermixed_args()
    if os.environ.get("URNIC_TEST_ALL"):
        options.one_in = 1
    if os.geteuid() != 0:
        print("skipped: a guest on a tap wants root")
        return SKIPPED
    guest.enter()
    shutil.rmtree(options.logs, ignore_errors=True)
    os.makedirs(options.logs)
    began = time.monotonic()
    the_guest = guest.Guest(options.logs)
    try:
        guest.interfaces()
        the_guest.put(options.rw_guest, "rw")
        print(f"the guest is up, {time.monotonic() - began:.1f} s", flush=True)
        with tempfile.TemporaryDirectory(prefix="judge", dir=options.logs) as folder:
            code = run_all(the_guest, options, judge.Judge(folder))
        if code:
            print("the guest's console:", the_guest.sh("log"))
        return code
    finally:
        the_guest.stop()


if __name__ == "__main__":
    sys.exit(main())
