/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address space of another process (architecture rule 3).
 *
 * What a program's memory is reached through is a descriptor of its own
 * /proc/self/mem that it opened and handed over. The kernel bound that to the
 * address space of the moment it was opened: when the program ends or executes
 * another, the descriptor reads and writes nothing any more, so neither a pid
 * that is used again nor an exec can lead a write, or a read, astray. A fork
 * leaves it with the parent.
 *
 * Nothing is written by pid. Larger reads go by process_vm_readv(), twice as fast
 * and straight into frames, where the kernel permits it (the same user, no
 * restriction of ptrace()) and the client has said where it mapped memory that it
 * shares with this process: that is how it is told afterwards whose bytes they
 * were (direct.c).
 *
 * The descriptor is as good as its opener's rights: an unprivileged dataplane
 * works for clients of its own uid and of others, and no ptrace right or
 * capability is asked for. Only memory that a userfaultfd supplies needs more
 * (worker.c). What hides /proc/PID (hidepid, another PID namespace) hides the
 * client, and it is refused.
 *
 * Whatever is done with a space can last as long as its process likes, which may
 * stall its memory, its address space and its map: never done with a lock held, nor
 * in a thread that others wait for.
 */
#ifndef URN_MEMORY_SPACE_H
#define URN_MEMORY_SPACE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a client hands over; -1: not there. */
struct urn_space_fds {
	int mem;   /* of its /proc/self/mem, open for reading and writing */
	int maps;  /* of its /proc/self/maps, open for reading */
	int pidfd; /* of the client; urn_space_create(): of the process `pid` */
	pid_t pid; /* of the client, as this process sees it */
};

struct urn_space;

/*
 * Make the space of a client. Checked: pidfd is of pid, which lives; mem and
 * maps are /proc/PID/mem and /proc/PID/maps of the very process, by device and
 * inode and not by name, and mem is open for both and refers to an address
 * space that is still in use. On success the space owns the three descriptors,
 * on failure they stay the caller's. The caller holds the one reference.
 *
 * returns 0; EBADF: a descriptor is not what it should be; ESRCH: the process
 * has ended, or executed another program; ENOMEM; with a sentence in why[len]
 */
int urn_space_create(const struct urn_space_fds *fds, struct urn_space **space, char *why,
		     size_t len);
/* Count a user in or out; any thread. The last closes it and ends its worker, which has no work. */
void urn_space_hold(struct urn_space *space);
/* Whose it is, said before its first region: what all spaces of a user have under way is bounded. */
void urn_space_set_user(struct urn_space *space, uid_t uid);
void urn_space_release(struct urn_space *space);

/*
 * The CPUs that workers of this process may run on, from now on; before, all that
 * the kernel allows. Before the first space is made.
 */
void urn_space_set_cpus(const cpu_set_t *cpus);

/*
 * Let larger reads go by process number. here: 16 bytes, aligned to 8, that this
 * process shares with that of the space, mapped as long as there are regions;
 * there: their address in that process as it says, which nobody has to believe.
 * Once; what is said later is not listened to. Control
 */
void urn_space_mark(struct urn_space *space, uint64_t *here, uint64_t there);

struct urn_space_stats {
	uint64_t direct;  /* calls that read by process number */
	uint64_t refused; /* that the kernel refused, or whose bytes were not believed: by
			     descriptor since */
};

void urn_space_stats(const struct urn_space *space, struct urn_space_stats *out);

/* Is the address space still in use, by any process? */
bool urn_space_alive(const struct urn_space *space);

/*
 * May `length` bytes at `addr` of the space be read (and written)? The
 * descriptor reads and writes against page protections, so this is asked when
 * a region is registered: all of it mapped, readable, for `write` writable, and
 * ordinary memory - neither a mapping of the kernel's own ([vvar], [vsyscall],
 * [vdso]) nor of a device. What the program changes afterwards is its own
 * affair, as with an adapter that has pinned the pages.
 *
 * returns 0; EFAULT: not so, EIO: the map can't be read; with a sentence in why[len]
 */
int urn_space_check(const struct urn_space *space, uint64_t addr, uint64_t length, bool write,
		    char *why, size_t len);

/*
 * Open the descriptors of this very process: what a client does, and a
 * dataplane that treats its own memory as foreign. returns 0 or an errno value
 */
int urn_space_open_self(struct urn_space_fds *fds);
void urn_space_close_fds(struct urn_space_fds *fds);

#endif
