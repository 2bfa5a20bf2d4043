#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Stands for urnicd, urnic-switch and urnic-cp under scripts/demo-failover.sh, and does nothing but what the script looks at.

STUB=fails: the sender fails before an adapter is lost. STUB=late: the first copy does not move after the second kill."""

import os
import re
import shutil
import signal
import socket
import sys
import time


def listen(path):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    return s


def value(option):
    return sys.argv[sys.argv.index(option) + 1]


def pid(socket_path):
    with open(socket_path + ".pid", encoding="utf-8") as f:
        return int(f.read())


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def log(*lines):
    with open(os.environ["URNIC_SESSION_LOG"], "a", encoding="utf-8") as f:
        f.writelines(line + "\n" for line in lines)


def adapter():
    with open(value("-c"), encoding="utf-8") as f:
        path = re.search(r"^socket = (.*)$", f.read(), re.M).group(1)
    with open(path + ".pid", "w", encoding="utf-8") as f:
        f.write(str(os.getpid()))
    keep = listen(path)
    signal.pause()
    keep.close()


def receiver():
    keep = listen(value("--listen"))
    done = value("--listen") + ".done"
    log(*["x trusted path=P-P alive=4"] * 2)
    while not os.path.exists(done):
        time.sleep(0.01)
    os.unlink(done)
    keep.close()


def sender():
    if os.environ["STUB"] == "fails":
        sys.exit("the stub can't be sent")
    path, peer = sys.argv[-1], value("--peer")
    primary, backup = re.findall(r"([^,:]+):", os.environ["URNIC_SESSION"])
    os.kill(pid(primary), signal.SIGKILL)
    log("x REPORTED -> MIGRATED x", *["x trusted path=P-P alive=4"] * 2)
    process = pid(backup)
    while alive(process):
        time.sleep(0.01)
    if os.path.getsize(path) > 65536:
        log("x REPORTED -> MIGRATED x")
    to = os.path.join(os.path.dirname(peer), "received")
    os.mkdir(to)
    shutil.copy(path, to)
    with open(peer + ".done", "w", encoding="utf-8"):
        pass


if "-c" in sys.argv:
    adapter()
elif "--listen" in sys.argv:
    receiver()
elif "--peer" in sys.argv:
    sender()
else:
    ports = [listen(path) for path in re.findall(r"memif:(\S+)", " ".join(sys.argv))]
    signal.pause()
