#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Links of adapters that go down and up under programs that know nothing of sessions (FO-10, FO-11).

usage: session_link.py URNICD URNIC_RUN URNICCTL URNIC_SWITCH SESSION_STREAM [TEST...]"""

import os
import re
import subprocess
import sys
import unittest

import dropin_common
import session_heal

MOVED = re.compile(r"step \w+ -> MIGRATED .* took us=(\d+)")


class Link(session_heal.Heal):
    def port(self, name, how):
        """Let a person handle a port, as at the console."""
        subprocess.run([self.CTL, "--socket", self.path(name, "sock"), "port", "p0", how], env=self.env, check=True,
                       capture_output=True, text=True)

    def told_by(self, log, text):
        self.assertTrue(self.until(lambda: log.count(text)), (text, self.told()))

    def loses_link(self, how):
        """The link of a primary adapter goes down: its connections move, and are back when the backup is lost."""
        pair = self.begin_pair()
        self.more(pair)
        marks = self.marks()
        a = self.logs[0]
        self.port("ap", how)
        self.told_by(a, "adapter ap has its link down, noticed after us=")
        self.told_by(a, "lost path=P-P because the link of the primary adapter is down")
        self.told_by(a, "lost path=P-S because the link of the primary adapter is down")
        self.more(pair)
        self.assertTrue(self.until(lambda: any(MOVED.search(line) for line in a.lines[:])), self.told())
        self.assertFalse(a.count("is lost"), self.told())
        self.assertEqual(a.count(" trusted path=P-"), 0, self.told())
        self.port("ap", "up")
        self.told_by(a, "adapter ap has its link up")
        self.heals(marks)
        self.kill("as")
        self.more(pair)
        self.finish(pair)

    def test_fail(self):
        """By `port fail`."""
        self.loses_link("fail")

    def test_down(self):
        """By `port down`."""
        self.loses_link("down")

    def test_backup(self):
        """The link of a backup: traffic stays, and its paths come back."""
        pair = self.begin_pair()
        self.more(pair)
        marks = self.marks()
        self.port("bs", "fail")
        self.told_by(self.logs[1], "lost path=S-S because the link of the backup adapter is down")
        self.more(pair)
        # Retries of a busy machine may move traffic; the link of another path may not.
        self.assertFalse([line for line in self.told() if "because the link" in line and
                          (" step " in line or "lost path=P-" in line)], self.told())
        self.port("bs", "up")
        self.heals(marks)
        self.finish(pair)


if __name__ == "__main__":
    Link.NICD, Link.RUN, Link.CTL, Link.SWITCH, Link.STREAM = map(os.path.abspath, sys.argv[1:6])
    dropin_common.ordinary_user(Link.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[6:], verbosity=2)
