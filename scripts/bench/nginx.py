#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure connections that nginx sets up a second for wrk: on streams of urnic's, and by loopback TCP, in turn.

usage: nginx.py [OPTION...]

Each request is a connection of its own, of a file of 100 bytes. nginx and wrk are on two nodes of one urnicd with a switch
between them (config/two-nodes.ini); the kernel's run has both on loopback. A round is one run of each; the
figures are medians over the rounds.

  --build DIR      the build folder (default: build, in the project's folder)
  --rounds N       number of rounds (default 5)
  --seconds N      whole seconds of each run (default 2)
  --workers N      nginx's worker processes (default 1)
  --connections N  connections that wrk has at a time (default 10)
  --keep           also requests a second over connections that are kept
  --idle I         what the engine does without work: spin, pause or sleep (default spin)
  --cores LIST     cores of urnicd, nginx and wrk, such as 0,1,2 (default: where the system puts them)
  --json           print JSON instead of text
  --help           this text

Exit code: 0 measured, 1 something failed, 2 wrong usage.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from sockets import PROJECT, Failed, Nicd, pinned

PORT = 11180
CONF = """daemon off;
{user}
worker_processes {workers};
pid {top}/nginx.pid;
error_log /dev/null;
events {{ worker_connections 1000; }}
http {{
    access_log off;
    client_body_temp_path {top}/t1; proxy_temp_path {top}/t2; fastcgi_temp_path {top}/t3; uwsgi_temp_path {top}/t4; scgi_temp_path {top}/t5;
    server {{ listen {address}:{port}; root {top}; }}
}}
"""


def options(argv):
    p = argparse.ArgumentParser(add_help=False, usage="nginx.py [OPTION...]; see --help")
    p.add_argument("--build", type=pathlib.Path, default=PROJECT / "build")
    for name, value in (("rounds", 5), ("seconds", 2), ("workers", 1), ("connections", 10)):
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--keep", action="store_true")
    p.add_argument("--idle", choices=("spin", "pause", "sleep"), default="spin")
    p.add_argument("--cores", type=lambda s: s.split(","), default=[])
    p.add_argument("--json", action="store_true")
    p.add_argument("--help", "-h", action="store_true")
    o = p.parse_args(argv)
    if o.help:
        print(__doc__.strip())
        sys.exit(0)
    if min(o.rounds, o.seconds, o.workers, o.connections) < 1 or len(o.cores) not in (0, 3):
        p.error("numbers are 1 at least, and cores are three")
    o.build = o.build.resolve()
    return o


def rate(o, run, env, address, keep):
    """One run of wrk. returns: requests a second, each of which was answered"""
    command = [*run, "wrk", "-t", "1", "-c", str(o.connections), "-d", str(o.seconds)]
    command += [] if keep else ["-H", "Connection: close"]
    got = subprocess.run(pinned(o, 2, [*command, f"http://{address}:{PORT}/file"]), capture_output=True, text=True, env=env,
                         timeout=60 + o.seconds, check=False)
    figure = re.search(r"Requests/sec:\s+([\d.]+)", got.stdout)
    if not figure or float(figure[1]) == 0 or re.search("Socket errors|Non-2xx", got.stdout):
        raise Failed(f"wrk gave no figure, or some requests failed:\n{got.stdout[-2000:]}{got.stderr[-2000:]}")
    return float(figure[1])


# Ends when the server answers; a program of its own, because the address may be urnic's alone.
WAIT = f"""
import socket, sys, time
for _ in range(400):
    try:
        with socket.create_connection((sys.argv[1], {PORT}), 10) as c:
            c.sendall(b"GET /file HTTP/1.0\\r\\n\\r\\n")
            sys.exit(0 if c.recv(10) else 1)
    except OSError:
        time.sleep(0.05)
sys.exit(1)
"""


def serve(o, run, env, address):
    """nginx for a while, and wrk's figures. run: words before each command, for server and client"""
    with tempfile.TemporaryDirectory(prefix="urnic-bench.") as top:
        os.chmod(top, 0o755)
        conf = os.path.join(top, "nginx.conf")
        with open(os.path.join(top, "file"), "w", encoding="utf-8") as f:
            f.write("x" * 100)
        with open(conf, "w", encoding="utf-8") as f:
            f.write(CONF.format(user="user root;" if os.getuid() == 0 else "", workers=o.workers, top=top, address=address, port=PORT))
        server = subprocess.Popen(pinned(o, 1, [*run[0], "nginx", "-p", top, "-e", "/dev/null", "-c", conf]), env=env)
        try:
            if subprocess.run([*run[1], "/usr/bin/python3", "-c", WAIT, address], env=env, check=False).returncode != 0:
                raise Failed("nginx did not answer")
            out = {"new": rate(o, run[1], env, address, False)}
            if o.keep:
                out["kept"] = rate(o, run[1], env, address, True)
            return out
        finally:
            server.terminate()
            server.wait()


def measure(o):
    """returns: {"urnic": [figures of each round], "kernel": [...]}"""
    out = {"urnic": [], "kernel": []}
    run = o.build / "apps/urnic-run/urnic-run"
    for _ in range(o.rounds):
        nicd = Nicd(o)
        try:
            out["urnic"].append(serve(o, [[run, "--sockets", "--node", name] for name in "ab"], nicd.env, "10.0.0.1"))
        finally:
            nicd.end()
        out["kernel"].append(serve(o, [[], []], None, "127.0.0.1"))
    return out


def main(argv):
    o = options(argv)
    for program in ("nginx", "wrk"):
        if shutil.which(program) is None:
            print(f"nginx.py: {program} is missing: scripts/setup.sh --bench installs it", file=sys.stderr)
            return 1
    try:
        rounds = measure(o)
    except (Failed, OSError, subprocess.TimeoutExpired) as e:
        print(f"nginx.py: {e}", file=sys.stderr)
        return 1
    medians = {who: {key: statistics.median(r[key] for r in got) for key in got[0]} for who, got in rounds.items()}
    ratios = {key: medians["urnic"][key] / medians["kernel"][key] for key in medians["urnic"]}
    if o.json:
        print(json.dumps({"rounds": rounds, "medians": medians, "urnic_to_kernel": ratios}))
        return 0
    for key, text in (("new", "connections set up a second"), ("kept", "requests a second, connections kept")):
        if key in ratios:
            print(f"{text}: urnic {medians['urnic'][key]:.0f}, kernel {medians['kernel'][key]:.0f}, ratio {ratios[key]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
