/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The schema of [switch] for programs that configure switches without a file: the same keys,
 * names, directions and trees as in a file, with the same limits.
 */
#ifndef URN_CONFIG_SWITCH_KEYS_H
#define URN_CONFIG_SWITCH_KEYS_H

#include "config/config.h"

/* Set all fields that keys of [switch] have to the keys' presets; all others to zero. */
void urn_config_switch_init(struct urn_config_switch *sw);
/*
 * Take a key with a field: learning, age, kmin, lossless and the like. value: as in a file. returns: 0,
 * or -1 with *err, the part of a sentence that says what to give instead
 */
int urn_config_switch_take(struct urn_config_switch *sw, const char *key, const char *value,
			   struct urn_err *err);

/*
 * Give the frames with some DSCPs, or else code points of tags, a priority. priority, list: as in a
 * file, "3" and "26,48-55". returns: 0, or -1: bad, and nothing changed
 */
int urn_config_map(struct urn_classify_map *map, bool dscp, const char *priority, const char *list);

/* True when s is a name that a section, or a port of a switch, may have. n: its bytes */
bool urn_config_is_name(const char *s, size_t n);
/* Parse a unicast MAC address, "02:00:00:00:00:01". n: its bytes. returns: 0 or -1 */
int urn_config_parse_mac(const char *s, size_t n, uint8_t mac[6]);
/* Parse an IP address, IPv4 or IPv6, into a GID. n: its bytes. returns: 0 or -1 (config_neigh.c) */
int urn_config_parse_gid(const char *text, size_t n, uint8_t gid[16]);
/*
 * Take the direction off the name of an impaired port: NAME, NAME.in or NAME.out. n: bytes of who;
 * way: by enum urn_switch_dir, true when frames of that way are meant. returns: the name's bytes
 */
size_t urn_config_direction(const char *who, size_t n, bool way[2]);

/* Switches that are joined by links, so that links make no loop. */
struct urn_config_tree {
	unsigned int root[URN_CONFIG_MAX_SWITCHES]; /* by switch: one switch of those it is joined
						       with */
};

/* Begin with no links. */
void urn_config_tree_init(struct urn_config_tree *t);
/* Join two switches by a link. returns: true, or false when they are joined already: a loop */
bool urn_config_tree_join(struct urn_config_tree *t, unsigned int a, unsigned int b);

#endif
