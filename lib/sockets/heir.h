/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets that outlive exec(). The descriptor of a socket is the kernel's, so exec() keeps it; the
 * twin beside it ends with the old program. So the old program writes the names of its twins in a
 * table, a file without a name whose descriptor the new program finds by URNIC_SOCKETS_EXEC.
 *
 * The table tells sockets, not descriptors: the kernel's cookie of a socket is the same under
 * every descriptor, and nobody else has it. The new program compares its own descriptors with the
 * table; so dup2() in a child of vfork(), close-on-exec and the file actions of posix_spawn() need
 * no thought. Options are read from the kernel's socket, which has them all.
 *
 * The writer changes no memory but its stack, and takes no lock: exec() is allowed in a child of
 * vfork(), which runs in its parent's memory, and in handlers of signals. The reader trusts
 * nothing.
 */
#ifndef URN_SOCKETS_HEIR_H
#define URN_SOCKETS_HEIR_H

#include "sockets/twin.h"

#include <assert.h>

/* The variable of the new program that names the table's descriptor. */
#define URN_HEIR_VARIABLE "URNIC_SOCKETS_EXEC"

/* Descriptors that a table tells at most; bytes of an environment's variable; variables of an
 * environment that finds room on the stack. */
enum { URN_HEIR_MAX = 4096, URN_HEIR_TEXT = 40, URN_HEIR_ENV = 4096 };

/* The table's first bytes. */
static const char urn_heir_magic[8] = {'u', 'r', 'n', 'h', 'e', 'i', 'r', '1'};

/* Bits of an entry: the urnic socket has a port, has a peer; the kernel's socket may get
 * datagrams; shutdown() has ended a direction. */
enum {
	URN_HEIR_BOUND = 1,
	URN_HEIR_CONNECTED = 2,
	URN_HEIR_KERNEL = 4,
	URN_HEIR_SHUT_RD = 8,
	URN_HEIR_SHUT_WR = 16,
	URN_HEIR_BITS = 31
};

struct urn_heir_head {
	char magic[8];	/* urn_heir_magic */
	uint32_t count; /* entries behind the head */
	uint32_t pid;	/* the process that becomes the new program, if its ports end; 0: none */
};
static_assert(sizeof(struct urn_heir_head) == 16, "part of the table");

struct urn_heir_entry {
	uint64_t cookie; /* the kernel's socket: SO_COOKIE; never 0 */
	uint32_t family; /* AF_INET or AF_INET6 */
	uint32_t flags;	 /* URN_HEIR_BOUND and so on */
	uint8_t local_gid[16], peer_gid[16];
	uint16_t local_port, peer_port;
	uint32_t zero;
};
static_assert(sizeof(struct urn_heir_entry) == 56, "part of the table");

/*
 * Write the table of this program's sockets. all: also those whose descriptors close at exec();
 * returns: the table's descriptor; -1: there is none, and nothing to tell
 */
int urn_heir_write(bool all);
/* Make twins of the sockets that a table tells and this program has. fd: any descriptor; returns:
 * true: it was a table */
bool urn_heir_read(int fd);
/* Count the variables of an environment, which may be NULL. */
size_t urn_heir_env_count(char *const envp[]);
/* Write an environment with the variable for a table. env: room for two more than envp has; text:
 * the variable's, of URN_HEIR_TEXT bytes */
void urn_heir_env(char *env[], char text[URN_HEIR_TEXT], char *const envp[], int fd);

#endif
