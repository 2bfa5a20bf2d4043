#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian's perftest over the drop-in libibverbs.so.1: its programs link libmlx5.so.1, libefa.so.1 and librdmacm.so.1 of
the system as well, which want names of rdma-core's private interface (doc/reference/dropin.md).

Each program spins for 0.2 s at least for each size that it measures, to learn the clock of its processor: a few pairs run
beside each other.

usage: dropin_perftest.py urnicd urnic-run CONFIG_FOLDER urnicctl [TEST...]"""

import os
import sys
import unittest

import dropin_common


class Perftest(dropin_common.Dropin):
    AT_ONCE = 3  # pairs that run beside each other

    def words(self, program, *options, iterations="100"):
        """returns: the words of a pair"""
        # Without -F the programs read CPU frequencies, which differ; with -x 1 they use the IPv4 address.
        how = () if "-D" in options else ("-n", iterations)
        return (program, "-F", "-x", "1", *how, *options)

    def table(self, out):
        """The client's table has a row of numbers. returns: the output"""
        head = next((i for i, line in enumerate(out.splitlines()) if line.startswith(" #bytes")), None)
        self.assertIsNotNone(head, out)
        # On a busy machine the bandwidth of a row may well round to 0.
        row = [float(word) for word in out.splitlines()[head + 1].split()]
        self.assertGreaterEqual(len(row), 4, out)
        return out

    def measure(self, program, *options, iterations="100"):
        """Run a pair. returns: the client's output"""
        return self.table(self.pair(*self.words(program, *options, iterations=iterations))[1])

    def beside(self, *commands, iterations="100"):
        """Run pairs, all at once. returns: the clients' outputs"""
        # Six and more programs that poll leave an acknowledgement little of a processor: -u 18 waits for it 16 times as long.
        started = [self.begin(*self.words(*command, "-u", "18", iterations=iterations)) for command in commands]
        ended = [(self.ends(client), self.ends(server)) for server, client in started]
        for command, both in zip(commands, ended):
            self.assertEqual([code for code, _ in both], [0, 0], (command, both))
        return [self.table(client[1]) for client, _ in ended]

    def each(self, *commands, iterations="100"):
        """Run pairs, a few at a time: one by one on a wire that counts what each pair loses. returns: the clients' outputs"""
        said = []
        for k in range(0, len(commands), self.AT_ONCE):
            some = commands[k:k + self.AT_ONCE]
            if len(some) > 1:
                said += self.beside(*some, iterations=iterations)
            else:
                said.append(self.measure(*some[0], iterations=iterations))
        return said

    def test_bandwidth(self):
        self.each(("ib_write_bw",), ("ib_read_bw",), ("ib_send_bw",), ("ib_atomic_bw",), ("ib_atomic_bw", "-A", "CMP_AND_SWAP"))

    def test_latency(self):
        self.each(("ib_write_lat",), ("ib_read_lat",), ("ib_send_lat",), ("ib_atomic_lat",))

    def test_options(self):
        """Both directions, 8 QPs, an SRQ, regions of each QP, inline data."""
        self.each(("ib_write_bw", "-b"), ("ib_send_bw", "-b"), ("ib_write_bw", "-q", "8"), ("ib_send_bw", "--use-srq"),
                  ("ib_write_bw", "--mr_per_qp", "-q", "2"), ("ib_write_lat", "-I", "64"), ("ib_send_lat", "--use-srq"))

    def test_together(self):
        """Options together: many queue pairs with events, both directions with inline data or for a time, UC in both directions."""
        self.each(("ib_send_bw", "-q", "8", "-e"), ("ib_send_bw", "-b", "-I", "64", "-s", "64"), ("ib_write_bw", "-b", "-q", "4", "-I", "64", "-s", "64"),
                  ("ib_read_bw", "-b", "-D", "1"), ("ib_write_bw", "-c", "UC", "-b", "-q", "4"), ("ib_write_lat", "-c", "UC", "-I", "64"))

    def test_more(self):
        """The options of test_options for the other programs."""
        self.each(("ib_read_bw", "-q", "8", "-b"), ("ib_atomic_bw", "-q", "8", "-b"), ("ib_read_bw", "--mr_per_qp", "-q", "8"),
                  ("ib_send_bw", "--mr_per_qp", "-q", "8"), ("ib_atomic_bw", "--mr_per_qp", "-q", "2"), ("ib_send_lat", "-I", "64"))

    def test_events(self):
        self.each(("ib_send_bw", "-e"), ("ib_send_lat", "-e"))

    def test_events_others(self):
        """READs and atomics with events."""
        self.each(("ib_read_bw", "-e"), ("ib_read_lat", "-e"), ("ib_atomic_bw", "-e"), ("ib_atomic_lat", "-e"))

    def test_duration(self):
        """Time instead of a count."""
        self.each(*((f"ib_{what}", "-D", "1") for what in ("write_bw", "send_bw", "atomic_bw", "write_lat", "read_lat", "send_lat", "atomic_lat")),
                  ("ib_write_bw", "-c", "UC", "-D", "1"), ("ib_send_bw", "-c", "UC", "-D", "1"))

    def sizes(self, program, *options, largest=8388608):
        """All sizes: one pair after the other, because most of this is computing."""
        with self.subTest(program=program):
            self.assertIn(f"\n {largest} ", self.measure(program, "-a", *options, iterations="5"))

    def test_sizes_write(self):
        self.sizes("ib_write_bw")

    def test_sizes_read(self):
        self.sizes("ib_read_bw")

    def test_sizes_others(self):
        for program in ("ib_send_bw", "ib_send_lat", "ib_write_lat", "ib_read_lat"):
            self.sizes(program)

    def test_uc(self):
        """UC: SENDs and WRITEs, in bandwidth and latency."""
        # A receiver waits for ever for a message that is lost. So few short ones are sent that the slowest machine has
        # room for all of them at once, between two urnicd as well.
        self.each(("ib_send_bw", "-c", "UC", "-s", "256"), ("ib_write_lat", "-c", "UC"), ("ib_send_lat", "-c", "UC"))

    def test_uc_long(self):
        """UC, and more than the receiver's memory, which is not shared, takes at once: nothing is lost."""
        # With a receive for each message from the start, no message depends on how soon the receiver posts more.
        self.measure("ib_send_bw", "-c", "UC", "-r", "1000", iterations="1000")

    def test_uc_queues(self):
        """UC, and eight queue pairs with more on their way than may wait: each sends no more than its part, and nothing is
        lost, with one engine and with an engine for each node."""
        self.measure("ib_send_bw", "-c", "UC", "-q", "8", "-r", "200", iterations="200")
        self.again(daemon="[engine 0]\n[engine 1]", a0="engines = 0", b0="engines = 1")
        self.measure("ib_send_bw", "-c", "UC", "-q", "8", "-r", "200", iterations="200")

    def test_sizes_uc(self):
        for program in ("ib_send_bw", "ib_send_lat"):
            self.sizes(program, "-c", "UC")
        # Both sides of ib_write_lat spin: on a busy machine each message waits for a processor, and -a has 230 of them.
        sizes = ("65536", "1048576", "8388608")
        for size, out in zip(sizes, self.each(*(("ib_write_lat", "-c", "UC", "-s", size) for size in sizes), iterations="5")):
            self.assertIn(f"\n {size} ", out)

    def test_uc_more(self):
        """UC: events, and regions of each QP."""
        self.each(("ib_send_bw", "-c", "UC", "-e", "-s", "256"), ("ib_write_bw", "-c", "UC", "--mr_per_qp", "-q", "2"))

    def test_uc_write(self):
        """UC: WRITEs whose receiver waits for none of them."""
        self.measure("ib_write_bw", "-c", "UC")

    def test_ud(self):
        self.each(("ib_send_bw", "-c", "UD"), ("ib_send_lat", "-c", "UD"))

    def test_ud_more(self):
        """UD: both directions, events, inline data, an SRQ, regions of each QP."""
        # A receiver waits for ever for a datagram that is lost: few short ones have room on the slowest machine.
        self.each(*(("ib_send_bw", "-c", "UD", "-s", "256", *more) for more in (("-b",), ("-e",), ("--use-srq",), ("--mr_per_qp",))),
                  ("ib_send_lat", "-c", "UD", "-I", "64"), ("ib_send_lat", "-c", "UD", "--use-srq"))

    def test_ud_sizes(self):
        """UD: all sizes up to the MTU."""
        self.sizes("ib_send_bw", "-c", "UD", largest=4096)

    def test_ud_queues(self):
        """UD, and eight queue pairs: datagrams of up to 72 bytes lie beside their completions, and wait for no worker."""
        self.measure("ib_send_bw", "-c", "UD", "-q", "8", "-s", "64")

    def test_ud_lost(self):
        """UD, eight queue pairs, and more long datagrams than memory that is not shared takes: each arrives, or is counted by the
        reason why not."""
        self.measure("ib_send_bw", "-c", "UD", "-q", "8", "-D", "1")
        counts = next(c for c in self.show("counters") if c["adapter"] == "a0")
        lost = {name: n for name, n in counts.items() if name.startswith("drop_")}
        self.assertEqual(counts["rx_roce"], counts["completions"] + sum(lost.values()), counts)
        self.assertLessEqual({name for name, n in lost.items() if n > 0},
                             {"drop_memory", "drop_ud_no_recv", "drop_flushed", "drop_qp_state", "drop_no_qp"}, counts)

    def test_multicast(self):
        """UD in a multicast group: the group that perftest chooses, which is of IPv6, and one of IPv4."""
        for gid, group in (("0", ()), ("1", ("-M", "0:0:0:0:0:0:0:0:0:0:255:255:239:0:0:7"))):
            for program in ("ib_send_bw", "ib_send_lat"):
                with self.subTest(program=program, gid=gid):
                    server, client = self.pair(program, "-F", "-x", gid, "-n", "100", "-c", "UD", "-g", *group)
                    for out in (server, client):
                        self.assertIn("MultiCast runs on UD!", out)
                        self.assertIn("QPN 0xffffff", out)
                        self.assertRegex(out, r"(?m)^ \d+ +100 +\d")

    def test_refused(self):
        """Options that need what urnic has not, and those that perftest refuses, end with an error that names it."""
        for command, want in ((("ib_send_bw", "-c", "XRC"), "XRC"), (("ib_write_bw", "--odp"), "MR|ODP"),
                              (("ib_write_bw", "-c", "DC"), "a queue pair of another type than RC, UC and UD: urnic has no such thing"),
                              (("ib_send_bw", "-c", "UC", "--use-srq"), "a UC queue pair with a shared receive queue: urnic has no such thing"),
                              (("ib_send_bw", "-c", "UC", "-R"), "UC is not supported in librdmacm"),
                              (("ib_read_bw", "-c", "UC"), "UC connection not possible in READ/ATOMIC verbs")):
            with self.subTest(command=command):
                self.assertRegex(self.fails_together(*command, "-F", "-x", "1"), want)

    def fails_together(self, *command):
        """Run a pair of which the server fails after its client connected, if not before. returns: the server's output"""
        port = str(dropin_common.free_port())
        server = self.on("a", *command, "-p", port)
        self.until(lambda: dropin_common.listens(int(port)) or server.poll() is not None)
        client = self.on("b", *command, "-p", port, "127.0.0.1") if server.poll() is None else None
        code, out = self.ends(server)
        self.assertGreater(code, 0, out)
        if client is not None:
            self.assertGreater(self.ends(client)[0], 0)
        return out


if __name__ == "__main__":
    Perftest.NICD, Perftest.RUN, Perftest.CONFIG, Perftest.CTL = map(os.path.abspath, sys.argv[1:5])
    dropin_common.ordinary_user(Perftest.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
