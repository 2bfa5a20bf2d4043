#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Bad input from a program that knows nothing of urnic: the outcomes that rdma-core's manual pages promise
(doc/reference/dropin.md).

usage: dropin_bad.py urnicd urnic-run CONFIG_FOLDER PROGRAM urnicctl [TEST...]"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import dropin_common

PROGRAM = CTL = SETUID = None
KILLED = 50
AT_A_TIME = 5


class Bad(dropin_common.Dropin):
    def case(self, name):
        code, out = self.ends(self.program(name))
        self.assertEqual(code, 0, out)
        return out

    def program(self, *words):
        """Start the program on both nodes' devices."""
        p = subprocess.Popen([self.RUN, *([PROGRAM] if len(words) == 1 else []), *words], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, env=self.env)
        self.running.append(p)
        return p

    def show(self, what):
        p = subprocess.run([CTL, "--socket", self.socket, "--json", "show", what], env=self.env, capture_output=True, text=True,
                           timeout=dropin_common.SECONDS, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def nothing_left(self):
        """urnicd has no object of any program."""
        self.until(lambda: self.show("client") == [])
        for what in ("client", "qp", "cq", "srq", "mr"):
            self.assertEqual(self.show(what), [], what)

    def test_keys(self):
        """Wrong keys, ranges, rights and lengths: each request fails with its status, and requests behind it are flushed."""
        self.case("keys")

    def test_states(self):
        """Posting in the wrong state, moves that there are not, missing attributes."""
        self.case("states")

    def test_posts(self):
        """Requests that make no sense, and full queues."""
        self.case("posts")

    def test_overrun(self):
        """A CQ that overflows: IBV_EVENT_CQ_ERR, and its queue pairs go to the error state."""
        self.case("overrun")

    def test_order(self):
        """Objects that others use can't be destroyed: EBUSY. A device that is closed takes its objects along."""
        self.case("order")
        self.nothing_left()

    def test_closed(self):
        """A device that is closed is gone when the call returns: nothing writes into the program's memory any more."""
        self.case("closed")
        self.nothing_left()

    def test_thread_variables(self):
        """A program with megabytes of thread-local variables opens devices as well."""
        self.case("variables")

    def test_limits(self):
        """Too small a limit of the program's: a message says which one, and none of locked memory is needed."""
        for limit, want in (("-n 4", r"no descriptors left .*raise RLIMIT_NOFILE \(ulimit -n\)"),
                            ("-n 10", r"no descriptor to watch .*raise RLIMIT_NOFILE \(ulimit -n\)"),
                            ("-v 60000", r"no address space for the \d+ MiB .*raise RLIMIT_AS \(ulimit -v\)")):
            with self.subTest(limit=limit):
                code, out = self.ends(self.limited(limit))
                self.assertEqual(code, 1, out)
                self.assertRegex(out, "urnic-run: .*" + want)
        code, out = self.ends(self.limited("-l 0"))
        self.assertEqual(code, 0, out)

    def limited(self, limit):
        """Start the program under a limit of the shell's."""
        p = subprocess.Popen(["bash", "-c", f'ulimit {limit}; exec "$@"', "bash", self.RUN, PROGRAM, "order"],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.env)
        self.running.append(p)
        return p

    def test_threads(self):
        """Two threads post to one queue pair while two poll one CQ: each request completes once."""
        self.case("threads")

    def test_lacks(self):
        """XRC, device memory, on-demand paging, dma-buf: EOPNOTSUPP, and not advertised."""
        self.assertIn("urnic has no such thing", self.case("lacks"))

    def test_dlopen(self):
        """A program loads the library, opens a device, unloads the library, and does so again, with a device left open, too."""
        code, out = self.ends(self.program("python3", "-c", """
import ctypes
libc = ctypes.CDLL(None)
P = ctypes.c_void_p
libc.dlclose.argtypes = [P]
for i in range(4):
    lib = ctypes.CDLL("libibverbs.so.1")
    lib.ibv_get_device_list.restype = ctypes.POINTER(P)
    lib.ibv_open_device.restype = P
    lib.ibv_open_device.argtypes = lib.ibv_close_device.argtypes = [P]
    devices = lib.ibv_get_device_list(None)
    c = lib.ibv_open_device(devices[0])
    assert c
    lib.ibv_free_device_list(devices)
    if i < 3:
        assert lib.ibv_close_device(c) == 0
    libc.dlclose(lib._handle)
print("good")
"""))
        self.assertEqual((code, out), (0, "good\n"))

    def test_static(self):
        """A static program has rdma-core in it, and finds none of urnic's devices."""
        sources = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "dropin", name) for name in ("bad.c", "rig.c")]
        static = os.path.join(self.dir.name, "static")
        os.chmod(self.dir.name, 0o755)
        flags = subprocess.run(["pkg-config", "--static", "--libs", "libibverbs"], check=True, capture_output=True, text=True).stdout
        # The linker warns of names that a static program looks up by shared libraries.
        subprocess.run(["cc", "-D_GNU_SOURCE", "-static", "-o", static, *sources, *flags.split()], check=True, stderr=subprocess.DEVNULL)
        code, out = self.ends(self.program(static, "count"))
        self.assertEqual((code, out), (0, "0 devices\n"))

    def test_setuid(self):
        """A program with more rights than its user ignores the library's folder, and gets the system's library."""
        self.assertEqual(self.case("count"), "2 devices\n")
        if SETUID is None:
            print("not root: no set-user-ID program could be made", file=sys.stderr)
            return
        code, out = self.ends(self.program(SETUID, "count"))
        self.assertEqual((code, out), (0, "0 devices\n"))

    def test_killed(self):
        """Programs that are killed at any point leave nothing behind in urnicd."""
        dice = random.Random(14)
        for _ in range(KILLED // AT_A_TIME):
            programs = [self.program("churn") for _ in range(AT_A_TIME)]
            for p in programs:
                time.sleep(dice.random() * 0.08)
                self.assertIsNone(p.poll())
                p.kill()
            for p in programs:
                self.assertEqual(self.ends(p)[0], -9)
        self.nothing_left()
        self.case("keys")


def make_setuid():
    """A set-user-ID root program in a folder of its own, if this is root and the file system allows that."""
    if os.geteuid() != 0:
        return None
    folder = tempfile.mkdtemp(prefix="urnic-test.")
    os.chmod(folder, 0o755)
    path = os.path.join(folder, "bad")
    shutil.copy(PROGRAM, path)
    os.chmod(path, 0o4755)
    return None if os.statvfs(folder).f_flag & os.ST_NOSUID else path


if __name__ == "__main__":
    Bad.NICD, Bad.RUN, Bad.CONFIG, PROGRAM, CTL = map(os.path.abspath, sys.argv[1:6])
    SETUID = make_setuid()
    pid = os.fork() if SETUID else 0
    if pid:
        # Root stays to remove the program.
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        shutil.rmtree(os.path.dirname(SETUID))
        sys.exit(code if code >= 0 else 1)
    dropin_common.ordinary_user(Bad.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[6:], verbosity=2)
