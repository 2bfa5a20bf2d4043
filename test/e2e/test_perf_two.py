#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-perf as two programs, each a client of a dataplane process and one side of the
measurement; and the rate of connections."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True  # no cache of signals
import signals
from ports import free_port

NICD = PERF = None
SECONDS = 90
COMMON = "[urnicd]\nsocket = {socket}\nlog = off\nidle = pause\nempty_polls = 4\n"
NODE = "[adapter {node}0]\nnode = {node}\nipv4 = 10.0.0.{n}\nipv6 = fd00::{n}\n"
OPS = ("write_bw", "read_bw", "send_bw", "atomic_bw", "write_lat", "read_lat", "send_lat", "atomic_lat")


class Two(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="urnic-test.")
        self.running = []
        self.dataplanes = []
        self.idle = {}  # listener: how many threads it has while it waits
        self.port = None  # the last listener's

    def tearDown(self):
        for p in self.running + self.dataplanes:
            if p.poll() is None:
                p.kill()
            p.communicate()
        self.dir.cleanup()

    def dataplane(self, name, text):
        sock = os.path.join(self.dir.name, name + ".sock")
        conf = os.path.join(self.dir.name, name + ".ini")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(COMMON.format(socket=sock) + text)
        # A dataplane that is killed leaves runtime files, which are removed with the folder.
        p = subprocess.Popen([NICD, "-c", conf], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                             env=dict(os.environ, XDG_RUNTIME_DIR=self.dir.name, RUNTIME_DIRECTORY=self.dir.name))
        self.dataplanes.append(p)
        self.assertIn("listening at", p.stderr.readline())
        return sock

    def one_dataplane(self, *mtus):
        """Start a dataplane with two nodes, with these path MTUs; returns the sockets of nodes a and b."""
        sock = self.dataplane("two", "".join(NODE.format(node=node, n=n) + f"switch = wire\npath_mtu = {mtu}\n"
                                             for n, node, mtu in zip((1, 2), "ab", mtus or (4096, 4096))) +
                              "[switch wire]\n")
        return sock, sock

    def two_dataplanes(self):
        """Start two dataplanes that memif joins; returns the sockets of nodes a and b."""
        return tuple(self.dataplane(node, f"[port p0]\ndevice = net_memif0,role={role},"
                                    f"socket={self.dir.name}/memif\n" + NODE.format(node=node, n=n) +
                                    "port = p0\n")
                     for node, n, role in (("a", 1, "server"), ("b", 2, "client")))

    def stop_dataplanes(self):
        """Stop the dataplanes, the client of the memif first. Each must end with 0 and no message."""
        for p in reversed(self.dataplanes):
            p.terminate()
            err = p.communicate(timeout=SECONDS)[1]
            self.assertEqual((p.returncode, err), (0, ""))

    def start(self, *args):
        p = subprocess.Popen([PERF, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.running.append(p)
        return p

    def listen(self, op, sock, how, *args):
        self.port = free_port()
        p = self.start(op, "--attach", sock, "-d", "b", "--listen", str(self.port), "--connect", how, *args)
        self.assertIn("waiting for the other side", p.stderr.readline())
        self.idle[p] = self.threads(p)
        return p

    def ask(self, op, sock, how, *args):
        host = "10.0.0.2" if how == "cm" else "127.0.0.1"
        return self.start(op, "--attach", sock, "--node", "a", "--peer", f"{host}:{self.port}",
                          "--connect", how, *args)

    @staticmethod
    def threads(p):
        return len(os.listdir(f"/proc/{p.pid}/task"))

    def measuring(self, listener, asker):
        """Wait until both measure, which the listener shows by more threads than while it waited; then wait a
        quarter of a second more."""
        end = time.monotonic() + SECONDS
        while self.threads(listener) == self.idle[listener] and asker.poll() is None:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        with self.assertRaises(subprocess.TimeoutExpired):
            asker.wait(0.25)

    def finish(self, p, code, *texts):
        out, err = p.communicate(timeout=SECONDS)
        self.assertEqual(p.returncode, code, out + err)
        for text in texts:
            self.assertIn(text, out + err)
        return out

    def measure(self, socks, op, how, *args, lossy=False):
        listener = self.listen(op, socks[1], how, "--json")
        r = json.loads(self.finish(self.ask(op, socks[0], how, "--json", *args), 0))
        served = json.loads(self.finish(listener, 0))
        self.assertEqual((r["op"], r["connect"], r["link"]), (op, how, "attached"))
        self.assertTrue(r["checked"])
        self.assertGreater(r["checked_bytes"], 0)
        if not lossy:
            self.assertGreaterEqual(served["served"], r["messages"])
        return r, served

    def test_every_operation(self):
        socks = self.one_dataplane()
        for how in ("cm", "oob"):
            for op in OPS:
                with self.subTest(op=op, how=how):
                    self.assertEqual(self.measure(socks, op, how, "--iters", "300")[0]["messages"], 300)
        self.stop_dataplanes()

    def test_ready_configuration(self):
        """config/two-nodes.ini gives no node an IPv6 address: no adapter owns an unset entry of its GID table."""
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        with open(os.path.join(root, "config", "two-nodes.ini"), encoding="utf-8") as f:
            sock = self.dataplane("two", f.read())
        for how in ("cm", "oob"):
            for ud in ((), ("--ud",)):
                with self.subTest(how=how, ud=ud):
                    self.measure((sock, sock), "send_lat", how, "--iters", "100", *ud, lossy=bool(ud))
        self.stop_dataplanes()

    def test_settings_are_followed(self):
        socks = self.one_dataplane()
        r, served = self.measure(socks, "send_bw", "cm", "--iters", "3000", "--qps", "40", "--size", "100",
                                 "--mtu", "1024")
        self.assertEqual((served["qps"], served["size"]), (40, 100))
        self.measure(socks, "write_bw", "oob", "--iters", "30", "--size", "3M", "--mtu", "2048")
        self.measure(socks, "write_bw", "cm", "--iters", "300", "--qps", "300", "--size", "8")
        self.measure(socks, "read_bw", "cm", "--iters", "100", "--foreign", "--full-check")
        self.stop_dataplanes()

    def test_path_mtu_of_ports(self):
        """Without --mtu the ports decide the path MTU; the message about a larger --mtu says which one to give."""
        socks = self.one_dataplane(1024, 1024)
        for how in ("cm", "oob"):
            for op, *args in (("read_bw",), ("send_bw", "--ud")):
                with self.subTest(how=how, op=op):
                    r, served = self.measure(socks, op, how, "--iters", "200", *args, lossy=bool(args))
                    self.assertEqual(r["mtu"], 1024)
                    if args:
                        self.assertEqual(r["size"], 1024)
        for args in ((), ("--ud",)):
            self.finish(self.start("send_bw", "--attach", socks[0], "--nodes", "a,b", "--iters", "200", *args), 0,
                        "MTU 1024")
        self.finish(self.start("send_bw", "--attach", socks[0], "--nodes", "a,b", "--mtu", "4096"), 1,
                    "carries a path MTU of 1024 at most, not 4096; give --mtu 1024")
        self.stop_dataplanes()

    def test_path_mtu_of_one_side(self):
        """Over TCP both sides take the smaller path MTU; with connection management the asker is told to give one."""
        socks = self.one_dataplane(4096, 1024)
        self.assertEqual(self.measure(socks, "write_bw", "oob", "--iters", "200")[0]["messages"], 200)
        listener = self.listen("send_bw", socks[1], "oob")
        self.finish(self.ask("send_bw", socks[0], "oob", "--ud"), 1, "give a --size of at most 1024")
        self.finish(listener, 1)
        self.measure(socks, "send_bw", "oob", "--iters", "200", "--ud", "--size", "1024", lossy=True)
        listener = self.listen("write_bw", socks[1], "cm")
        self.finish(self.ask("write_bw", socks[0], "cm"), 1, "give a smaller --mtu")
        self.finish(self.ask("write_bw", socks[0], "cm", "--mtu", "1024", "--iters", "200"), 0)
        self.finish(listener, 0)
        self.stop_dataplanes()

    def test_between_two_dataplanes(self):
        socks = self.two_dataplanes()
        for how in ("cm", "oob"):
            for op in ("write_bw", "send_lat", "atomic_bw"):
                self.measure(socks, op, how, "--iters", "200")
        self.stop_dataplanes()

    def test_datagrams(self):
        """Datagrams: the asker tells the listener of --ud by a look-up (SIDR), or over TCP."""
        socks = self.one_dataplane()
        for how in ("cm", "oob"):
            for op, size, args in (("send_lat", 8, ()), ("send_lat", 1000, ("--qps", "3")),
                                   ("send_bw", 4096, ("--qps", "2")), ("send_bw", 9, ("--qps", "40"))):
                with self.subTest(op=op, size=size, how=how):
                    r, served = self.measure(socks, op, how, "--ud", "--iters", "400", "--size", str(size),
                                             *args, lossy=True)
                    self.assertTrue(r["ud"])
                    self.assertEqual(r["messages"], 400)
                    self.assertEqual(served["served"], r["sent"] - r["lost"])
                    self.assertGreater(served["served"], 0)
                    if op == "send_lat":
                        self.assertEqual(r["lost"], 0)
        self.stop_dataplanes()

    def test_datagrams_between_two_dataplanes(self):
        socks = self.two_dataplanes()
        self.measure(socks, "send_lat", "cm", "--ud", "--iters", "100", lossy=True)
        self.stop_dataplanes()

    def test_datagrams_to_nobody(self):
        socks = self.one_dataplane()
        self.port = free_port()
        self.finish(self.ask("send_bw", socks[0], "cm", "--ud"), 1, "nobody listens there for datagrams")
        # A listener is there, but measures another operation.
        listener = self.listen("send_lat", socks[1], "cm")
        self.finish(self.ask("send_bw", socks[0], "cm", "--ud"), 1, "give both the same")
        self.finish(listener, 1, "this side measures send_lat and the other send_bw")
        # When a listener is killed, the sender learns of that only when the sender tells the end.
        listener = self.listen("send_bw", socks[1], "cm")
        asker = self.ask("send_bw", socks[0], "cm", "--ud", "--duration", "3")
        self.measuring(listener, asker)
        listener.kill()
        self.finish(asker, 1, "the other side is gone")
        # When the sender is interrupted, both sides print their figures so far.
        listener = self.listen("send_bw", socks[1], "cm")
        asker = self.ask("send_bw", socks[0], "cm", "--ud", "--duration", "600")
        self.measuring(listener, asker)
        signals.send(asker, signal.SIGINT)
        self.finish(asker, 130, "interrupted", "datagrams:")
        self.finish(listener, 0, "served")
        self.stop_dataplanes()

    def test_clients_asleep(self):
        sock = self.one_dataplane()[0]
        p = self.start("idle", "--attach", sock, "--node", "b", "--clients", "20")
        self.assertIn("20 clients attached, all asleep", p.stderr.readline())
        # Other clients work beside the sleeping ones.
        self.measure((sock, sock), "send_lat", "cm", "--iters", "100")
        self.assertIsNone(p.poll())
        signals.send(p, signal.SIGTERM)
        self.finish(p, 143, "20 clients, asleep for")
        p = self.start("idle", "--attach", sock, "--node", "a", "--clients", "3", "--duration", "100ms", "--json")
        r = json.loads(self.finish(p, 0))
        self.assertEqual((r["op"], r["clients"]), ("idle", 3))
        self.assertGreaterEqual(r["seconds"], 0.1)
        # Sleeping clients wake up when their dataplane dies.
        p = self.start("idle", "--attach", sock)
        self.assertIn("all asleep", p.stderr.readline())
        self.dataplanes[0].kill()
        self.finish(p, 1, "a client was woken")

    def test_killed(self):
        socks = self.one_dataplane()
        for how, gone in (("cm", "the other side is gone"), ("oob", "connection ended")):
            listener = self.listen("send_bw", socks[1], how)
            asker = self.ask("send_bw", socks[0], how, "--duration", "600")
            self.measuring(listener, asker)
            asker.kill()
            self.finish(listener, 1, gone)
            listener = self.listen("send_bw", socks[1], how)
            asker = self.ask("send_bw", socks[0], how, "--duration", "600")
            self.measuring(listener, asker)
            listener.kill()
            self.finish(asker, 1, gone)
        # The dataplane still serves new programs.
        self.measure(socks, "send_bw", "cm", "--iters", "100")
        self.stop_dataplanes()

    def test_interrupted(self):
        socks = self.one_dataplane()
        for how in ("cm", "oob"):
            listener = self.listen("write_bw", socks[1], how)
            asker = self.ask("write_bw", socks[0], how, "--duration", "600")
            self.measuring(listener, asker)
            signals.send(asker, signal.SIGINT)
            # When the asker is interrupted, both sides print their figures so far.
            self.finish(asker, 130, "interrupted", "data checked: yes")
            self.finish(listener, 0, "served")
            listener = self.listen("write_bw", socks[1], how)
            asker = self.ask("write_bw", socks[0], how, "--duration", "600")
            self.measuring(listener, asker)
            signals.send(listener, signal.SIGINT)
            self.finish(listener, 130, "interrupted")
            self.finish(asker, 1, "the other side gave up: interrupted")
        listener = self.listen("write_bw", socks[1], "cm")
        signals.send(listener, signal.SIGTERM)
        self.finish(listener, 143, "interrupted")
        self.stop_dataplanes()

    def test_they_do_not_fit(self):
        socks = self.one_dataplane()
        for how in ("cm", "oob"):
            listener = self.listen("write_bw", socks[1], how)
            self.finish(self.ask("read_bw", socks[0], how), 1, "give both the same")
            self.finish(listener, 1, "this side measures write_bw and the other read_bw")
        self.port = free_port()
        self.finish(self.ask("write_bw", socks[0], "cm"), 1, "nobody listens there")
        listener = self.listen("write_bw", socks[1], "cm")
        other = self.start("write_bw", "--attach", socks[1], "--node", "b", "--listen", str(self.port),
                           "--connect", "cm")
        self.finish(other, 1, "listens at this service id already")
        listener.kill()
        self.stop_dataplanes()

    def test_another_asks(self):
        """A listener that serves one asker turns all others away, and the first asker notices nothing."""
        socks = self.one_dataplane()
        for ud in ((), ("--ud",)):
            listener = self.listen("send_bw", socks[1], "cm")
            first = self.ask("send_bw", socks[0], "cm", *ud, "--duration", "600")
            self.measuring(listener, first)
            for more in ((), ("--qps", "4"), ("--ud",), ("--ud", "--qps", "4")):
                with self.subTest(first=ud, more=more):
                    self.finish(self.ask("send_bw", socks[0], "cm", *more), 1, "serves another urnic-perf")
            signals.send(first, signal.SIGINT)
            self.finish(first, 130, "interrupted", "data checked: yes")
            self.finish(listener, 0, "served")
        self.stop_dataplanes()

    def test_listener_follows_the_address(self):
        """A listener answers from the address at which it was asked."""
        socks = self.one_dataplane()
        for how in ("cm", "oob"):
            for ud in ((), ("--ud",)):
                with self.subTest(how=how, ud=ud):
                    listener = self.listen("send_lat", socks[1], how)
                    host = "[fd00::2]" if how == "cm" else "127.0.0.1"
                    asker = self.start("send_lat", "--attach", socks[0], "--node", "a", "--ip", "6", "--peer",
                                       f"{host}:{self.port}", "--connect", how, "--iters", "100", *ud)
                    self.finish(asker, 0, "IPv6", "data checked: yes")
                    self.finish(listener, 0, "served")
        self.stop_dataplanes()

    def test_bad_wire(self):
        """Connections are set up, measured and ended although their messages are lost, the RTU among them."""
        impair = "impair a0.in = drop=25%, seed=3\nimpair b0.in = drop=25%, seed=4\n"
        sock = self.dataplane("two", "".join(NODE.format(node=node, n=n) + "switch = wire\n"
                                             for n, node in ((1, "a"), (2, "b"))) + "[switch wire]\n" + impair)
        # The wire loses 7 of 16 tries of a message: 8 tries of the default timeout are too few for 200
        # messages when this machine is slow. A timeout of a second has room for several tries each. Some of
        # ten connections lose their RTU.
        for op in ("send_bw", "write_bw"):
            self.measure((sock, sock), op, "cm", "--iters", "100", "--qps", "10", "--size", "64", "--depth", "1",
                         "--timeout", "18")
        self.stop_dataplanes()

    def test_gone_before_it_is_answered(self):
        """When an asker has gone before the listener answers, the listener says so."""
        socks = self.one_dataplane()
        listener = self.listen("write_bw", socks[1], "cm")
        end = time.monotonic() + SECONDS
        while listener.poll() is None:
            self.assertLess(time.monotonic(), end)
            listener.send_signal(signal.SIGSTOP)
            asker = self.ask("write_bw", socks[0], "cm", "--qps", "3")
            # One second is mostly enough for the asker to ask; if not, the loop tries again.
            with self.assertRaises(subprocess.TimeoutExpired):
                asker.wait(1)
            signals.send(asker, signal.SIGINT)
            self.finish(asker, 130, "interrupted")
            listener.send_signal(signal.SIGCONT)
            try:
                listener.wait(2)
            except subprocess.TimeoutExpired:
                pass
        self.finish(listener, 1, "the other side refused the connection, or is gone")
        self.stop_dataplanes()

    def test_dataplane_killed(self):
        """Both sides say that the dataplane is gone."""
        for how in ("cm", "oob"):
            socks = self.one_dataplane()
            listener = self.listen("send_bw", socks[1], how)
            asker = self.ask("send_bw", socks[0], how, "--duration", "600")
            self.measuring(listener, asker)
            dataplane = self.dataplanes.pop()
            dataplane.kill()
            dataplane.communicate()
            self.finish(asker, 1, "the dataplane", "gone")
            self.finish(listener, 1, "the dataplane", "gone")

    def test_rate_of_connections(self):
        for args in ((), ("--attach", self.one_dataplane()[0])):
            r = json.loads(self.finish(self.start("connect", "--conns", "500", "--json", *args), 0))
            self.assertEqual((r["conns"], r["messages"]), (500, 500))
            self.assertGreater(r["conn_rate"], 0)
        self.stop_dataplanes()


if __name__ == "__main__":
    PERF, NICD = (os.path.abspath(p) for p in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
