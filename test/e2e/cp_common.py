# SPDX-License-Identifier: BSD-3-Clause
"""Functions that the tests of urnic-cp share: a folder for each test, and running urnic-cp there.

With "--attached URNICD" behind the program, the tests run urnic-cp attached to dataplane
processes. A command with both sides attaches to two nodes of one process; a listener and its
sender attach to two processes that memif joins. Tests marked embedded_only are left out then.

With "--over msg" in front of names of tests, senders send over messages instead of queue pairs. Tests marked
verbs_only are left out then.
"""
import filecmp
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

TIMEOUT = 240  # seconds for one run; generous, for sanitizers on a busy machine


class Dataplanes:
    """Dataplane processes of one test, each started at its first use."""

    NODE = "[adapter {node}0]\nnode = {node}\nipv4 = 10.0.0.{n}\n"
    COMMON = "[urnicd]\nsocket = {socket}\nmode = 0666\nlog = off\nidle = pause\nempty_polls = 4\n"

    def __init__(self, program, root):
        self.program = program
        self.dir = os.path.join(root, "dp")
        os.mkdir(self.dir)
        os.chmod(self.dir, 0o755)
        self.running = {}

    def text_of(self, name):
        if name == "two":
            return "".join(self.NODE.format(node=node, n=n) + "switch = wire\n"
                           for n, node in ((1, "a"), (2, "b"))) + "[switch wire]\n"
        role, n = ("server", 1) if name == "a" else ("client", 2)
        return (f"[port p0]\ndevice = net_memif0,role={role},socket={self.dir}/memif\n" +
                self.NODE.format(node=name, n=n) + "port = p0\n")

    def start(self, name):
        """Start a dataplane unless it runs; returns its socket. "two" has two nodes, "a" and "b" one each."""
        sock = os.path.join(self.dir, name + ".sock")
        if name in self.running:
            return sock
        conf = os.path.join(self.dir, name + ".ini")
        with open(conf, "w") as f:
            f.write(self.COMMON.format(socket=sock) + self.text_of(name))
        env = dict(os.environ, TMPDIR=self.dir)
        env.pop("XDG_RUNTIME_DIR", None)
        p = subprocess.Popen([self.program, "-c", conf], env=env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.running[name] = p
        line = p.stderr.readline()
        check("listening at" in line, f"urnicd said: {line}")
        return sock

    def options(self, args):
        if "--listen" in args:
            self.start("a")
            return ["--attach", self.start("b")]
        if "--peer" in args:
            sock = self.start("a")  # makes the memif socket
            self.start("b")
            return ["--attach", sock]
        return ["--attach", self.start("two")]

    def close(self):
        """Stop the dataplanes, the client of the memif first. Each must end with 0 and no message, and
        leave no file."""
        for name, p in reversed(self.running.items()):
            p.terminate()
            err = p.communicate(timeout=TIMEOUT)[1]
            check(p.returncode == 0 and err == "", f"dataplane {name}: {p.returncode} {err}")
        left = [f for f in os.listdir(self.dir) if not f.endswith(".ini")]
        check(not left, f"left by dataplanes: {left}")

    def kill(self):
        for p in self.running.values():
            if p.poll() is None:
                p.kill()
                p.communicate()


class Place:
    """A folder for one test: files to send, TMPDIR, and the folder of the copies."""

    def __init__(self, program, urnicd=None, over=None):
        self.over = ["--over", over] if over else []
        self.root = tempfile.mkdtemp(prefix="cpt", dir="/tmp")
        os.chmod(self.root, 0o755)
        self.tmp = os.path.join(self.root, "tmp")
        self.to = os.path.join(self.root, "to")
        os.mkdir(self.tmp)
        self.program = program
        self.user = []  # a command that runs its arguments as another user
        self.running = []
        self.dataplanes = Dataplanes(urnicd, self.root) if urnicd else None
        with open(program, "rb") as f:
            self.sanitized = b"__asan_init" in f.read()

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def env(self):
        env = dict(os.environ, TMPDIR=self.tmp, LC_ALL="C.UTF-8")
        env.pop("XDG_RUNTIME_DIR", None)
        env.pop("RUNTIME_DIRECTORY", None)
        return env

    def start(self, *args, **kw):
        if self.dataplanes:
            args = (*self.dataplanes.options(args), *args)
        if "--listen" not in args:
            args = (*self.over, *args)
        # A runner of the tests may ignore SIGHUP, and the program would inherit that.
        kw.setdefault("preexec_fn", lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        p = subprocess.Popen(self.user + [self.program, *args], cwd=self.root, env=self.env(),
                             stdin=subprocess.DEVNULL, stdout=kw.pop("stdout", subprocess.PIPE),
                             stderr=kw.pop("stderr", subprocess.PIPE), text=True,
                             start_new_session=True, **kw)
        self.running.append(p)
        return p

    def finish(self, p):
        """Wait for a program. Returns exit code, standard output, standard error."""
        out, err = p.communicate(timeout=TIMEOUT)
        self.running.remove(p)
        return p.returncode, out, err

    def run(self, *args, **kw):
        return self.finish(self.start(*args, **kw))

    def make(self, name, size, seed=1):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(random.Random(seed).randbytes(size))
        os.chmod(path, 0o644)
        return path

    def make_huge(self, name, size=1 << 40):
        """Make a file of holes: it takes no room on the disk, and a long time to send."""
        path = self.path(name)
        with open(path, "wb") as f:
            f.truncate(size)
        return path

    def same(self, a, b):
        check(os.path.exists(b), f"{b} is missing")
        check(filecmp.cmp(a, b, shallow=False), f"{a} and {b} differ")

    def clean(self):
        """No private file of urnic-cp is left."""
        left = [os.path.join(d, f) for d, subs, files in os.walk(self.tmp) for f in files + subs]
        check(not left, f"left in TMPDIR: {left}")

    def close(self):
        for p in self.running:
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()
        if self.dataplanes:
            self.dataplanes.kill()
        shutil.rmtree(self.root, ignore_errors=True)


def check(ok, what):
    if not ok:
        raise AssertionError(what)


def expect(result, code, *texts):
    """Check the exit code of a run, and texts that either of its streams must contain."""
    rc, out, err = result
    check(rc == code, f"exit code {rc}, not {code}; output: {out!r} {err!r}")
    for text in texts:
        check(text in (out or "") + (err or ""), f"{text!r} is not in {out!r} {err!r}")
    check("ERROR: AddressSanitizer" not in (err or "") and "runtime error" not in (err or ""), err)


def wait_until(what, true, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = true()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"{what}: did not happen in {seconds} s")


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(x) for x in f.read().split()]
    except OSError:
        return []


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def is_receiving(pid, folder):
    """True when the process has an unfinished file in the folder open."""
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            link = os.readlink(f"/proc/{pid}/fd/{fd}")
            if link.startswith(os.path.realpath(folder) + "/"):
                return True
    except OSError:
        pass
    return False


def embedded_only(test):
    """Mark a test that needs an embedded dataplane."""
    test.embedded_only = True
    return test


def attached_only(test):
    """Mark a test that needs a dataplane in a process of its own."""
    test.attached_only = True
    return test


def verbs_only(test):
    """Mark a test of which the result is another over messages, or that has nothing to do with the way."""
    test.verbs_only = True
    return test


def once(test):
    """Mark a test that moves gigabytes to test how urnic-cp treats files: it runs only embedded, over verbs and without
    sanitizers, because files are treated the same otherwise. With URNIC_TEST_ALL in the environment, or given by
    name, the test always runs."""
    test.once = True
    return test


def run_all(namespace):
    """Run the functions test_* of a file. Arguments: the program, perhaps --attached URNICD, perhaps --over msg,
    names of tests."""
    program, rest = os.path.abspath(sys.argv[1]), sys.argv[2:]
    urnicd = os.path.abspath(rest[1]) if rest[:1] == ["--attached"] else None
    rest = rest[2 if urnicd else 0:]
    over = rest[1] if rest[:1] == ["--over"] else None
    rest = rest[2 if over else 0:]
    failed = 0
    names = rest or sorted(n for n in namespace if n.startswith("test_"))
    for name in names:
        if hasattr(namespace[name], "embedded_only" if urnicd else "attached_only") or (
                over and hasattr(namespace[name], "verbs_only")):
            continue
        place = Place(program, urnicd, over)
        if (hasattr(namespace[name], "once") and (urnicd or over or place.sanitized) and name not in rest and
                not os.environ.get("URNIC_TEST_ALL")):
            place.close()
            continue
        start = time.monotonic()
        try:
            namespace[name](place)
            if place.dataplanes:
                place.dataplanes.close()
            verdict = "ok"
        except Exception:  # a test that fails must not hide the others
            traceback.print_exc()
            verdict = "FAILED"
            failed += 1
        finally:
            place.close()
        print(f"{verdict:7}{name} ({time.monotonic() - start:.1f} s): "
              f"{(namespace[name].__doc__ or '').strip()}", flush=True)
    sys.exit(1 if failed else 0)
