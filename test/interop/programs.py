#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs of rdma-core and perftest: one on urnic by urnic-run, the other one on the kernel's soft-RoCE in
a guest, each in both roles. doc/reference/peers.md has the table of what is run here.

  perftest  ib_{write,read,send,atomic}_{bw,lat}, IPv4 and IPv6, MTU 256 to 4096, RC, UC and UD
  pingpong  ibv_{rc,uc,ud,srq}_pingpong
  cm        rping -V, rping -C, ucmatose, udaddy, rdma_server and rdma_client, perftest -R, rstream

then some of each over a wire that delays, drops, duplicates and reorders frames of both directions (netem in the guest).

usage: programs.py URNICD URNIC_RUN LOGS [--list] [PART]

LOGS is a folder for the guest's console and urnicd's output. PART picks the cases whose names contain it. --list prints
the cases. The test runs in namespaces of its own: all that it starts is removed when it ends, however it ends."""
import argparse
import dataclasses
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import guest

SKIPPED = 77
PATIENCE = 90 # seconds for one case
PORTS = itertools.count(18515) # one for each case: the kernel keeps those that were used for a while
OURS = {4: "10.77.0.99", 6: "fd77::99"} # addresses of urnic's node
MOST_FAILURES = 12
CONFIG = """[urnicd]
socket = {folder}/nicd.sock
idle = pause
empty_polls = 4
[port p0]
device = net_af_packet0,iface=urnveth0
[adapter u0]
port = p0
ipv4 = 10.77.0.99
ipv6 = fd77::99
"""
# The wire of cases with a fault.
NETEM = "delay 1ms loss 2% duplicate 2% reorder 90% 25%"


@dataclasses.dataclass(frozen=True)
class Case:
    """A pair of programs. words: the same on both sides; where: the client's words that say where its server is, and
    the server's, by the address family. {there}: the server's address"""
    words: str
    ip: int = 4
    client: str = "{there}"
    server: str = ""
    peer: str = ""        # the other program, where the two differ
    oob: bool = True      # the programs find each other over the kernel's TCP
    roles: tuple = ("client", "server") # urnic's
    fault: bool = False
    want: str = ""        # is in the output of both

    def name(self, role):
        words = self.words.partition(" {")[0].partition(" -u 19")[0].replace(" -F", "").replace(" -a", "")
        return f"{words.replace(' -', '-').replace(' ', '_')}-ipv{self.ip}-{role}" + ("-fault" if self.fault else "")


def perftest(words, ip=4, **more):
    """-u 19: an acknowledgement may take seconds on a busy machine, whose guest is emulated."""
    connected = "" if "-c UD" in words else " -u 19"
    return Case(f"{words}{connected} -F -x {{gid}} -p {{port}}", ip, **more)


def pingpong(words, ip=4, **more):
    return Case(f"{words} -g {{gid}} -p {{port}}", ip, **more)


def cm(words, ip=4, **more):
    return Case(words, ip, oob=False, **more)


def cases():
    some = "-n 20 -s 5000"
    mtus = (256, 512, 1024, 2048, 4096)
    programs = [f"ib_{op}_{what}" for what in ("bw", "lat") for op in ("write", "read", "send", "atomic")]
    for k, program in enumerate(programs):
        size = "-n 20" if "atomic" in program else some
        yield perftest(f"{program} {size} -m {mtus[k % 5]}", (4, 6)[k % 2])
    for k, mtu in enumerate(mtus):
        yield perftest(f"ib_{('write', 'read', 'send')[k % 3]}_bw -n 10 -s 65536 -m {mtu}", (6, 4)[k % 2], roles=(("client", "server")[k % 2],))
    yield perftest("ib_read_bw -n 5 -q 4 -s 20000 -m 1024", roles=("server",))
    yield perftest("ib_send_bw -n 20 -s 3000 -b -m 1024", roles=("client",))
    # A lost packet ends a message of UC, and the receiver of ib_send_bw then waits for ever: few bytes at a time.
    yield perftest("ib_write_bw -c UC -n 20 -s 5000 -m 1024")
    yield perftest("ib_send_lat -c UC -n 20 -s 1000 -m 512", 6)
    yield perftest("ib_send_bw -c UD -n 20 -s 1000")
    yield perftest("ib_send_lat -c UD -n 20 -s 64", 6)
    yield pingpong("ibv_rc_pingpong -n 50 -s 9000 -m 2048", 6)
    yield pingpong("ibv_uc_pingpong -n 50 -s 3000 -m 1024")
    yield pingpong("ibv_ud_pingpong -n 50 -s 1000")
    yield pingpong("ibv_srq_pingpong -n 200 -q 4")
    yield cm("rping -V -C 20 -S 3000 -a {there}", client="-c", server="-s")
    yield cm("rping -V -C 20 -S 100 -a {there}", 6, client="-c", server="-s")
    yield cm("ucmatose -c 4 -C 20 -S 3000", client="-s {there}", want="return status 0")
    yield cm("ucmatose -c 2 -C 10 -S 1000", 6, client="-s {there}", server="-b {there}", want="return status 0")
    yield cm("udaddy -c 2 -C 5 -S 500", client="-s {there}", want="return status 0")
    yield cm("rstream -S 4000 -C 20 -T v", client="-s {there}", server="-b {there}")
    yield cm("rstream -S 1000 -C 20 -T v", 6, client="-s {there}", server="-b {there}")
    yield cm("rdma_client", peer="rdma_server", client="-s {there}", want="end 0")
    # perftest connects twice: its client would be there before the emulated server listens for the second time.
    yield perftest_cm("ib_write_bw -R -n 20 -s 5000", roles=("server",))
    yield perftest_cm("ib_send_lat -R -n 20 -s 64", roles=("server",))
    yield perftest("ib_write_bw -n 20 -s 20000 -m 1024", fault=True)
    yield perftest("ib_read_bw -n 20 -s 20000 -m 1024", 6, fault=True)
    yield perftest("ib_send_bw -n 20 -s 20000 -m 1024", fault=True)
    yield perftest("ib_atomic_bw -n 20", fault=True)
    yield cm("rping -V -C 20 -S 3000 -a {there}", client="-c", server="-s", fault=True)


def perftest_cm(words, ip=4, **more):
    return Case(f"{words} -F", ip, oob=False, **more)


class Wrong(Exception):
    pass


class Ours:
    """A program of urnic's side."""

    def __init__(self, options, folder, words):
        self.words = words
        env = dict(os.environ, URNIC_SOCKET=f"{folder}/nicd.sock")
        self.process = subprocess.Popen([options.run, *words.split()], env=env, text=True, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def wait(self):
        try:
            out, _ = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, _ = self.process.communicate()
            return None, out
        return self.process.returncode, out

    def kill(self):
        self.process.kill()
        self.process.communicate()


class Theirs:
    """A program in the guest."""

    def __init__(self, words):
        self.job = guest.Job(f"timeout {PATIENCE} {words}")

    def wait(self):
        return self.job.wait(PATIENCE + 10)


def listens(table, port):
    """True when a table of the kernel's has a TCP server at the port."""
    return re.search(rf":{port:04X} [0-9A-F]+:0000 0A ", table) is not None


def wait_for_server(the_guest, case, server, port):
    """A server of TCP is in the kernel's table; one of RDMA-CM gets a moment, and its client more than one try."""
    end = time.monotonic() + 30
    if not case.oob:
        time.sleep(1 if isinstance(server, Theirs) else 0.5)
    while case.oob and time.monotonic() < end:
        if isinstance(server, Theirs):
            table = the_guest.run("cat /proc/net/tcp /proc/net/tcp6")
        else:
            table = "".join(open(f"/proc/net/{name}", encoding="utf-8").read() for name in ("tcp", "tcp6"))
        if listens(table, port) or (isinstance(server, Ours) and server.process.poll() is not None):
            return
        time.sleep(0.1)


def commands(case, role, port):
    """returns: urnic's command, the guest's"""
    ours_serves = role == "server"
    node = OURS[case.ip] if ours_serves else guest.ADDRESS[case.ip]
    host = (guest.HOST if ours_serves else guest.ADDRESS)[4]
    there = host if case.oob else node
    client, server = (words.replace("{there}", there) for words in (case.client, case.server))
    both = []
    for here in (True, False):
        serves = here == ours_serves
        words = case.words.replace("{gid}", str(guest.GID[case.ip])).replace("{there}", there).replace("{port}", str(port))
        if serves and case.peer:
            words = case.peer
        both.append(f"{words} {server if serves else client}".strip())
    return both


# A client of RDMA-CM says so when it came before its server listened.
EARLY = re.compile(r"REJECTED[,;] error:? 8|UNREACHABLE, error: 1|[Rr]efused|status 8")
# rping's server, when its client has gone, closes the channel on which its own thread may still wait for events.
CLOSED = "DISCONNECT EVENT...\nwait for RDMA_READ_ADV state 10\nrdma_get_cm_event: Bad file descriptor"
# Ping-pongs say so when their peer was silent for half a second, as a guest is on a busy machine: they can't wait longer.
SILENT = "transport retry counter exceeded"


def try_case(the_guest, options, folder, case, role):
    """Run both programs. returns: client's and server's (exit code, output); the two commands"""
    port = next(PORTS)
    ours, theirs = commands(case, role, port)
    sides = [lambda: Ours(options, folder, ours), lambda: Theirs(theirs)]
    serve, connect = sides if role == "server" else sides[::-1]
    server = serve()
    wait_for_server(the_guest, case, server, port)
    got = connect().wait()
    for _ in range(10):
        if case.oob or got[0] == 0 or not EARLY.search(got[1]):
            break
        time.sleep(1)
        if isinstance(server, Ours) and " -R" in case.words:
            # perftest connects twice. When only the second time was too early, the server waits for this client for ever.
            server.kill()
            server = serve()
            wait_for_server(the_guest, case, server, port)
        got = connect().wait()
    if got[0] is None:
        the_guest.run(f"killall {theirs.split()[0]}; true")
    return [got, server.wait()], ours, theirs


def run_case(the_guest, options, folder, case, role):
    for _ in range(3):
        got, ours, theirs = try_case(the_guest, options, folder, case, role)
        silent = "_pingpong" in case.words and SILENT in got[0][1] + got[1][1]
        # The kernel repeats no DREQ whose id was destroyed, as a program's end does at once (cm_destroy_id() in its cm.c).
        # A server does not learn of the end then, whichever RDMA it has.
        left = case.fault and role == "server" and not case.oob and got[0][0] == 0 and got[1][0] is None
        if not silent and not left:
            break
    said = "\n".join(f"  -- {name} ended with {code}:\n    " + out.strip().replace("\n", "\n    ")
                     for name, (code, out) in zip(("client", "server"), got))
    if case.words.startswith("rping") and got[0][0] == 0 and got[1][1].strip().endswith(CLOSED):
        got[1] = (0, got[1][1])
    if [code for code, _ in got] != [0, 0] or not all(case.want in out for _, out in got):
        raise Wrong(f"\n  urnic: {ours}\n  guest: {theirs}\n{said}")


def run_all(the_guest, options, folder):
    passed = failures = 0
    impaired = False
    for case in cases():
        for role in case.roles:
            if options.part not in case.name(role) or failures >= MOST_FAILURES:
                continue
            if case.fault != impaired:
                the_guest.impair(NETEM if case.fault else "")
                impaired = case.fault
            began = time.monotonic()
            try:
                run_case(the_guest, options, folder, case, role)
                passed += 1
                print(f"done: {case.name(role)}, {time.monotonic() - began:.2f} s", flush=True)
            except (Wrong, guest.GuestError, OSError) as e:
                failures += 1
                print(f"FAILED: {case.name(role)}: {e}", flush=True)
                the_guest.run("killall " + " ".join({w.split()[0] for c in cases() for w in (c.words, c.peer) if w}) + " 2>/dev/null; true")
    print(f"{passed} passed, {failures} failed")
    return 1 if failures or not passed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nicd")
    parser.add_argument("run")
    parser.add_argument("logs")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("part", nargs="?", default="")
    options = parser.parse_intermixed_args()
    if options.list:
        print("\n".join(c.name(r) for c in cases() for r in c.roles if options.part in c.name(r)))
        return 0
    if os.geteuid() != 0:
        print("skipped: a guest on a tap wants root")
        return SKIPPED
    os.environ.pop("LD_LIBRARY_PATH", None) # has the build's folders; urnicd needs the system's libibverbs.so.1
    guest.enter()
    os.makedirs(options.logs, exist_ok=True)
    began = time.monotonic()
    the_guest = guest.Guest(options.logs)
    with tempfile.TemporaryDirectory(prefix="programs", dir=options.logs) as folder:
        try:
            guest.interfaces()
            with open(f"{folder}/c.ini", "w", encoding="utf-8") as f:
                f.write(CONFIG.format(folder=folder))
            env = dict(os.environ, XDG_RUNTIME_DIR=folder, RUNTIME_DIRECTORY=folder)
            with open(f"{options.logs}/urnicd.log", "w", encoding="utf-8") as log, \
                    subprocess.Popen([options.nicd, "-c", f"{folder}/c.ini"], stdout=log, stderr=log, env=env) as nicd:
                while not os.path.exists(f"{folder}/nicd.sock") and nicd.poll() is None:
                    time.sleep(0.05)
                print(f"the guest is up, {time.monotonic() - began:.1f} s: {the_guest.run('uname -r').strip()}", flush=True)
                try:
                    code = run_all(the_guest, options, folder)
                finally: # also when the guest has lost its network: nobody waits for ever
                    nicd.terminate()
                code = code or nicd.wait(30)
            if code:
                print("the guest's console:", the_guest.sh("log"))
                with open(f"{options.logs}/urnicd.log", encoding="utf-8") as log:
                    print("urnicd:", log.read())
            return code
        finally:
            the_guest.stop()


if __name__ == "__main__":
    sys.exit(main())
