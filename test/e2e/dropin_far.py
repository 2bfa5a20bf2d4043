#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs of other projects between two urnicd that memif joins, and over a wire that loses one frame in a hundred: short
tests of the other scripts, on those wires (doc/reference/dropin.md).

usage: dropin_far.py urnicd urnic-run CONFIG_FOLDER urnicctl guest_counts.S [TEST...]"""

import os
import sys
import unittest

import dropin_common
import dropin_fabric
import dropin_fio
import dropin_iser
import dropin_mpi
import dropin_perftest
import dropin_qemu
import dropin_ucx
import dropin_verbs
import dropin_wires
import rdmacm
import rsockets

# Classes, and those of their tests that run on a wire.
FAR = {
    dropin_verbs.Verbs: "devinfo rc uc timestamps ud srq",
    dropin_perftest.Perftest: "bandwidth latency options events duration sizes_write uc uc_write ud ud_queues multicast",
    rdmacm.Rdmacm: "rping rping_own_qp ucmatose udaddy mckey endpoints perftest perftest_ud",
    rsockets.Rsockets: "rstream riostream rcopy udpong udpong_echo",
    dropin_ucx.Ucx: "rc ud sleep io_demo",
    dropin_fabric.Fabric: "msg dgram rxm rxd",
    dropin_mpi.Mpi: "openmpi_rc openmpi_ofi mpich_rc shmem_rc",
    dropin_fio.Fio: "write read verify",
    dropin_iser.Iser: "suites",
    dropin_qemu.Qemu: "migrate",
}
LOSSY = {
    dropin_verbs.Verbs: "rc srq timestamps",
    dropin_perftest.Perftest: "bandwidth latency options uc_write",
    rdmacm.Rdmacm: "rping rping_own_qp ucmatose endpoints perftest perftest_latency",
    rsockets.Rsockets: "rstream riostream rcopy udpong",
    dropin_ucx.Ucx: "rc ud sleep io_demo",
    dropin_fabric.Fabric: "msg rxm",
    dropin_mpi.Mpi: "openmpi_rc openmpi_ofi mpich_rc shmem_rc",
    dropin_fio.Fio: "write read verify",
    dropin_iser.Iser: "suites",
    dropin_qemu.Qemu: "migrate",
}
# Few of iSER's many suites.
ISER = ["CompareAndWrite", "Write16"]


class FarMuch(dropin_wires.Far, dropin_common.Dropin):
    measure = dropin_perftest.Perftest.measure
    words = dropin_perftest.Perftest.words
    table = dropin_perftest.Perftest.table

    def test_uc_much(self):
        """UC, and many times more than may wait for the receiver's memory, which is not shared: its urnicd tells the
        sender's. Whether all comes is not looked at: a machine that is busy may be late with the first word."""
        self.measure("ib_write_bw", "-c", "UC", iterations="2000")
        counts = self.show("counters")
        for name in ("tx_uc_windows", "rx_uc_windows"):
            self.assertGreater(sum(adapter.get(name, 0) for adapter in counts), 0, name)


def classes():
    """Make a class of each pair of a wire and a script's class, with the tests of the lists alone."""
    for wire, table in ((dropin_wires.Far, FAR), (dropin_wires.Lossy, LOSSY)):
        for base, names in table.items():
            chosen = {"test_" + name for name in names.split()}
            others = {name: None for name in unittest.defaultTestLoader.getTestCaseNames(base) if name not in chosen}
            yield type(wire.__name__ + base.__name__, (wire, base), {"__module__": __name__, **others})


globals().update((made.__name__, made) for made in classes())


if __name__ == "__main__":
    Dropin = dropin_common.Dropin
    Dropin.NICD, Dropin.RUN, Dropin.CONFIG, Dropin.CTL, dropin_qemu.GUEST = map(os.path.abspath, sys.argv[1:6])
    dropin_iser.SUITES = ISER
    dropin_mpi.Mpi.LARGEST = dropin_mpi.SMALL
    dropin_common.ordinary_user(Dropin.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[6:], verbosity=2)
