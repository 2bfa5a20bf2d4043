# SPDX-License-Identifier: BSD-3-Clause
"""Run the programs beside urnic. Every function returns the numbers that parse.py finds in the output.

Servers run on the second core and clients on the first, like the nodes of urnic-perf. A program that
counts messages instead of time is given a number of messages, from the estimated time of one."""
import signal
import time

import parse
from runner import Failed, Missing, free_port

HOST = "127.0.0.1"
POSIX = {"UCX_TLS": "posix,self"}
TCP = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}


def parsed(what, function, *args):
    try:
        return function(*args)
    except (ValueError, KeyError, StopIteration) as e:
        raise Failed(f"{what} printed no result that can be read: {e}") from None


def count(seconds, each_us, size, gb_per_s):
    """Number of messages for about `seconds`, if one takes each_us and the time of its bytes."""
    us = each_us + size / gb_per_s / 1e3
    return max(100, min(20_000_000, int(seconds * 1e6 / us)))


def ucx(runner, env, test, size, seconds, rank=50):
    """ucx_perftest tag_bw or tag_lat, over posix shared memory or TCP."""
    if env is POSIX:
        n = count(seconds, 0.25, size, 15)
    else:
        n = count(seconds, 15, size, 2)
    port = free_port()
    server = ["ucx_perftest", "-p", str(port)]
    client = server + ["-t", test, "-s", str(size), "-n", str(n), "-w", str(n // 10), "-v",
                       "-R", str(rank), HOST]
    out = runner.pair(server, client, port, 60 + 20 * seconds, env)
    return parsed("ucx_perftest", parse.ucx, out, size)


def fi_pingpong(runner, provider, kind, size, seconds):
    n = count(seconds / 2, 0.6, size, 8) if provider == "shm" else count(seconds / 2, 20, size, 2)
    port = free_port()
    both = ["fi_pingpong", "-p", provider, "-e", kind, "-I", str(n), "-S", str(size)]
    out = runner.pair(both + ["-B", str(port)], both + ["-P", str(port), HOST], port,
                      60 + 20 * seconds)
    return parsed("fi_pingpong", parse.fi_pingpong, out)


def iperf3(runner, size, seconds):
    """One TCP stream over loopback; size: bytes of each write. Whole seconds only."""
    port = free_port()
    server = ["iperf3", "-s", "-1", "-B", HOST, "-p", str(port)]
    client = ["iperf3", "-c", HOST, "-p", str(port), "-t", str(max(1, round(seconds))),
              "-l", str(size), "-J"]
    return parsed("iperf3", parse.iperf3, runner.pair(server, client, port, 60 + seconds), size)


def sockperf(runner, mode, size, seconds):
    """sockperf over TCP and loopback: ping-pong or throughput. Whole seconds, 14 bytes at least."""
    port = free_port()
    size = max(14, size)
    both = ["--tcp", "-i", HOST, "-p", str(port)]
    client = ["sockperf", mode, *both, "-m", str(size), "-t", str(max(1, round(seconds)))]
    out = runner.pair(["sockperf", "server", *both], client, port, 60 + seconds)
    if mode == "ping-pong":
        return parsed("sockperf", parse.sockperf, out)
    return parsed("sockperf", parse.sockperf_throughput, out, size)


def testpmd(runner, seconds):
    """Two net_ring ports, each the other's way back; a core for each direction; bursts of 32.

    Packets are neither parsed nor copied: the figure is the cost of rings and bursts alone."""
    a, b = runner.cores
    if a == b:
        raise Missing("testpmd wants two cores")
    command = ["dpdk-testpmd", "--lcores", f"0@{a},1@{a},2@{b}", "--no-huge", "-m", "256",
               "--no-telemetry", "--no-pci", "--file-prefix", "urnic-bench", "--vdev", "net_ring0",
               "--vdev", "net_ring1", "--", "--forward-mode=io", "--auto-start", "--tx-first",
               "--stats-period", "1", "--nb-cores=2", "--total-num-mbufs=4096",
               "--no-lsc-interrupt"]
    process = runner.start(command)
    # The first display of testpmd is of the start; then one a second follows.
    end = time.monotonic() + 2.5 + seconds
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    ended_early = process.poll() is not None
    out, err = runner.end(process, signal.SIGINT)
    if ended_early:
        raise Failed(f"dpdk-testpmd ended with {process.returncode}: "
                     f"{(err or out).strip().splitlines()[-1:]}")
    return parsed("dpdk-testpmd", parse.testpmd, out)
