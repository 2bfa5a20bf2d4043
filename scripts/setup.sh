#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Install what urnic needs from Debian's packages (Debian 12 or newer).
#
# Usage: scripts/setup.sh [--test | --interop | --fuzz | --dev | --ci | --bench |
#                          --package | --packaging] [--dry-run | --check]
#
#   (nothing)   packages to build and run urnic
#   --test      also packages for the tests
#   --interop   also packages for tests and for guests, which only root can boot
#   --fuzz      also packages for tests and fuzzing: clang with its run-time libraries
#   --dev       also those of --fuzz, and compilers, linters and checkers for developers
#   --ci        only packages that let .ci/run build in less time
#   --bench     packages to build and run urnic, and for scripts/bench.sh: other stacks
#               and the plotter
#   --package   packages to build and run urnic, and to build packages of urnic
#   --packaging also for the tests of packages, which only root can run
#   --dry-run   install nothing; print the packages that would be installed
#   --check     install nothing; fail with a list when something is missing
#   --help      this text
#
# Only missing packages are installed, and apt-get is not called when none is missing.
# Services that come with packages for tests (nginx, sshd, ...) are not started.
# A program or library counts as present when it works, whatever package it came from:
# a DPDK built from source will do if pkg-config finds that DPDK. An ordinary user
# needs sudo when something is missing.
#
# Exit code: 0 all there, 1 something is missing or failed, 2 wrong usage.

set -eu
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

# The only list of packages: group | package | how to see that it is there | why
#   cmd NAME           a program
#   hdr NAME           a header that the compiler finds
#   pc NAME [VERSION]  a library that pkg-config finds, of that version or newer
#   py NAME            a module of the distribution's Python
#   rt NAME            sanitizers and libFuzzer of this compiler
# libdpdk-dev brings all of DPDK's drivers (memif, ring, tap, mlx5, ...) along.
packages() {
	cat <<-'END'
	run  | gcc                | cmd cc                   | the compiler
	run  | libc6-dev          | hdr stdio.h              | the C library's headers
	run  | meson              | cmd meson                | the build system
	run  | ninja-build        | cmd ninja                | runs the build
	run  | pkgconf            | cmd pkg-config           | finds the libraries
	run  | libdpdk-dev        | pc libdpdk 22.11         | DPDK: ports, packet buffers, rings
	run  | libisal-dev        | pc libisal               | ISA-L: the CRC-32 of the ICRC
	run  | libibverbs-dev     | pc libibverbs            | <infiniband/verbs.h>, and the mlx5 driver's way to the kernel
	run  | librdmacm-dev      | pc librdmacm             | <rdma/rdma_cma.h>, for the drop-in librdmacm
	run  | libnuma-dev        | pc numa                  | memory on the port's NUMA node
	run  | clang              | cmd clang                | the kernel's filter of net_af_xdp,
	run  | libbpf-dev         | hdr bpf/bpf_helpers.h    | ... and its header
	run  | libssl-dev         | pc libcrypto             | SHA-256 of the files that urnic-cp sends
	test | libcmocka-dev      | pc cmocka                | unit tests
	test | python3            | cmd python3              | tests of whole programs
	test | python3-scapy      | py scapy.contrib.roce    | makes our frames anew, to compare
	test | tshark             | cmd tshark               | dissects our frames
	test | iproute2           | cmd ip                   | interfaces for the ports of kernel devices
	test | radvd              | cmd radvd                | a router that advertises itself
	test | iputils-ping       | cmd ping                 | kernel hosts talk through urnic-switch
	test | iperf3             | cmd iperf3               | ... and move data through it
	test | socat              | cmd socat                | UDP programs on urnic's sockets,
	test | netcat-openbsd     | cmd nc                   | TCP programs on urnic's streams,
	test | redis-server       | cmd redis-server         | ... a server with many clients,
	test | redis-tools        | cmd redis-benchmark      | ... and these
	test | nginx-light        | cmd nginx                | ... one whose processes share a listener,
	test | wrk                | cmd wrk                  | ... and its clients
	test | memcached          | cmd memcached            | ... one with threads,
	test | libmemcached-tools | cmd memcslap             | ... and its clients
	test | openssh-server     | cmd sshd                 | ... one that executes itself,
	test | openssh-client     | cmd sftp                 | ... and its clients
	test | bind9-dnsutils     | cmd dig                  | ... that know nothing of urnic
	test | dnsmasq-base       | cmd dnsmasq              | ... a server for dig
	test | sockperf           | cmd sockperf             | ... and a ping-pong
	test | ibverbs-utils      | cmd ibv_rc_pingpong      | RDMA programs that know nothing of urnic
	test | perftest           | cmd ib_write_bw          | ... and measure
	test | binutils           | cmd objdump              | names of the system's libibverbs
	test | rdmacm-utils       | cmd rping                | programs of RDMA-CM, on the drop-in library
	test | python3-pyverbs    | py pyverbs               | rdma-core's own tests
	test | fio                | cmd fio                  | RDMA programs: storage that is verified,
	test | tgt                | cmd tgtadm               | ... an iSER target
	test | libiscsi-bin       | cmd iscsi-test-cu        | ... and the SCSI tests for such,
	test | qperf              | cmd qperf                | ... a measure of RDMA-CM's connections,
	test | qemu-system-x86    | cmd qemu-system-x86_64   | ... and a guest that migrates; boots the interop guest
	test | ucx-utils          | cmd ucx_perftest         | UCX on the drop-in libraries
	test | libfabric-bin      | cmd fi_pingpong          | libfabric
	test | openmpi-bin        | cmd mpirun.openmpi       | Open MPI and OpenSHMEM,
	test | libopenmpi-dev     | pc ompi                  | ... for which tests compile programs
	test | mpich              | cmd mpiexec.mpich        | MPICH,
	test | libmpich-dev       | pc mpich                 | ... too
	test | procps             | cmd pgrep                | finds programs that a script started
	test | dpdk-dev           | cmd dpdk-telemetry.py    | asks urnicd as other DPDK programs are asked
	test | systemd            | cmd systemd-analyze      | checks the service
	test | mandoc             | cmd mandoc               | judges manual pages
	test | chromium           | cmd chromium             | looks at the page of urnic-web
	test | spin               | cmd spin                 | checks the model of fail-over
	fuzz | clang              | cmd clang                | the second compiler, and the fuzzer's
	fuzz | libclang-rt-dev    | rt clang                 | clang's sanitizers and libFuzzer
	interop | dpdk            | cmd dpdk-devbind.py      | gives a guest's cards to vfio,
	interop | pciutils        | cmd lspci                | ... which finds them
	interop | cpio            | cmd cpio                 | packs the guest's files
	interop | kmod            | cmd depmod               | finds the guest's modules
	interop | binutils        | cmd readelf              | finds the guest's libraries
	interop | xz-utils        | cmd xz                   | unpacks the guest's modules
	dev  | clang-tidy         | cmd clang-tidy           | linter
	dev  | clang-format       | cmd clang-format         | style
	dev  | valgrind           | cmd valgrind             | memory checker
	dev  | shellcheck         | cmd shellcheck           | linter of the scripts
	ci   | ccache             | cmd ccache               | compiles once what is built in two places
	package | debhelper      | cmd dh                   | builds Debian packages
	package | python3        | cmd python3              | makes manual pages
	packaging | debootstrap  | cmd debootstrap          | a clean Debian to install into
	packaging | lintian      | cmd lintian              | judges packages
	packaging | podman       | cmd podman               | builds the image, and runs it
	packaging | crun         | cmd crun                 | ... by this
	packaging | uidmap       | cmd newuidmap            | ... without root
	bench | python3          | cmd python3              | runs the bench
	bench | ucx-utils        | cmd ucx_perftest         | UCX over shared memory and TCP
	bench | libfabric-bin    | cmd fi_pingpong          | libfabric over shared memory and TCP
	bench | perftest         | cmd ib_write_bw          | unmodified RDMA programs
	bench | openmpi-bin      | cmd mpirun.openmpi       | Open MPI over TCP and over urnic
	bench | libopenmpi-dev   | cmd mpicc.openmpi        | ... for which the bench compiles a program
	bench | iperf3           | cmd iperf3               | TCP streams of the kernel
	bench | sockperf         | cmd sockperf             | TCP messages of the kernel
	bench | nginx-light      | cmd nginx                | connections a second of a server,
	bench | wrk              | cmd wrk                  | ... which wrk counts
	bench | dpdk-dev         | cmd dpdk-testpmd         | what DPDK's ports do with no work at all
	bench | iproute2         | cmd ip                   | interfaces for TCP through the switch
	bench | gnuplot-nox      | cmd gnuplot              | plots
	END
}

# True when a thing of the list is there: works KIND NAME [VERSION]
works() {
	local part

	case $1 in
	cmd) command -v "$2" ;;
	hdr) printf '#include <%s>\n' "$2" | cc -E -x c - ;;
	pc) pkg-config --exists "$2${3:+ >= $3}" ;;
	py) /usr/bin/python3 -c "import $2" ;;
	rt) for part in asan fuzzer; do
		[ -e "$("$2" -print-file-name="libclang_rt.$part-$(uname -m).a")" ] ||
			[ -e "$("$2" -print-resource-dir)/lib/linux/libclang_rt.$part-$(uname -m).a" ] ||
			return 1
	done ;;
	esac >/dev/null 2>&1 </dev/null
}

# Fills `missing` with the packages of the groups in $groups that are not there.
find_missing() {
	local group package probe why kind name version

	missing=()
	reasons=
	while IFS='|' read -r group package probe why; do
		read -r group <<<"$group"
		read -r package <<<"$package"
		read -r why <<<"$why"
		read -r kind name version <<<"$probe"
		[[ " $groups " == *" $group "* ]] || continue
		works "$kind" "$name" "$version" && continue
		missing+=("$package")
		reasons+=$(printf '  %-18s %s' "$package" "$why")$'\n'
	done < <(packages)
}

# Run a command as root: directly when the user is root, else through sudo.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		env "$@"
	elif [ -t 0 ]; then
		sudo env "$@"
	else
		# Without a terminal nobody can type a password.
		sudo -n env "$@" </dev/null
	fi
}

# Fills `units` with the services of missing packages that only tests start: installing such a
# package would start them for the whole machine.
find_units() {
	local package

	units=()
	command -v systemctl >/dev/null || return 0
	for package in "${missing[@]}"; do
		case $package in
		dpdk | memcached | redis-server) units+=("$package") ;;
		nginx-light) units+=(nginx) ;;
		openssh-server) units+=(ssh) ;;
		esac
	done
}

# Let systemd do something with the services, as far as it can: it need not run.
tell_systemd() {
	[ ${#units[@]} -eq 0 ] || as_root systemctl -q "$@" "${units[@]}" 2>/dev/null || :
}

install_missing() {
	local apt=(DEBIAN_FRONTEND=noninteractive apt-get -q)
	local command="apt-get install --no-install-recommends ${missing[*]}"
	local done=0 units

	command -v apt-get >/dev/null ||
		die "there is no apt-get here to install them with; install these or what your distribution calls them: ${missing[*]}"
	if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
		die "user $(id -un) may not install packages and there is no sudo; run this as root: $command"
	fi
	as_root "${apt[@]}" update ||
		say "apt-get could not fetch the package lists; going on with those that are here"
	find_units
	tell_systemd --runtime mask
	as_root "${apt[@]}" install -y --no-install-recommends "${missing[@]}" || done=$?
	tell_systemd --runtime unmask
	[ $done -eq 0 ] ||
		die "apt-get could not install them; what it said is above. The command was: $command"
	tell_systemd disable
}

groups="run"
option=
mode=install
for arg; do
	case $arg in
	--test) groups="run test" option=" --test" ;;
	--interop) groups="run test interop" option=" --interop" ;;
	--fuzz) groups="run test fuzz" option=" --fuzz" ;;
	--dev) groups="run test fuzz dev" option=" --dev" ;;
	--ci) groups="ci" option=" --ci" ;;
	--bench) groups="run bench" option=" --bench" ;;
	--package) groups="run package" option=" --package" ;;
	--packaging) groups="run test package packaging" option=" --packaging" ;;
	--dry-run) mode=dry ;;
	--check) mode=check ;;
	--help | -h) print_help && exit 0 ;;
	*) usage_error "unknown argument '$arg'" ;;
	esac
done

find_missing
if [ ${#missing[@]} -eq 0 ]; then
	[ $mode = check ] || say "everything is there, nothing to install"
	exit 0
fi

case $mode in
check)
	printf '%s: these are missing:\n%s' "${0##*/}" "$reasons" >&2
	die "install them with: scripts/setup.sh$option"
	;;
dry)
	printf '%s: would install from Debian:\n%s' "${0##*/}" "$reasons"
	exit 0
	;;
esac
printf '%s: missing, from Debian:\n%s' "${0##*/}" "$reasons"
install_missing
hash -r
find_missing
[ ${#missing[@]} -eq 0 ] ||
	die "installed, but still not found or too old: ${missing[*]}; urnic needs Debian 12 or newer, or PKG_CONFIG_PATH and PATH that lead to your own builds"
say "installed"
