#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Debian packages: they install on a clean Debian, run there, and are gone when purged.

usage: packaging.py [--prepare DIR | --from DIR]

  --prepare DIR  build the packages, make a clean Debian by debootstrap, and fetch the
                 packages that ours depend on. Needs the network
  --from DIR     the test, with what was prepared in DIR. Needs no network, and has none
  (nothing)      both, in a folder that is removed

The test is root's: it mounts copies of the clean Debian in a mount namespace of its own.
Programs in them run as ordinary users, in a user namespace without any root, as in a
container. The install step and the run step of packaging/action.yml, and each line of
packaging/Containerfile, are carried out there as they stand in these files.

A clean Debian is kept in ~/.cache/urnic for a month, because making it takes half a
minute of a processor.
"""
import glob
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ORDINARY = 65534  # user and group of programs
MOST_SECONDS = 30  # seconds of processors: an installation and the start of two nodes
CLEAN_FOR = 30 * 86400  # seconds that a clean Debian is kept
# Programs of other packages that the test runs there.
MORE = ("ibverbs-utils",)

# Two programs on two nodes, by the words of the documents; the second waits for the first to listen.
PINGPONG = """
urnic-run --node a ibv_rc_pingpong -g 1 -e -c -n 200 & first=$!
for try in $(seq 100); do
	urnic-run --node b ibv_rc_pingpong -g 1 -e -c -n 200 127.0.0.1 && break
	sleep 0.1
done
wait $first
"""


class Failed(Exception):
    pass


def run(*argv, env=None, cwd=None, stdin=subprocess.DEVNULL):
    """Run a command that must succeed. Returns all that it printed."""
    done = subprocess.run(argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", env=env, cwd=cwd, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(argv)[:300]} ended with {done.returncode}:\n{done.stdout[-6000:]}")
    return done.stdout


def need(ok, text):
    if not ok:
        raise Failed(text)


# ---- preparing

def mirror():
    """Address and code name of the Debian that this machine's apt uses."""
    with open("/etc/os-release", encoding="utf-8") as f:
        codename = re.search(r"^VERSION_CODENAME=(\w+)$", f.read(), re.M)[1]
    sites = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Identifier: Packages")
    for line in sites.splitlines():
        site, *rest = line.split()
        if rest == [codename, "main"]:
            return site, codename
    raise Failed(f"apt knows no mirror of {codename} main:\n{sites}")


def debootstrap(root):
    """Make a clean Debian, or unpack the one that was kept."""
    site, codename = mirror()
    kept = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "urnic", f"debian-{codename}.tar")
    if os.path.exists(kept) and time.time() - os.path.getmtime(kept) < CLEAN_FOR:
        os.mkdir(root)
        run("tar", "--numeric-owner", "-xpf", kept, "-C", root)
        return
    run("debootstrap", "--variant=minbase", codename, root, site)
    run("chroot", root, "apt-get", "clean")
    os.makedirs(os.path.dirname(kept), exist_ok=True)
    run("tar", "--numeric-owner", "-cpf", kept + ".new", "-C", root, ".")
    os.rename(kept + ".new", kept)


def fetch(root, packages):
    """Fetch the packages that ours depend on, by apt as it is set up on this machine."""
    settings = [line for line in run("apt-config", "dump").splitlines()
                if re.match(r"Acquire::(https?::|Check-|Retries)", line)]
    with open(os.path.join(root, "etc/apt/apt.conf.d/90machine"), "w", encoding="utf-8") as f:
        f.write("\n".join([*settings, 'Acquire::Languages "none";', ""]))
    shutil.copy("/etc/resolv.conf", os.path.join(root, "etc/resolv.conf"))
    shutil.copytree(packages, os.path.join(root, "tmp/packages"))
    ours = [f"/tmp/packages/{os.path.basename(p)}" for p in glob.glob(f"{packages}/*.deb")]
    run(*CHROOT, root, "apt-get", "update")
    run(*CHROOT, root, "apt-get", "install", "-y", "--download-only", "--no-install-recommends", *ours, *MORE)
    shutil.rmtree(os.path.join(root, "tmp/packages"))


CHROOT = ("env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/root", "DEBIAN_FRONTEND=noninteractive",
          "chroot")


def prepare(folder):
    run(os.path.join(PROJECT, "scripts/package.sh"), "--quick", "--no-install", "--to", os.path.join(folder, "packages"))
    debootstrap(os.path.join(folder, "root"))
    fetch(os.path.join(folder, "root"), os.path.join(folder, "packages"))
    return 0


# ---- a machine made of the clean Debian

class Machine:
    """A copy of the clean Debian, whose changes are in memory."""

    def __init__(self, folder, name):
        self.root = os.path.join(folder, "place", name, "root")
        upper, work = (os.path.join(folder, "place", name, part) for part in ("upper", "work"))
        for path in (self.root, upper, work):
            os.makedirs(path)
        run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={folder}/root,upperdir={upper},workdir={work}", self.root)
        run("mount", "-t", "proc", "proc", os.path.join(self.root, "proc"))
        run("mount", "--bind", "/sys", os.path.join(self.root, "sys"))

    def as_root(self, *argv, env=()):
        return run(*CHROOT[:-1], *env, "chroot", self.root, *argv)

    def as_user(self, *argv, env=(), user=ORDINARY, home="/tmp"):
        """Run a command as an ordinary user, in a user namespace that has this user only."""
        return run("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs",
                   *CHROOT[:3], f"HOME={home}", *env, "unshare", "--user", "--map-current-user", "--mount", "--pid", "--fork",
                   "--kill-child", f"--root={self.root}", f"--wd={home}", "--mount-proc", *argv)

    def plain(self, user, *argv):
        """The command line that runs a command as a user, as on a machine that is no container; variables may be in front."""
        return (*CHROOT, self.root, "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "env", *argv)

    def files(self):
        """Names of all files but those that the package manager and adduser have for themselves."""
        names = set()
        own = re.compile(r"^(var/(cache|log|backups)|var/lib/(apt|dpkg)|proc|sys|tmp|run/adduser|etc/g?shadow-)/")
        for folder, dirs, files in os.walk(self.root):
            at = os.path.relpath(folder, self.root)
            dirs[:] = [d for d in dirs if not own.match(os.path.normpath(os.path.join(at, d)) + "/")]
            names.update(os.path.normpath(os.path.join(at, n)) for n in dirs + files)
        return {n for n in names if not own.match(n + "/")}

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as f:
            return f.read()


# ---- the recipes, read as they stand

def action_steps():
    """Yields (name, script) of each step of the action."""
    with open(os.path.join(PROJECT, "packaging/action.yml"), encoding="utf-8") as f:
        text = f.read()
    for step in re.split(r"(?m)^    - ", text.partition("\n  steps:\n")[2])[1:]:
        name = re.match(r"name: (.*)", step)[1]
        script = re.search(r"(?m)^      run: \|\n((?: {8}.*\n|\n)+)", step)[1]
        yield name, re.sub(r"(?m)^ {8}", "", script)


def container_lines():
    """Yields (word, rest) of each line of the Containerfile."""
    with open(os.path.join(PROJECT, "packaging/Containerfile"), encoding="utf-8") as f:
        text = re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", f.read()))
    for line in text.strip().splitlines():
        word, rest = line.split(None, 1)
        yield word, rest


# ---- the test

def cpu():
    """Seconds that processors spent for commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def check_overhead(what, since):
    used = cpu() - since
    print(f"{what}: {used:.1f} s of a processor")
    need(used < MOST_SECONDS, f"{what} takes {used:.1f} s of a processor, more than {MOST_SECONDS}")


def lintian(folder):
    out = run("lintian", "--allow-root", "--fail-on", "error", *glob.glob(f"{folder}/packages/*.changes"),
              env=dict(os.environ, TMPDIR=os.path.join(folder, "place"))) # it leaves files there
    need(not re.search(r"^E:", out, re.M), out)


def check_pingpong(out):
    need(len(re.findall(r"200 iters in", out)) == 2, f"ibv_rc_pingpong printed:\n{out}")


def check_action(m, folder):
    """The action installs the packages, and an ordinary user runs a script on two nodes."""
    steps = dict(action_steps())
    shutil.copytree(f"{folder}/packages", f"{m.root}/tmp/packages")
    began = cpu()
    m.as_root("bash", "-eo", "pipefail", "-c", steps["Install urnic"], env=("PACKAGES=/tmp/packages",))
    out = m.as_user("bash", "-eo", "pipefail", "-c", steps["Run the script on two nodes"], env=("SCRIPT=ibv_devinfo",))
    need(re.search(r"hca_id:\s+a0", out), f"ibv_devinfo printed:\n{out}")
    check_overhead("installing by the action, and a start of two nodes", began)
    check_pingpong(m.as_user("bash", "-eo", "pipefail", "-c", steps["Run the script on two nodes"], env=(f"SCRIPT={PINGPONG}",)))
    shutil.rmtree(f"{m.root}/tmp/packages")
    need(os.listdir(f"{m.root}/tmp") == [], f"left in /tmp: {os.listdir(f'{m.root}/tmp')}")


def check_places(m):
    """The drop-in libraries are where no program finds them by chance, and programs need no DPDK."""
    files = m.as_root("dpkg", "-L", "urnic-verbs").split()
    need(any(re.search(r"/urnic/verbs/libibverbs\.so\.1$", f) for f in files), "urnic-verbs has no drop-in libibverbs.so.1")
    need("urnic/verbs" not in m.as_root("ldconfig", "-p"), "the system's loader finds the drop-in libraries")
    owner = m.as_root("sh", "-c", 'dpkg -S "$(realpath "$(ldconfig -p | sed -n "s/.*libibverbs.so.1 .*=> //p")")"')
    need(owner.startswith("libibverbs1:"), f"the system's libibverbs is of {owner}")
    for name in ("liburnic1", "urnic-verbs", "liburnic-dev"):
        needs = m.as_root("dpkg-query", "-Wf", "${Depends}", name)
        need("librte" not in needs, f"{name} needs DPDK: {needs}")
    for page in ("man1/urnic-run.1", "man1/urnic-cp.1", "man5/urnicd.ini.5", "man8/urnicd.8", "man7/urnic-verbs.7"):
        need(os.path.exists(f"{m.root}/usr/share/man/{page}.gz"), f"there is no manual page {page}")


def check_service(m):
    """With its unit's user and folders urnicd serves programs of other users, by the installed configuration."""
    unit = m.read("lib/systemd/system/urnicd.service")
    start = re.search(r"(?m)^ExecStart=(.*)$", unit)[1].split()
    user = re.search(r"(?m)^User=(.*)$", unit)[1]
    uid = int(m.as_root("id", "-u", user))
    run_dir = f"{m.root}/run/urnic"
    os.mkdir(run_dir, 0o755)
    os.chown(run_dir, uid, uid)
    said = tempfile.TemporaryFile("w+")
    daemon = subprocess.Popen(m.plain(uid, "XDG_RUNTIME_DIR=/run", "TMPDIR=/run/urnic", *start), stdin=subprocess.DEVNULL,
                              stderr=said)
    try:
        while not os.path.exists(f"{run_dir}/urnicd.sock") and daemon.poll() is None:
            time.sleep(0.1)
        if daemon.poll() is not None:
            said.seek(0)
            raise Failed(f"urnicd of the service ended:\n{said.read()}")
        check_pingpong(run(*m.plain(ORDINARY, "bash", "-eo", "pipefail", "-c", PINGPONG)))
    finally:
        daemon.terminate()
        daemon.wait()
        said.close()
    need(daemon.returncode == 0, f"urnicd of the service ended with {daemon.returncode}")
    need(os.listdir(run_dir) == [], f"urnicd left in its folder: {os.listdir(run_dir)}")
    os.rmdir(run_dir)


def check_example(m):
    """The example builds by the words of the documents against the installed headers, and finds its dataplane."""
    lib = glob.glob(f"{m.root}/usr/lib/*/pkgconfig/urnic.pc")
    need(len(lib) == 1, f"urnic.pc: {lib}")
    env = dict(os.environ, PKG_CONFIG_LIBDIR=os.path.dirname(lib[0]), PKG_CONFIG_SYSROOT_DIR=m.root)
    source = glob.glob(f"{m.root}/usr/share/doc/liburnic-dev/examples/hello_attached.c")
    for static in ([], ["--static"]):
        flags = run("pkg-config", *static, "--cflags", "--libs", "urnic", env=env).split()
        program = f"{m.root}/tmp/hello"
        run("cc", *(["-static"] if static else []), "-o", program, *source, *flags)
        out = m.as_user("/usr/share/urnic/two-nodes.sh", "/tmp/hello")
        need("WRITE: success" in out and "hello from node a" in out, f"the example printed: {out}")
        linked = run("readelf", "-d", program)
        need("librte" not in linked, f"the example is linked against DPDK:\n{linked}")
        need(bool(static) or "liburnic.so.1" in linked, f"the example is not linked against liburnic.so.1:\n{linked}")
        os.unlink(program)


def check_purge(m, before):
    """Purged, the packages leave no file, no folder, no user."""
    m.as_root("apt-get", "purge", "-y", "urnic", "urnic-verbs", "liburnic1", "liburnic-dev", *MORE)
    m.as_root("apt-get", "autoremove", "-y", "--purge")
    left = sorted(m.files() - before)
    need(not left, f"left after the purge: {left}")
    need("urnic" not in m.read("etc/passwd") + m.read("etc/group"), "the service's user is left after the purge")


def check_container(m, folder):
    """Each line of the Containerfile does what it should, and its command runs on two nodes as its user."""
    user, home, entry, command = "root", "/", None, None
    began = cpu()
    for word, rest in container_lines():
        if word == "COPY":
            pattern, to = rest.split()
            os.makedirs(m.root + to)
            for path in glob.glob(f"{folder}/packages/{pattern}"):
                shutil.copy(path, m.root + to)
        elif word == "RUN":
            need(user == "root", f"only root can: {rest}")
            m.as_root("sh", "-c", rest)
        elif word == "USER":
            user = int(m.as_root("id", "-u", rest))
        elif word == "WORKDIR":
            home = rest
        elif word == "ENTRYPOINT":
            entry = json.loads(rest)
        elif word == "CMD":
            command = json.loads(rest)
        else:
            need(word in ("ARG", "FROM"), f"the test does not know {word} of the Containerfile")
    need(isinstance(user, int) and user > 0, "the container's command runs as root")
    out = m.as_user(*entry, *command, user=user, home=home)
    need(re.search(r"hca_id:\s+a0", out), f"the container's command printed:\n{out}")
    check_overhead("the container's installation, and a start", began)
    check_pingpong(m.as_user(*entry, "bash", "-c", PINGPONG, user=user, home=home))
    code = m.as_user("sh", "-c", '"$0" sh -c "exit 7"; echo "code $?"', *entry[:1], user=user, home=home)
    need("code 7" in code, f"the command's exit code is lost: {code}")


def test(folder):
    """The test, in namespaces of its own: without the network, and without processes and mounts that stay."""
    folder = os.path.realpath(folder)
    run("ip", "link", "set", "lo", "up")
    place = os.path.join(folder, "place")
    os.mkdir(place)
    os.chmod(folder, 0o755)
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", place)
    m = Machine(folder, "packages")
    before = m.files()
    steps = [("lintian finds no error", lambda: lintian(folder)),
             ("the action installs, and runs a script on two nodes", lambda: check_action(m, folder)),
             ("every file is in its place", lambda: check_places(m)),
             ("the service serves other users", lambda: check_service(m)),
             ("the example builds without DPDK, and runs", lambda: check_example(m)),
             ("the purge leaves nothing", lambda: check_purge(m, before)),
             ("the container's recipe works", lambda: check_container(Machine(folder, "container"), folder))]
    for what, step in steps:
        began = time.monotonic()
        try:
            step()
        except Failed as e:
            print(f"FAILED: {what}: {e}", flush=True)
            return 1
        print(f"done: {what} ({time.monotonic() - began:.1f} s)", flush=True)
    return 0


def apart(what, folder, *namespaces):
    """Run a part of this in new namespaces, which its mounts and processes end with. Returns its exit code."""
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *namespaces, sys.executable,
                           os.path.abspath(__file__), what, folder], stdin=subprocess.DEVNULL, check=False).returncode


def prepare_apart(folder):
    os.makedirs(folder, exist_ok=True)
    return apart("--prepare-inside", folder)


def test_apart(folder):
    try:
        return apart("--inside", folder, "--net")
    finally:
        place = os.path.join(folder, "place")
        if os.path.isdir(place):
            os.rmdir(place)


def main(argv):
    if os.getuid() != 0:
        print("skipped: only root can make a Debian and mount it")
        return 77
    try:
        parts = {"--prepare": prepare_apart, "--from": test_apart, "--prepare-inside": prepare, "--inside": test}
        if len(argv) == 2 and argv[0] in parts:
            return parts[argv[0]](argv[1])
        if argv:
            print(__doc__.strip(), file=sys.stderr)
            return 2
        with tempfile.TemporaryDirectory(prefix="urnic-packaging.") as folder:
            return prepare_apart(folder) or test_apart(folder)
    except Failed as e:
        print(f"FAILED: {e}")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
