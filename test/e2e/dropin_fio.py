#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian's fio, ioengine=rdma, by urnic-run (doc/reference/dropin.md).

usage: dropin_fio.py urnicd urnic-run CONFIG_FOLDER [TEST...]"""

import os
import sys
import unittest

import dropin_common

TRIES = 3
BLOCKS = 256
SERVER_VERB = {"write": "write", "read": "read", "send": "recv"}


class Fio(dropin_common.Dropin):
    def job(self, name, **options):
        path = os.path.join(self.dir.name, name + ".fio")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[{name}]\nioengine=rdma\nbs=16k\nsize={BLOCKS * 16}k\n")
            f.writelines(f"{k}={v}\n" for k, v in options.items())
        return path

    def on_file(self, node, path):
        """Start fio on a node. returns: the process, and a function for what it has written until then"""
        log = path + ".out"
        if os.path.exists(log):
            os.unlink(log)  # an earlier run's
        p = self.on(node, "sh", "-c", f"exec fio {path} >{log} 2>&1")

        def said():
            with open(log, encoding="utf-8", errors="replace") as f:
                return f.read()
        self.until(lambda: os.path.exists(log))
        return p, said

    def once(self, verb, server, client):
        """Run both. returns: exit codes and outputs, of the client and the server; a client's -9: it did not end"""
        port = dropin_common.free_port()
        # The server posts a buffer for each message at once: fio asks for no retries for a receiver that is not ready.
        s, server_said = self.on_file("a", self.job("server", rw="read", verb=SERVER_VERB[verb], port=port, iodepth=BLOCKS, **server))
        self.assertTrue(self.until(lambda: "waiting for connection" in server_said() or s.poll() is not None))
        c, client_said = self.on_file("b", self.job("client", rw="write", verb=verb, hostname="10.0.0.1", port=port, iodepth=8, **client))
        self.until(lambda: (c.poll() is not None and s.poll() is not None) or "retry counter exceeded" in client_said())
        codes = []
        for p in (c, s):
            if p.poll() is None:
                p.kill()
            codes.append(self.ends(p)[0])
        return codes, client_said(), server_said()

    def both(self, verb, server=None, client=None):
        for _ in range(TRIES):
            got = self.once(verb, server or {}, client or {})
            # On a machine without a free core the server may post its buffers only after the half second that fio waits.
            if "RNR retry counter exceeded" not in got[1] and not self.unlucky(got[0][0], got[1]):
                break
        return got

    def check(self, verb, **options):
        codes, client, server = self.both(verb, options, options and {**options, "do_verify": 0})
        self.assertEqual(codes, [0, 0], (client, server))
        self.assertRegex(client, rf"issued rwts: total=0,{BLOCKS},0,0 short=0,0,0,0 dropped=0,0,0,0")
        self.assertRegex(client, r"err= 0")
        self.assertRegex(server, r"err= 0")
        return server

    def test_write(self):
        self.check("write")

    def test_read(self):
        self.check("read")

    def test_send(self):
        self.assertRegex(self.check("send"), rf"issued rwts: total={BLOCKS},0,0,0 short")

    def test_verify(self):
        """The receiver checks each block: a checksum over all of it, and its place."""
        for how in ("crc32c", "sha256"):
            with self.subTest(verify=how):
                self.check("send", verify=how)

    def test_verify_finds(self):
        """The receiver's check is one: blocks without a checksum in them fail."""
        codes, client, server = self.both("send", {"verify": "crc32c"})
        self.assertEqual(codes[0], 0, client)
        self.assertNotEqual(codes[1], 0, server)
        self.assertIn("verify: bad magic header", server)


if __name__ == "__main__":
    Fio.NICD, Fio.RUN, Fio.CONFIG = map(os.path.abspath, sys.argv[1:4])
    dropin_common.ordinary_user(Fio.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
