#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic against the kernel's soft-RoCE: urnic-perf pingpong and the guest's
ibv_rc_pingpong, each in both roles, over tap and af_packet, IPv4 and IPv6, all
MTUs and the sizes where something changes; then once more over a wire that
loses, doubles, reorders and corrupts in both directions.

usage: pingpong.py URNIC_PERF LOGS [--keep] [PART]

LOGS is a folder for the guest's console and, of each case that failed, a capture
(of every case with --keep). PART picks the cases whose names contain it.

All of it happens in namespaces of its own: qemu, the guest, interfaces and what
else there is go away when this ends, however it ends.
"""
import argparse
import dataclasses
import itertools
import json
import os
import shutil
import subprocess
import sys
import time

import guest

SKIPPED = 77
INSIDE = "URNIC_INTEROP_INSIDE"
MOST_FAILURES = 5
# For one case; a hundred times what it takes.
PATIENCE = 120

MTUS = {"tap": (256, 512, 1024), "af_packet": (256, 512, 1024, 2048, 4096)}
DEVICES = {"tap": "net_tap0,iface=urnp0", "af_packet": "net_af_packet0,iface=urnveth0"}
IP = {4: "10.77.0.99", 6: "fd77::99"}
# 4 bytes pad, a packet of each MTU, and their neighbours; then many packets.
SIZES = (1, 2, 3, 4, 5, 255, 256, 257, 511, 513, 1023, 1024, 1025, 2047, 2049, 4095, 4096, 4097,
         8191, 16385, 32768, 65533, 65534, 65535, 1 << 20)
FAULTS = {
    "loss": "delay 1ms loss 5%",
    "dup": "delay 1ms duplicate 10%",
    "reorder": "delay 2ms reorder 75% 25%",
    "corrupt": "delay 1ms corrupt 3%",
    "all": "delay 2ms loss 4% duplicate 4% reorder 80% 25% corrupt 1%",
}
# Never, whatever the wire does: these mean that somebody understood the other wrong.
NEVER = ("send_err", "link_downed", "rcvd_rnr_err", "send_rnr_err", "retry_rnr_exceeded_err",
         "retry_exceeded_err")
# Nor these, when the wire does nothing. (completer_retry_err may be: the kernel's
# timer is not stopped by an acknowledgement and then repeats what was on its way.)
CLEAN = ("out_of_seq_request", "rcvd_seq_err")
# What others say on the bridge.
STRANGE = {"not_roce", "address", "other"}


# Between what ibv_rc_pingpong says and the counters.
MARK = "== counters"


class Wrong(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Case:
    device: str
    ip: int
    role: str # urnic's: client or server
    size: int
    mtu: int
    iters: int
    fault: str = ""

    @property
    def name(self):
        return "-".join([self.device, f"ipv{self.ip}", self.role, f"{self.size}B",
                         f"mtu{self.mtu}"] + ([self.fault] if self.fault else []))


def cases():
    """Each size in each way, with another MTU each time; then the faults."""
    ways = itertools.product(MTUS, (4, 6), ("client", "server"))
    for w, (device, ip, role) in enumerate(ways):
        for s, size in enumerate(SIZES):
            mtu = MTUS[device][(s + w) % len(MTUS[device])]
            iters = 20 if size < 8000 else 5 if size < 1 << 20 else 2
            yield Case(device, ip, role, size, mtu, iters)
    ways = itertools.cycle(itertools.product((4, 6), ("client", "server")))
    for fault in FAULTS:
        for size, mtu, iters in ((3, 1024, 100), (4097, 256, 30), (65535, 1024, 8),
                                 (1 << 20, 4096, 2)):
            ip, role = next(ways)
            device = "tap" if mtu < 2048 and size % 2 else "af_packet"
            yield Case(device, ip, role, size, mtu, iters, fault)
        next(ways)


def sh(*words):
    subprocess.run(words, check=True)


def interfaces():
    """The other ends of urnic's two ports, on the guest's bridge."""
    sh("ip", "link", "add", "urnveth0", "mtu", "4200", "type", "veth", "peer", "name", "urnveth1",
       "mtu", "4200")
    sh("ip", "tuntap", "add", "dev", "urnp0", "mode", "tap", "multi_queue")
    for name in ("urnveth1", "urnp0"):
        sh("ip", "link", "set", name, "master", "urnbr0", "up")
    sh("ip", "link", "set", "urnveth0", "up")


# RoCEv2 alone is impaired: what leaves the guest by a qdisc, what comes by that of
# another interface which it is led through.
IMPAIR = """
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc del dev eth0 ingress 2>/dev/null
[ -n "{0}" ] || exit 0
set -e
[ -e /sys/class/net/ifb0 ] || modprobe ifb numifbs=1
ip link set ifb0 mtu 4200 up
tc qdisc replace dev ifb0 root netem {0}
tc qdisc add dev eth0 root handle 1: prio bands 4
tc qdisc add dev eth0 parent 1:4 handle 40: netem {0}
tc qdisc add dev eth0 handle ffff: ingress
for family in "ip ip" "ipv6 ip6"; do
	set -- $family
	tc filter add dev eth0 parent 1: protocol $1 u32 match $2 dport 4791 0xffff flowid 1:4
	tc filter add dev eth0 parent ffff: protocol $1 u32 match $2 dport 4791 0xffff \\
		action mirred egress redirect dev ifb0
done
"""


class Run:
    """One case."""

    def __init__(self, the_guest, perf, logs, case):
        self.guest = the_guest
        self.case = case
        self.capture = os.path.join(logs, case.name + ".pcapng")
        self.urnic_out = self.urnic_err = self.guest_out = ""
        self.before = self.after = {}
        self.result = {}
        here = ["--listen", "18515"] if case.role == "server" else ["--peer", guest.ADDRESS[4]]
        self.command = [perf, "pingpong", *here, "--device", DEVICES[case.device],
                        "--ip", IP[case.ip], "--size", str(case.size), "--mtu", str(case.mtu),
                        "--iters", str(case.iters), "--wait", "60", "--json",
                        "--linger", "500ms" if case.fault else "20ms",
                        "--capture", self.capture]
        there = f" {guest.HOST[4]}" if case.role == "server" else ""
        self.script = (f"ibv_rc_pingpong -d rxe0 -g {guest.GID[case.ip]} -s {case.size} "
                       f"-m {case.mtu} -n {case.iters}{there}")

    def go(self, before):
        """before: the guest's counters. Asking it costs time, so this does so but once."""
        self.before = before
        job = None
        with subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as urnic:
            try:
                if self.case.role == "server":
                    # It says so when it listens; else that line is an error.
                    self.urnic_err = urnic.stderr.readline()
                job = guest.Job(f"timeout {PATIENCE} {self.script}; code=$?; echo {MARK}; "
                                f"{guest.COUNT}; exit $code")
                self.urnic_out, rest = urnic.communicate(timeout=PATIENCE)
                self.urnic_err += rest
            except subprocess.TimeoutExpired as e:
                raise Wrong(f"urnic-perf has not ended in {PATIENCE} s") from e
            finally:
                urnic.kill()
                if job is not None and urnic.poll() != 0:
                    # It waits for a peer that is gone.
                    self.guest.run("killall ibv_rc_pingpong 2>/dev/null; true")
                if job is not None:
                    code, self.guest_out = job.wait(PATIENCE)
        self.guest_out, _, counted = self.guest_out.partition(MARK)
        if urnic.returncode != 0:
            raise Wrong(f"urnic-perf ended with {urnic.returncode}")
        if code != 0:
            raise Wrong(f"ibv_rc_pingpong ended with {code}")
        self.after = guest.parse_counters(counted)
        self.result = json.loads(self.urnic_out)
        self.judge()

    def delta(self, name):
        return self.after[name] - self.before[name]

    def judge(self):
        case, r = self.case, self.result
        total = case.size * case.iters
        if f"{case.iters} iters in" not in self.guest_out:
            raise Wrong("ibv_rc_pingpong did not do all it was to")
        if r["checked_bytes"] != total or r["echoed"]:
            raise Wrong(f"{r['checked_bytes']} bytes were compared, not {total}")
        if r["last_unacknowledged"] and not case.fault:
            raise Wrong("the last message was not acknowledged")
        for name in NEVER if case.fault else NEVER + CLEAN:
            if self.delta(name):
                raise Wrong(f"the guest counts {self.delta(name)} {name}")
        counters = r["counters"]
        if not case.fault:
            if self.delta("duplicate_request") > counters.get("retransmits", 0):
                raise Wrong("the guest got requests again that urnic did not repeat")
            if set(r["drops"]) - STRANGE:
                raise Wrong("urnic dropped something")
            for name in ("tx_naks", "rx_naks", "out_of_order"):
                if counters.get(name):
                    raise Wrong(f"urnic counts {counters[name]} {name}")
        for name in ("tx_rnr_naks", "rx_rnr_naks", "bad_wqe", "nak_invalid_request", "nak_access",
                     "nak_operational"):
            if counters.get(name):
                raise Wrong(f"urnic counts {counters[name]} {name}")

    def tell(self):
        """All that is known, for whoever reads the log."""
        print("  urnic:", " ".join(self.command))
        print("  guest:", self.script)
        for what, text in (("urnic-perf", self.urnic_out + self.urnic_err),
                           ("ibv_rc_pingpong", self.guest_out),
                           ("the guest's kernel", self.guest.run("dmesg | tail -n 20"))):
            print(f"  -- {what} said:\n    " + text.strip().replace("\n", "\n    "))
        now = self.guest.counters()
        print("  -- the guest's counters, since the case began:")
        for name, value in sorted(now.items()):
            if value != self.before.get(name, 0):
                print(f"    {name} {value - self.before.get(name, 0)}")
        print(f"  -- capture: {self.capture}")


# What a fault must have brought about in all its cases together, by urnic's
# counters and the guest's; else the test shows nothing.
EFFECTS = {
    "loss": (("retransmits",), ("out_of_seq_request",)),
    "dup": (("duplicates",), ("duplicate_request",)),
    "reorder": (("out_of_order",), ("out_of_seq_request",)),
    "corrupt": (("drop_icrc",), ()),
    "all": (("retransmits", "duplicates", "out_of_order"),
            ("out_of_seq_request", "duplicate_request")),
}


def effects_missing(fault, runs):
    ours, theirs = EFFECTS[fault]
    return [n for n in ours if not sum(r.result["counters"].get(n, 0) for r in runs)] + \
        [n + " (guest)" for n in theirs if not sum(r.delta(n) for r in runs)]


def run_all(the_guest, options):
    failures = passed = 0
    impaired = ""
    done = {}
    counters = the_guest.counters()
    for case in cases():
        if options.part not in case.name:
            continue
        if failures >= MOST_FAILURES:
            print("that is enough")
            break
        if case.fault != impaired:
            the_guest.run(IMPAIR.format(FAULTS.get(case.fault, "")))
            impaired = case.fault
        run = Run(the_guest, options.perf, options.logs, case)
        began = time.monotonic()
        try:
            run.go(counters)
        except (Wrong, guest.GuestError, OSError, ValueError, KeyError) as e:
            failures += 1
            print(f"FAILED: {case.name}: {e}")
            run.tell()
            counters = the_guest.counters()
            continue
        counters = run.after
        passed += 1
        done.setdefault(case.fault, []).append(run)
        print(f"done: {case.name}, {time.monotonic() - began:.2f} s", flush=True)
        if not options.keep:
            os.remove(run.capture)
    for fault, runs in done.items():
        missing = effects_missing(fault, runs) if fault and not options.part else []
        if missing:
            failures += 1
            print(f"FAILED: {fault}: the wire did nothing that shows: no {', '.join(missing)}")
    print(f"{passed} passed, {failures} failed")
    return 1 if failures or not passed else 0


def enter():
    """Begin again in namespaces of our own; returns in there only."""
    if os.environ.get(INSIDE):
        sh("mount", "-t", "sysfs", "sysfs", "/sys")
        sh("ip", "link", "set", "lo", "up")
        return
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "--net", "--pid", "--mount", "--fork", "--kill-child",
                          "--mount-proc", "/usr/bin/python3", *sys.argv])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("perf")
    parser.add_argument("logs")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("part", nargs="?", default="")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: a guest on a tap wants root")
        return SKIPPED
    enter()
    shutil.rmtree(options.logs, ignore_errors=True)
    os.makedirs(options.logs)
    began = time.monotonic()
    the_guest = guest.Guest(options.logs)
    try:
        interfaces()
        print(f"the guest is up, {time.monotonic() - began:.1f} s", flush=True)
        code = run_all(the_guest, options)
        if code:
            print("the guest's console:", the_guest.sh("log"))
        return code
    finally:
        the_guest.stop()


if __name__ == "__main__":
    sys.exit(main())
