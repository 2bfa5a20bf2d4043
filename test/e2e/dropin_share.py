#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Memory of unmodified programs that becomes shared with the dataplane: urnic-run --share (doc/reference/dropin.md).

usage: dropin_share.py urnicd urnic-run CONFIG_FOLDER share urnicctl [TEST...]"""

import os
import random
import signal
import subprocess
import sys
import time
import unittest

import dropin_common
import dropin_fio
import dropin_mpi
import dropin_ucx

PROGRAM = None
KILLED = 16
AT_A_TIME = 4


class Base(dropin_common.Dropin):
    OPTIONS = ("--share",)

    def on(self, node, *command):
        return super().on(node, *self.OPTIONS, *command)

    def ranks(self):
        return [self.RUN, *self.OPTIONS, "--node", "a,b"]

    def case(self, name, *options):
        """Run a case of the program on both nodes' devices. returns: its messages"""
        p = subprocess.run([self.RUN, *(options or self.OPTIONS), PROGRAM, name], env=self.env, capture_output=True, text=True,
                           timeout=dropin_common.SECONDS * 2, check=False)
        self.assertEqual((p.returncode, p.stdout.splitlines()[-1:]), (0, ["good"]), (name, p.returncode, p.stdout, p.stderr))
        return p.stderr

    def fails(self, name, *options):
        p = subprocess.run([self.RUN, *options, PROGRAM, name], env=self.env, capture_output=True, text=True,
                           timeout=dropin_common.SECONDS, check=False)
        self.assertEqual(p.returncode, 1, p.stderr)
        return p.stderr


class Share(Base):
    def test_writers(self):
        """Threads write while pages move there and back: no update is lost."""
        self.case("writers")

    def test_threads(self):
        """Regions come and go in several threads, with realloc() and free()."""
        self.case("threads")

    def test_overlap(self):
        """Regions overlap, and go in any order; pages go back when the last has gone."""
        self.case("overlap")

    def test_heap(self):
        """Small buffers on the heap, and their neighbours."""
        self.case("heap")

    def test_fork(self):
        """A child has a copy of its own of shared pages, and so has its child."""
        self.case("fork")

    def test_forks(self):
        """Threads fork while others register and allocate."""
        self.case("forks")

    def test_held(self):
        """A debugger holds a child: its parent waits in fork(), and says so, because it would change the child's memory."""
        self.assertEqual(self.case("held").count("fork() waits until the child has its copy"), 1)

    def test_clone(self):
        """A child of a bare clone() lacks the shared pages."""
        self.case("clone")

    def test_spawn(self):
        """popen(), posix_spawn(), vfork() and exec."""
        self.case("spawn")

    def test_advise(self):
        """madvise() and mprotect() act like on private memory."""
        self.case("advise")

    def test_remap(self):
        """mremap() is refused while memory is registered, and grows it otherwise; so does realloc()."""
        self.case("remap")

    def test_unmap(self):
        """Memory that is unmapped while registered, or freed to the system."""
        self.case("unmap")

    def test_descriptors(self):
        """No descriptors left, or closed by the program."""
        self.case("descriptors")

    def test_kinds(self):
        """Memory of each kind is registered and works; that of others' or of threads stays as it is, and people are told why."""
        err = self.case("kinds")
        for why in ("not private, writable memory without a file", "a thread's stack", "locked memory"):
            self.assertIn(why, err)
        if "no huge pages" in err:
            print("no huge pages could be had", file=sys.stderr)

    def test_many(self):
        """A program has a bound of windows."""
        self.assertIn("no more descriptors or memory", self.case("many"))

    def test_blocked(self):
        """A thread that blocks signals can't be stopped: the region stays foreign memory, and works."""
        self.assertEqual(self.case("blocked").count("a thread of the program blocks the signal"), 1)

    def test_sigwait(self):
        """A thread that takes all signals by sigwait() gets none of ours, and no thread is stopped for it."""
        self.assertEqual(self.case("sigwait").count("a thread of the program waits for all signals (sigwait)"), 1)

    def test_rings(self):
        """No page moves while the program has a ring of io_uring or AIO, and no write of the kernel's is lost; pages in a pipe
        (vmsplice) keep their bytes."""
        err = self.case("rings")
        if "no AIO" not in err or "no io_uring" not in err:
            self.assertEqual(err.count("the program has a ring of io_uring or AIO"), 1, err)

    def test_killed(self):
        """Programs that are killed while their pages move leave nothing behind in urnicd, which shares with others after that."""
        dice, ended = random.Random(14), []
        for _ in range(KILLED // AT_A_TIME):
            programs = [self.popen(self.RUN, *self.OPTIONS, PROGRAM, "writers") for _ in range(AT_A_TIME)]
            for p in programs:
                time.sleep(dice.random() * 0.2)
                p.kill()
            ended += [self.ends(p)[0] for p in programs]
        # On a fast machine some have ended well before.
        self.assertLessEqual(set(ended), {0, -signal.SIGKILL}, ended)
        self.assertIn(-signal.SIGKILL, ended)
        self.until(lambda: self.show("client") == [])
        for what in ("client", "qp", "cq", "srq", "mr"):
            self.assertEqual(self.show(what), [], what)
        self.case("heap")

    def test_perftest(self):
        for program, *options in (("ib_write_bw", "-s", "65536", "-n", "200"), ("ib_send_lat", "-n", "200"),
                                  ("ib_read_bw", "-a", "-n", "5"), ("ib_atomic_bw", "-n", "100"),
                                  ("ib_send_bw", "-e", "-n", "100", "-q", "4", "--mr_per_qp"),
                                  # Without --share datagrams may be lost, and the receiver waits for all of them.
                                  ("ib_send_bw", "-c", "UD", "-q", "8", "-n", "100")):
            with self.subTest(program=program, options=options):
                self.pair(program, "-F", "-x", "1", *options)

    def test_pingpong(self):
        """Bytes are checked (-c)."""
        for program in ("ibv_rc_pingpong", "ibv_srq_pingpong", "ibv_ud_pingpong"):
            with self.subTest(program=program):
                for out in self.pair(program, "-g", "1", "-n", "100", "-c"):
                    self.assertRegex(out, r"\d+ iters in [\d.]+ seconds")

    def test_run(self):
        """--share says by the environment what is to be done; without it nothing moves."""
        def env(*options):
            return subprocess.run([self.RUN, *options, "env"], env=self.env, capture_output=True, text=True, check=True).stdout
        self.assertRegex(env("--share"), r"(?m)^URNIC_SHARE=1$")
        self.assertRegex(env("--share"), r"(?m)^LD_PRELOAD=\S*liburnic-share.so$")
        self.assertIn("LD_LIBRARY_PATH=", env("--share"))
        self.assertNotIn("URNIC_SHARE", env("--verbs"))
        self.assertIn("shared(piece[i])", self.fails("heap", "--verbs"))
        self.env["URNIC_SHARE"] = "1"
        err = self.fails("heap", "--verbs")
        self.assertIn("liburnic-share.so is not preloaded", err)


class Bound(Base):
    """A dataplane that lets a client share little."""
    LIMIT = "shared_per_client = 65M"

    def config(self, **lines):
        return super().config(**dict(lines, daemon=f"[limits]\n{self.LIMIT}"))

    def test_bound(self):
        """Beyond the bound regions are foreign memory, and work; the dataplane maps no more."""
        self.assertIn("the dataplane takes no more shared memory", self.case("bound"))


class BoundOfUser(Bound):
    """One that lets all programs of a user share little."""
    LIMIT = "shared_per_uid = 129M" # both ends share a window of 64 MiB


def others(base):
    """returns: the names of another script's tests, which are left out here"""
    return {name: None for name in unittest.defaultTestLoader.getTestCaseNames(base)}


# Programs of other projects, by other scripts' classes: they register, and check bytes, in their own ways.
class Ucx(type("Ucx", (Base, dropin_ucx.Ucx), others(dropin_ucx.Ucx))):
    def test_ucx(self):
        self.batch("rc_v", "tag_bw -s 65536 -n 20\ntag_bw -s 4194304 -n 4")

    def test_moves(self):
        """UCX's buffers, and the memory that it registers for itself, become shared, on both nodes."""
        port = str(dropin_common.free_port())
        command = ("ucx_perftest", "-t", "tag_bw", "-s", "4194304", "-n", "10000000", "-p", port)
        server = self.on("a", *command)
        self.until(lambda: dropin_common.listens(int(port)) or server.poll() is not None)
        self.on("b", *command, "127.0.0.1")

        def moved():
            regions = [r for r in self.show("mr") if r["kind"] == "region"]
            large = {r["adapter"] for r in regions if r["bytes"] >= 4194304}
            return large == {"a0", "b0"} and not any(r["foreign"] for r in regions)
        self.assertTrue(self.until(moved), self.show("mr"))


class Mpi(type("Mpi", (Base, dropin_mpi.Mpi), others(dropin_mpi.Mpi))):
    LARGEST = dropin_mpi.SMALL

    def test_mpi(self):
        """All bytes of messages and windows are checked."""
        self.env["UCX_TLS"] = "rc_v,self"
        self.openmpi("pml ucx", "osc ucx")


class Fio(type("Fio", (Base, dropin_fio.Fio), others(dropin_fio.Fio))):
    def test_fio(self):
        """The receiver checks each block."""
        self.check("send", verify="crc32c")


if __name__ == "__main__":
    Dropin = dropin_common.Dropin
    Dropin.NICD, Dropin.RUN, Dropin.CONFIG, PROGRAM, Dropin.CTL = map(os.path.abspath, sys.argv[1:6])
    dropin_common.huge_pages()
    dropin_common.ordinary_user(Base.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[6:], verbosity=2)
