/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address space of another process (architecture rule 3).
 *
 * A program's memory is reached through a descriptor of its own /proc/self/mem, which the program
 * opened and handed over. The kernel bound the descriptor to the address space of that moment: when
 * the program ends or executes another, the descriptor reads and writes nothing any more, so
 * neither a reused pid nor an exec can lead a write, or a read, astray. After a fork the descriptor
 * still means the parent.
 *
 * Nothing is written by pid. Larger reads go by process_vm_readv(), twice as fast and straight into
 * frames, where the kernel permits that (the same user, no restriction of ptrace()) and the client
 * has said where it mapped memory that it shares with this process: the shared memory tells
 * afterwards whose bytes were read (direct.c).
 *
 * The descriptor has its opener's rights: an unprivileged dataplane works for clients of its own
 * uid and of others, and asks for no ptrace right or capability. Only memory that a userfaultfd
 * supplies needs more (worker.c). A client whose /proc/PID is hidden (hidepid, another PID
 * namespace) is refused.
 *
 * Any operation on a space can last as long as its process likes, because the process may stall its
 * memory, its address space and its map. So do none with a lock held, nor in a thread that others
 * wait for.
 */
#ifndef URN_MEMORY_SPACE_H
#define URN_MEMORY_SPACE_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Descriptors that a client hands over; -1: not there. */
struct urn_space_fds {
	int mem;   /* the client's /proc/self/mem, open for reading and writing */
	int maps;  /* the client's /proc/self/maps, open for reading */
	int pidfd; /* pidfd of the client; urn_space_create(): of the process `pid` */
	pid_t pid; /* the client's pid, in this process's numbers */
};

struct urn_space;

/*
 * Make the space of a client. Checked: pidfd belongs to pid, which lives; mem and maps are
 * /proc/PID/mem and /proc/PID/maps of that very process, by device and inode and not by name,
 * and mem is open for reading and writing and refers to an address space that is still in use.
 * On success the space owns the three descriptors, on failure the caller still does. The caller
 * holds the one reference.
 *
 * returns 0; EBADF: a descriptor is not what it should be; ESRCH: the process
 * has ended, or executed another program; ENOMEM; with a sentence in why[len]
 */
int urn_space_create(const struct urn_space_fds *fds, struct urn_space **space, char *why,
		     size_t len);
/*
 * Count a reference in or out; any thread. The last one closes the space and ends its worker, which
 * has no work then.
 */
void urn_space_hold(struct urn_space *space);
/* Set the user of a space, before its first region: the operations under way of all spaces of a user are bounded. */
void urn_space_set_user(struct urn_space *space, uid_t uid);
void urn_space_release(struct urn_space *space);

/*
 * Set the CPUs that workers of this process may run on, from now on; the default is all that the
 * kernel allows. To be called before the first space is made.
 */
void urn_space_set_cpus(const cpu_set_t *cpus);

/*
 * Let larger reads go by process number. here: 16 bytes, aligned to 8 bytes, that this process
 * shares with the process of the space, mapped as long as there are regions; there: their address
 * in that process as the process says, which is not trusted. Only the first call counts. Control
 */
void urn_space_mark(struct urn_space *space, uint64_t *here, uint64_t there);

/*
 * Let the client take its memory away: once the word is not 0, nothing of the client's is written
 * any more, and operations fail. left: in memory that the process of the space shares, mapped as
 * long as there are regions. Control, before the first region
 */
void urn_space_leave_by(struct urn_space *space, const _Atomic uint32_t *left);

struct urn_space_stats {
	uint64_t direct;  /* calls that read by process number */
	uint64_t refused; /* calls that the kernel refused, or whose bytes were not believed: by descriptor since */
};

void urn_space_stats(const struct urn_space *space, struct urn_space_stats *out);

/* True when any process still uses the address space. */
bool urn_space_alive(const struct urn_space *space);

/*
 * Check whether `length` bytes at `addr` of the space may be read (and written). The descriptor
 * ignores page protections, so this is checked when a region is registered: all bytes are
 * mapped, readable, for `write` writable, and ordinary memory - neither a mapping of the
 * kernel's own ([vvar], [vsyscall], [vdso]) nor of a device. Later changes are the program's
 * own affair, like with an adapter that has pinned the pages.
 *
 * returns: 0; EFAULT: not allowed, or the map can't be read; with a sentence in why[len]
 */
int urn_space_check(const struct urn_space *space, uint64_t addr, uint64_t length, bool write,
		    char *why, size_t len);

/*
 * Open the descriptors of this very process: for a client, and for a dataplane that treats its own
 * memory as foreign. returns: 0 or an errno value
 */
int urn_space_open_self(struct urn_space_fds *fds);
void urn_space_close_fds(struct urn_space_fds *fds);

#endif
