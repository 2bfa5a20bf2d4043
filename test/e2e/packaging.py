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
container. The install step and the run step of packaging/action.yml are carried out
there as they stand in that file. Rootless podman builds packaging/Containerfile upon the
clean Debian, and runs the image.

A clean Debian is kept in ~/.cache/urnic for a month, because making it takes half a
minute of a processor.
"""
import glob
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

def action_parts():
    """Returns the text of each step of the action, by its name, in their order."""
    with open(os.path.join(PROJECT, "packaging/action.yml"), encoding="utf-8") as f:
        text = f.read()
    return {re.match(r"name: (.*)", step)[1]: step for step in re.split(r"(?m)^    - ", text.partition("\n  steps:\n")[2])[1:]}


def action_steps(inputs):
    """Returns what each step of the action does that has a script: {name: (variables, script)}. inputs: the workflow's, written
    behind "with:" in it"""
    steps = {}
    for name, step in action_parts().items():
        if "\n      uses: " in step:
            continue
        script = re.search(r"(?m)^      run: \|\n((?: {8}.*\n|\n)+)", step)[1]
        given = re.findall(r"(?m)^        (\w+): \$\{\{ inputs\.(\w+) \}\}$", step)
        steps[name] = [f"{variable}={inputs.get(of, '')}" for variable, of in given], re.sub(r"(?m)^ {8}", "", script)
    return steps


# ---- the test

def cpu():
    """Seconds that processors spent for commands that have ended."""
    # Processes whose parents have ended are this one's: the first of its namespace.
    try:
        while os.getpid() == 1 and os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def check_overhead(what, since, began):
    """since: from cpu(), at the beginning; began: the clock then"""
    used = cpu() - since
    # The clock of a busy machine tells little, and is not judged.
    print(f"{what}: {used:.1f} s of a processor, {time.monotonic() - began:.1f} s by the clock")
    need(used < MOST_SECONDS, f"{what} takes {used:.1f} s of a processor, more than {MOST_SECONDS}")


def lintian(folder):
    out = run("lintian", "--allow-root", "--fail-on", "error", *glob.glob(f"{folder}/packages/*.changes"),
              env=dict(os.environ, TMPDIR=os.path.join(folder, "place"))) # it leaves files there
    need(not re.search(r"^E:", out, re.M), out)


def check_pingpong(out):
    need(len(re.findall(r"200 iters in", out)) == 2, f"ibv_rc_pingpong printed:\n{out}")


def check_action(m, folder):
    """The action installs the packages, and an ordinary user runs a script on two nodes."""

    def run_script(script):
        variables, step = action_steps({"run": script})["Run the script on two nodes"]
        return m.as_user("bash", "-eo", "pipefail", "-c", step, env=variables)

    shutil.copytree(f"{folder}/packages", f"{m.root}/tmp/packages")
    since, began = cpu(), time.monotonic()
    variables, step = action_steps({"packages": "/tmp/packages"})["Install urnic"]
    m.as_root("bash", "-eo", "pipefail", "-c", step, env=variables)
    out = run_script("ibv_devinfo")
    need(re.search(r"hca_id:\s+a0", out), f"ibv_devinfo printed:\n{out}")
    check_overhead("installing by the action, and a start of two nodes", since, began)
    check_pingpong(run_script(PINGPONG))
    shutil.rmtree(f"{m.root}/tmp/packages")
    need(os.listdir(f"{m.root}/tmp") == [], f"left in /tmp: {os.listdir(f'{m.root}/tmp')}")


FAKES = {
    "scripts/package.sh": 'mkdir -p "$2" && touch "$2/urnic_1_amd64.deb" && echo "package.sh $*" >> "$SAID"',
    "bin/apt-get": 'echo "apt-get $*" >> "$SAID"',
    "bin/sudo": 'exec "$@"',
}


CACHE = "inputs.packages == ''"
MISSED = CACHE + " && steps.cache.outputs.cache-hit != 'true'"


def check_cache():
    """Packages come from the cache under the name that the first step gives, and only where it has none of that name they are built
    and put there, before the user's script, which may fail."""
    parts = action_parts()
    want = [("Name what is to be built", CACHE, None), ("Take packages of an earlier run", CACHE, "actions/cache/restore@v4"),
            ("Build urnic's packages", MISSED, None), ("Keep the packages for later runs", MISSED, "actions/cache/save@v4")]
    for k, (name, condition, uses) in enumerate(want):
        need(list(parts)[k] == name, f"step {k} of the action is {list(parts)[k]}")
        need(f"\n      if: {condition}\n" in parts[name], f"the condition of the step {name}:\n{parts[name]}")
        if uses:
            need(f"\n      uses: {uses}\n      with:\n        path: ${{{{ steps.name.outputs.folder }}}}\n"
                 "        key: ${{ steps.name.outputs.key }}\n" in parts[name], f"the step {name}:\n{parts[name]}")
    for part, name in ((0, "name"), (1, "cache")):
        need(f"\n      id: {name}\n" in parts[want[part][0]], f"no step has the id {name}")


def cache_name(env, place):
    """Run the action's step that names the packages. Returns what it says."""
    output = f"{place}/output"
    _, step = action_steps({})["Name what is to be built"]
    run("bash", "-eo", "pipefail", "-c", step, env=dict(env, GITHUB_OUTPUT=output))
    with open(output, encoding="utf-8") as f:
        said = dict(line.rstrip("\n").split("=", 1) for line in f)
    os.unlink(output)
    need(said["folder"] == f"{place}/temp/urnic-packages", f"the folder of packages: {said['folder']}")
    need(re.fullmatch(r"urnic-packages-debian-\d+-\w+-[0-9a-f]{64}", said["key"]), f"the name of packages: {said['key']}")
    return said["key"]


def check_names(env, place, sources):
    """A name stands for the files of the project, and not for what a build leaves beside them."""
    first = cache_name(env, place)
    os.makedirs(f"{sources}/build-x")
    with open(f"{sources}/build-x/left", "w", encoding="utf-8") as f:
        f.write("left")
    need(cache_name(env, place) == first, "files of a build change the name of packages")
    with open(f"{sources}/more.c", "w", encoding="utf-8") as f:
        f.write("int more;\n")
    need(cache_name(env, place) != first, "a new file does not change the name of packages")


def check_build(place):
    """Without packages the action's first step builds them where its second one takes them from; both are carried out with
    stand-ins for package.sh, apt-get and sudo, because a build takes minutes."""
    check_cache()
    place = os.path.join(place, "build")
    for name, text in FAKES.items():
        path = os.path.join(place, "urnic" if name.startswith("scripts") else "", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)
    os.mkdir(f"{place}/temp")
    env = {"PATH": f"{place}/bin:/usr/bin:/bin", "GITHUB_ACTION_PATH": f"{place}/urnic/packaging", "RUNNER_TEMP": f"{place}/temp",
           "SAID": f"{place}/said"}
    os.mkdir(env["GITHUB_ACTION_PATH"])
    check_names(env, place, f"{place}/urnic")
    steps = action_steps({})
    for name in ("Build urnic's packages", "Install urnic"):
        variables, step = steps[name]
        run("bash", "-eo", "pipefail", "-c", step, env=dict(env, **dict(v.split("=", 1) for v in variables)))
    with open(env["SAID"], encoding="utf-8") as f:
        said = f.read()
    want = (f"package.sh --to {place}/temp/urnic-packages\napt-get update\napt-get install -y --no-install-recommends "
            f"{place}/temp/urnic-packages/urnic_1_amd64.deb ibverbs-utils\n")
    need(said == want, f"the action's steps did:\n{said}")
    shutil.rmtree(place)


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


class Podman:
    """Rootless podman, of an ordinary user who exists in this mount namespace only."""

    USER, FIRST, IDS = "builder", 100000, 65536

    def __init__(self, place):
        self.home = os.path.join(place, "podman")
        os.mkdir(self.home)
        self.account(place, "passwd", f"{self.USER}:x:{self.FIRST}:{self.FIRST}::{self.home}:/bin/sh")
        self.account(place, "group", f"{self.USER}:x:{self.FIRST}:")
        for name in ("subuid", "subgid"):
            self.account(place, name, f"{self.USER}:{self.FIRST + 1}:{self.IDS}")
        os.chown(self.home, self.FIRST, self.FIRST)
        # crun refuses a machine with both versions of cgroups.
        run("umount", "--recursive", "--lazy", "/sys/fs/cgroup")
        run("mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup")

    def account(self, place, name, line):
        """Add a line to a file of /etc, for this namespace."""
        path = os.path.join(place, name)
        with open(f"/etc/{name}", encoding="utf-8") as old, open(path, "w", encoding="utf-8") as new:
            new.write(old.read() + line + "\n")
        run("mount", "--bind", path, f"/etc/{name}")

    def podman(self, *argv, stdin=subprocess.DEVNULL):
        return run("setpriv", f"--reuid={self.FIRST}", f"--regid={self.FIRST}", "--clear-groups", *CHROOT[:3],
                   f"HOME={self.home}", f"XDG_RUNTIME_DIR={self.home}", "STORAGE_DRIVER=overlay", "BUILDAH_ISOLATION=chroot",
                   "podman", *argv, stdin=stdin, cwd=self.home)

    def in_container(self, *argv):
        """Run a command in a container that has no rights at all, and no network."""
        return self.podman("run", "--rm", "--network=none", "--cap-drop=all", "--security-opt=no-new-privileges", "urnic", *argv)


def check_container(place, folder):
    """podman builds the Containerfile, and a command runs on two nodes as an ordinary user of the container."""
    p = Podman(place)
    with subprocess.Popen(["tar", "--numeric-owner", "-C", f"{folder}/root", "-c", "."], stdout=subprocess.PIPE) as tar:
        p.podman("import", "-", "docker.io/library/debian:12-slim", stdin=tar.stdout)
    need(tar.returncode == 0, f"tar ended with {tar.returncode}")
    since, began = cpu(), time.monotonic()
    # The network is the host's, and that is none: podman lacks what it needs to make one.
    p.podman("build", "--network=host", "-f", f"{PROJECT}/packaging/Containerfile", "-t", "urnic", f"{folder}/packages")
    out = p.in_container()
    need(re.search(r"hca_id:\s+a0", out), f"the container's command printed:\n{out}")
    check_overhead("the image, and a start", since, began)
    since, began = cpu(), time.monotonic()
    check_pingpong(p.in_container("bash", "-c", PINGPONG))
    check_overhead("two programs in a container", since, began)
    out = p.in_container("sh", "-c", "id -u; grep CapBnd /proc/self/status")
    need(re.fullmatch(r"[1-9]\d*\nCapBnd:\s+0+\n", out), f"the command has rights: {out}")
    try:
        p.in_container("sh", "-c", "exit 7")
        need(False, "the command's exit code is lost")
    except Failed as e:
        need(" ended with 7:" in str(e), str(e))
    need(p.podman("ps", "--all", "--quiet") == "", "a container is left")


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
             ("the action installs what it built", lambda: check_build(place)),
             ("the action installs, and runs a script on two nodes", lambda: check_action(m, folder)),
             ("every file is in its place", lambda: check_places(m)),
             ("the service serves other users", lambda: check_service(m)),
             ("the example builds without DPDK, and runs", lambda: check_example(m)),
             ("the purge leaves nothing", lambda: check_purge(m, before)),
             ("podman builds the image, and runs commands in it", lambda: check_container(place, folder))]
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
