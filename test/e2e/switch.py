#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-switch from the outside: kernel hosts in network namespaces talk through it
over TAP, impairments do what they say, bad options are refused, nothing is left.

usage: switch.py URNIC_SWITCH

With root's rights the test runs in a network namespace of its own; the hosts are namespaces
of processes that sleep. So the kernel removes everything with the processes."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SWITCH = None
ROOT = os.geteuid() == 0
PATIENCE = 60  # seconds that only a broken program needs


def run(*args, timeout=PATIENCE):
    return subprocess.run(args, capture_output=True, text=True, timeout=timeout)


class Host:
    """A network namespace, which exists as long as its process sleeps."""

    def __init__(self):
        # The kernel kills the sleeping process when this process ends in any way.
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net",
                                         "sh", "-c", "echo; exec sleep 1000"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.process.stdout.readline()
        self.run("ip", "link", "set", "lo", "up")

    def command(self, *args):
        return ["nsenter", "--net", "--target", str(self.process.pid), *args]

    def run(self, *args, timeout=PATIENCE):
        return run(*self.command(*args), timeout=timeout)

    def give(self, interface, address):
        """Move an interface here and bring it up, without IPv6, whose own frames would spoil exact counts."""
        for command in (["ip", "link", "set", "dev", interface, "netns",
                         str(self.process.pid)],
                        self.command("sysctl", "-qw", f"net.ipv6.conf.{interface}.disable_ipv6=1"),
                        self.command("ip", "addr", "add", address + "/24", "dev", interface),
                        self.command("ip", "link", "set", "dev", interface, "up")):
            p = run(*command)
            if p.returncode and "sysctl" not in command:
                raise RuntimeError(f"{command}: {p.stderr}")

    def mac(self, interface):
        return json.loads(self.run("ip", "-j", "link", "show", "dev", interface).stdout)[0]["address"]

    def ping(self, address, count=10, interval=0.05, wait=2):
        """Returns the numbers of pings sent, of answers, and of duplicates."""
        p = self.run("ping", "-n", "-c", str(count), "-i", str(interval), "-W", str(wait), address)
        m = re.search(r"(\d+) packets transmitted, (\d+) received(?:, \+(\d+) duplicates)?",
                      p.stdout)
        return int(m[1]), int(m[2]), int(m[3] or 0)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Switch:
    """The program, running; end() gives its JSON."""

    def __init__(self, *args):
        self.process = subprocess.Popen([SWITCH, "--json", *args], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.said = self.process.stderr.readline()
        if "are up" not in self.said:
            raise RuntimeError(self.said + self.process.stderr.read())

    def end(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        out, err = self.process.communicate(timeout=PATIENCE)
        if self.process.returncode != 128 + sig:
            raise RuntimeError(f"ended with {self.process.returncode}: {err}")
        return json.loads(out)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def port(result, name):
    return next(p for s in result["switches"] for p in s["ports"] if p["name"] == name)


def interfaces():
    return {l["ifname"] for l in json.loads(run("ip", "-j", "link").stdout)}


@unittest.skipUnless(ROOT, "TAP wants root")
class Hosts(unittest.TestCase):
    """Two kernel hosts on the TAP ports a and b."""

    def begin(self, *args, ports=("--port", "tap:a", "--port", "tap:b")):
        self.switch = Switch(*ports, *args)
        self.addCleanup(self.switch.close)
        self.host = []
        for i in range(2):
            self.host.append(Host())
            self.addCleanup(self.host[i].close)
            self.host[i].give("ab"[i], f"10.9.0.{i + 1}")

    def end(self, **kwargs):
        result = self.switch.end(**kwargs)
        for host, name in zip(self.host, "ab"):
            links = json.loads(host.run("ip", "-j", "link").stdout)
            self.assertNotIn(name, [l["ifname"] for l in links])
        self.assertEqual(interfaces(), {"lo"})
        return result

    def test_ping(self):
        self.begin()
        self.assertEqual(self.host[0].ping("10.9.0.2"), (10, 10, 0))
        self.assertEqual(self.host[1].ping("10.9.0.1"), (10, 10, 0))
        result = self.end()
        a = port(result, "a")
        self.assertGreaterEqual(a["counters"]["rx_packets"], 21)
        self.assertGreaterEqual(a["counters"]["learned"], 1)
        self.assertGreaterEqual(result["switches"][0]["addresses"], 2)
        self.assertEqual([k for k in a["counters"] if k.startswith("drop_")], [])
        # No frame waits in the switch at the end.
        self.assertEqual(result["switches"][0]["queued"], 0)

    def test_full_frames(self):
        self.begin()
        p = self.host[0].run("ping", "-n", "-c", "3", "-i", "0.05", "-s", "1472", "-M", "do",
                             "10.9.0.2")
        self.assertIn("3 received", p.stdout)
        self.end()

    def test_one_way(self):
        """Requests arrive, answers do not: only counters of that direction show the loss."""
        self.begin("--impair", "b.in:blackhole")
        sent, got, _ = self.host[0].ping("10.9.0.2", count=3, wait=1)
        self.assertEqual((sent, got), (3, 0))
        result = self.end()
        self.assertGreater(port(result, "b")["impair_in"]["drop_blackhole"], 0)
        self.assertGreater(port(result, "b")["counters"]["tx_packets"], 0)
        self.assertEqual(port(result, "a")["counters"].get("tx_packets", 0), 0)

    def test_static(self):
        """A static entry puts an address behind the wrong port: no ping reaches the address."""
        self.begin("--static", "a,02:00:00:00:09:02")
        self.host[1].run("ip", "link", "set", "dev", "b", "address", "02:00:00:00:09:02")
        sent, got, _ = self.host[0].ping("10.9.0.2", count=3, wait=1)
        self.assertEqual((sent, got), (3, 0))
        result = self.end()
        self.assertGreater(port(result, "b")["counters"]["learn_static"], 0)
        self.assertGreater(port(result, "a")["counters"]["drop_same_port"], 0)

    def test_dup_and_delay(self):
        self.begin("--impair", "a.in:dup=100,seed=3", "--impair", "b.in:delay=30ms")
        p = self.host[0].run("ping", "-n", "-c", "5", "-i", "0.2", "10.9.0.2")
        self.assertRegex(p.stdout, r"\+\d+ duplicates")
        times = [float(t) for t in re.findall(r"time=([\d.]+)", p.stdout)]
        self.assertGreaterEqual(min(times), 30)
        result = self.end()
        self.assertGreaterEqual(port(result, "a")["impair_in"]["duplicated"], 5)
        self.assertGreaterEqual(port(result, "b")["impair_in"]["delayed"], 5)

    def test_two_switches(self):
        self.begin("--link", "left,right",
                   ports=("--switch", "left", "--port", "tap:a", "--switch", "right", "--port",
                          "tap:b"))
        self.assertEqual(self.host[0].ping("10.9.0.2"), (10, 10, 0))
        result = self.end(sig=signal.SIGINT)
        self.assertEqual([s["name"] for s in result["switches"]], ["left", "right"])
        self.assertGreaterEqual(port(result, "left-right")["counters"]["rx_packets"], 10)
        self.assertIsNone(port(result, "left-right")["device"])

    def iperf(self, *args):
        """Move data from host 0 to host 1. Returns the bytes that arrived before the sender ended: the
        sender closes when it has written all, which may be sooner."""
        server = subprocess.Popen(self.host[1].command("iperf3", "-s", "-1", "--forceflush"),
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        while "listening" not in server.stdout.readline():
            self.assertIsNone(server.poll())
        p = self.host[0].run("iperf3", "-c", "10.9.0.2", "-J", *args, timeout=4 * PATIENCE)
        self.assertEqual(p.returncode, 0, p.stdout)
        server.wait(timeout=PATIENCE)
        return json.loads(p.stdout)["end"]["sum_received"]["bytes"]

    def test_iperf(self):
        self.begin()
        self.assertGreaterEqual(self.iperf("-n", "20M"), 8 << 20)
        result = self.end()
        a, b = port(result, "a"), port(result, "b")
        self.assertGreaterEqual(a["counters"]["rx_bytes"], 8 << 20)
        self.assertGreaterEqual(b["counters"]["tx_bytes"], 8 << 20)

    def test_iperf_with_loss(self):
        """TCP gets through, and every lost frame is counted."""
        self.begin("--impair", "a.in:drop=1,reorder=2,corrupt=0.2,seed=5")
        self.assertGreaterEqual(self.iperf("-n", "8M"), 2 << 20)
        result = self.end()
        a, inside = port(result, "a"), result["switches"][0]["queued"]
        impair = a["impair_in"]
        for name in ("drop_random", "reordered", "corrupted"):
            self.assertGreater(impair[name], 0)
        self.assertEqual(impair["pushed"], a["counters"]["rx_packets"])
        # An ARP frame with a flipped bit is lost, too (drop_fcs). The wire may still hold the last frame at the end.
        lost = sum(n for name, n in impair.items() if name.startswith("drop_"))
        self.assertEqual(impair["pushed"], impair["popped"] + lost + inside)
        share = impair["drop_random"] / impair["pushed"]
        self.assertTrue(0.002 < share < 0.03, share)

    def test_names_itself_busy(self):
        self.begin()
        p = run("ip", "tuntap", "add", "dev", "c", "mode", "tun")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.addCleanup(run, "ip", "link", "del", "dev", "c")
        p = run(SWITCH, "--port", "tap:c", "--duration", "1ms")
        self.assertEqual(p.returncode, 1)
        self.assertIn("port c (", p.stderr)
        run("ip", "link", "del", "dev", "c")
        self.end()


class Alone(unittest.TestCase):
    """Tests that need no privilege: net_null, memif, options."""

    def test_duration_and_text(self):
        p = run(SWITCH, "--port", "x=dev:net_null0", "--port", "dev:net_null1",
                "--duration", "20ms")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertRegex(p.stdout, r"switch s0: .*\n  port .*\n  x +0 .*\n  port1 +0 ")

    def test_reports(self):
        """The switch reports on SIGUSR1, at every interval, and at the end."""
        s = Switch("--port", "dev:net_null0")
        self.addCleanup(s.close)
        s.process.send_signal(signal.SIGUSR1)
        first = ""
        while not first.endswith("\n}\n"):
            first += s.process.stdout.readline()
        self.assertEqual(json.loads(first)["switches"][0]["ports"][0]["name"], "port0")
        last = s.end(sig=signal.SIGINT)
        self.assertGreaterEqual(last["seconds"], json.loads(first)["seconds"])
        p = run(SWITCH, "--port", "dev:net_null0", "--interval", "5ms", "--duration",
                "100ms")
        self.assertGreaterEqual(p.stdout.count("switch s0"), 3)

    def test_flood_and_drop_by_seed(self):
        """net_null makes frames without end, from address 0 to address 0: without learning the switch floods them."""
        results = []
        for _ in range(2):
            p = run(SWITCH, "--json", "--port", "n=dev:net_null0,size=64,copy=0", "--port",
                    "m=dev:net_null1", "--no-learning", "--impair",
                    "n.in:drop=30,seed=9", "--duration", "50ms")
            self.assertEqual(p.returncode, 0, p.stderr)
            results.append(json.loads(p.stdout))
        for r in results:
            impair = port(r, "n")["impair_in"]
            share = impair["drop_random"] / impair["pushed"]
            self.assertTrue(0.2 < share < 0.4, share)
            self.assertEqual(port(r, "m")["counters"]["tx_packets"], impair["popped"])

    def test_queue_counters(self):
        """A slow wire: the queue tells how many frames waited, and why it dropped the others."""
        p = run(SWITCH, "--json", "--port", "n=dev:net_null0,size=64,copy=0", "--port",
                "m=dev:net_null1", "--no-learning", "--impair", "m.out:rate=1M,queue=4",
                "--duration", "50ms")
        self.assertEqual(p.returncode, 0, p.stderr)
        m = port(json.loads(p.stdout), "m")
        self.assertGreater(m["queue0"]["waited"], 0)
        self.assertGreater(m["queue0"]["drop_frames"], 0)
        # After a late poll the wire is free, but full: then the wire's own bound drops frames, too.
        self.assertLessEqual(m["queue0"]["drop_frames"], m["impair_out"]["drop_queue"])
        self.assertEqual([k for k in m if k.startswith("queue")], ["queue0"])

    def test_memif(self):
        """Two switches in two processes, joined by shared memory; frames from net_null cross."""
        with tempfile.TemporaryDirectory(prefix="urnic-test.") as folder:
            path = os.path.join(folder, "wire")
            s = Switch("--port", f"memif:{path}", "--port", "n=dev:net_null0",
                       "--no-learning")
            self.addCleanup(s.close)
            client = Switch("--port", f"memif:{path},client", "--port",
                            "dev:net_null0,size=64,copy=0", "--no-learning", "--impair",
                            "port1.in:rate=1G")
            self.addCleanup(client.close)
            deadline = time.monotonic() + PATIENCE
            counted = {}
            while not counted.get("tx_packets") and time.monotonic() < deadline:
                s.process.send_signal(signal.SIGUSR1)
                text = ""
                while not text.endswith("\n}\n"):
                    text += s.process.stdout.readline()
                counted = port(json.loads(text), "n")["counters"]
            self.assertGreater(counted.get("tx_packets", 0), 0)
            client.end()
            result = s.end()
            self.assertGreaterEqual(port(result, "memif0")["device_counters"]["link_changes"], 1)
            self.assertEqual(os.listdir(folder), [])

    def test_usage(self):
        null = ["--port", "n=dev:net_null0"]
        for args, word in (
                ([], "at least one port"),
                (["--port", "tap:"], "interface"),
                (["--port", "tap:a,persist"], "interface"),
                (["--port", "tap:sixteen-letters-x"], "interface"),
                (["--port", "eth0"], "tap:NAME"),
                (["--port", "memif:relative"], "whole path"),
                (["--port", "a.b=tap:c"], "name"),
                ([*null, *null], "called n"),
                (["--switch", "a b"], "name"),
                (["--switch", "a", "--switch", "a"], "of that name"),
                (["--switch", "a", *null, "--switch", "b"], "no port"),
                (["--switch", "a", *null, "--link", "a,a"], "two switches"),
                (["--switch", "a", *null, "--link", "a,c"], "two switches"),
                ([*null, "--static", "x,02:00:00:00:00:01"], "--static"),
                ([*null, "--static", "n,01:00:00:00:00:01"], "--static"),
                ([*null, "--static", "n,02:00:00:00:00:1"], "--static"),
                ([*null, "--impair", "x:drop=1"], "--impair"),
                ([*null, "--impair", "n"], "--impair"),
                ([*null, "--impair", "n:drop=101"], "drop=101"),
                ([*null, "--impair", "n:drop=-1"], "drop=-1"),
                ([*null, "--impair", "n:sink=1"], "sink"),
                ([*null, "--impair", "n:"], "impairments"),
                ([*null, "--idle", "nap"], "--idle"),
                ([*null, "--core", "9999"], "--core"),
                ([*null, "--mbufs", "1"], "--mbufs"),
                ([*null, "--duration", "soon"], "--duration"),
                ([*null, "word"], "word"),
                ([*null, "--nonsense"], "--nonsense"),
                ([*null, "--port"], "--port"),
        ):
            with self.subTest(args=args):
                p = run(SWITCH, *args)
                self.assertEqual(p.returncode, 2, p.stderr)
                self.assertIn(word, p.stderr)
                self.assertEqual(p.stdout, "")

    def test_loop_of_links(self):
        p = run(SWITCH, "--switch", "a", "--port", "dev:net_null0", "--switch", "b", "--port",
                "dev:net_null1", "--switch", "c", "--port", "dev:net_null2", "--link", "a,b",
                "--link", "b,c", "--link", "c,a")
        self.assertEqual(p.returncode, 1)
        self.assertIn("--link c,a", p.stderr)

    def test_help_and_version(self):
        p = run(SWITCH, "--help")
        self.assertEqual(p.returncode, 0)
        self.assertIn("--impair", p.stdout)
        self.assertRegex(run(SWITCH, "--version").stdout, r"^urnic-switch \d+\.\d+\.\d+\n$")


class Traces(unittest.TestCase):
    def test_killed_ports_leave_no_folder(self):
        # Other programs have folders in /tmp, too.
        with tempfile.TemporaryDirectory() as own:
            env = {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"} | {"TMPDIR": own}
            p = subprocess.run([SWITCH, "--port", "dev:net_null0", "--duration", "1ms"], capture_output=True, text=True, env=env,
                               timeout=PATIENCE)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertEqual(os.listdir(own), [])


if __name__ == "__main__":
    SWITCH = os.path.realpath(sys.argv.pop(1))
    if ROOT and "URNIC_TEST_NETNS" not in os.environ:
        os.environ["URNIC_TEST_NETNS"] = "own"
        os.execvp("unshare", ["unshare", "--net", sys.executable, sys.argv[0], SWITCH,
                              *sys.argv[1:]])
    unittest.main()
