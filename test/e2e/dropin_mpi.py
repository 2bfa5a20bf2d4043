#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian's Open MPI, OpenSHMEM and MPICH over the drop-in libraries: two ranks on two nodes, which check all bytes of messages
up to 16 MiB and of windows (doc/reference/dropin.md).

usage: dropin_mpi.py urnicd urnic-run CONFIG_FOLDER urnicctl [TEST...]"""

import os
import subprocess
import sys
import tempfile
import unittest

import dropin_common

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mpi")
BIG, SMALL = 16 << 20, 2 << 20


class Mpi(dropin_common.Dropin):
    LARGEST = BIG

    @classmethod
    def setUpClass(cls):
        cls.built = tempfile.TemporaryDirectory(prefix="urnic-test.")
        for compiler, source, program in (("mpicc.openmpi", "mpi_check.c", "check.openmpi"),
                                          ("mpicc.mpich", "mpi_check.c", "check.mpich"),
                                          ("oshcc", "shmem_check.c", "check.shmem")):
            subprocess.run([compiler, "-O2", "-w", "-o", os.path.join(cls.built.name, program), os.path.join(HERE, source)],
                           check=True, stdin=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.built.cleanup()

    def setUp(self):
        super().setUp()
        # Open MPI has files of a job in TMPDIR, and of a user in HOME.
        self.env.update(TMPDIR=self.dir.name, HOME=self.dir.name, UCX_WARN_UNUSED_ENV_VARS="n",
                        OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

    def sent(self):
        """Bytes that left the adapters."""
        return [adapter.get("tx_bytes", 0) for adapter in self.show("counters")]

    def job(self, name, program, largest, *starter):
        """Run two ranks; both tell of as many checks as they made."""
        before = self.sent()
        p = subprocess.Popen([*starter, *self.ranks(), os.path.join(self.built.name, program), str(largest)],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.env, cwd=self.dir.name)
        self.running.append(p)
        code, out = self.ends(p)
        self.assertEqual(code, 0, out)
        for rank in ("0", "1"):
            self.assertRegex(out, rf"{name} {rank}: [0-9]{{2,}} checks\n")
        # All went by urnic.
        for was, now in zip(before, self.sent()):
            self.assertGreater(now - was, largest)

    def openmpi(self, *mca, largest=None):
        largest = largest or self.LARGEST
        words = [word for pair in mca for word in ("--mca", *pair.split(" ", 1))]
        self.job("mpi_check: rank", "check.openmpi", largest, "mpirun.openmpi", "-np", "2", *words)

    def test_openmpi_rc(self):
        self.env["UCX_TLS"] = "rc_v,self"
        self.openmpi("pml ucx", "osc ucx")

    def test_openmpi_ud(self):
        self.env["UCX_TLS"] = "ud_v,self"
        self.openmpi("pml ucx", "osc ucx", largest=SMALL)

    def test_openmpi_ofi(self):
        self.openmpi("pml cm", "mtl ofi", "mtl_ofi_provider_include verbs;ofi_rxm")

    def mpich(self, transport):
        # MPICH 4.0.2 unpacks a vector from fragments of a message wrongly when their length is no multiple of an element's,
        # also over other transports of UCX; 8,257 makes it one of four for rc_v.
        self.env.update(UCX_TLS=transport + ",self", UCX_RC_VERBS_SEG_SIZE="8257")
        self.job("mpi_check: rank", "check.mpich", SMALL, "mpiexec.mpich", "-n", "2")

    def test_mpich_rc(self):
        self.mpich("rc_v")

    def test_mpich_ud(self):
        self.mpich("ud_v")

    def shmem(self, transport):
        # Open MPI 4.1.4 crashes in shmem_finalize() without "osc ucx": its component rdma frees memory when a hook of another
        # component is unloaded; a program of shmem_init() and shmem_finalize() does so over TCP, too.
        # Open MPI's spml ucx destroys keys that it never made, from memory that it did not set: meson's MALLOC_PERTURB_ makes that a crash.
        self.env.pop("MALLOC_PERTURB_", None)
        self.env["UCX_TLS"] = transport + ",self"
        self.job("shmem_check: element", "check.shmem", SMALL, "oshrun", "-np", "2", "--mca", "spml", "ucx", "--mca", "osc", "ucx")

    def test_shmem_rc(self):
        self.shmem("rc_v")

    def test_shmem_ud(self):
        self.shmem("ud_v")

    def test_no_rank(self):
        """Several nodes are for ranks; a program that is none is told so."""
        code, out = self.ends(self.on("a,b", "true"))
        self.assertEqual(code, 1)
        self.assertRegex(out, "names more than one node, and this process is no rank")

    def test_ranks(self):
        """Ranks get nodes in turn, by the variables of several starters."""
        for variable, rank, node in (("OMPI_COMM_WORLD_LOCAL_RANK", "0", "a"), ("MPI_LOCALRANKID", "1", "b"), ("SLURM_LOCALID", "2", "a"),
                                     ("PMI_RANK", "3", "b")):
            self.env[variable] = rank
            code, out = self.ends(self.on("a,b", "sh", "-c", "echo $URNIC_NODE; ls /dev/infiniband"))
            self.assertEqual((code, out), (0, f"{node}\n{node}0\n"), variable)
            del self.env[variable]


if __name__ == "__main__":
    Mpi.NICD, Mpi.RUN, Mpi.CONFIG, Mpi.CTL = map(os.path.abspath, sys.argv[1:5])
    dropin_common.ordinary_user(Mpi.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
