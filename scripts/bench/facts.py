# SPDX-License-Identifier: BSD-3-Clause
"""The machine and the commit, for the head of every report."""
import json
import os
import re
import shlex
import shutil
import subprocess
import time


def output(*command):
    """The first line that a command prints, or an empty string."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False,
                          stdin=subprocess.DEVNULL)
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else ""


def cpu():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
        text = f.read()
    model = re.search(r"^model name\s*:\s*(.*)$", text, re.M)
    family = re.search(r"^cpu family\s*:\s*(.*)$", text, re.M)
    virtual = " in a virtual machine" if re.search(r"^flags\s*:.*\bhypervisor\b", text, re.M) else ""
    return f"{model[1] if model else 'unknown'}, family {family[1] if family else '?'}{virtual}"


def memory():
    with open("/proc/meminfo", encoding="ascii") as f:
        return f"{int(f.readline().split()[1]) / 2**20:.1f} GiB"


def system():
    try:
        with open("/etc/os-release", encoding="utf-8") as f:
            return re.search(r'^PRETTY_NAME="(.*)"', f.read(), re.M)[1]
    except (OSError, TypeError):
        return "unknown"


def commit(project):
    if not os.path.isdir(project) or not output("git", "-C", project, "rev-parse", "HEAD"):
        return "no git checkout"
    name = output("git", "-C", project, "log", "-1", "--format=%h %s")
    dirty = output("git", "-C", project, "status", "--porcelain", "--untracked-files=no")
    return name + (" (with changes that are not committed)" if dirty else "")


def compiler(build):
    """The compiler of a build: the first word of a compile command that is no wrapper."""
    try:
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
            words = shlex.split(json.load(f)[0]["command"])
    except (OSError, KeyError, ValueError, IndexError):
        words = ["cc"]
    return output(*[w for w in words[:2] if not w.startswith("-") and w != "ccache"], "--version")


def packages():
    """Versions of the packages of other stacks, as far as dpkg knows the packages."""
    names = ["ucx-utils", "perftest", "openmpi-bin", "libfabric-bin", "iperf3", "sockperf", "dpdk-dev"]
    found = [(n, output("dpkg-query", "-W", "-f", "${Version}", n)) for n in names]
    return ", ".join(f"{n} {v}" for n, v in found if v)


def collect(project, build, cores):
    used = f"{cores[0]} and {cores[1]}" if cores[0] != cores[1] else \
        f"{cores[0]} alone: both sides share it, which few figures survive"
    return {
        "machine": cpu(),
        "cores": f"{os.cpu_count()}, used: {used}",
        "memory": memory(),
        "system": system(),
        "kernel": " ".join(os.uname()[i] for i in (0, 2, 4)),
        "compiler": compiler(build),
        "DPDK": output("pkg-config", "--modversion", "libdpdk"),
        "peers": packages() or "none",
        "commit": commit(project),
        "date": time.strftime("%Y-%m-%d %H:%M %Z"),
    }
