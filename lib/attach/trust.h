/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The users whom a program takes for its dataplane. A dataplane gets descriptors by which it can
 * read and write all memory of the program: so the program asks the kernel who listens before it
 * says anything. A program trusts
 *
 *   - root,
 *   - the program's own user,
 *   - the user to whom root gave the folder of the machine's dataplane (/run/urnic),
 *   - users that URNIC_TRUST names.
 */
#ifndef URN_ATTACH_TRUST_H
#define URN_ATTACH_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * True when a list names a user.
 *
 * names: names and numbers of users with commas between them; NULL: none
 * returns: -1 with errno and this thread's error text: an entry is no user's
 */
int urn_trust_named(const char *names, uid_t uid);

/*
 * The user to whom root gave a folder: its owner, if nobody but root can have made the folder, put
 * a link in its place, or given it away.
 *
 * path: absolute, of the folder
 * returns: false: there is no such folder, or others than root may change what lies above it
 */
bool urn_trust_given(const char *path, uid_t *owner);

/*
 * True when a user of the system has this number in the program's user namespace: users who have
 * none are all shown by the same one (65534).
 *
 * map: path of the namespace's table, /proc/self/uid_map
 */
bool urn_trust_mapped(const char *map, uid_t uid);

/*
 * Check who listens at the other end of a connection.
 *
 * fd: connected; path: where, for the error text
 * returns: 0, or an errno value with its text; EACCES: a user whom the program does not trust;
 * EINVAL: URNIC_TRUST names no user
 */
int urn_trust_listener(int fd, const char *path);

#endif
