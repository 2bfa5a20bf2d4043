#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tgt's iSER target, and the SCSI conformance tests of libiscsi, by urnic-run (doc/reference/dropin.md).

usage: dropin_iser.py urnicd urnic-run CONFIG_FOLDER [TEST...]"""

import os
import re
import subprocess
import sys
import unittest

import dropin_common

TRIES = 3
SECONDS = 30  # for one command to the target
TARGET = "iqn.2026-01.org.urnic:disk"
INITIATORS = [f"iqn.2007-10.com.github:sahlberg:libiscsi:iscsi-test{n}" for n in ("", "-2")]
SIZE = 100 << 20

# Suites whose cases all pass, or are skipped because the target has no such command.
SUITES = """CompareAndWrite Mandatory NoMedia OrWrite Prefetch10 Prefetch16 PreventAllow PrinReadKeys PrinReportCapabilities
    ProutClear ProutPreempt ProutRegister Read12 Read16 Read6 ReadCapacity10 ReadCapacity16 ReadOnly ReceiveCopyResults
    ReportSupportedOpcodes StartStopUnit TestUnitReady Unmap Verify10 Verify12 Verify16 Write12 Write16 WriteAtomic16
    WriteSame10 WriteSame16 WriteVerify10 WriteVerify12 WriteVerify16 MultipathIO""".split()

# The cases that pass, of other suites. "A.B C" is A.B and A.C.
CASES = """GetLBAStatus.Simple UnmapSingle; Inquiry.EVPD MandatoryVPDSBC Standard SupportedVPD VersionDescriptors;
    ModeSense6.AllPages Control Control-D_SENSE Control-SWP;
    ProutReserve.Simple AccessEA AccessWE AccessEARO AccessWERO AccessEAAR AccessWEAR OwnershipEAAR OwnershipWEAR;
    Read10.Simple BeyondEol ZeroBlocks ReadProtect DpoFua; Write10.Simple BeyondEol ZeroBlocks WriteProtect DpoFua;
    Sanitize.BlockErase BlockEraseReserved CryptoErase CryptoEraseReserved ExitFailureMode InvalidServiceAction Overwrite
    OverwriteReserved Reservations Reset"""

# Cases that the target fails, over TCP as well.
TARGETS = """GetLBAStatus.BeyondEol; PrinServiceactionRange.Range; ProutReserve.OwnershipEA OwnershipWE OwnershipEARO OwnershipWERO;
    Reserve6.2Initiators; iSCSIdatasn.iSCSIDataSnInvalid"""

# Cases that the initiator, libiscsi 1.19, can't run over iSER; dropin.md has the reasons.
INITIATORS_OWN = """ExtendedCopy.Simple DescrLimits DescrType ParamHdr ValidSegDescr ValidTgtDescr; Inquiry.AllocLength BlockLimits;
    ModeSense6.Residuals; Read10.Async; Write10.Async; ReadDefectData10.Simple; ReadDefectData12.Simple;
    Reserve6.Simple Logout ITNexusLoss TargetColdReset TargetWarmReset LUNReset;
    Sanitize.Readonly; iSCSIcmdsn.iSCSICmdSnTooHigh iSCSICmdSnTooLow;
    iSCSIResiduals.Read10Invalid Read10Residuals Read12Residuals Read16Residuals Write10Residuals Write12Residuals Write16Residuals
    WriteVerify10Residuals WriteVerify12Residuals WriteVerify16Residuals; iSCSITMF.AbortTaskSimpleAsync LUNResetSimpleAsync"""

# Cases of those that fail because the program gets as many bytes as it asked for, and the line that says so.
UNTRIMMED = {
    "Inquiry.AllocLength": "test_inquiry_alloc_length.c:97  - CU_ASSERT_EQUAL(ret,0)",  # 511 bytes are not 512
    "Inquiry.BlockLimits": "Invalid PageLength returned",
    "ModeSense6.Residuals": "CU_ASSERT_NOT_EQUAL(ms_task->residual_status,SCSI_RESIDUAL_UNDERFLOW)",
    "Sanitize.Readonly": "SWP is not changeable",
}


def names(text):
    """The full names of a list's cases."""
    return [f"{suite}.{case}" for part in text.split(";") for suite, cases in (part.strip().split("."),) for case in cases.split()]


class Iser(dropin_common.Dropin):
    def setUp(self):
        super().setUp()
        self.env["PATH"] = os.environ["PATH"] + ":/usr/sbin"
        # malloc() clears blocks: libiscsi 1.19 over iSER does not initialize the list of descriptors of a connection.
        self.env["MALLOC_PERTURB_"] = "255"
        self.env["TGT_IPC_SOCKET"] = os.path.join(self.dir.name, "tgt")
        self.port = dropin_common.free_port()
        self.log = os.path.join(self.dir.name, "tgtd.log")
        self.target = self.on("a", "sh", "-c", f"exec tgtd -f -C 1 --iscsi portal=127.0.0.1:{self.port} --iser port=3260 "
                              f">{self.log} 2>&1")
        self.assertTrue(self.until(lambda: self.admin("iscsi", "show", "target").returncode == 0), self.said())
        self.disk("iser", 1)
        self.disk("iscsi", 2)

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def admin(self, driver, op, mode, *more):
        return subprocess.run(["tgtadm", "-C", "1", "--lld", driver, "--op", op, "--mode", mode, *more], env=self.env,
                              capture_output=True, text=True, timeout=SECONDS, check=False)

    def disk(self, driver, number):
        """Make a target of one disk. driver: iser, or iscsi over TCP"""
        path = os.path.join(self.dir.name, f"disk{number}")
        with open(path, "wb") as f:
            f.truncate(SIZE)
        tid = ("--tid", str(number))
        commands = [("new", "target", *tid, "-T", f"{TARGET}{number}"), ("new", "logicalunit", *tid, "--lun", "1", "-b", path),
                    ("bind", "target", *tid, "-I", "ALL")]
        # tgt 1.0.85 wants the initiator's address and name allowed over iSER, where over TCP one of them is enough.
        commands += [("bind", "target", *tid, "--initiator-name", name) for name in INITIATORS]
        for command in commands:
            p = self.admin(driver, *command)
            self.assertEqual((p.returncode, p.stderr), (0, ""), (command, self.said()))

    def suite(self, name, url):
        """Run a suite or one of its cases. returns: exit code, output"""
        p = self.on("b", "iscsi-test-cu", "--dataloss", "--allow-sanitize", f"--test=ALL.{name}", url)
        return self.ends(p)

    def iser(self, name):
        return self.suite(name, f"iser://10.0.0.1:3260/{TARGET}1/1")

    def tcp(self, name):
        return self.suite(name, f"iscsi://127.0.0.1:{self.port}/{TARGET}2/1")

    def passes(self, name):
        for _ in range(TRIES):
            code, out = self.iser(name)
            # The initiator ends a case that waits for a second: a loaded machine may need more.
            if "revents is not POLLIN" not in out:
                break
        self.assertEqual(code, 0, (out, self.said()))
        asserts = re.search(r"asserts +(\d+) +(\d+) +(\d+) +0 +n/a\n", out)
        self.assertTrue(asserts, out)
        self.assertIsNone(self.target.poll(), self.said())
        return out

    def test_suites(self):
        for name in SUITES:
            with self.subTest(suite=name):
                self.passes(name)

    def test_cases(self):
        for name in names(CASES):
            with self.subTest(case=name):
                self.passes(name)

    def test_targets(self):
        """Cases that fail over TCP with the same target and initiator."""
        for name in names(TARGETS):
            with self.subTest(case=name):
                code, out = self.tcp(name)
                self.assertEqual(code, 1, out)
                self.assertIn("FAILED", out)

    def test_untrimmed(self):
        """Cases that pass over TCP with the same target, and fail over iSER for libiscsi's reason."""
        for name, reason in UNTRIMMED.items():
            with self.subTest(case=name):
                self.assertEqual(self.tcp(name)[0], 0)
                code, out = self.iser(name)
                self.assertEqual(code, 1, out)
                self.assertIn(reason, out)

    def test_bytes(self):
        """The disk's file has the bytes that a test wrote over RDMA: the target fetched them from the initiator's memory."""
        path = os.path.join(self.dir.name, "disk1")
        self.assertIsNone(re.search(rb"[^\0]", self.read(path)))
        self.passes("CompareAndWrite.Simple")
        self.assertIsNotNone(re.search(rb"[^\0]", self.read(path)))

    def read(self, path):
        with open(path, "rb") as f:
            return f.read(1 << 20)

    def test_list(self):
        """Each case of libiscsi's is in one list above."""
        out = subprocess.run(["iscsi-test-cu", "--list"], capture_output=True, text=True, check=False).stdout
        cases = [word[4:] for word in out.split() if re.fullmatch(r"ALL\.\w+\.[\w-]+", word)]
        self.assertGreater(len(cases), 200)
        listed = names(CASES) + names(TARGETS) + names(INITIATORS_OWN)
        self.assertEqual(sorted(listed + [c for c in cases if c.split(".")[0] in SUITES]), sorted(cases))


if __name__ == "__main__":
    Iser.NICD, Iser.RUN, Iser.CONFIG = map(os.path.abspath, sys.argv[1:4])
    dropin_common.ordinary_user(Iser.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
