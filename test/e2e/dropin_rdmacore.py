#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""rdma-core's own test suite, as Debian's python3-pyverbs has it, over the drop-in libraries: its tests of devices, PDs,
regions, windows, CQs, QPs, SRQs, address handles, traffic of each kind, events, multicast and RDMA-CM.

usage: dropin_rdmacore.py urnicd urnic-run CONFIG_FOLDER [TEST...]

Two of the suite's functions ask the kernel for the network interface of a device and its address; here the address is
that of urnic's node. All else is as the package has it. doc/reference/dropin.md has a row for each reason to skip."""

import glob
import gzip
import json
import os
import re
import shutil
import sys
import unittest

import dropin_common

SUITE = "/usr/share/doc/rdma-core/tests"
FEWEST = 103  # tests that pass: all that do not skip (doc/reference/dropin.md)
# Runs the suite: its output is a line of JSON for each test.
RUNNER = r'''
import json, sys, unittest
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/tests"]
import tests.base
from args_parser import parser
def address(self, dev, port, index):
    self.args.append([dev, port, index, "10.0.0.1", "02:00:00:00:00:01"])
tests.base.RDMATestCase._get_ip_mac = address
names = sys.argv[2:]
sys.argv[1:] = ["--dev", "a0", "--gid", "1"]
parser.parse_args()
class Result(unittest.TestResult):
    def tell(self, test, end, why=""):
        print(json.dumps([test.id(), end, str(why)]), flush=True)
    def addSuccess(self, test): self.tell(test, "ok")
    def addSkip(self, test, why): self.tell(test, "skip", why)
    def addFailure(self, test, err): self.tell(test, "fail", self._exc_info_to_string(err, test))
    addError = addFailure
loader = unittest.defaultTestLoader
all = loader.loadTestsFromNames(names) if names else loader.discover(sys.path[0] + "/tests", top_level_dir=sys.path[0])
all.run(Result())
'''
# Tests that may skip, by which reasons, and what stands behind these. Any other skip is an error: a call may be lost.
SKIPS = (
    (r"test_(mlx5|efa)", r"non (MLX5|EFA) device|not an (MLX5|EFA) |Could not open (mlx5|efa) context|PCI device must", "other makers' adapters"),
    (r"test_odp\.", r"ODP", "no on-demand paging"),
    (r"DMTest|DeviceMemory", r"Device memory", "no device memory"),
    (r"_xrc_", r"XRCD", "no XRC"),
    (r"_raw_|FlowTest|RSSTrafficTest", r"Create QP type 8|Raw Packet|RAW QP|run by root", "no raw packets, which root may send"),
    (r"DmaBuf|[Cc]uda", r"dmabuf|[Cc]uda|CUDA|DRM|dri", "needs a GPU"),
    (r"_huge_", r"huge pages", "of tests that skip with huge pages, too: on-demand paging, a parent domain with an allocator"),
    (r"ParentDomainTrafficTest\.test_(default_allocators|mem_align|huge_page)_", r"Parent Domain", "no parent domains with the program's own memory"),
    (r"test_query_rt_values|test_timestamp_free_running_rc_", r"Converting timestamp", "no conversion of times to the wall clock's"),
    (r"test_tag_matching\.", r"Extended CQ|[Tt]ag [Mm]atching", "no tag matching"),
    (r"test_qp_ex_rc_atomic_write$", r"Extended QP", "no atomic write"),
)
# A test that asks for an error right after it posted requests, and gets it only when these are complete already.
RACY = "tests.test_cq.CQTest.test_resize_cq"


class Rdmacore(dropin_common.Dropin):
    def unpack(self):
        """Debian compresses documents. returns: the folder with the suite"""
        if not os.path.isdir(SUITE):
            self.fail(f"there is no {SUITE}: the package python3-pyverbs was installed without its documents")
        folder = os.path.join(self.dir.name, "suite")
        shutil.copytree(SUITE, os.path.join(folder, "tests"))
        for path in glob.glob(f"{folder}/tests/*.gz"):
            with gzip.open(path) as f, open(path[:-3], "wb") as out:
                shutil.copyfileobj(f, out)
        return folder

    def run_suite(self, folder, *names):
        """returns: [name, "ok", "skip" or "fail", text] of each test"""
        code, out = self.ends(self.on("a", "/usr/bin/python3", f"{folder}/run.py", folder, *names))
        results = [json.loads(line) for line in out.splitlines() if line.startswith("[")]
        self.assertTrue(code == 0 and results, out[-3000:])
        return results

    def test_suite(self):
        folder = self.unpack()
        with open(f"{folder}/run.py", "w", encoding="utf-8") as f:
            f.write(RUNNER)
        results = self.run_suite(folder)
        for _ in range(10):
            if [RACY, "fail"] not in [r[:2] for r in results]:
                break
            results = [r for r in results if r[0] != RACY] + self.run_suite(folder, RACY)
        ended = {end: [r for r in results if r[1] == end] for end in ("ok", "skip", "fail")}
        self.assertEqual(ended["fail"], [])
        self.assertEqual([r for r in ended["skip"] if not any(re.search(names, r[0]) and re.search(why, r[2]) for names, why, _ in SKIPS)], [])
        self.assertGreaterEqual(len(ended["ok"]), FEWEST)
        print({end: len(some) for end, some in ended.items()}, file=sys.stderr)


if __name__ == "__main__":
    Rdmacore.NICD, Rdmacore.RUN, Rdmacore.CONFIG = map(os.path.abspath, sys.argv[1:4])
    dropin_common.ordinary_user(Rdmacore.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
