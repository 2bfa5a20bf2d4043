#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Listeners of both address families at one port of the drop-in librdmacm.so.1 (CM-1).

usage: rdmacm_families.py urnicd urnic-run CONFIG_FOLDER [TEST...]"""

import os
import re
import subprocess
import sys
import unittest

import dropin_common

PROGRAM = r"""
import ctypes, errno, ipaddress, socket, struct, sys
lib = ctypes.CDLL("librdmacm.so.1", use_errno=True)
PTR = ctypes.c_void_p
lib.rdma_create_event_channel.restype = PTR
for name, n in (("rdma_create_id", 4), ("rdma_bind_addr", 2), ("rdma_connect", 2), ("rdma_get_cm_event", 2), ("rdma_ack_cm_event", 1),
                ("rdma_destroy_id", 1)):
    getattr(lib, name).argtypes = [PTR] * n
lib.rdma_create_id.argtypes[3:] = [ctypes.c_int]
lib.rdma_listen.argtypes = [PTR, ctypes.c_int]
lib.rdma_set_option.argtypes = [PTR, ctypes.c_int, ctypes.c_int, PTR, ctypes.c_size_t]
lib.rdma_resolve_addr.argtypes = [PTR, PTR, PTR, ctypes.c_int]
lib.rdma_resolve_route.argtypes = [PTR, ctypes.c_int]
# Datagrams: a request needs no queue pair.
PORT, UDP, ANY = 5000, 0x111, ("0.0.0.0", "::")

def addr(text):
    a = ipaddress.ip_address(text)
    if a.version == 4:
        return struct.pack("=H", socket.AF_INET) + struct.pack(">H", PORT) + a.packed + bytes(8)
    return struct.pack("=H", socket.AF_INET6) + struct.pack(">HI", PORT, 0) + a.packed + bytes(4)

class Id:
    def __init__(self):
        self.channel = lib.rdma_create_event_channel()
        self.id = PTR()
        assert lib.rdma_create_id(self.channel, ctypes.byref(self.id), None, UDP) == 0
    def bind(self, text, only=True):
        one = ctypes.c_int(only)
        assert lib.rdma_set_option(self.id, 0, 2, ctypes.byref(one), 4) == 0
        return 0 if lib.rdma_bind_addr(self.id, addr(text)) == 0 else ctypes.get_errno()
    def event(self):
        "returns: kind, id of the listener; the event is acknowledged"
        e = PTR()
        assert lib.rdma_get_cm_event(self.channel, ctypes.byref(e)) == 0
        _, listener, kind = struct.unpack("PPi", ctypes.string_at(e.value, 20))
        lib.rdma_ack_cm_event(e)
        return kind, listener
    def end(self):
        assert lib.rdma_destroy_id(self.id) == 0

def listen(only=True):
    ids = [Id(), Id()]
    assert ids[0].bind(ANY[0], only) == 0
    return ids, ids[1].bind(ANY[1], only)

ids, err = listen(False)
assert err == errno.EADDRINUSE, err
for i in ids:
    i.end()
ids, err = listen()
assert err == 0, err
assert Id().bind(ANY[1]) == errno.EADDRINUSE
for i in ids:
    assert lib.rdma_listen(i.id, 1) == 0

def ask(text):
    c = Id()
    assert lib.rdma_resolve_addr(c.id, None, addr(text), 1000) == 0 and c.event()[0] == 0
    assert lib.rdma_resolve_route(c.id, 1000) == 0 and c.event()[0] == 2
    assert lib.rdma_connect(c.id, None) == 0, ctypes.get_errno()
    return c

for n, text in enumerate(sys.argv[1:3]):
    c = ask(text)
    assert ids[n].event() == (4, ids[n].id.value), text   # the request, at the listener of this family
ids[0].end()
# The other listener is still there, and gets no request of the family whose listener is gone.
c = ask(sys.argv[2])
assert ids[1].event() == (4, ids[1].id.value)
assert ask(sys.argv[1]).event()[0] in (7, 8)   # unreachable, rejected
print("good")
"""


class Families(dropin_common.Dropin):
    def test_families(self):
        code, out = self.ends(self.on("b", "ibv_devinfo", "-v"))
        self.assertEqual(code, 0, out)
        local = re.search(r"GID\[ +0\]:\t+(fe80:\S+?),?(?: |\n)", out).group(1)
        p = subprocess.run([self.RUN, "/usr/bin/python3", "-c", PROGRAM, "10.0.0.2", local], env=self.env, capture_output=True,
                           text=True, timeout=dropin_common.SECONDS, check=False)
        self.assertEqual((p.returncode, p.stdout), (0, "good\n"), p.stderr)


if __name__ == "__main__":
    Families.NICD, Families.RUN, Families.CONFIG = map(os.path.abspath, sys.argv[1:4])
    dropin_common.ordinary_user(Families.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
