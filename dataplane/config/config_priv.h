/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the configuration: the table of sections and keys, and the steps from
 * INI to struct urn_config:
 *
 *     config.c         every section becomes an object: names, duplicates
 *     config_value.c   every key's value, by its type in the table
 *     config_check.c   references between sections, and values that must differ
 *     config_switch.c  plugs of switches
 *
 * A mistake is reported and then skipped, so that the others are found too.
 */
#ifndef URN_CONFIG_CONFIG_PRIV_H
#define URN_CONFIG_CONFIG_PRIV_H

#include "near.h"
#include "config/config.h"
#include "config/ini.h"
#include "config/switch_keys.h"

#include "wire/features.h"

enum urn_config_type {
	URN_CT_TEXT,	/* any text */
	URN_CT_PATH,	/* an absolute path */
	URN_CT_NAME,	/* a name that the configuration gives: letters, digits, _ and - */
	URN_CT_NAMES,	/* a list of names */
	URN_CT_COUNT,	/* a number, with k, M or G */
	URN_CT_LIMIT,	/* a count, or "unlimited" */
	URN_CT_SIZE,	/* bytes, with k, M or G */
	URN_CT_TIME,	/* 100us, 4ms, 2s; min, max in ns */
	URN_CT_RATE,	/* 40M, 2.5G: bits a second, min, max too; the field is bytes a second */
	URN_CT_PERCENT, /* 1%, 0.5: a double from 0 to 1 */
	URN_CT_BOOL,	/* yes or no */
	URN_CT_WORD,	/* one of the words: its index */
	URN_CT_LEVEL,	/* one of the words: itself */
	URN_CT_LOG,	/* levels of the log: the text */
	URN_CT_NUMBER,	/* one of the words, which are numbers: the number */
	URN_CT_MODE,	/* octal */
	URN_CT_MAC,
	URN_CT_IPV4,	 /* with or without /LENGTH, into struct urn_config_adapter */
	URN_CT_IPV6,	 /* the same */
	URN_CT_LISTEN,	 /* an address and a port, into struct urn_config_daemon */
	URN_CT_CORES,	 /* 0-3,8; a cpu_set_t */
	URN_CT_ENGINES,	 /* 0,1 or "all"; a mask, all: UINT32_MAX */
	URN_CT_FEATURES, /* list of words of features: a mask */
	URN_CT_DEVICE,	 /* a device for pmd_glue */
	URN_CT_EAL,	 /* further EAL arguments */
	URN_CT_MACS,	 /* a list of MAC addresses */
	URN_CT_SET,	 /* 0,2-4: a mask; max: the largest number, 63 at most */
	URN_CT_IPS,	 /* a list of IPv4 and IPv6 addresses */
	URN_CT_ROUTER,	 /* an IPv4 or IPv6 address of a router */
	URN_CT_IMPAIR,	 /* switch/impair_words.h */
	URN_CONFIG_TYPES,
};

/* The value has no field; a later step reads it. */
#define URN_CONFIG_NO_FIELD SIZE_MAX

struct urn_config_key {
	const char *name;
	const char *
		arg; /* a word behind the key, "PORT" of "impair PORT"; such keys repeat. Or NULL */
	enum urn_config_type type;
	bool invert;		  /* BOOL: the field is true for no */
	size_t offset, size;	  /* place of the field in its object, or URN_CONFIG_NO_FIELD */
	uint64_t min, max;	  /* numbers, sizes, times; 0, 0: the type's own */
	uint64_t unit;		  /* TIME: ns of the field's unit */
	const char *const *words; /* ended by NULL */
	const struct urn_features *features; /* FEATURES: those that the key knows */
	const char *preset; /* value when the key is not given; "(...)": in words, the field stays */
	const char *help;   /* meaning of the key, for a line of help */
};

enum urn_config_kind_id {
	URN_CK_URNICD,
	URN_CK_EAL,
	URN_CK_LIMITS,
	URN_CK_CONGESTION,
	URN_CK_ENGINE,
	URN_CK_PORT,
	URN_CK_SWITCH,
	URN_CK_ADAPTER,
	URN_CONFIG_KINDS,
};

struct urn_config_kind {
	const char *name; /* the section's */
	const char *arg;  /* word behind the name: "N", "NAME"; NULL: none, and there is one section only */
	unsigned int max; /* most sections of this kind */
	size_t size;	  /* bytes of its object */
	const struct urn_config_key *key;
	unsigned int keys;
	const char *help;
};

/* By enum urn_config_kind_id. */
extern const struct urn_config_kind urn_config_kinds[URN_CONFIG_KINDS];

/* The configuration that is being read. */
struct urn_config_ctx {
	struct urn_config *cfg;
	const struct urn_ini *ini;
	struct urn_config_errors *errors;
	/* Sections of objects, by the objects' index; NULL: not in the file. */
	const struct urn_ini_section *only[URN_CONFIG_KINDS]; /* kinds without a name */
	const struct urn_ini_section *engine[URN_ABI_MAX_ENGINES];
	const struct urn_ini_section *port[URN_CONFIG_MAX_PORTS];
	const struct urn_ini_section *sw[URN_CONFIG_MAX_SWITCHES];
	const struct urn_ini_section *adapter[URN_CONFIG_MAX_PORTS];
	bool no_room; /* out of memory */
	/* Outside a file: gets the reason why a value is refused; the caller's. In a file: NULL. */
	struct urn_err *why;
};

/* Report a mistake in a line of the file. */
#define urn_config_say(ctx, line, ...) \
	urn_config_error((ctx)->errors, (ctx)->cfg->file, line, __VA_ARGS__)

/* ---- config_value.c */

/*
 * Take a value into the field of an object (NULL: only check the value). returns:
 * 0, or -1: reported
 */
int urn_config_take(struct urn_config_ctx *ctx, const struct urn_config_key *key,
		    const struct urn_ini_entry *entry, void *obj);
/* Set all fields of an object to the table's presets. */
void urn_config_preset(struct urn_config_ctx *ctx, const struct urn_config_kind *kind, void *obj);
/*
 * Find the next word of a list with commas or blanks between; *at is moved behind
 * it. returns: the word's length, 0: no more words
 */
size_t urn_config_word(const char **at, const char **word);

/* ---- config_text.c */

/*
 * Write a value in a file's form: 65536 as 64k; 4000000 ns as 4ms; 40000000 bit/s as 40M; "a, b or
 * c". returns: out
 */
const char *urn_config_number_text(uint64_t n, char out[32]);
const char *urn_config_time_text(uint64_t ns, char out[32]);
const char *urn_config_rate_text(uint64_t bps, char out[32]);
void urn_config_words_text(const char *const *words, char *out, size_t size);
void urn_config_features_text(const struct urn_features *list, char *out, size_t size);

/* ---- config_help.c */

/* The reference in doc/reference/urnicd.md, as Markdown. A test calls it, which makes the page and holds it to this;
 * it stands here because it reads the private table of keys. */
void urn_config_reference(FILE *out);

/* ---- config_device.c */

/* Check that pmd_glue could open such a device, by its text alone. returns: 0, or -1 with *err */
int urn_config_device_check(const char *device, struct urn_err *err);
/*
 * True when two devices are memifs that DPDK does not let one process have: of the same socket, id
 * and role. why: says these of the first
 */
bool urn_config_memif_clash(const char *device, const char *other, char *why, size_t size);
/* The device's name in one way of writing: two ports cannot share it. */
void urn_config_device_id(const char *device, char *out, size_t size);
/* Check that EAL arguments do not repeat what keys configure. returns: 0, or -1 with *err */
int urn_config_eal_check(const char *extra, struct urn_err *err);

/* ---- config_limits.c */

/* Check [limits], and fill in limits that are not given. */
void urn_config_limits(struct urn_config_ctx *ctx);

/* ---- config_check.c, config_refer.c, config_switch.c */

/* Check everything that depends on more than one line. */
void urn_config_check(struct urn_config_ctx *ctx);
/* Find the port or switch, and the engines, of each adapter. */
void urn_config_refer(struct urn_config_ctx *ctx);
/* Take the neighbours of adapters; after urn_config_check(). (config_neigh.c) */
void urn_config_neighbours(struct urn_config_ctx *ctx);
/* Take the routes of adapters; after urn_config_check(). (config_route.c) */
void urn_config_routes(struct urn_config_ctx *ctx);
/*
 * Parse the address of a station, "10.0.0.1" or "10.0.0.1/24". v6: of IPv6. bits: set to the
 * length, 0: none was given. returns: NULL, or the rule that the text breaks. (config_route.c)
 */
const char *urn_config_parse_station(const char *text, bool v6, uint8_t addr[16], uint8_t *bits);
/* Fill in the plugs of switches; after urn_config_refer(). */
void urn_config_plug(struct urn_config_ctx *ctx);
/*
 * Check switches' numbers for lossless priorities, take their maps, and give them to the adapters
 * on them. (config_lossless.c)
 */
void urn_config_lossless(struct urn_config_ctx *ctx);
/* Parse a list of numbers from 0 to max (63 at most), "0,2-4", into a mask. returns: 0, or -1: bad,
 * or empty */
int urn_config_parse_set(const char *text, unsigned int max, uint64_t *set);
/* True when a text is a list of at least one address. */
bool urn_config_are_gids(const char *text);
/* Line of a key in a section, or of the section when the key is not there. */
unsigned int urn_config_line(const struct urn_ini_section *section, const char *key);
/* Index of the port or switch with a name of n bytes, or -1. */
int urn_config_find_port(const struct urn_config *cfg, const char *name, size_t n);
int urn_config_find_switch(const struct urn_config *cfg, const char *name, size_t n);
/* Report that there is no such port or switch (kind), and the name that may be meant. */
void urn_config_say_missing(struct urn_config_ctx *ctx, unsigned int line,
			    enum urn_config_kind_id kind, const char *name, size_t n);

#endif
