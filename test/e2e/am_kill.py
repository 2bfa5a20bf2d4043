#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Deaths around endpoints of active messages and remote memory: of urnicd, and of a program (AM-1 to AM-4, AM-11).

usage: am_kill.py urnicd am-lives CONFIG_FOLDER urnicctl [TEST...]"""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

import urnicd_common

LIVES = CTL = None
SECONDS = 60


class Kill(urnicd_common.Nicd):
    def setUp(self):
        super().setUp()
        self.nicd, _ = self.start()

    def tearDown(self):
        for p in self.running:
            if p is not self.nicd and p.poll() is None:
                p.kill()
                p.communicate()
        if self.nicd.poll() is None:
            code, err = self.stop(self.nicd)
            self.assertEqual(code, 0, err)
        super().tearDown()

    def lives(self):
        p = self.popen(LIVES, self.socket, stdin=subprocess.PIPE)
        self.lines(p, "works")
        return p

    def lines(self, p, last):
        """Lines that the program says, up to the last."""
        signal.signal(signal.SIGALRM, lambda *_: self.fail(f"silent; wanted: {last}"))
        signal.alarm(SECONDS)
        said = []
        while not said or said[-1] != last:
            line = p.stdout.readline()
            self.assertNotEqual(line, "", f"{said} {p.poll()}")
            said.append(line.strip())
        signal.alarm(0)
        return said

    def tell(self, p):
        p.stdin.write("go on\n")
        p.stdin.flush()

    def show(self, *what):
        p = subprocess.run([CTL, "--socket", self.socket, "--json", "show", *what], env=self.env, capture_output=True,
                           text=True, timeout=SECONDS, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def test_urnicd_killed(self):
        """Each operation and request ends once with an error, calls say EIO, and both ends can be made anew."""
        p = self.lives()
        self.tell(p)
        self.lines(p, "waits")
        self.nicd.kill()
        self.nicd.communicate()
        self.assertEqual(self.lines(p, "dead"), [
            "pending 0, in time 1", "all ended 1", "operation unreachable, request EIO", "region EIO", "endpoint 0 EIO",
            "server EIO", "dead"])
        self.nicd, _ = self.start()
        self.tell(p)
        self.assertEqual(self.lines(p, "end"), [
            "again 1 1 0", "old address no-endpoint", "old endpoint EIO", "read 2", "end"])
        self.assertEqual(p.wait(SECONDS), 0)

    def test_urnicd_killed_while_busy(self):
        """The same in midst of requests that are answered."""
        p = self.lives()
        self.nicd.kill()
        self.nicd.communicate()
        said = self.lines(p, "dead")
        self.assertEqual(said[:2], ["pending 0, in time 1", "all ended 1"])
        self.assertEqual(said[-2:], ["server EIO", "dead"])

    def test_program_killed(self):
        """Endpoints of a program are shown, and are gone with it."""
        p = self.lives()
        rows = self.show("am")
        self.assertEqual(sorted(r["adapter"] for r in rows), ["a0", "b0"])
        a = next(r for r in rows if r["adapter"] == "a0")
        self.assertGreater(a["commands"], 100)
        self.assertGreater(a["done"], 100)
        self.assertEqual((a["failed"], a["last_error"], a["regions"], a["ranges"]), (0, "", 1, 1))
        self.assertLessEqual(a["packets"], 256)
        self.assertEqual(self.show("am", "client", str(a["client"])) and
                         [r["client"] for r in self.show("am", "client", str(a["client"]))], [a["client"]])
        client = next(r for r in self.show("client") if r["client"] == a["client"])
        self.assertEqual((client["qps"], client["am_endpoints"]), (0, 1))
        p.kill()
        p.wait()
        end = time.time() + SECONDS
        while self.show("am") and time.time() < end:
            time.sleep(0.05)
        self.assertEqual(self.show("am"), [])


if __name__ == "__main__":
    urnicd_common.Nicd.NICD, LIVES, urnicd_common.Nicd.CONFIG, CTL = map(os.path.abspath, sys.argv[1:5])
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
