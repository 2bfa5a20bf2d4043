# SPDX-License-Identifier: BSD-3-Clause
"""TCP ports of this host for tests that run at the same time."""

import atexit
import os
import socket

FIRST, COUNT = 20000, 12000 # below those that the kernel gives to clients by itself
claims = [] # sockets whose abstract names claim a port until this process ends


@atexit.register
def release():
    """End all claims. Python would warn of each, and the warnings hide what a test said."""
    while claims:
        claims.pop().close()


def claim(port):
    """Claim a port among all tests in this network namespace. returns: None when another test has it"""
    s = socket.socket(socket.AF_UNIX)
    try:
        s.bind(f"\0urnic-test-port-{port}")
    except OSError:
        s.close()
        return None
    return s


def free_port():
    """returns: a port where nobody listens, which no other test gets"""
    at = int.from_bytes(os.urandom(4), "little")
    for i in range(COUNT):
        port = FIRST + (at + i) % COUNT
        s = claim(port)
        if s is None:
            continue
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                s.close()
                continue
        claims.append(s)
        return port
    raise OSError("all ports of tests are taken")
