#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""dpdk-dumpcap sees the frames of a urnicd with huge pages, and is refused by one without.

The test mounts huge pages in a mount namespace of its own, and gives them back."""

import os
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # no cache of urnicd_common
from urnicd_common import Nicd

PAGES = "/proc/sys/vm/nr_hugepages"
WANTED = 128  # huge pages of 2 MiB


class Pdump(Nicd):
    def dumpcap(self, *args):
        return subprocess.run([shutil.which("dpdk-dumpcap"), "--file-prefix", "pd", *args], env=self.env,
                              capture_output=True, text=True, timeout=60, check=False)

    def test_with_huge_pages(self):
        if os.getuid() != 0:
            self.skipTest("making huge pages needs root")
        huge = os.path.join(self.dir.name, "huge")
        os.mkdir(huge)
        with open(PAGES, encoding="ascii") as f:
            before = int(f.read())
        subprocess.run(["mount", "-t", "hugetlbfs", "-o", "pagesize=2M", "none", huge], check=True)
        try:
            # The kernel moves used pages out of the way, but may need several tries for all.
            for _ in range(20):
                with open(PAGES, "w", encoding="ascii") as f:
                    f.write(str(before + WANTED))
                with open(PAGES, encoding="ascii") as f:
                    got = int(f.read()) - before
                if got == WANTED:
                    break
            self.assertEqual(got, WANTED, "this machine has no memory in one piece for huge pages")
            self.huge(huge)
        finally:
            for p in self.running:
                p.kill()
                p.wait()
            subprocess.run(["umount", huge], check=True)
            with open(PAGES, "w", encoding="ascii") as f:
                f.write(str(before))

    def huge(self, folder):
        # DPDK maps its memory at the same addresses in both processes. Where sanitizers hold the usual ones, the kernel
        # chooses, and may have given them to a library of dpdk-dumpcap: so urnicd is told a place where nothing is.
        p, _ = self.start(eal="file_prefix = pd\nhuge_pages = auto\nextra = --base-virtaddr=0x200000000000")
        self.assertTrue(os.listdir(folder))
        self.perf("write_bw", "--iters", "100")
        listed = self.dumpcap("-D")
        self.assertIn("net_ring_", listed.stdout, listed.stderr)
        pcap = os.path.join(self.dir.name, "dump.pcapng")
        d = self.popen(shutil.which("dpdk-dumpcap"), "--file-prefix", "pd", "-i", "0", "-c", "200", "-w", pcap)
        # dpdk-dumpcap does not tell when it begins, so packets are sent until it has seen enough.
        self.assertTrue(self.until(lambda: self.perf("write_bw", "--iters", "300") and d.poll() is not None))
        self.assertEqual(d.returncode, 0, d.stderr.read())
        seen = subprocess.run(["tshark", "-r", pcap, "-Y", "infiniband"], capture_output=True, text=True,
                              timeout=60, check=True).stdout.splitlines()
        self.assertGreaterEqual(len(seen), 150)
        self.dumpers_end()
        self.perf("send_lat", "--iters", "100")
        self.assertEqual(self.stop(p)[0], 0)
        self.assertEqual(os.listdir(folder), [])

    def dumpers_end(self):
        """dpdk-dumpcap frees its memory when it ends, amid packets; no engine is in its callbacks then."""
        for i in range(8):
            d = self.popen(shutil.which("dpdk-dumpcap"), "--file-prefix", "pd", "-i", "0", "-c", "20", "-w",
                           os.path.join(self.dir.name, f"end{i}.pcapng"))
            self.assertTrue(self.until(lambda: self.perf("write_bw", "--iters", "300") and d.poll() is not None))

    def test_removal_is_ours(self):
        bound = subprocess.run([self.NICD, "--version"], env={**self.env, "LD_BIND_NOW": "1", "LD_DEBUG": "bindings"},
                               capture_output=True, text=True, timeout=60, check=True).stderr
        for direction in ("rx", "tx"):
            self.assertRegex(bound, rf"librte_pdump\S* \[0\] to \S*urnicd \[0\]: .*rte_eth_remove_{direction}_callback")

    def test_without(self):
        p, _ = self.start(eal="file_prefix = pd")
        q = self.dumpcap("-D")
        self.assertNotEqual(q.returncode, 0)
        self.assertNotIn("net_ring_", q.stdout)
        self.perf("send_lat", "--iters", "100")
        self.assertEqual(self.stop(p)[0], 0)


if __name__ == "__main__":
    if os.getuid() == 0 and "URNIC_TEST_MOUNTS" not in os.environ:
        os.environ["URNIC_TEST_MOUNTS"] = "private"
        os.execvp("unshare", ["unshare", "--mount", sys.executable] + sys.argv)
    Nicd.NICD, Nicd.PERF, Nicd.CONFIG = map(os.path.abspath, sys.argv[1:4])
    del sys.argv[1:4]
    unittest.main()
