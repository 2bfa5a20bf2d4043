#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-web while a program's connection really moves from one urnicd to another (FO-9).

usage: urnic_web_failover.py URNICD URNIC_RUN URNICCTL URNIC_SWITCH SESSION_STREAM URNIC_WEB"""

import http.client
import json
import os
import re
import signal
import sys
import unittest

sys.dont_write_bytecode = True
import dropin_common
import session_log


class Moves(session_log.Log):
    WEB = None
    # Tests of the log itself are session_log.py's.
    test_kill = test_all = test_stderr = test_no_file = test_no_place = test_levels = None

    def state(self):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=dropin_common.SECONDS)
        c.request("GET", "/state.json")
        try:
            return json.loads(c.getresponse().read())
        finally:
            c.close()

    def test_page(self):
        """The page tells of the urnicd that is lost, why the connection stops, and where it goes on."""
        web = self.popen(self.WEB, "--listen", "127.0.0.1:0", "--interval", "0.2", "--socket", self.path("ap", "sock"),
                         "--socket", self.path("as", "sock"), "--session-log", self.path("a", "log"))
        self.port = int(re.search(r":(\d+)/ shows", web.stderr.readline())[1])
        pair = self.begin_pair()
        self.more(pair)

        def sends(place):
            view = self.state()["dataplanes"][place]["view"]
            return view and view["adapters"][0]["tx_packets_per_s"] > 0
        self.assertTrue(self.until(lambda: sends(0)))
        self.kill("ap")
        self.more(pair)
        self.assertTrue(self.until(lambda: sends(1)))

        # The library may notice the end of the process first, or that of its queue pairs: the reason differs.
        def told():
            state = self.state()
            texts = [e["text"] for e in state["events"] if e["kind"] == "failover"]
            return (state["dataplanes"][0]["state"] == "away" and state["dataplanes"][1]["state"] == "up" and
                    any(re.fullmatch(r"connection \d+ to \d+ stops, to move, because .+", t) for t in texts) and "adapter ap is lost" in texts and
                    any(re.fullmatch(r"connection \d+ to \d+ moved to its path from the backup adapter here to the (primary|backup) one of its peer in [\d.]+ ms", t) for t in texts))
        self.assertTrue(self.until(told), self.state()["events"])
        self.finish(pair)
        web.send_signal(signal.SIGTERM)
        self.assertEqual(self.ends(web), (0, ""))


if __name__ == "__main__":
    Moves.NICD, Moves.RUN, Moves.CTL, Moves.SWITCH, Moves.STREAM, Moves.WEB = map(os.path.abspath, sys.argv[1:7])
    dropin_common.ordinary_user(Moves.RUN)
    unittest.main(argv=sys.argv[:1], verbosity=2)
