#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/layers.sh: the sources keep to the table of doc/inside/architecture.md, and the
# script finds includes and names in a copy that do not.
# Back quotes are part of the table's rows.
# shellcheck disable=SC2016
# shellcheck source=test/e2e/scripts_common.sh
. "$(dirname "$0")/scripts_common.sh"

check_help layers.sh

layers() {
	try "$project/scripts/layers.sh" --project "$place/copy" "$@"
}

# Copy the sources and the table, and edit one file of the copy: changed SED FILE
changed() {
	rm -rf "$place/copy"
	mkdir -p "$place/copy/doc/inside"
	cp "$project/doc/inside/architecture.md" "$place/copy/doc/inside/"
	(cd "$project" && find apps dataplane examples lib pmd_glue -name '*.[ch]' -print0 |
		xargs -0 cp --parents -t "$place/copy")
	[ -z "$1" ] || sed -i "$1" "$place/copy/$2"
}

try "$project/scripts/layers.sh"
expect "the project" 0 "none from above"
try "$project/scripts/layers.sh" --list
expect "who includes from whom" 0 "dataplane/transport"

changed ''
layers
expect "a copy" 0 "none from above"
changed '2i #include "control/client.h"' dataplane/engine/notify.c
layers
expect "from above" 1 "dataplane/engine/notify.c:2: dataplane/engine may not include from dataplane/control (control/client.h)"
changed '2i #  include "../transport/qp.h"' dataplane/wire/pkt.h
layers
expect "from above by a way round" 1 "dataplane/wire/pkt.h:2: dataplane/wire may not include from dataplane/transport"
changed '2i #include <urnic/attach.h>' dataplane/host/queue.h
layers
expect "from beside" 1 "dataplane/host may not include from lib/include"
changed '2i #include "verbs/adapter/adapter.h"' lib/verbs/mr.c
layers
expect "the front of verbs, from a provider" 1 "lib/verbs/mr.c:2: lib/verbs may not include from lib/verbs/adapter"
changed '2i #include "attach/dev.h"' lib/verbs/mr.c
layers
expect "the front of verbs, past its provider" 1 "lib/verbs/mr.c:2: lib/verbs may not include from lib/attach"
changed '2i #include "verbs/front.h"' lib/verbs/adapter/mr.c
layers
expect "a provider, from the front" 1 "lib/verbs/adapter/mr.c:2: lib/verbs/adapter may not include from lib/verbs"
changed '2i #include "verbs/adapter/cm_end.h"' lib/verbs/cm.c
layers
expect "connection management, from a provider" 1 "lib/verbs/cm.c:2: lib/verbs may not include from lib/verbs/adapter"
changed '2i void urn_verbs_open(void);' lib/verbs/provider/provider.h
layers
expect "a function declared below" 1 "lib/verbs/provider/provider.h:2: lib/verbs/provider may not use urn_verbs_open of lib/verbs"
changed '2i extern const struct urn_verbs_ops urn_adapter_ops;' lib/verbs/provider/provider.h
layers
expect "data declared below" 1 "provider.h:2: lib/verbs/provider may not use urn_adapter_ops of lib/verbs/adapter"
changed '$a static void *f(void) { return urn_attach_open(0); }' lib/attach/discover.c
layers
expect "a public function called in the library from below" 1 "lib/attach may not use urn_attach_open of lib/verbs/open"
changed '$a static void f(void) { /* a word */ urn_rc_open(0); }' dataplane/wire/parse.c
sed -i '$a void\nurn_rc_open(int a)\n{\n\t(void)a;\n}' "$place/copy/dataplane/transport/rc.c"
layers
expect "a function called from below" 1 "dataplane/wire may not use urn_rc_open of dataplane/transport"
changed '$a /* urn_verbs_open()\n * urn_verbs_open() */ static const char *f = "urn_verbs_open()";' lib/attach/discover.c
sed -i '$a static int\nurn_verbs_open(struct urn_verbs_open *a)\n{\n\treturn a->urn_verbs_open;\n}' "$place/copy/lib/attach/discover.c"
layers
expect "comments, strings, tags, fields and a function of its own" 0 "none from above"
changed 's/ibv_/my_/' pmd_glue/mlx5.c
layers
expect "an exception without a use" 1 'the exception of pmd_glue for ^ibv_ is not needed'
changed '/^| `dataplane\/host`/d' doc/inside/architecture.md
layers
expect "a folder without a row" 1 "dataplane/host/queue.h is in no folder of the table"
changed 's/^| `dataplane\/wire` | /&`dataplane\/engine`, /' doc/inside/architecture.md
layers
expect "a row that names one above it" 1 "dataplane/wire may include from dataplane/engine, which does not stand below it"
changed 's/^| `dataplane\/wire` | /&`dataplane\/nowhere`, /' doc/inside/architecture.md
layers
expect "a row that names none" 1 "dataplane/nowhere, which has no row"
changed 's/^| `dataplane\/net` | /&`dataplane\/host`, /' doc/inside/architecture.md
layers
expect "a row that allows what nobody does" 1 "dataplane/net may include from dataplane/host, and never does"
changed '/^| `/d' doc/inside/architecture.md
layers
expect "no table" 1 "there is no table"
try "$project/scripts/layers.sh" --project "$place/nothing"
expect "no project" 1 "no doc/inside/architecture.md"
layers --nonsense
expect "unknown option" 2 "--nonsense" "--help"

clean layers.sh
exit $failed
