#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A Linux guest with the kernel's soft-RoCE, in qemu's software emulation: a
# peer that speaks RoCEv2 and is not urnic. KVM is not needed.
#
# Usage: test/interop/guest.sh net              make the bridge, and the guest's tap on it
#        test/interop/guest.sh start            boot; returns when rxe0 is up
#        test/interop/guest.sh exec 'SCRIPT'    run a script in the guest, and end with its exit code
#        test/interop/guest.sh log              print the output of the guest's console
#        test/interop/guest.sh stop             end the guest
#
# guest.sh needs root, and works in the network namespace of its caller. A namespace of
# your own disappears, with all that is in the namespace, when its shell ends:
#
#   unshare --net --pid --mount --fork --kill-child --mount-proc bash
#
# In the environment:
#   GUEST_STATE   folder of the console's output and qemu's process id (default: urnic-guest
#                 in ${XDG_RUNTIME_DIR:-/run})
#   GUEST_MTU     Ethernet MTU of guest and bridge (default 4200: path MTU 4096)
#   GUEST_CPUS, GUEST_MEMORY   default 1, 384 (MiB)
#
# The bridge urnbr0 has 10.77.0.1/24 and fd77::1/64, the guest 10.77.0.11 and
# fd77::b, GID 1 and the last of rxe0's (GID 0 is its link-local address).
#
# Exit code: 0 done, 1 failed, 2 wrong usage. exec: the script's, or 125 when the
# guest cannot be reached.

set -eu
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../scripts/common.sh"

state=${GUEST_STATE:-${XDG_RUNTIME_DIR:-/run}/urnic-guest}
mtu=${GUEST_MTU:-4200}
readonly bridge=urnbr0 tap=urntap0 mac=02:77:00:00:00:0b port=2323
readonly host4=10.77.0.1/24 host6=fd77::1/64 guest4=10.77.0.11 guest6=fd77::b

# Process id of this guest's qemu, if that runs.
qemu_pid() {
	local pid

	pid=$(cat "$state/pid" 2>/dev/null) || return 1
	tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qxF "$state/pid" || return 1
	echo "$pid"
}

net() {
	# The bridge has a fixed MAC address: otherwise the bridge takes a port's, which changes with urnic's port.
	ip link add $bridge address 02:77:00:00:00:01 type bridge
	# The bridge must flood multicast frames at once, so snooping is off.
	echo 0 >/sys/class/net/$bridge/bridge/multicast_snooping 2>/dev/null || true
	ip link set $bridge mtu "$mtu" up
	ip addr add $host4 dev $bridge
	ip addr add $host6 dev $bridge nodad 2>/dev/null || say "this kernel has no IPv6"
	ip tuntap add dev $tap mode tap
	# The responses of a 1 MiB READ are 4,096 frames at once, and the emulated guest reads them later.
	ip link set $tap mtu "$mtu" txqueuelen 10000 master $bridge up
}

start() {
	local image i

	command -v qemu-system-x86_64 >/dev/null ||
		die "there is no qemu-system-x86_64; install it with: scripts/setup.sh --interop"
	! qemu_pid >/dev/null || die "the guest runs already; end it with: $0 stop"
	image=$("$project/test/interop/guest-build.sh")
	mkdir -p "$state"
	: >"$state/console"
	# No checksum or segmentation offload: frames are on the tap as on a wire.
	qemu-system-x86_64 -name urnic-guest -accel tcg,tb-size=128 -cpu max -M q35,usb=off,vmport=off \
		-m "${GUEST_MEMORY:-384}" -smp "${GUEST_CPUS:-1}" -nodefaults -no-user-config \
		-display none -no-reboot -daemonize -pidfile "$state/pid" -serial "file:$state/console" \
		-kernel "$image/kernel" -initrd "$image/root" \
		-netdev "tap,id=n0,ifname=$tap,script=no,downscript=no,vhost=off" \
		-device "virtio-net-pci,netdev=n0,mac=$mac,romfile=,csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ufo=off" \
		-device virtio-rng-pci \
		-append "console=ttyS0 quiet panic=-1 net.ifnames=0 mitigations=off guest.ip4=$guest4/24 guest.ip6=$guest6/64 guest.mtu=$mtu guest.port=$port"
	for ((i = 0; i < 1200; i++)); do
		grep -q '^guest: ready' "$state/console" && return
		qemu_pid >/dev/null || { cat "$state/console" >&2; die "the guest ended while it booted; its console is above"; }
		sleep 0.1
	done
	cat "$state/console" >&2
	die "the guest has not booted in two minutes; its console is above"
}

run_script() {
	local fd line code='' first=yes

	exec {fd}<>"/dev/tcp/$guest4/$port" || { say "no guest answers at $guest4" >&2; exit 125; }
	printf '%s\n' "$(base64 -w0 <<<"$1")" >&"$fd"
	while IFS= read -r line <&"$fd"; do
		case $line in
		'guest: exit '*) code=${line##* } ;;
		*) [ -n "$first" ] || printf '\n'; printf '%s' "$line"; first= ;;
		esac
	done
	exit "${code:-125}"
}

stop() {
	local pid i

	pid=$(qemu_pid) || return 0
	kill "$pid"
	for ((i = 0; i < 50; i++)); do
		qemu_pid >/dev/null || break
		sleep 0.1
	done
	! qemu_pid >/dev/null || kill -9 "$pid"
	rm -f "$state/pid"
}

case ${1-} in
net | start | stop) [ $# -eq 1 ] || usage_error "'$1' takes nothing more"; "$1" ;;
log) cat "$state/console" ;;
exec) need_value "$@"; run_script "$2" ;;
--help | -h) print_help ;;
'') usage_error "say what to do" ;;
*) usage_error "there is no '$1'" ;;
esac
