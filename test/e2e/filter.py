#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A host whose one interface urnic uses: the kernel's own traffic goes on beside (doc/reference/ports.md, "The host's own traffic").

usage: filter.py URNICD URNICCTL URNIC_PINGPONG xdp|no-xdp

no-xdp: the programs were built without the XDP program.

Two hosts are network namespaces that a veth joins. Each has an address of the kernel's, 10.9.1.N, and
one of urnic's, 10.9.2.N, on the same interface. Root alone can make them."""
import errno
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
import hang

NICD = CTL = PINGPONG = BUILT = None
AF_XDP = 44
SECONDS = 60
TCP_BYTES = 4 << 20
os.environ["LSAN_OPTIONS"] = f"print_suppressions=0:suppressions={os.path.splitext(os.path.abspath(__file__))[0]}.lsan"
INTERFACE = ("urnh0", "urnh1")

# A TCP echo: the far end sends back each byte that it gets, until the near end closes.
ECHO = r"""
import socket, sys
s = socket.create_server((sys.argv[1], 7777))
print("listening", flush=True)
c, _ = s.accept()
while (d := c.recv(65536)):
    c.sendall(d)
"""
SEND = r"""
import os, socket, sys, threading
c = socket.create_connection((sys.argv[1], 7777), timeout=50)
data = os.urandom(int(sys.argv[2]))
t = threading.Thread(target=lambda: (c.sendall(data), c.shutdown(socket.SHUT_WR)))
t.start()
got = b"".join(iter(lambda: c.recv(65536), b""))
t.join()
sys.exit(got != data)
"""
# Frames of the far host's, from hexadecimal digits, as they are.
RAW = r"""
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
for line in sys.stdin:
    s.send(bytes.fromhex(line))
"""


class Host:
    """A network namespace that ends with its process."""

    def __init__(self, case):
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "sh", "-c",
                                         "mount -t sysfs sysfs /sys; echo; exec sleep 1000"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        case.addCleanup(self.close)
        self.process.stdout.readline()
        self.run("ip", "link", "set", "lo", "up")

    def command(self, *args):
        return ["nsenter", "--net", "--mount", "--target", str(self.process.pid), *args]

    def run(self, *args, **kwargs):
        return subprocess.run(self.command(*args), capture_output=True, text=True, timeout=SECONDS, check=False, **kwargs)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def inet_sum(data):
    n = sum(struct.unpack(f"!{len(data) // 2}H", data))
    n = (n >> 16) + (n & 0xffff)
    return ~(n + (n >> 16)) & 0xffff


def ipv4(dst, proto, payload, fragment=0):
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, fragment, 64, proto, 0,
                       socket.inet_aton("10.9.2.2"), socket.inet_aton(dst))
    return b"\x08\x00" + head[:10] + struct.pack("!H", inet_sum(head)) + head[12:] + payload


def hostile():
    """Frames that urnic must not stumble over: tagged, cut short, in fragments, wrong in every field."""
    roce = struct.pack("!HHHH", 4791, 4791, 40, 0) + bytes(32)
    good = ipv4("10.9.2.1", 17, roce)
    yield b"\x81\x00\x00\x05" + good  # VLAN 5
    yield b"\x88\xa8\x00\x06\x81\x00\x00\x05" + good
    for offset in (0x2000, 0x2003, 0x0003, 0x1fff):
        yield ipv4("10.9.2.1", 17, roce, offset)
    for n in range(2, len(good)):
        yield good[:n]
    for i in range(2, 42):
        yield good[:i] + b"\xff" + good[i + 1:]
    yield ipv4("10.9.2.1", 1, b"\x08\x00" + bytes(6)) # a wrong checksum
    yield b"\x08\x06" + bytes(28)
    yield b"\x88\x08" + bytes(2)


@unittest.skipUnless(os.geteuid() == 0, "network namespaces need root")
class Filter(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="urnic-filter.")
        self.addCleanup(self.dir.cleanup)
        self.watch = hang.Watch(self.id())
        self.addCleanup(self.watch.stop)
        self.host = [Host(self) for _ in range(2)]
        self.host[0].run("ip", "link", "add", INTERFACE[0], "type", "veth", "peer", "name", INTERFACE[1], "netns",
                         str(self.host[1].process.pid))
        for i, host in enumerate(self.host):
            for args in (("addr", "add", f"10.9.1.{i + 1}/24", "dev", INTERFACE[i]), ("link", "set", INTERFACE[i], "up")):
                p = host.run("ip", *args)
                self.assertEqual((p.returncode, p.stderr), (0, ""))

    def need_xdp(self, program=True):
        """Skip without AF_XDP in the kernel or, with `program`, without the XDP program in this build."""
        if program and BUILT != "xdp":
            self.skipTest("no XDP program in this build")
        try:
            socket.socket(AF_XDP, socket.SOCK_RAW).close()
        except OSError as e:
            if e.errno != errno.EAFNOSUPPORT:
                raise
            self.skipTest("no AF_XDP in this kernel")

    def nicd(self, kind, more=""):
        """Start a urnicd on the first host's interface."""
        self.socket = os.path.join(self.dir.name, "nicd.sock")
        run = os.path.join(self.dir.name, "run")
        os.makedirs(run, 0o700, exist_ok=True)
        path = os.path.join(self.dir.name, "c.ini")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.socket}\nlog = off\nidle = sleep\n[port p]\n"
                    f"device = net_{kind}0,iface={INTERFACE[0]}\n{more}\n"
                    "[adapter a]\nport = p\nipv4 = 10.9.2.1\n")
        p = subprocess.Popen(self.host[0].command(NICD, "-c", path), stderr=subprocess.PIPE, text=True, cwd=self.dir.name,
                             env=dict(os.environ, XDG_RUNTIME_DIR=run, RUNTIME_DIRECTORY=run))
        self.addCleanup(hang.end, p)
        said = ""
        while "listening at" not in said:
            line = p.stderr.readline()
            self.assertNotEqual(line, "", said)
            said += line
        self.addCleanup(p.stderr.close)
        return p

    def port(self):
        p = subprocess.run([CTL, "--socket", self.socket, "--json", "show", "port", "p"], capture_output=True, text=True,
                           timeout=SECONDS, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)[0]

    def tcp(self):
        """Start bytes from the second host to the first and back, between the kernels' addresses."""
        server = subprocess.Popen(self.host[0].command(sys.executable, "-c", ECHO, "10.9.1.1"), stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(hang.end, server)
        self.assertEqual(server.stdout.readline(), "listening\n")
        client = subprocess.Popen(self.host[1].command(sys.executable, "-c", SEND, "10.9.1.1", str(TCP_BYTES)))
        self.addCleanup(hang.end, client)
        return client

    def ping(self, address):
        """True when the second host's kernel gets an answer from an address."""
        return self.host[1].run("ping", "-n", "-c", "3", "-i", "0.2", "-W", "5", "-I", INTERFACE[1], address).returncode == 0

    def both_go_on(self, kind, name):
        daemon = self.nicd(kind)
        self.assertEqual(self.port()["filter"], name)
        # urnic's address answers, by urnic: the kernel does not have it.
        self.host[1].run("ip", "route", "add", "10.9.2.1/32", "dev", INTERFACE[1])
        self.assertTrue(self.ping("10.9.2.1"))
        self.assertTrue(self.ping("10.9.1.1"))
        tcp = self.tcp()
        kernels = [ipv4("10.9.1.1", 17, struct.pack("!HHHH", 9, 9, 40, 0) + bytes(32))] * 2000
        frames = "\n".join((b"\xff" * 6 + b"\x02" * 6 + f).hex() for f in [*hostile(), *kernels])
        p = self.host[1].run(sys.executable, "-c", RAW, INTERFACE[1], input=frames)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertTrue(self.ping("10.9.2.1"))
        self.assertEqual(tcp.wait(SECONDS), 0, "the kernel's TCP")
        self.assertTrue(self.ping("10.9.2.1"))
        got = self.port()
        if name == "xdp":
            # Frames of 1514 bytes, one way; TCP may send larger ones only where the interface takes them.
            self.assertGreater(got["filter_passed"], TCP_BYTES // 65536)
            self.assertGreater(got["filter_taken"], 9)
        # Frames of the kernel's, which a port without filter would get, do not come.
        self.assertLess(got["rx_packets"], 500)
        daemon.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(SECONDS), 0)
        self.assertNotIn("xdp", self.host[0].run("ip", "link", "show", INTERFACE[0]).stdout)
        self.assertTrue(self.ping("10.9.1.1"))

    def test_xdp(self):
        self.need_xdp()
        self.both_go_on("af_xdp", "xdp")

    def test_packet(self):
        self.both_go_on("af_packet", "socket")

    def rdma(self, kind):
        """RDMA between the two hosts, with TCP beside."""
        # The two meet over TCP, of the kernel's addresses as well.
        args = ["--iters", "500", "--size", "20000", "--json", "--wait", "50"]
        node = [["--device", f"net_{kind}0,iface={INTERFACE[i]}", "--ip", f"10.9.2.{i + 1}"] for i in range(2)]
        server = subprocess.Popen(self.host[0].command(PINGPONG, "--listen", "10.9.1.1:18515", *node[0], *args),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(hang.end, server)
        self.assertIn("waiting for a peer", server.stderr.readline())
        tcp = self.tcp()
        client = self.host[1].run(PINGPONG, "--peer", "10.9.1.1:18515", *node[1], *args)
        self.assertEqual((client.returncode, client.stderr), (0, ""))
        out, err = server.communicate(timeout=SECONDS)
        self.assertEqual((server.returncode, err), (0, ""))
        self.assertEqual(json.loads(out)["bytes"], json.loads(client.stdout)["bytes"])
        self.assertEqual(tcp.wait(SECONDS), 0, "the kernel's TCP")

    def test_xdp_rdma(self):
        self.need_xdp()
        self.rdma("af_xdp")

    def test_packet_rdma(self):
        self.rdma("af_packet")

    def test_no_filter(self):
        """The key takes the filter out: the host's own traffic stops with af_xdp, and says so."""
        self.need_xdp(program=False)
        self.nicd("af_xdp", "filter = no")
        self.assertEqual(self.port()["filter"], "none")
        self.assertFalse(self.host[1].run("ping", "-n", "-c", "1", "-W", "1", "10.9.1.1").returncode == 0)


if __name__ == "__main__":
    NICD, CTL, PINGPONG = map(os.path.abspath, sys.argv[1:4])
    BUILT = sys.argv[4]
    del sys.argv[1:5]
    unittest.main(verbosity=2)
