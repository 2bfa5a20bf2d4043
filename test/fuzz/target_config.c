/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A configuration of any text. Invariants: there is either a configuration or mistakes,
 * not both; a mistake names a line that exists, in order; and a configuration keeps the
 * promises of config/config.h.
 *
 * Input: text, in which a byte from 0x80 on stands for a word of the schema, so that few
 * bytes make a nearly good file; 0xff escapes the byte behind it.
 */
#include "fuzz.h"

#include "config/config_priv.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM = 64 * 1024, KEEP = 64 };

/* Values, names and a few beginnings of lines; keys and sections come from the table. */
static const char *const words[] = {
	"a",
	"b",
	"w",
	"10.0.0.1",
	"fd00::1",
	"02:00:00:00:00:01",
	"net_null0",
	"net_null1",
	"0:3.0",
	"yes",
	"100us",
	"64k",
	"all",
	"0,1",
	"a,b",
	"drop=1%",
	"unlimited",
	".in",
	".out",
	"\n",
	" = ",
	"sleep",
	"1024",
	"[port a]\ndevice = net_null0\n",
	"[adapter a]\nport = a\n",
	"[adapter b]\nswitch = w\n",
	"[switch w]\n",
	"links = w\n",
	"[engine 0]\n",
	"[engine 1]\n",
	"\"",
};

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* Write the n-th word: of the list, "[kind", "key". returns: its length */
static size_t
put_word(char *out, unsigned int n)
{
	const char *text = NULL, *behind = "";

	if (n < RTE_DIM(words)) {
		text = words[n];
	} else {
		n -= RTE_DIM(words);
		for (unsigned int k = 0; k < URN_CONFIG_KINDS && !text; k++) {
			const struct urn_config_kind *kind = &urn_config_kinds[k];

			if (n < kind->keys) {
				text = kind->key[n].name;
				behind = kind->key[n].arg ? " a = " : " = ";
			}
			n -= kind->keys;
		}
	}
	return (size_t)snprintf(out, KEEP, "%s%s", text ? text : "[urnicd]\n", behind);
}

static size_t
make_text(struct fuzz_in *in, char *out)
{
	size_t n = 0;

	while (fuzz_more(in) && n < ROOM - KEEP) {
		uint8_t c = fuzz_u8(in);

		if (c == 0xff)
			out[n++] = (char)fuzz_u8(in);
		else if (c >= 0x80)
			n += put_word(out + n, c - 0x80u);
		else
			out[n++] = (char)c;
	}
	return n;
}

static void
check_mistakes(const struct urn_config_errors *e, unsigned int lines)
{
	unsigned int last = 0;

	fuzz_check(e->n <= URN_CONFIG_ERRORS_MAX &&
		   (e->more == 0 || e->n == URN_CONFIG_ERRORS_MAX));
	for (unsigned int i = 0; i < e->n; i++) {
		fuzz_check(e->error[i].line >= last && e->error[i].line <= lines);
		fuzz_check(strncmp(e->error[i].text, "f:", 2) == 0);
		fuzz_check(strpbrk(e->error[i].text, "\n\r\033") == NULL);
		last = e->error[i].line;
	}
}

static void
check_ports(const struct urn_config *c)
{
	for (unsigned int i = 0; i < c->ports; i++) {
		const struct urn_config_port *p = &c->port[i];

		fuzz_check((p->adapter >= 0) != (p->sw >= 0));
		fuzz_check(p->adapter < (int)c->adapters && p->sw < (int)c->switches);
		fuzz_check(p->port.device[0] != '\0' && p->port.queues > 0);
		if (p->adapter >= 0)
			fuzz_check(c->adapter[p->adapter].port == (int)i);
		else
			fuzz_check(c->sw[p->sw].plug[p->plug].index == i);
	}
}

static void
check_switches(const struct urn_config *c)
{
	unsigned int links = 0;

	for (unsigned int i = 0; i < c->switches; i++) {
		const struct urn_config_switch *w = &c->sw[i];

		fuzz_check(w->plugs > 0 && w->engine < c->engines);
		for (unsigned int p = 0; p < w->plugs; p++) {
			const struct urn_config_plug *plug = &w->plug[p];

			if (plug->kind != URN_CONFIG_PLUG_LINK)
				continue;
			fuzz_check(c->sw[plug->index].plug[plug->peer].index == i);
			fuzz_check(c->sw[plug->index].plug[plug->peer].peer == p);
			fuzz_check(c->sw[plug->index].engine == w->engine);
			links++;
		}
		for (unsigned int s = 0; s < w->statics; s++)
			fuzz_check(w->fixed[s].plug < w->plugs);
	}
	/* Each link was seen from both ends, and they make no loop. */
	fuzz_check(links % 2 == 0 && (links == 0 || links / 2 < c->switches));
}

static void
check_good(const struct urn_config *c)
{
	uint32_t all = (1u << c->engines) - 1;

	fuzz_check(c->engines >= 1 && c->engines <= URN_ABI_MAX_ENGINES);
	fuzz_check(c->adapters >= 1 && c->nodes >= 1 && c->nodes <= c->adapters);
	for (unsigned int i = 0; i < c->adapters; i++) {
		const struct urn_config_adapter *a = &c->adapter[i];

		fuzz_check((a->port >= 0) != (a->sw >= 0) && a->node < c->nodes);
		fuzz_check(a->adapter.engines != 0 && (a->adapter.engines & ~all) == 0);
		fuzz_check(strcmp(c->node[a->node], a->adapter.node) == 0);
		if (a->sw >= 0)
			fuzz_check(c->sw[a->sw].plug[a->plug].index == i);
		for (unsigned int k = 0; k < i; k++)
			fuzz_check(strcmp(c->adapter[k].adapter.name, a->adapter.name) != 0);
	}
	check_ports(c);
	check_switches(c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = {data, data + size};
	struct urn_config_errors errors = {0};
	char *room = malloc(ROOM), *text;
	unsigned int lines = 1;
	struct urn_config *c;
	size_t n;

	fuzz_check(room);
	n = make_text(&in, room);
	/* The buffer has the text's exact size, so that a sanitizer sees reads behind it. */
	text = malloc(n > 0 ? n : 1);
	fuzz_check(text);
	memcpy(text, room, n);
	free(room);
	for (size_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	c = urn_config_parse(text, n, "f", &errors);
	fuzz_check((c != NULL) == (urn_config_errors_count(&errors) == 0));
	check_mistakes(&errors, lines);
	if (c)
		check_good(c);
	urn_config_free(c);
	urn_config_errors_free(&errors);
	free(text);
	return 0;
}
