/* SPDX-License-Identifier: BSD-3-Clause */
/* Values: each type reads its text, reports a mistake in it, and stores the value. */
#include "config/config_priv.h"

#include "log/log.h"
#include "switch/impair_words.h"
#include "units.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <rte_config.h>

/* Bytes of a value that a sentence repeats. */
#define SHOWN 48

struct value {
	struct urn_config_ctx *ctx;
	const struct urn_config_key *key;
	unsigned int line;
	const char *name; /* name of the key in the file */
	const char *text;
	void *field; /* NULL: the value is only checked */
};

/* Report "KEY = VALUE" and the mistake. returns: -1 */
static int bad(const struct value *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int
bad(const struct value *v, const char *fmt, ...)
{
	char why[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (v->ctx->why) {
		urn_err_set(v->ctx->why, "%s", why);
		return -1;
	}
	urn_config_say(v->ctx, v->line, "%.*s = %.*s%s: %s", SHOWN, v->name, SHOWN, v->text,
		       strlen(v->text) > SHOWN ? "..." : "", why);
	return -1;
}

static int
store(const struct value *v, uint64_t n)
{
	uint8_t n8 = (uint8_t)n;
	uint16_t n16 = (uint16_t)n;
	uint32_t n32 = (uint32_t)n;

	if (!v->field)
		return 0;
	switch (v->key->size) {
	case 1:
		memcpy(v->field, &n8, 1);
		break;
	case 2:
		memcpy(v->field, &n16, 2);
		break;
	case 4:
		memcpy(v->field, &n32, 4);
		break;
	default:
		memcpy(v->field, &n, 8);
	}
	return 0;
}

static int
store_text(const struct value *v)
{
	size_t n = strlen(v->text);

	if (!v->field)
		return 0;
	if (n >= v->key->size)
		return bad(v, "the value is %zu bytes long; %zu are the most", n, v->key->size - 1);
	memset(v->field, 0, v->key->size);
	memcpy(v->field, v->text, n);
	return 0;
}

/* ---- words */

static int
take_text(const struct value *v)
{
	if (v->text[0] == '\0')
		return bad(v, "the value is empty; give a name, or leave the line out");
	return store_text(v);
}

static int
take_path(const struct value *v)
{
	if (v->text[0] != '/')
		return bad(v, "give an absolute path, one that begins with /");
	return store_text(v);
}

bool
urn_config_is_name(const char *s, size_t n)
{
	if (n == 0 || n >= URN_CONFIG_NAME)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!isalnum((unsigned char)s[i]) && s[i] != '_' && s[i] != '-')
			return false;
	}
	return true;
}

#define NAME_RULE "a name has 1 to 15 letters, digits, _ or -"

static int
take_name(const struct value *v)
{
	if (!urn_config_is_name(v->text, strlen(v->text)))
		return bad(v, NAME_RULE);
	return store_text(v);
}

size_t
urn_config_word(const char **at, const char **word)
{
	size_t n;

	*at += strspn(*at, ", \t");
	*word = *at;
	n = strcspn(*at, ", \t");
	*at += n;
	return n;
}

static int
take_names(const struct value *v)
{
	const char *at = v->text, *word;
	size_t n, count = 0;

	while ((n = urn_config_word(&at, &word)) > 0) {
		if (!urn_config_is_name(word, n))
			return bad(v, "%.*s: " NAME_RULE, (int)RTE_MIN(n, (size_t)SHOWN), word);
		count++;
	}
	return count > 0 ? 0 : bad(v, "give names with commas between, or leave the line out");
}

/* returns: index of the word, or -1: reported */
static int
find_word(const struct value *v)
{
	const char *const *words = v->key->words;
	char list[128];

	for (int i = 0; words[i]; i++) {
		if (strcmp(v->text, words[i]) == 0)
			return i;
	}
	urn_config_words_text(words, list, sizeof(list));
	return bad(v, "give %s", list);
}

static int
take_word(const struct value *v)
{
	int i = find_word(v);

	return i < 0 ? -1 : store(v, (uint64_t)i);
}

static int
take_level(const struct value *v)
{
	return find_word(v) < 0 ? -1 : store_text(v);
}

static int
take_number(const struct value *v)
{
	return find_word(v) < 0 ? -1 : store(v, strtoul(v->text, NULL, 10));
}

static int
take_bool(const struct value *v)
{
	static const char *const words[] = {"no", "off", "false", "0", "yes", "on", "true", "1"};

	for (unsigned int i = 0; i < RTE_DIM(words); i++) {
		if (strcmp(v->text, words[i]) == 0)
			return store(v, (i >= RTE_DIM(words) / 2) != v->key->invert);
	}
	return bad(v, "give yes or no");
}

static int
take_log(const struct value *v)
{
	uint8_t level[URN_LOG_AREA_COUNT] = {0};
	char why[200];

	if (urn_log_parse(v->text, level, why, sizeof(why)) != 0)
		return bad(v, "%s", why);
	return store_text(v);
}

/* ---- numbers */

static int
take_count(const struct value *v)
{
	const struct urn_config_key *k = v->key;
	uint64_t n, max = k->max != 0 ? k->max : UINT64_MAX - 1;
	char least[32], most[32];
	bool limit = k->type == URN_CT_LIMIT;

	if (limit && strcmp(v->text, "unlimited") == 0)
		return store(v, URN_CONFIG_UNLIMITED);
	if (urn_text_parse_size(v->text, &n) == 0 && n >= k->min && n <= max)
		return store(v, n);
	urn_config_number_text(k->min, least);
	if (limit)
		return bad(v, "give a number from %s on, such as 100 or 64k, or unlimited", least);
	return bad(v, "give %s from %s to %s%s", k->type == URN_CT_SIZE ? "a size" : "a number",
		   least, urn_config_number_text(max, most),
		   k->type == URN_CT_SIZE ? ", such as 64M or 2G" : "");
}

static int
take_time(const struct value *v)
{
	const struct urn_config_key *k = v->key;
	char least[32], most[32];
	uint64_t ns;

	if (urn_text_parse_time(v->text, &ns) == 0 && ns >= k->min && ns <= k->max)
		return store(v, ns / k->unit);
	return bad(v, "give a time from %s to %s, with us, ms or s behind it",
		   urn_config_time_text(k->min, least), urn_config_time_text(k->max, most));
}

static int
take_rate(const struct value *v)
{
	const struct urn_config_key *k = v->key;
	char least[32], most[32];
	uint64_t bps;

	if (urn_text_parse_rate(v->text, &bps) == 0 && bps >= k->min && bps <= k->max)
		return store(v, bps / 8);
	return bad(v, "give bits a second from %s to %s, such as 500M or 2.5G",
		   urn_config_rate_text(k->min, least), urn_config_rate_text(k->max, most));
}

static int
take_percent(const struct value *v)
{
	double share;

	if (urn_impair_parse_percent(v->text, &share) != 0)
		return bad(v, "give percent from 0 to 100, such as 0.1 or 5%%");
	if (v->field)
		memcpy(v->field, &share, sizeof(share));
	return 0;
}

static int
take_mode(const struct value *v)
{
	size_t n = strlen(v->text);
	unsigned long mode = 01000;

	if (n >= 3 && n <= 4 && strspn(v->text, "01234567") == n)
		mode = strtoul(v->text, NULL, 8);
	if (mode > 0777)
		return bad(v, "give three octal digits, such as 0600 or 0660");
	if ((mode & 0600) != 0600)
		return bad(v, "the owner reads and writes: give 06.., such as 0600 or 0660");
	return store(v, mode);
}

/* ---- addresses */

int
urn_config_parse_mac(const char *s, size_t n, uint8_t mac[6])
{
	if (n != 17)
		return -1;
	for (unsigned int i = 0; i < 6; i++, s += 3) {
		char digits[3] = {s[0], s[1], '\0'};

		if (!isxdigit((unsigned char)s[0]) || !isxdigit((unsigned char)s[1]) ||
		    (i < 5 && s[2] != ':'))
			return -1;
		mac[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	/* A group's address, or all zero. */
	return mac[0] & 1 || (mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5]) == 0 ? -1 : 0;
}

#define MAC_RULE                                                               \
	"give the MAC address of one station, six bytes with colons, such as " \
	"02:00:00:00:00:01"

static int
take_mac(const struct value *v)
{
	uint8_t mac[6];

	if (urn_config_parse_mac(v->text, strlen(v->text), mac) != 0)
		return bad(v, MAC_RULE);
	if (v->field)
		memcpy(v->field, mac, 6);
	return 0;
}

static int
take_macs(const struct value *v)
{
	const char *at = v->text, *word;
	size_t n, count = 0;
	uint8_t mac[6];

	for (; (n = urn_config_word(&at, &word)) > 0; count++) {
		if (urn_config_parse_mac(word, n, mac) != 0)
			return bad(v, "%.*s: " MAC_RULE, (int)RTE_MIN(n, 24u), word);
	}
	return count > 0 ? 0 : bad(v, MAC_RULE);
}

static int
take_ips(const struct value *v)
{
	return urn_config_are_gids(v->text)
		       ? 0
		       : bad(v, "give IP addresses, such as 10.0.0.1, fe80::1");
}

/* Take an adapter's address, and the length of the prefix behind it. */
static int
take_station(const struct value *v, bool v6)
{
	uint8_t a[16], bits;
	const char *rule = urn_config_parse_station(v->text, v6, a, &bits);

	if (rule)
		return bad(v, "%s", rule);
	if (v->field) {
		struct urn_config_adapter *ca =
			(struct urn_config_adapter *)((char *)v->field - v->key->offset);

		memcpy(v->field, a, v6 ? 16 : 4);
		*(v6 ? &ca->adapter.ipv6_bits : &ca->adapter.ipv4_bits) = bits;
	}
	return 0;
}

static int
take_ipv4(const struct value *v)
{
	return take_station(v, false);
}

static int
take_ipv6(const struct value *v)
{
	return take_station(v, true);
}

static int
take_router(const struct value *v)
{
	uint8_t gid[16];

	return urn_config_parse_gid(v->text, strlen(v->text), gid) == 0
		       ? 0
		       : bad(v, "give the address of one router on the link, such as route "
				"10.1.0.0/16 = 10.0.0.254");
}

/* Take "127.0.0.1:9464" or "[::1]:9464". */
static int
take_listen(const struct value *v)
{
	const char *colon = strrchr(v->text, ':'), *host = v->text;
	char name[48] = "";
	uint64_t port = 0;
	uint8_t a[16];
	size_t n = colon ? (size_t)(colon - host) : 0;
	bool v6 = n > 2 && host[0] == '[' && host[n - 1] == ']';

	if (v6) {
		host++;
		n -= 2;
	}
	if (n < sizeof(name))
		memcpy(name, host, n);
	if (inet_pton(v6 ? AF_INET6 : AF_INET, name, a) != 1 ||
	    urn_text_parse_uint(colon + 1, &port) != 0 || port < 1 || port > 65535)
		return bad(v, "give an address and a port, such as 127.0.0.1:9464 or [::1]:9464");
	if (v->field) {
		struct urn_config_daemon *d =
			(struct urn_config_daemon *)((char *)v->field - v->key->offset);

		memcpy(d->prometheus_host, name, sizeof(name));
		d->prometheus_port = (uint16_t)port;
	}
	return 0;
}

/* ---- lists of numbers */

/* Parse "3" or "0-7", all numbers below max. returns: 0 or -1 */
static int
parse_range(const char *s, size_t n, unsigned int max, unsigned int *first, unsigned int *last)
{
	char text[24];
	uint64_t a, b;
	char *dash;

	if (n >= sizeof(text))
		return -1;
	memcpy(text, s, n);
	text[n] = '\0';
	dash = strchr(text, '-');
	if (dash)
		*dash++ = '\0';
	if (urn_text_parse_uint(text, &a) != 0 ||
	    urn_text_parse_uint(dash ? dash : text, &b) != 0 || a > b || b >= max)
		return -1;
	*first = (unsigned int)a;
	*last = (unsigned int)b;
	return 0;
}

static int
take_cores(const struct value *v)
{
	const char *at = v->text, *word;
	unsigned int first, last;
	cpu_set_t set;
	size_t n;

	CPU_ZERO(&set);
	while ((n = urn_config_word(&at, &word)) > 0) {
		if (parse_range(word, n, RTE_MAX_LCORE, &first, &last) != 0)
			return bad(v, "give CPUs from 0 to %u, such as 0-3,8", RTE_MAX_LCORE - 1);
		for (; first <= last; first++)
			CPU_SET(first, &set);
	}
	if (CPU_COUNT(&set) == 0)
		return bad(v, "give CPUs, such as 0-3,8");
	if (v->field)
		memcpy(v->field, &set, sizeof(set));
	return 0;
}

static int
take_engines(const struct value *v)
{
	const char *at = v->text, *word;
	unsigned int first, last;
	uint32_t mask = 0;
	size_t n;

	if (strcmp(v->text, "all") == 0)
		return store(v, UINT32_MAX);
	while ((n = urn_config_word(&at, &word)) > 0) {
		if (parse_range(word, n, URN_ABI_MAX_ENGINES, &first, &last) != 0)
			break;
		for (; first <= last; first++)
			mask |= 1u << first;
	}
	if (n > 0 || mask == 0)
		return bad(v, "give engines by their numbers from 0 to %u, such as 0,1, or all",
			   URN_ABI_MAX_ENGINES - 1);
	return store(v, mask);
}

static int
take_set(const struct value *v)
{
	uint64_t set;

	if (urn_config_parse_set(v->text, (unsigned int)v->key->max, &set) != 0)
		return bad(v, "give numbers from 0 to %u, such as 3 or 0,4-6",
			   (unsigned int)v->key->max);
	return store(v, set);
}

static int
take_features(const struct value *v)
{
	const char *at = v->text, *word;
	uint32_t mask = 0;
	char list[128];
	size_t n;

	urn_config_features_text(v->key->features, list, sizeof(list));
	while ((n = urn_config_word(&at, &word)) > 0) {
		const struct urn_feature *f = urn_feature_find(v->key->features, word, n);

		if (!f)
			return bad(v, "give %s, or leave the line out", list);
		mask |= f->mask;
	}
	return mask != 0 ? store(v, mask) : bad(v, "give %s, or leave the line out", list);
}

/* ---- values that other files parse */

static int
take_device(const struct value *v)
{
	struct urn_err err;

	if (urn_config_device_check(v->text, &err) != 0)
		return bad(v, "%s", err.text);
	return store_text(v);
}

static int
take_eal(const struct value *v)
{
	struct urn_err err;

	if (urn_config_eal_check(v->text, &err) != 0)
		return bad(v, "%s", err.text);
	return store_text(v);
}

static int
take_later(const struct value *v)
{
	(void)v;
	return 0;
}

static int (*const takers[URN_CONFIG_TYPES])(const struct value *v) = {
	[URN_CT_TEXT] = take_text,	 [URN_CT_PATH] = take_path,
	[URN_CT_NAME] = take_name,	 [URN_CT_NAMES] = take_names,
	[URN_CT_COUNT] = take_count,	 [URN_CT_LIMIT] = take_count,
	[URN_CT_SIZE] = take_count,	 [URN_CT_TIME] = take_time,
	[URN_CT_RATE] = take_rate,	 [URN_CT_PERCENT] = take_percent,
	[URN_CT_BOOL] = take_bool,	 [URN_CT_WORD] = take_word,
	[URN_CT_LEVEL] = take_level,	 [URN_CT_NUMBER] = take_number,
	[URN_CT_MODE] = take_mode,	 [URN_CT_MAC] = take_mac,
	[URN_CT_IPV4] = take_ipv4,	 [URN_CT_IPV6] = take_ipv6,
	[URN_CT_LISTEN] = take_listen,	 [URN_CT_CORES] = take_cores,
	[URN_CT_ENGINES] = take_engines, [URN_CT_FEATURES] = take_features,
	[URN_CT_DEVICE] = take_device,	 [URN_CT_EAL] = take_eal,
	[URN_CT_MACS] = take_macs,	 [URN_CT_IMPAIR] = take_later,
	[URN_CT_SET] = take_set,	 [URN_CT_IPS] = take_ips,
	[URN_CT_LOG] = take_log,	 [URN_CT_ROUTER] = take_router,
};

int
urn_config_take(struct urn_config_ctx *ctx, const struct urn_config_key *key,
		const struct urn_ini_entry *entry, void *obj)
{
	const struct value v = {
		.ctx = ctx,
		.key = key,
		.line = entry->key.line,
		.name = entry->key.s,
		.text = entry->value.s,
		.field = obj && key->offset != URN_CONFIG_NO_FIELD ? (char *)obj + key->offset
								   : NULL,
	};

	return takers[key->type](&v);
}

void
urn_config_preset(struct urn_config_ctx *ctx, const struct urn_config_kind *kind, void *obj)
{
	for (unsigned int i = 0; i < kind->keys; i++) {
		const struct urn_config_key *k = &kind->key[i];
		const struct urn_ini_entry e = {.key.s = k->name, .value.s = k->preset};

		if (k->preset[0] != '(')
			(void)urn_config_take(ctx, k, &e, obj);
	}
}
