#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Faults on demand under unmodified programs of Debian's packages: urnic-run --fault (doc/reference/faults.md).

usage: dropin_fault.py urnicd urnic-run CONFIG_FOLDER urnicctl [TEST...]"""

import os
import re
import shlex
import signal
import subprocess
import sys
import unittest

import dropin_common

PERFTEST = ("-F", "-x", "1", "-n", "1000")
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../doc/reference/faults.md")
PINGPONG = ("ibv_rc_pingpong", "-g", "1", "-n", "2000")
# By recipe of the page: how a program is run with it, the program, and what its output then has.
RECIPES = {
    "post_send:every 10=ENOMEM": ("client", PINGPONG, "Couldn't post send"),
    "wc_send@qp1:500=RETRY_EXC": ("client", PINGPONG, "Failed status transport retry counter exceeded"),
    "reg_mr:2+=ENOMEM": ("client", ("ib_write_bw", *PERFTEST, "-q", "2", "--mr_per_qp"), "Couldn't allocate MR"),
    "wc_recv:1%=LOC_LEN_ERR": ("client", ("ib_send_lat", *PERFTEST, "-u", "18"), r"Failed status 1\b"),
    # The last fault ends the program, which would watch for ever.
    "event:2s=PORT_ERR": ("alone", ("ibv_asyncwatch",), "(?s)PORT_ERR.*PORT_ACTIVE", "event:5s=DEVICE_FATAL"),
    "event:3s=DEVICE_FATAL": ("alone", ("ibv_asyncwatch",), "DEVICE_FATAL"),
    "create_qp:2=ENOMEM": ("client", ("ib_write_bw", *PERFTEST, "-q", "2"), "[Uu]nable to create QP|Couldn't create QP"),
}


class Fault(dropin_common.Dropin):
    def faulty(self, node, faults, *command, seed=None):
        """Start a program with faults."""
        options = [word for f in faults for word in ("--fault", f)] + (["--seed", seed] if seed else [])
        p = subprocess.Popen([self.RUN, "--node", node, *options, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, env=self.env)
        self.running.append(p)
        return p

    def alone(self, faults, *command, seed=None):
        """Run a program that meets a fault by itself. returns: its exit code and output"""
        return self.ends(self.faulty("a", faults, *command, seed=seed))

    def client(self, faults, *command, waits=False, seed=None):
        """Run a pair whose client has faults. returns: the client's exit code and output, and the server's"""
        port = str(dropin_common.free_port())
        server = self.on("a", *command, "-p", port)
        self.until(lambda: dropin_common.listens(int(port)) or server.poll() is not None)
        code, out = self.ends(self.faulty("b", faults, *command, "-p", port, "127.0.0.1", seed=seed))
        if waits:
            return code, out, self.ends(server)
        server.kill()
        self.ends(server)
        return code, out

    def test_words(self):
        """A fault that makes no sense is refused, with the place where."""
        for fault, at, why in (("post_snd:3=ENOMEM", 1, "nothing fails by the name 'post_snd'"),
                               ("post_send:0=ENOMEM", 11, "counting begins with 1"),
                               ("post_send:2s=ENOMEM", 11, "has no time"),
                               ("post_send@cq1=ENOMEM", 11, "not about a queue of this kind"),
                               ("post_send:3", 12, "a = and what happens are missing"),
                               ("post_send:3=ENOMEN", 13, "there is no error 'ENOMEN'"),
                               ("wc:1=SUCCESS", 6, "there is no status 'SUCCESS'"),
                               ("wc_recv:1=RETRY_EXC", 11, "only completions of sends"),
                               ("event:1s=QP_LOST", 10, "there is no event 'QP_LOST'"),
                               ("poll_cq:101%=EIO", 9, "at most 100%"),
                               ("kill-peer:2s now", 14, "does not belong here")):
            with self.subTest(fault=fault):
                p = subprocess.run([self.RUN, "--fault", fault, "true"], env=self.env, capture_output=True, text=True, check=False,
                                   timeout=dropin_common.SECONDS)
                self.assertEqual((p.returncode, p.stdout), (2, ""))
                self.assertIn(f"urnic-run: fault '{fault}', at character {at}: ", p.stderr)
                self.assertIn(why, p.stderr)
        code, out = self.alone(["post_send:3=ENOMEM", "wc:5%=RETRY_EXC"], "env", seed="7")
        self.assertEqual(code, 0)
        self.assertIn("URNIC_FAULT=post_send:3=ENOMEM;wc:5%=RETRY_EXC\n", out)
        self.assertIn("URNIC_FAULT_SEED=7\n", out)
        self.assertEqual(self.alone([], "true", seed="x")[0], 2)
        # The variable alone does as well, and a program that is given nonsense by it finds no device.
        self.env["URNIC_FAULT"] = "alloc_pd=ENOMEM"
        self.assertIn("Couldn't allocate PD", self.ends(self.on("a", "ibv_rc_pingpong", "-g", "1"))[1])
        self.env["URNIC_FAULT"] = "alloc_pd=NO"
        self.assertEqual(self.ends(self.on("a", "ibv_devinfo"))[0], 2)

    def test_setup(self):
        """Each call of the set-up that fails is told by ibv_rc_pingpong."""
        for fault, want in (("open_device=EMFILE", "Couldn't get context"), ("alloc_pd=ENOMEM", "Couldn't allocate PD"),
                            ("reg_mr=ENOMEM", "Couldn't register MR"), ("create_cq=ENOMEM", "Couldn't create CQ"),
                            ("create_qp=EINVAL", "Couldn't create QP"), ("modify_qp=EINVAL", "Failed to modify QP to INIT"),
                            ("query_port=EIO", "Couldn't get port info"), ("query_gid=EIO", "can't read sgid"),
                            ("post_recv=ENOMEM", r"Couldn't post receive \(0\)"),
                            ("create_comp_channel=EMFILE", "Couldn't create completion channel")):
            with self.subTest(fault=fault):
                code, out = self.alone([fault], "ibv_rc_pingpong", "-g", "1", "-e", "-p", str(dropin_common.free_port()))
                self.assertGreater(code, 0, out)
                self.assertRegex(out, want)

    def test_posting(self):
        """The nth call fails and those before do not; by queue, too."""
        code, out = self.client(["post_send:3=ENOMEM"], "ibv_rc_pingpong", "-g", "1", "-n", "100")
        self.assertEqual(code, 1, out)
        self.assertIn("Couldn't post send", out)
        for faults in (["post_send:1000=ENOMEM"], ["post_send@qp2=EIO"], ["post_recv@qp2:1+=EIO"], ["post_send:0%=EIO"]):
            code, out, server = self.client(faults, "ibv_rc_pingpong", "-g", "1", "-n", "100", waits=True)
            self.assertEqual((code, server[0]), (0, 0), (faults, out, server))
        code, out = self.client(["post_send@qp*:every 2=ENOMEM"], "ibv_rc_pingpong", "-g", "1", "-n", "100", "-N")
        self.assertEqual(code, 1, out)
        self.assertIn("Couldn't post send", out)
        code, out = self.client(["post_send@qp8=EIO"], "ib_write_bw", *PERFTEST, "-q", "8")
        self.assertRegex(out, "Couldn't post send: qp 7")

    def test_completions(self):
        """The nth completion fails; requests behind it are flushed, and the peer notices the end."""
        code, out = self.client(["wc:20=RNR_RETRY_EXC"], "ibv_rc_pingpong", "-g", "1", "-n", "100")
        self.assertEqual(code, 1, out)
        self.assertRegex(out, r"Failed status RNR retry counter exceeded \(13\) for wr_id 2")
        code, out = self.client(["wc_recv:5=IBV_WC_LOC_LEN_ERR"], "ibv_rc_pingpong", "-g", "1", "-n", "100")
        self.assertRegex(out, r"Failed status local length error \(1\) for wr_id 1")
        code, out = self.client(["wc:100=REM_ACCESS_ERR"], "ib_write_bw", *PERFTEST)
        self.assertRegex(out, r"Completion with error.*|Failed status 10")
        code, out = self.client(["poll_cq:50+=EIO"], "ib_write_bw", *PERFTEST)
        self.assertRegex(out, "poll CQ failed|Failed to poll|completion", out)

    def test_events(self):
        """Events of the port and the device after a time, in their order; ibv_asyncwatch prints them."""
        watch = self.faulty("a", ["event:100ms=PORT_ERR", "event:200ms=GID_CHANGE", "event:300ms=IBV_EVENT_PORT_ACTIVE",
                                  "event@qp1:350ms=QP_FATAL", "event:400ms=DEVICE_FATAL"], "ibv_asyncwatch")
        code, out = self.ends(watch)
        self.assertEqual(code, 1, out)
        self.assertEqual(re.findall(r"event_type (.*?),", out),
                         [f"IBV_EVENT_{e}" for e in ("PORT_ERR (10)", "GID_CHANGE (18)", "PORT_ACTIVE (9)", "DEVICE_FATAL (8)")], out)
        self.assertIn("urnic: the event QP_FATAL on demand: the program has no such queue now", out)

    def test_files(self):
        """Faults are the program's: files in /sys show what is there, and nothing is counted for them."""
        self.assertEqual(self.ends(self.faulty("a", ["open_device=EIO", "event:0s=DEVICE_FATAL"], "ls", "/sys/class/infiniband")),
                         (0, "a0\n"))

    def test_rping(self):
        """RDMA-CM programs: a failed completion and a failed set-up end rping's client, and not its server's urnicd."""
        port = str(dropin_common.free_port())
        server = self.on("a", "rping", "-s", "-a", "10.0.0.1", "-p", port, "-C", "10", "-V")
        for fault, want in (("create_qp=ENOMEM", "rdma_create_qp|setup_qp|Cannot allocate"), ("wc:4=REM_OP_ERR", "cq completion failed status 11|failed with status")):
            code, out = self.connects(fault, port)
            self.assertRegex(out, want)
            self.assertNotEqual(code, 0)
            if server.poll() is not None:
                self.ends(server)
                server = self.on("a", "rping", "-s", "-a", "10.0.0.1", "-p", port, "-C", "10", "-V")

    def connects(self, fault, port):
        """Run rping's client until the server listens. returns: its exit code and output"""
        def once():
            code, out = self.ends(self.faulty("b", [fault], "rping", "-c", "-a", "10.0.0.1", "-p", port, "-C", "10", "-V"))
            return None if re.search(r"REJECTED|error 8|status 8", out) else (code, out)
        return self.until(once)

    def recipes(self):
        """returns: the options of each recipe of the page, a list of words"""
        with open(PAGE, encoding="utf-8") as f:
            table = f.read().partition("## Recipes")[2].partition("Loss, delay")[0]
        return [shlex.split(words) for words in re.findall(r"(?m)^\|.*\| (?:\w+: )?`(--fault .*)` \|$", table)]

    def test_recipes(self):
        """Each recipe of the page does to a program what the page says, as it is written there."""
        recipes = {words[1]: words for words in self.recipes()}
        self.assertEqual(set(recipes), {*RECIPES, "kill-peer:1000"})
        for fault, (how, command, want, *more) in RECIPES.items():
            with self.subTest(recipe=recipes[fault]):
                seed = "3" if "--seed" in recipes[fault] else None
                faults = [b for a, b in zip(recipes[fault], recipes[fault][1:]) if a == "--fault"]
                code, out = (self.client if how == "client" else self.alone)(faults + more, *command, seed=seed)
                self.assertGreater(code, 0, out)
                self.assertRegex(out, want)

    def test_recipe_of_peer(self):
        """A recipe for a server: its client dies in the middle."""
        port = str(dropin_common.free_port())
        write = ("ib_send_bw", *PERFTEST[:3], "-n", "100000", "-p", port)
        server = self.faulty("a", ["kill-peer:1000"], *write)
        self.until(lambda: dropin_common.listens(int(port)) or server.poll() is not None)
        client = self.on("b", *write, "127.0.0.1")
        self.assertEqual(self.ends(client)[0], -signal.SIGKILL)
        server.kill()
        self.ends(server)

    def serve(self, node):
        """Start a server of writes that take long. returns: its process and port"""
        port = str(dropin_common.free_port())
        server = self.on(node, "ib_write_bw", *PERFTEST[:3], "-D", "30", "-p", port)
        self.until(lambda: dropin_common.listens(int(port)) or server.poll() is not None)
        return server, port

    def test_kill_peer(self):
        """The peer's process is killed after so many completions, and no other one; the client gets its errors."""
        write = ("ib_write_bw", *PERFTEST[:3], "-D", "30", "-p")
        for serves, asks in (("a", "b"), ("b", "a")):
            # Two more pairs, of which one goes the other way: their queue pairs have numbers like those of the first.
            other, port = self.serve(serves)
            others = [other, self.on(asks, *write, port, "127.0.0.1")]
            other, port = self.serve(asks)
            others += [other, self.on(serves, *write, port, "127.0.0.1")]
            self.assertTrue(self.until(lambda: len(self.show("qp")) >= 4))
            server, port = self.serve(serves)
            client = self.faulty(asks, ["kill-peer:50"], *write, port, "127.0.0.1")
            code, out = self.ends(server)
            self.assertEqual(code, -signal.SIGKILL, out)
            self.assertEqual([p.poll() for p in others], [None] * 4)
            for p in (client, *others):
                p.kill()
                self.ends(p)

    def test_kill_peer_later(self):
        """A time instead of a number of completions."""
        write = ("ib_write_bw", *PERFTEST[:3], "-D", "30", "-p")
        server, port = self.serve("a")
        client = self.faulty("b", ["kill-peer:1s"], *write, port, "127.0.0.1")
        code, out = self.ends(server)
        self.assertEqual(code, -signal.SIGKILL, out)
        client.kill()
        self.ends(client)


if __name__ == "__main__":
    Fault.NICD, Fault.RUN, Fault.CONFIG, Fault.CTL = map(os.path.abspath, sys.argv[1:5])
    dropin_common.ordinary_user(Fault.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
