#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Make the guest that urnic is tested against: Debian's kernel with its soft-RoCE
# (rdma_rxe) and Debian's rdma-core, as an image that qemu boots from memory.
#
# Usage: test/interop/guest-build.sh [--check]
#
#   (nothing)   make the image unless it is there, and print its folder
#   --check     print the folder if the image is there, else fail
#   --help      this text
#
# Packages are fetched with apt-get download and unpacked; nothing is installed.
# All files of the guest are theirs, unchanged, except guest-init.sh,
# guest-pci-init.sh and guest-agent.sh beside this script. The image (110 MB) stays in
# ${XDG_CACHE_HOME:-$HOME/.cache}/urnic/guest and is made anew when Debian's
# kernel or one of these scripts changes; the older image is removed.
# GUEST_KERNEL=6.1.0-NN-amd64 takes another kernel than the newest.
#
# Exit code: 0 the image is there, 1 it could not be made, 2 wrong usage.

set -eu
shopt -s inherit_errexit nullglob
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/../../scripts/common.sh"
here=$project/test/interop
cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/urnic/guest

# Programs of the guest by package; the libraries that they need come by themselves.
packages=(ibverbs-utils ibverbs-providers rdmacm-utils perftest iproute2 dash busybox-static)
programs=(usr/bin/ibv_{rc,uc,ud,srq}_pingpong usr/bin/ibv_devinfo usr/bin/{ucmatose,rping,udaddy,rdma_server,rdma_client,rstream,mckey} sbin/tc
	usr/bin/ib_{write,read,send,atomic}_{bw,lat})
modules=(virtio_pci virtio_net virtio_rng crc32_generic crc32_pclmul ib_uverbs rdma_rxe rdma_ucm sch_netem
	sch_prio sch_ingress cls_u32 act_mirred ifb)
# For guests of guest_pci.py: this machine's files, cards, and the way to them for urnicd.
modules+=(9p 9pnet_virtio overlay e1000e vmxnet3 vfio_pci vfio_iommu_type1)

# The image that is being made; removed however the script ends.
work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT

have_lists() {
	apt-cache show linux-image-amd64 >/dev/null 2>&1
}

# Release of the newest kernel that apt knows.
newest_kernel() {
	apt-cache depends linux-image-amd64 |
		sed -n 's/.*Depends: linux-image-\(.*-amd64\)$/\1/p' | head -n 1
}

# Names of the packages, and of the libraries that they depend on; the programs are listed above.
with_libraries() {
	printf '%s\n' "${packages[@]}"
	apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
		--no-replaces --no-enhances "${packages[@]}" | grep -E '^z?lib' | sort -u
}

fetch() {
	local names

	mapfile -t names < <(with_libraries)
	mkdir "$work/debs" "$work/kernel" "$work/tree"
	(cd "$work/debs" && apt-get -qq -o APT::Sandbox::User=root download \
		"linux-image-$kernel" "${names[@]}") >"$work/apt.log" 2>&1 ||
		{
			tail -n 3 "$work/apt.log" >&2
			die "apt-get could not fetch the guest's packages; it says why above. (In a network namespace without a way out, run $0 before you enter it.)"
		}
	for deb in "$work"/debs/*.deb; do
		case ${deb##*/} in
		linux-image-*) dpkg -x "$deb" "$work/kernel" ;;
		*) dpkg -x "$deb" "$work/tree" ;;
		esac
	done
}

# The kernel as an ELF file boots without unpacking itself, which qemu would
# have to emulate. Where none is found inside, the packed one does as well.
unpack_kernel() {
	cp "$work/kernel/boot/vmlinuz-$kernel" "$work/image/kernel"
	python3 - "$work/image/kernel" <<-'END'
	import lzma, sys
	data = open(sys.argv[1], "rb").read()
	at = data.find(b"\xfd7zXZ\x00")
	while at >= 0:
	    try:
	        inner = lzma.LZMADecompressor().decompress(data[at:])
	        if inner.startswith(b"\x7fELF"):
	            open(sys.argv[1], "wb").write(inner)
	            break
	    except lzma.LZMAError:
	        pass
	    at = data.find(b"\xfd7zXZ\x00", at + 1)
	END
}

# The path of the library NAME in the packages.
find_library() {
	local dir

	for dir in lib usr/lib lib/x86_64-linux-gnu usr/lib/x86_64-linux-gnu; do
		[ -e "$work/tree/$dir/$1" ] || continue
		echo "$work/tree/$dir/$1"
		return
	done
	die "$2 needs $1, which none of the packages has"
}

# Copy the libraries that a program or library links to, and those that they link to.
put_libraries() {
	local name lib

	while read -r name; do
		[ ! -e "$root/lib/x86_64-linux-gnu/$name" ] || continue
		lib=$(find_library "$name" "$1")
		cp -L "$lib" "$root/lib/x86_64-linux-gnu/$name"
		put_libraries "$lib"
	done < <(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
}

put_programs() {
	local path applet

	mkdir -p "$root"/{bin,lib/x86_64-linux-gnu,lib64,etc,proc,sys,dev,tmp,run,root}
	ln -s bin "$root/sbin"
	mkdir "$root/usr"
	ln -s ../bin "$root/usr/bin"
	ln -s ../bin "$root/usr/sbin"
	ln -s ../lib "$root/usr/lib"
	cp "$work/tree/bin/busybox" "$root/bin/"
	for applet in $("$root/bin/busybox" --list); do
		[ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
	done
	# busybox has a sh and an ip of its own, which can do too little.
	for path in "${programs[@]}" bin/ip bin/dash bin/rdma sbin/rdma usr/bin/rdma; do
		[ -e "$work/tree/$path" ] || continue
		rm -f "$root/bin/${path##*/}"
		cp "$work/tree/$path" "$root/bin/"
		put_libraries "$work/tree/$path"
	done
	ln -sf dash "$root/bin/sh"
	cp -L "$(find_library ld-linux-x86-64.so.2 libc6)" "$root/lib64/"
	# Libraries that are loaded by name at run time: the verbs driver, and the one that pthread_exit() needs.
	mkdir -p "$root/lib/x86_64-linux-gnu/libibverbs" "$root/etc/libibverbs.d"
	cp "$work"/tree/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav*.so \
		"$root/lib/x86_64-linux-gnu/libibverbs/"
	cp "$work/tree/etc/libibverbs.d/rxe.driver" "$root/etc/libibverbs.d/"
	[ -e "$root/lib/x86_64-linux-gnu/libgcc_s.so.1" ] ||
		cp "$(find_library libgcc_s.so.1 libpthread)" "$root/lib/x86_64-linux-gnu/"
	echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
}

put_modules() {
	local name

	depmod -b "$work/kernel" "$kernel"
	for name in "${modules[@]}"; do
		modprobe -d "$work/kernel" -S "$kernel" --show-depends "$name" ||
			die "the kernel $kernel has no module $name"
	done | sed -n "s|^insmod $work/kernel/\([^ ]*\).*|\1|p" | sort -u >"$work/modules"
	tar -C "$work/kernel" -cf - -T "$work/modules" \
		lib/modules/"$kernel"/modules.{order,builtin,builtin.modinfo} | tar -C "$root" -xf -
	find "$root/lib/modules" -name '*.ko.xz' -exec xz -d {} +
	depmod -b "$root" "$kernel"
}

pack() {
	install -m 755 "$here/guest-init.sh" "$root/init"
	install -m 755 "$here/guest-pci-init.sh" "$root/pci-init"
	install -m 755 "$here/guest-agent.sh" "$root/agent"
	(cd "$root" && find . -print0 | LC_ALL=C sort -z |
		cpio -0 -o -H newc -R 0:0 --quiet) >"$work/image/root"
}

build() {
	local tool

	for tool in cpio depmod modprobe readelf python3; do
		command -v "$tool" >/dev/null ||
			die "there is no $tool; install it with: scripts/setup.sh --interop"
	done
	mkdir -p "$cache"
	work=$(mktemp -d "$cache/making.XXXXXX")
	root=$work/root
	mkdir "$work/image" "$root"
	fetch
	unpack_kernel
	put_programs
	put_modules
	pack
	rm -rf "$cache"/image-*
	mv "$work/image" "$image"
}

case ${1-} in
'' | --check) ;;
--help | -h) print_help; exit 0 ;;
*) usage_error "unknown argument '$1'" ;;
esac
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] ||
	die "the guest is made of Debian's packages for amd64, and this is no such system"
have_lists || { [ "$(id -u)" -eq 0 ] && apt-get -qq update >/dev/null; } || true
kernel=${GUEST_KERNEL:-$(newest_kernel)}
[ -n "$kernel" ] || die "apt knows no package linux-image-amd64; try apt-get update"
key=$(cat "$here"/guest-{build,init,pci-init,agent}.sh | sha256sum | cut -c 1-12)
image=$cache/image-$kernel-$key
if [ ! -e "$image/root" ]; then
	[ "${1-}" != --check ] || die "there is no image of the guest yet; make it with: $0"
	mkdir -p "$cache"
	# The second of two scripts at once waits, and finds the image made.
	exec 9>"$cache/lock"
	flock 9
	[ -e "$image/root" ] || build
fi
echo "$image"
