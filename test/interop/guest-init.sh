#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The guest's first process. Words "guest.NAME=VALUE" of the kernel's command
# line give the guest's addresses and MTU.
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp

param() {
	# shellcheck disable=SC2013
	for word in $(cat /proc/cmdline); do
		case $word in
		"guest.$1="*) echo "${word#*=}" ;;
		esac
	done
}

# dash has it.
# shellcheck disable=SC3045
ulimit -l unlimited
for module in virtio_pci virtio_net virtio_rng crc32_pclmul crc32_generic ib_uverbs rdma_rxe rdma_ucm; do
	modprobe $module 2>/dev/null
done
i=0
while [ ! -e /sys/class/net/eth0 ] && [ $i -lt 100 ]; do
	usleep 50000
	i=$((i + 1))
done
# No other host has these addresses, so the guest uses them at once.
echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad
# Each case's port has a MAC address of its own. Linux believes an ARP request that changes an
# entry only when the entry is older than this, a second; cases are shorter, and the change would
# come amid a message.
echo 0 >/proc/sys/net/ipv4/neigh/eth0/locktime
ip link set lo up
ip link set eth0 mtu "$(param mtu)" up
ip addr add "$(param ip4)" dev eth0
ip addr add "$(param ip6)" dev eth0 nodad
rdma link add rxe0 type rxe netdev eth0
nc -ll -p "$(param port)" -e /agent &
echo "guest: ready, Linux $(uname -r), $(cut -d' ' -f1 /proc/uptime) s"
while :; do
	wait
	sleep 3600
done
