#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Attackers and victims on one urnicd, each a user of its own where root starts this.

usage: run.py [OPTION...] [ATTACK...]

An attacker has idle priority (SCHED_IDLE) once it is under way, so that the processor that it burns is
not what its victim feels. A victim moves bytes from node a to node b of the same urnicd,
checks each of them, and fails when one is lost or changed. attacks.h has the attacks.

Without --figures each attack must let its victims finish a number of operations, while
it is under way, stopped, and after it was killed; urnicd must live on, and take back all
that the attacker had. No bound of time is held that a busy machine might break; urnicd's end under
attack has one for the processor time that it uses.

With --figures the victim's worst operation and its rate, of that without an attacker, are
held against their bounds. A quiet machine with two processors or more is needed.

  --build DIR    the build folder (default: build in the project's folder)
  --family NAME  only attacks of this family; "end": only the end of urnicd under attack
  --figures      measure
  --victim KIND  with --figures: writes (default) or messages
  --seconds S    with --figures: time of a run (default: 2)
  --json FILE    with --figures: also write what was measured, an array of objects
  --list         print the attacks
  --help         this text

Exit code: 0 all held, 1 something did not, 2 wrong usage.
"""

import argparse
import json
import mmap
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(HERE))
ROOT = os.getuid() == 0
NICD, VICTIM, ATTACKER = 61000, 61001, 61002 # users that no system has; two more attackers follow
QUEUES = "2G"     # memory for queues of all users; half of it for one unless a line more says it
PATIENCE = 240    # seconds after which a victim is taken to be held up
WRITES = 300      # operations of a victim beside an attack
MESSAGES = 60
SWAP = 64 << 20   # bytes of a file to swap to, while pages are taken out, where the machine has none
AFTER = 50        # ... while the attacker is stopped, and when it is gone
ROUNDS = 2        # of an attack, at least, while its victims work
SKIPPED = 77      # exit code of an attack that this system does not allow
MUST_US, AIM_US = 10000, 2000  # worst operation of a victim
MUST_SHARE, AIM_SHARE = 40, 80 # % of the rate alone
MUST_END = 3      # seconds from SIGTERM to the end of urnicd; of each processor where the machine may be busy
# Begun last when all attacks are under way at once: they leave their user nothing. Root gives those of them that take whole
# tables users of their own, because others attach again and again; the two that take descriptors have one user together.
# Without root they would leave nothing to the others, nor to the victim, and are left out.
LAST = ("queue_full", "rma", "bulk", "qps", "everything", "queue_memory", "clients")
APART = {"everything": 1, "clients": 1, "queue_memory": 2}
ALL_QUEUES = "4G\nqueues_per_uid = 1G" # ... for three users of attacks and the victim's


class Fault(Exception):
    """Something did not hold."""


def user(uid, group=None):
    """returns: arguments of subprocess.Popen that run a program as a user, if root may choose, in a control group"""
    def become():
        if group:
            group.join()
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        # A process group of its own, and no session: the kernel shares processors out by sessions first
        # (sched_autogroup), so an attacker of idle priority alone in a session would take as much as urnicd.
        os.setpgid(0, 0)
        if ROOT:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
    return {"preexec_fn": become, "stdin": subprocess.DEVNULL}


class Group:
    """A control group of memory, whose user may have all its pages reclaimed."""

    def __init__(self, name, uid):
        with open("/proc/self/cgroup", encoding="ascii") as f:
            own = [line.split(":", 2)[2].strip() for line in f if ":memory:" in line]
        # Version 2 of control groups, at the top because a group with processes has no others below, or version 1.
        for parent, file, word in (("/sys/fs/cgroup", "memory.reclaim", "1G"),
                                   (f"/sys/fs/cgroup/memory{own[0] if own else ''}", "memory.force_empty", "0")):
            self.dir = f"{parent}/urnic-test.{os.getpid()}.{name}"
            try:
                os.mkdir(self.dir)
            except OSError:
                continue
            file = os.path.join(self.dir, file)
            if os.path.exists(file):
                os.chown(file, uid, uid)
                self.env = {"URNIC_TEST_RECLAIM": file, "URNIC_TEST_RECLAIM_WORD": word}
                return
            os.rmdir(self.dir)
        self.dir, self.env = None, {}

    def join(self):
        if self.dir:
            with open(os.path.join(self.dir, "cgroup.procs"), "w", encoding="ascii") as f:
                f.write(str(os.getpid()))

    def remove(self):
        """All its processes have ended; the kernel may take a moment to see that."""
        end = time.time() + PATIENCE
        while self.dir and time.time() < end:
            try:
                os.rmdir(self.dir)
                self.dir = None
            except OSError:
                time.sleep(0.01)


class Swap:
    """Room to swap to, so that pages of shared memory can be taken out; only root can make some."""

    def __init__(self):
        self.file = None
        with open("/proc/swaps", encoding="ascii") as f:
            have = len(f.readlines()) > 1
        if not have and ROOT:
            self.make()
        if not have and not self.file:
            print("no swap here: pages of shared memory stay, and attacks that take them out do less", flush=True)

    def make(self):
        fd, self.file = tempfile.mkstemp(prefix="urnic-test.swap.")
        with open(fd, "wb") as f:
            f.write(bytes(SWAP))
        for command in ("mkswap", "swapon"):
            try:
                if subprocess.run([command, self.file], capture_output=True, check=False).returncode == 0:
                    continue
            except FileNotFoundError:
                pass
            os.unlink(self.file)
            self.file = None
            return

    def remove(self):
        if self.file:
            off = subprocess.run(["swapoff", self.file], capture_output=True, text=True, check=False)
            if off.returncode != 0:
                raise Fault(f"swapoff {self.file}: {off.stderr.strip()}; the file stays")
            os.unlink(self.file)


def swapped():
    """returns: KiB that are swapped out now; 0 on a kernel without swap, too"""
    try:
        with open("/proc/swaps", encoding="ascii") as f:
            return sum(int(line.split()[3]) for line in f.readlines()[1:])
    except FileNotFoundError:
        return 0


class Attacker:
    """A process that attacks."""

    def __init__(self, town, name, uid=ATTACKER):
        self.name, self.town = name, town
        path = os.path.join(town.dir, f"page.{name}")
        with open(path, "wb") as f:
            f.write(bytes(4096))
        os.chmod(path, 0o666)
        with open(path, "r+b") as f:
            self.page = mmap.mmap(f.fileno(), 4096)
        self.said = os.path.join(town.dir, f"said.{name}")
        self.group = Group(name, uid) if name == "reclaim" and ROOT else None
        if self.group:
            town.groups.append(self.group)
        env = dict(town.env, **self.group.env) if self.group else town.env
        with open(self.said, "wb") as f:
            self.process = subprocess.Popen([town.attack, town.socket, path, name], stdout=f, stderr=f, cwd="/",
                                            env=env, **user(uid, self.group))
        town.running.append(self.process)

    def word(self, i):
        return struct.unpack_from("=Q", self.page, 8 * i)[0]

    def rounds(self):
        return self.word(1)

    def text(self):
        with open(self.said, encoding="utf-8", errors="replace") as f:
            return f.read().strip()

    def wait(self):
        """Wait until the attack is under way. returns: False: this system does not allow it"""
        end = time.time() + PATIENCE
        while self.word(0) == 0:
            if not self.lives():
                return False
            if time.time() > end:
                raise Fault(f"{self.name}: not under way: {self.text()}")
            time.sleep(0.01)
        self.idle()
        return True

    def idle(self):
        """Let all threads have idle priority; those that they make have it, too."""
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            try:
                os.sched_setscheduler(int(thread), os.SCHED_IDLE, os.sched_param(0))
            except ProcessLookupError:
                pass # has ended

    def lives(self):
        """returns: False: the system does not allow the attack; raises Fault when it came through"""
        code = self.process.poll()
        if code is None:
            return True
        if code == SKIPPED:
            return False
        raise Fault(f"{self.name}: ended with {code}: {self.text()}")

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def end(self):
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.page.close()
        if self.group:
            self.group.remove()
            self.town.groups.remove(self.group)


class Town:
    """A urnicd with two nodes, and a folder for all that it and its programs leave."""

    def __init__(self, build, quiet, queues=QUEUES):
        self.running, self.groups, self.queues = [], [], queues
        self.dir = tempfile.mkdtemp(prefix="urnic-test.")
        os.chmod(self.dir, 0o755)
        self.socket = os.path.join(self.dir, "nicd.sock")
        # The build folder may lie where only root may look.
        for name, path in (("urnicd", "apps/urnicd/urnicd"), ("attack", "test/hostile/urnic-attack"),
                           ("victim", "test/hostile/urnic-victim"), ("ctl", "apps/urnicctl/urnicctl")):
            shutil.copy(os.path.join(build, path), os.path.join(self.dir, name))
            setattr(self, name, os.path.join(self.dir, name))
        self.env = {k: v for k, v in os.environ.items() if k not in ("XDG_RUNTIME_DIR", "URNIC_SOCKET", "URNIC_NODE")}
        self.env["HOME"] = "/"
        self.env["URNIC_TIMEOUT"] = str(PATIENCE) # s: a busy machine is no fault
        if ROOT:
            self.env["URNIC_TRUST"] = str(NICD)
            os.chown(self.dir, NICD, NICD)
        self.start(quiet)

    def start(self, quiet):
        run = os.path.join(self.dir, "run")
        os.mkdir(run, 0o700)
        if ROOT:
            os.chown(run, NICD, NICD)
        config = os.path.join(self.dir, "c.ini")
        with open(os.path.join(PROJECT, "config", "two-nodes.ini"), encoding="utf-8") as f:
            text = f.read()
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.socket}\nmode = 0666\n"
                    f"{'' if quiet else 'idle = pause' + chr(10) + 'empty_polls = 4' + chr(10)}\n"
                    f"[limits]\nqueues = {self.queues}\n\n{text}")
        self.said = os.path.join(self.dir, "said")
        with open(self.said, "wb") as f:
            self.nicd = subprocess.Popen([self.urnicd, "-c", config], stdout=f, stderr=f, cwd=self.dir,
                                         env=dict(self.env, XDG_RUNTIME_DIR=run, RUNTIME_DIRECTORY=run), **user(NICD))
        self.running.append(self.nicd)
        self.until("urnicd does not listen", lambda: "listening at" in self.text())

    def text(self):
        with open(self.said, encoding="utf-8", errors="replace") as f:
            return f.read().strip()

    def until(self, fault, what):
        end = time.time() + PATIENCE
        while not what():
            if self.nicd.poll() is not None:
                raise Fault(f"urnicd ended with {self.nicd.returncode}: {self.text()}")
            if time.time() > end:
                raise Fault(fault)
            time.sleep(0.01)

    def victim_of(self, *words):
        """Run a victim to its end. returns: its JSON"""
        p = subprocess.Popen([self.victim, self.socket, *map(str, words)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, cwd="/", env=self.env, **user(VICTIM))
        self.running.append(p)
        try:
            out, err = p.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise Fault(f"victim of {words[0]}: held up for {PATIENCE} s; urnicd says: {self.text()}") from None
        finally:
            self.running.remove(p)
            if p.poll() is None:
                p.kill()
                p.wait()
        if p.returncode != 0:
            raise Fault(f"victim of {words[0]}: ended with {p.returncode}: {err.strip()}; urnicd says: {self.text()}")
        return json.loads(out)

    def clients(self):
        p = subprocess.run([self.ctl, "--socket", self.socket, "--json", "show", "client"], capture_output=True, text=True,
                           timeout=PATIENCE, check=False, env=self.env, **user(NICD))
        if p.returncode != 0:
            raise Fault(f"urnicctl: {p.stderr}")
        return json.loads(p.stdout)

    def nobody(self, name):
        self.until(f"{name}: urnicd still has objects of a program that is gone", lambda: self.clients() == [])

    def end(self):
        """Let urnicd end.

        returns: the seconds that it took, and the seconds of processors that it used meanwhile"""
        with open(f"/proc/{self.nicd.pid}/stat", encoding="ascii") as f:
            user_ticks, system_ticks = f.read().rsplit(")", 1)[1].split()[11:13]
        before = (int(user_ticks) + int(system_ticks)) / os.sysconf("SC_CLK_TCK")
        began = time.time()
        self.nicd.send_signal(signal.SIGTERM)
        while os.waitid(os.P_PID, self.nicd.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.time() > began + PATIENCE:
                raise Fault(f"urnicd does not end: {self.text()}")
            time.sleep(0.01)
        took = time.time() - began
        _, status, used = os.wait4(self.nicd.pid, 0)
        code = self.nicd.returncode = os.waitstatus_to_exitcode(status)
        if code != 0:
            raise Fault(f"urnicd ended with {code}: {self.text()}")
        return took, used.ru_utime + used.ru_stime - before

    def close(self):
        for p in self.running:
            if p.poll() is None:
                try:
                    os.killpg(p.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                p.wait()
        for group in self.groups:
            group.remove()
        shutil.rmtree(self.dir)


def victims(town, family):
    """One run of each victim that the family is about."""
    if family == "tables" and ROOT: # without root all are one user, whose limits both have
        town.victim_of("limits")
    town.victim_of("writes", WRITES)
    town.victim_of("messages", MESSAGES)


def hold(town, name, family):
    """One attack: its victims go on, before and after it ends. returns: False: not allowed here"""
    a = Attacker(town, name)
    try:
        if not a.wait():
            return False
        before, end = a.rounds(), time.time() + PATIENCE
        victims(town, family)
        out = swapped()
        while a.lives() and a.rounds() < before + ROUNDS:
            if time.time() > end:
                raise Fault(f"{name}: no rounds: {a.text()}")
            town.victim_of("writes", AFTER)
            out = max(out, swapped())
        if a.process.poll() is not None:
            return False
        if out:
            print(f"{name}: {out} KiB were swapped out", flush=True)
        a.signal(signal.SIGSTOP)
        town.victim_of("writes", AFTER)
        a.signal(signal.SIGCONT)
    finally:
        a.end()
        town.running.remove(a.process)
    town.victim_of("writes", AFTER)
    town.nobody(name)
    return True


def attacks_of(town):
    out = subprocess.run([town.attack, "--list"], capture_output=True, text=True, check=True).stdout
    return [line.split(" ", 2) for line in out.splitlines()]


def begin_all(town):
    """Start all attacks. Each stands still until all have made their objects, which takes long under attack.

    returns: those that this system allows, under way"""
    names = [name for name, _, _ in attacks_of(town) if name not in LAST]
    names += [name for name in LAST if ROOT or name not in APART]
    many = []
    for name in names:
        a = Attacker(town, name, ATTACKER + APART.get(name, 0))
        if a.wait():
            a.signal(signal.SIGSTOP)
            many.append(a)
    for a in many:
        a.signal(signal.SIGCONT)
    return many


def end_under_attack(args, quiet):
    """A urnicd is told to end with all attacks under way. returns: as Town.end(), and how many attacks"""
    town = Town(args.build, quiet, ALL_QUEUES)
    try:
        many = begin_all(town)
        town.victim_of("writes", AFTER)
        for a in many:
            a.lives() # raises Fault when it has ended
        took, used = town.end()
        for a in many:
            a.end()
    finally:
        town.close()
    return took, used, len(many)


def check(args):
    """The suite: each attack, on one urnicd a family. returns: True when all held"""
    faults, held, skipped = [], 0, []
    town = Town(args.build, quiet=False)
    swap = None
    try:
        swap = Swap() if args.family in (None, "memory") else None
        for name, family, _ in attacks_of(town):
            if args.family not in (None, family) or args.attack and name not in args.attack:
                continue
            began = time.time()
            if hold(town, name, family):
                held += 1
                print(f"{name}: held, {time.time() - began:.1f} s", flush=True)
            else:
                skipped.append(name)
                print(f"{name}: not possible here", flush=True)
        town.end()
        if args.family in (None, "end") and not args.attack:
            took, used, many = end_under_attack(args, quiet=False)
            most = MUST_END * len(os.sched_getaffinity(0))
            if used > most:
                raise Fault(f"urnicd ended {took:.1f} s after SIGTERM under {many} attacks, and used {used:.1f} s of "
                            f"processors; {most} s are allowed")
            print(f"end under {many} attacks: {took:.1f} s, {used:.1f} s of processors (at most {most})", flush=True)
    except Fault as fault:
        faults.append(str(fault))
        print(f"FAILED: {fault}", file=sys.stderr, flush=True)
    finally:
        town.close()
        if swap:
            swap.remove()
    print(f"{held} attacks held, {len(faults)} came through, {len(skipped)} are not possible here")
    return not faults


def verdict(worst, share):
    if worst > MUST_US or share < MUST_SHARE:
        return "MISSED"
    return "must" if worst > AIM_US or share < AIM_SHARE else "aim"


def measure(town, args, name, family):
    """returns: figures of one attack, or None: not possible here"""
    alone = town.victim_of(args.victim, 0, args.seconds)
    a = Attacker(town, name)
    try:
        if not a.wait():
            return None
        before = a.rounds()
        under = town.victim_of(args.victim, 0, args.seconds)
        if not a.lives():
            return None
        rounds = a.rounds() - before
        if family == "tables" and ROOT:
            town.victim_of("limits")
    finally:
        a.end()
        town.running.remove(a.process)
    town.nobody(name)
    share = 100 * under["rate"] / alone["rate"]
    return {"attack": name, "victim": args.victim, "rate_alone": alone["rate"], "rate": under["rate"], "share": round(share, 1),
            "worst_us": under["worst_us"], "worst_alone_us": alone["worst_us"], "over_2ms": under["over_2ms"],
            "over_10ms": under["over_10ms"], "rounds": rounds, "verdict": verdict(under["worst_us"], share)}


def print_figures(f):
    print(f"{f['attack']:<15} {f['rate']:>9.0f}/s {f['share']:>6.1f} % of alone   worst {f['worst_us']:>10.1f} us "
          f"(alone {f['worst_alone_us']:.1f})   {f['rounds']} rounds   {f['verdict']}", flush=True)


def figures(args):
    """Measure. returns: True when no must was missed"""
    rows, good = [], True
    town = Town(args.build, quiet=True)
    swap = None
    try:
        swap = Swap() if args.family in (None, "memory") else None
        for name, family, _ in attacks_of(town):
            if args.family not in (None, family) or args.attack and name not in args.attack:
                continue
            try:
                f = measure(town, args, name, family)
            except Fault as fault:
                if town.nicd.poll() is not None:
                    raise
                print(f"{name:<15} FAILED: {fault}", flush=True)
                rows.append({"attack": name, "victim": args.victim, "fault": str(fault), "verdict": "MISSED"})
                good = False
                continue
            if f is None:
                print(f"{name:<15} not possible here", flush=True)
                continue
            rows.append(f)
            good = good and f["verdict"] != "MISSED"
            print_figures(f)
        if args.family in (None, "end") and not args.attack:
            town.end()
            took, _, _ = end_under_attack(args, quiet=True)
            rows.append({"attack": "end", "seconds": round(took, 2), "verdict": "must" if took <= MUST_END else "MISSED"})
            good = good and took <= MUST_END
            print(f"end under attack: {took:.2f} s of {MUST_END}")
    except Fault as fault:
        print(f"FAILED: {fault}", file=sys.stderr)
        good = False
    finally:
        town.close()
        if swap:
            swap.remove()
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)
            f.write("\n")
    return good


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--build", default=os.path.join(PROJECT, "build"))
    parser.add_argument("--family")
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--victim", default="writes", choices=("writes", "messages"))
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--json")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--help", action="store_true")
    parser.add_argument("attack", nargs="*")
    args = parser.parse_args()
    if args.help:
        print(__doc__.strip())
        return 0
    if args.list:
        return subprocess.run([os.path.join(args.build, "test/hostile/urnic-attack"), "--list"], check=False).returncode
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1)) # all that was started ends
    return 0 if (figures if args.figures else check)(args) else 1


if __name__ == "__main__":
    sys.exit(main())
