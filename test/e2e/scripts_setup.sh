#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/setup.sh: it finds missing packages, names them, and asks apt-get for them once.
# apt-get, sudo and pkg-config are fakes: nothing is installed.
# shellcheck source=test/e2e/scripts_common.sh
. "$(dirname "$0")/scripts_common.sh"

check_help setup.sh

try "$project/scripts/setup.sh" --check
expect "everything is there" 0
try "$project/scripts/setup.sh"
expect "nothing to install" 0 "nothing to install"

# The fake pkg-config does not find libisal until the fake apt-get has installed it.
real=$(command -v pkg-config)
fake pkg-config <<E2
[[ " \$* " == *" libisal "* ]] && [ ! -e "$place/installed" ] && exit 1
exec "$real" "\$@"
E2
fake apt-get <<E2
echo "apt-get \$*, DEBIAN_FRONTEND=\$DEBIAN_FRONTEND" >>"$place/log"
[ -e "$place/broken" ] && exit 100
[[ " \$* " == *" install "* ]] && [ ! -e "$place/useless" ] && touch "$place/installed"
exit 0
E2
setup() {
	: >"$place/log"
	rm -f "$place/installed"
	try faked "$@"
}
: >"$place/log"
chmod 666 "$place/log"
chmod 777 "$place"

setup "$project/scripts/setup.sh" --dry-run
expect "--dry-run" 0 "libisal-dev" "CRC"
check "--dry-run calls no apt-get" test ! -s "$place/log"
setup "$project/scripts/setup.sh" --check
expect "--check" 1 "libisal-dev" "scripts/setup.sh"
check "--check calls no apt-get" test ! -s "$place/log"

if [ "$(id -u)" -eq 0 ]; then
	setup "$project/scripts/setup.sh"
	expect "installing as root" 0 "libisal-dev" "installed"
	check "one package is asked for" grep -q "install -y --no-install-recommends libisal-dev, DEBIAN_FRONTEND=noninteractive" "$place/log"
	check "lists are fetched" grep -q "apt-get -q update" "$place/log"
	touch "$place/useless"
	setup "$project/scripts/setup.sh"
	expect "a package that does not help" 1 "still not found" "libisal-dev"
	rm "$place/useless"
	touch "$place/broken"
	setup "$project/scripts/setup.sh"
	expect "apt-get fails" 1 "could not install" "apt-get install --no-install-recommends libisal-dev"
	rm "$place/broken"

	# A server that only tests start, on a machine without it.
	mkdir "$place/few"
	ln -sf /usr/sbin/* /usr/bin/* "$place/few"
	rm -f "$place/few/nginx"
	fake systemctl <<-E2
	echo "systemctl \$*" >>"$place/log"
	E2
	: >"$place/log"
	rm -f "$place/installed"
	PATH=$place/bin:$place/few try "$project/scripts/setup.sh" --test
	expect "a server is still missing" 1 "still not found" "nginx-light"
	check "a service is masked while apt-get installs it, and disabled" test \
		"$(grep -o "mask nginx\|-y.* nginx-light\|unmask nginx\|disable nginx" "$place/log" | tr '\n' ';')" = \
		"mask nginx;-y --no-install-recommends libisal-dev nginx-light;unmask nginx;disable nginx;"
	rm "$place/bin/systemctl"

	# An ordinary user who has sudo, then one who has not.
	cp -r "$project/scripts" "$place/scripts"
	fake sudo <<-E2
	echo "sudo \$*" >>"$place/log"
	[ "\$1" = -n ] && shift
	exec "\$@"
	E2
	setup nobody "$place/scripts/setup.sh"
	expect "installing through sudo" 0 "installed"
	check "sudo asks nobody for a password" grep -q "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get" "$place/log"
	rm "$place/bin/sudo"
	if [ -z "$(command -v sudo)" ]; then
		setup nobody "$place/scripts/setup.sh"
		expect "no sudo" 1 "run this as root: apt-get install" "libisal-dev"
		check "no sudo, no apt-get" test ! -s "$place/log"
	fi
fi
exit $failed
