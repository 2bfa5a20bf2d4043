# SPDX-License-Identifier: BSD-3-Clause
"""A urnicd, attackers and victims, each a user of its own where root starts them."""

import json
import mmap
import os
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(HERE))
ROOT = os.getuid() == 0
NICD, VICTIM, ATTACKER = 61000, 61001, 61002 # users that no system has; two more attackers follow
QUEUES = "2G"     # memory for queues of all users; half of it for one unless a line more says it
PATIENCE = 240    # seconds after which a victim is taken to be held up
SWAP = 64 << 20   # bytes of a file to swap to, while pages are taken out, where the machine has none
AFTER = 50        # operations of a victim while the attacker is stopped, and when it is gone
SKIPPED = 77      # exit code of an attack that this system does not allow
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
    """Room to swap to, so that pages of shared memory can be taken out; only root can make some. The caller must
    remove() it, also when begin() was interrupted."""

    def __init__(self):
        self.file = None

    def begin(self):
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

    def is_on(self):
        try:
            with open("/proc/swaps", encoding="ascii") as f:
                return any(line.split()[0] == self.file for line in f)
        except FileNotFoundError:
            return False

    def remove(self):
        if self.file and self.is_on():
            off = subprocess.run(["swapoff", self.file], capture_output=True, text=True, check=False)
            if off.returncode != 0:
                raise Fault(f"swapoff {self.file}: {off.stderr.strip()}; the file stays")
        if self.file:
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
        try:
            self.fill(build)
            self.start(quiet)
        except BaseException: # a signal, too
            self.close()
            raise

    def fill(self, build):
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
