#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnicd as systemd runs it: the unit has no mistakes; with the user, folders and variables of the
unit urnicd says when it is ready and when it stops, and leaves its folder empty."""

import os
import re
import signal
import socket
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # no cache of urnicd_common
from urnicd_common import Nicd, SECONDS


class Service(Nicd):
    def unit(self):
        with open(self.UNIT, encoding="utf-8") as f:
            return f.read()

    def test_unit(self):
        path = os.path.join(self.dir.name, "urnicd.service")
        text, n = re.subn(r"(?m)^ExecStart=/\S+/bin/urnicd ", f"ExecStart={self.NICD} ", self.unit())
        self.assertEqual(n, 1)
        for wrong, words in ((None, ""), ("Type=notify\nTpye=x", "Tpye"), ("Restart=perhaps", "perhaps")):
            with open(path, "w", encoding="utf-8") as f:
                f.write(re.sub(rf"(?m)^{wrong.split('=')[0]}=.*$", wrong, text) if wrong else text)
            p = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True,
                               timeout=SECONDS, check=False, env=dict(self.env, SYSTEMD_LOG_LEVEL="warning"))
            said = "\n".join(l for l in (p.stdout + p.stderr).splitlines() if path in l or "urnicd" in l)
            if wrong:
                self.assertIn(words, said)
            else:
                self.assertEqual((p.returncode, said), (0, ""))

    def test_memory(self):
        """Programs that fill the machine's memory end before urnicd, and urnicd may have the descriptors of all clients."""
        self.assertLess(int(re.search(r"(?m)^OOMScoreAdjust=(-?\d+)$", self.unit())[1]), 0)
        self.assertGreaterEqual(int(re.search(r"(?m)^LimitNOFILE=(\d+)$", self.unit())[1]), 4096 * 16)

    def notes(self, s):
        """The next message to the service manager."""
        s.settimeout(SECONDS)
        return s.recv(1000).decode()

    def run_as_unit(self, user):
        run = os.path.join(self.run, "urnic")  # the unit's RuntimeDirectory
        os.mkdir(run, 0o755)
        os.chmod(self.dir.name, 0o755)
        os.chmod(self.run, 0o555)  # like /run, in which the service may not make files
        if user is not None:
            os.chown(run, user, user)
        env = dict(re.findall(r"(\w+)=(\S+)", re.search(r"(?m)^Environment=(.*)$", self.unit())[1]))
        self.assertEqual(env, {"XDG_RUNTIME_DIR": "/run", "TMPDIR": "/run/urnic"})
        note = os.path.join(self.dir.name, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(note)
            os.chmod(note, 0o666)
            self.env = {"PATH": os.environ["PATH"], "RUNTIME_DIRECTORY": run, "NOTIFY_SOCKET": note,
                        **{k: v.replace("/run", self.run, 1) for k, v in env.items()}}
            for more in ("", "file_prefix = nic"):
                config = self.config(eal=more)
                with open(config, encoding="utf-8") as f:
                    text = f.read().replace(f"socket = {self.socket}\n", "")
                with open(config, "w", encoding="utf-8") as f:
                    f.write(text)
                p = self.popen(self.NICD, "-c", config, umask=0o077, cwd=run,
                               **({} if user is None else {"user": user, "group": user, "extra_groups": []}))
                self.assertEqual(self.notes(s), "READY=1", p.poll())
                self.assertTrue(os.path.exists(os.path.join(run, "urnicd.sock")))
                self.assertEqual(set(os.listdir(self.run)), {"urnic"})
                p.send_signal(signal.SIGTERM)
                self.assertEqual(self.notes(s), "STOPPING=1")
                p.communicate(timeout=SECONDS)
                self.assertEqual(p.returncode, 0)
                self.assertEqual(os.listdir(run), [])

    def test_in_its_surroundings(self):
        """urnicd runs as an ordinary user, like in the unit, because root's socket would be elsewhere."""
        try:
            self.run_as_unit(65534 if os.getuid() == 0 else None)
        finally:
            os.chmod(self.run, 0o755)


if __name__ == "__main__":
    Nicd.NICD, Nicd.PERF, Nicd.CONFIG, Service.UNIT = map(os.path.abspath, sys.argv[1:5])
    del sys.argv[1:5]
    unittest.main()
