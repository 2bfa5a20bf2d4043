#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian's UCX over the drop-in libraries: ucx_perftest and io_demo, and the files by which UCX finds a device
(doc/reference/dropin.md).

usage: dropin_ucx.py urnicd urnic-run CONFIG_FOLDER [TEST...]"""

import os
import re
import subprocess
import sys
import time
import unittest

import dropin_common

# Tests of ucx_perftest over both transports, and over RC alone.
BOTH = """
tag_lat -n 100
tag_bw -s 4194304 -n 4
stream_bw -s 4096 -n 100
ucp_am_bw -s 65536 -n 20
ucp_put_lat -n 50
ucp_get -s 65536 -n 10
ucp_fadd -n 50
"""
RC = """
tag_sync_lat -n 50
tag_bw -s 65536 -n 20
stream_lat -n 50
ucp_am_lat -n 50
ucp_put_bw -s 65536 -n 20
ucp_add -n 50
ucp_cswap -n 50
"""


class Ucx(dropin_common.Dropin):
    def setUp(self):
        super().setUp()
        # Nothing but urnic joins the two programs: UCX would take shared memory first.
        self.env.update(UCX_TLS="rc_v,self", UCX_WARN_UNUSED_ENV_VARS="n")

    def perftest(self, *options):
        """Run a pair. returns: the client's output"""
        return self.pair("ucx_perftest", "-w", "2", *options)[1]

    def batch(self, transport, tests):
        """Run many tests, each in programs of its own."""
        self.env["UCX_TLS"] = transport + ",self"
        for line in tests.strip().split("\n"):
            with self.subTest(test=line, transport=transport):
                self.assertIn("Final:", self.perftest("-t", *line.split()))

    def test_finds(self):
        """UCX lists the device with both transports."""
        del self.env["UCX_TLS"]
        code, out = self.ends(self.on("a", "ucx_info", "-d"))
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"Transport: rc_verbs\n# +Device: a0:1\n")
        self.assertRegex(out, r"Transport: ud_verbs\n# +Device: a0:1\n")
        self.assertNotIn("b0:1", out)

    def test_rc(self):
        self.batch("rc_v", BOTH + RC.lstrip())

    def test_ud(self):
        self.batch("ud_v", BOTH)

    def test_sleep(self):
        """A program that waits by descriptors is woken: a queue that has completions when it is armed tells at once."""
        for transport in ("rc_v", "ud_v"):
            self.env["UCX_TLS"] = transport + ",self"
            self.assertIn("Final:", self.perftest("-t", "tag_lat", "-n", "200", "-E", "sleep"))

    def test_uct(self):
        """The lower layer, without UCP, in one node: the client names the device of both."""
        for transport in ("rc_verbs", "ud_verbs"):
            port = str(dropin_common.free_port())
            command = ("ucx_perftest", "-x", transport, "-p", port)
            server = self.on("a", *command)
            self.until(lambda port=port, server=server: dropin_common.listens(int(port)) or server.poll() is not None)
            client = self.on("a", *command, "-d", "a0:1", "-t", "am_lat", "-n", "100", "-w", "5", "127.0.0.1")
            for p in (client, server):
                code, out = self.ends(p)
                self.assertEqual(code, 0, out)

    def io_demo(self, *options):
        """A server and a client, which checks all bytes; they find each other by RDMA-CM."""
        command = ("io_demo", "-p", "20777", "-q", "-d", "16:300000", *options)
        server = self.on("a", *command)
        time.sleep(0.3)  # not needed: the client tries again
        client = self.on("b", *command, "-i", "10", "-o", "read,write", "-c", "20", "-y", "0.5", "10.0.0.1")
        code, out = self.ends(client)
        server.kill()
        self.assertEqual(code, 0, (out, self.ends(server)))  # the server goes on for ever
        self.assertIn("Client exit with status 'OK'", out)
        self.assertNotIn("corruption", out)

    def test_io_demo(self):
        self.io_demo()
        self.io_demo("-A")
        self.env["UCX_TLS"] = "ud_v,self"
        self.io_demo()


class Paths(dropin_common.Dropin):
    """Files in /dev and /sys (liburnic-paths.so)."""

    def shell(self, text, node="a"):
        code, out = self.ends(self.on(node, "sh", "-c", text))
        self.assertEqual(code, 0, out)
        return out

    def test_files(self):
        out = self.shell("ls /dev/infiniband /sys/class/infiniband; cd /; cat /sys/class/infiniband/a0/ports/1/gids/1 "
                         "/sys/class/infiniband/a0/ports/1/gid_attrs/types/1 /sys/class/infiniband/a0/node_type; "
                         "test -c /dev/infiniband/a0 && test -w /dev/infiniband/a0 && echo device")
        self.assertEqual(out, "/dev/infiniband:\na0\n\n/sys/class/infiniband:\na0\n"
                              "0000:0000:0000:0000:0000:ffff:0a00:0001\nRoCE v2\n1: CA\ndevice\n")
        self.assertIn("b0", self.shell("ls /sys/class/infiniband", node="b"))

    def test_guid(self):
        """The file says what the call does."""
        out = self.shell("ibv_devices | tail -1; cat /sys/class/infiniband/a0/node_guid").split()
        self.assertEqual(out[1], out[2].replace(":", ""))

    def test_inherits(self):
        """Children of fork() and of exec() see the same; a child that has no environment sees the system."""
        self.assertEqual(self.shell("(ls /dev/infiniband); env sh -c 'ls /dev/infiniband'"), "a0\na0\n")
        self.assertEqual(self.shell("env -i /bin/ls /sys/class/infiniband 2>&1 || true"),
                         subprocess.run("/bin/ls /sys/class/infiniband 2>&1", shell=True, capture_output=True, text=True,
                                        check=False).stdout)

    def test_others(self):
        """Other paths are the system's: a walk through folders of the system shows the same with the library and without."""
        walk = ("stat -c '%n %i %a %u %F' / /dev /dev/null /sys/class /sys/class/net /etc /proc/self/exe /none; ls /sys/class /etc; "
                "head -3 /etc/passwd; readlink -f /dev/stdin; true")
        plain = subprocess.run(["sh", "-c", walk], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True).stdout
        p = subprocess.run([self.RUN, "sh", "-c", walk], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=self.env,
                           check=True)
        drop = re.compile(r".*/proc/self/exe.*\n")  # another number for each process
        self.assertEqual(drop.sub("", p.stdout), drop.sub("", plain))

    def test_gone(self):
        """Without urnicd the files are gone; a program that is killed leaves nothing."""
        script = "ls /sys/class/infiniband; echo now; read x; ls /sys/class/infiniband || echo gone; kill -9 $$"
        before = set(os.listdir("/tmp")) | set(os.listdir("/dev/shm"))
        p = subprocess.Popen([self.RUN, "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, env=self.env)
        self.running.append(p)
        self.assertEqual(p.stdout.readline(), "a0\n")
        self.assertEqual(p.stdout.readline(), "b0\n")
        self.assertEqual(p.stdout.readline(), "now\n")
        code, err = self.stop(self.nicd)
        self.assertEqual(code, 0, err)
        self.running.remove(self.nicd)
        out, _ = p.communicate("\n", timeout=dropin_common.SECONDS)
        self.running.remove(p)
        self.assertEqual(out, "gone\n")
        left = (set(os.listdir("/tmp")) | set(os.listdir("/dev/shm"))) - before
        self.assertEqual([name for name in left if "urnic" in name and "test" not in name and self.owns(name)], [])

    @staticmethod
    def owns(name):
        """True when this user made a file; other users' programs run, too."""
        for folder in ("/tmp", "/dev/shm"):
            try:
                return os.stat(os.path.join(folder, name)).st_uid == os.geteuid()
            except OSError:
                pass
        return False


if __name__ == "__main__":
    dropin_common.Dropin.NICD, dropin_common.Dropin.RUN, dropin_common.Dropin.CONFIG = map(os.path.abspath, sys.argv[1:4])
    dropin_common.ordinary_user(dropin_common.Dropin.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
