#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The first process of a guest that urnicd runs in, on network cards (guest_pci.py). The guest's files are this
# machine's, by 9p, and all changes stay in the guest's memory. Words of the kernel's command line, which come in the environment:
#
#   GUEST_IP4=ADDRESS/LENGTH   address of the interface that stays with the kernel, the one whose MAC address begins with 02:77
#   GUEST_BUILD=FOLDER         urnic's programs, of which the guest's user alice has a copy in ~/urnic/build
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev

# Say on the console that a step failed. The guest does not become ready.
fail() {
	echo "guest: failed: $1"
	sleep 3600
}

for module in virtio_pci virtio_net virtio_rng 9pnet_virtio 9p overlay e1000e vmxnet3; do
	modprobe $module || fail "modprobe $module"
done

mkdir /below /above /new
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 host /below || fail "9p"
mount -t tmpfs -o mode=755 above /above
mkdir /above/files /above/work
mount -t overlay -o lowerdir=/below,upperdir=/above/files,workdir=/above/work root /new || fail "overlay"
mkdir -p /new/usr/lib/modules
cp -a "/lib/modules/$(uname -r)" /new/usr/lib/modules/
mount -t proc proc /new/proc
mount -t sysfs sys /new/sys
mount -t devtmpfs dev /new/dev
mkdir -p /new/dev/shm /new/dev/pts /new/dev/hugepages
mount -t devpts pts /new/dev/pts
for dir in tmp dev/shm; do
	mount -t tmpfs -o mode=1777 tmp /new/$dir
done
for dir in run root home; do
	mount -t tmpfs -o mode=755 tmp /new/$dir
done
# Root alone may write there, as on a machine of systemd.
mount -t hugetlbfs huge /new/dev/hugepages

echo 'alice:x:1000:1000::/home/alice:/bin/bash' >>/new/etc/passwd
echo 'alice:x:1000:' >>/new/etc/group
echo 'alice:*:19000:0:99999:7:::' >>/new/etc/shadow
from=/below$GUEST_BUILD
to=/new/home/alice/urnic/build
mkdir -p $to/lib/dropin
for program in urnicd urnicctl urnic-perf urnic-run; do
	mkdir -p $to/apps/$program
	cp "$from/apps/$program/$program" $to/apps/$program/ || fail "no $program"
done
cp "$from"/lib/dropin/*.so* $to/lib/dropin/ 2>/dev/null
# systemd does this at a login.
mkdir -p /new/run/user/1000
chmod 700 /new/run/user/1000
echo 'export XDG_RUNTIME_DIR=/run/user/1000' >/new/home/alice/.profile
chown -R 1000:1000 /new/home/alice /new/run/user/1000

for path in /sys/class/net/*; do
	case $(cat "$path/address") in
	02:77:*) own=${path##*/} ;;
	esac
done
ip link set lo up
ip addr add "$GUEST_IP4" dev "$own"
ip link set "$own" up
cp /bin/busybox /agent /new/run/
chroot /new /run/busybox nc -ll -p 2323 -e /run/agent &
echo "guest: ready, Linux $(uname -r), $(cut -d' ' -f1 /proc/uptime) s"
while :; do
	wait
	sleep 3600
done
