/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory: protection domains, regions, windows, and the executor of the
 * transport's gather, place and atomic operations.
 *
 * The transport never touches a program's memory (architecture rule 1). The transport checks a
 * key with urn_mem_check(), fills a burst of struct urn_memop and hands the burst to
 * urn_memx_execute(). Each operation is answered at once (mapped memory) or later through
 * urn_memx_poll() (foreign memory, which a worker thread of its space reads and writes:
 * foreign.h; in tests, memory with a seeded delay).
 *
 * Keys are a 24-bit index (the adapter's) above an 8-bit key (the consumer's;
 * FO-2). lkey == rkey for regions. Index 0 is never given out. Keys of an adapter are drawn at
 * random.
 *
 * One struct urn_mem per adapter. Control calls (alloc, register, ...) are
 * serialised by the caller; checks run at the same time on any engine and
 * read an entry through its sequence count. Binds and invalidations come from
 * the engine of the QP.
 */
#ifndef URN_MEMORY_MEM_H
#define URN_MEMORY_MEM_H

#include "abi/control.h"
#include "wire/pkt.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct urn_mem;
struct urn_memx;
struct urn_region;
struct urn_space;

enum urn_mem_error {
	URN_MEM_OK = 0,
	URN_MEM_BAD_KEY,  /* no such key, unbound, of another PD, or of another QP */
	URN_MEM_RANGE,    /* outside the region */
	URN_MEM_ACCESS,   /* the region does not allow this access */
	URN_MEM_WINDOW,   /* a bind or invalidation that is not allowed */
};

/* ---- control */

/*
 * max_keys: regions and windows together, at most 2^24 - 1. Tables grow with
 * use, about 88 bytes a key. NULL: no memory, or max_keys is too large.
 */
struct urn_mem *urn_mem_create(uint32_t max_keys, uint32_t max_pds);
void urn_mem_destroy(struct urn_mem *mem);

/*
 * Draw keys at random from here on (base/draw.h), so that nobody learns from some keys those of
 * others: before any region or window is made. Without this call indices and keys count up. seed:
 * 0: the kernel's random numbers; else a sequence, for tests. returns: 0, or an errno value: the
 * kernel has no random numbers
 */
int urn_mem_draw_keys(struct urn_mem *mem, uint64_t seed);

/*
 * Count the stores of placements into regions that are registered from here on (stores.h): before
 * any region is. Regions take 1 KiB more each.
 */
void urn_mem_count_stores(struct urn_mem *mem);

/* returns: 0, or ENOMEM: no memory or all max_pds in use; PD handles start at 1 */
int urn_mem_alloc_pd(struct urn_mem *mem, uint32_t *pd);
/* returns: 0; EBUSY while regions, windows or counted users (urn_mem_pd_hold) remain; EINVAL: no such PD */
int urn_mem_dealloc_pd(struct urn_mem *mem, uint32_t pd);
/* Count a QP, SRQ or AH of a PD in or out. returns: 0, or EINVAL: no such PD */
int urn_mem_pd_hold(struct urn_mem *mem, uint32_t pd);
void urn_mem_pd_release(struct urn_mem *mem, uint32_t pd);

/*
 * Register `length` bytes at `base` (as mapped in this process), which keys
 * address as iova..iova+length. length 0 is allowed and reaches nothing.
 * Remote write or atomic access without local write is EINVAL (IBTA 10.6.3.1).
 * ZERO_BASED: iova is 0. EINVAL as well: no such PD, an access bit that is
 * neither known nor optional (bits 20 to 29), base NULL with a length, a last
 * byte beyond 2^64. ENOMEM: no memory or all max_keys in use.
 */
int urn_mem_reg_mr(struct urn_mem *mem, uint32_t pd, void *base, uint64_t length, uint64_t iova,
		   uint32_t access, uint32_t *key);
/*
 * The same, in two steps, for `length` bytes at `addr` of another process's memory (space.h). The region holds
 * a reference to the space, and starts the worker of the space. EFAULT: not all bytes are
 * mapped, readable and, if the rights ask for writing, writable memory (urn_space_check());
 * EAGAIN: no thread for the worker. Every error has a sentence in why[len].
 * _check tells whether the memory may be registered so; the
 * other process can make that call as slow as it likes, and the call needs no lock of the caller.
 * _add makes the region without that check.
 */
int urn_mem_check_foreign(const struct urn_space *space, uint64_t addr, uint64_t length, uint64_t iova,
			  uint32_t access, char *why, size_t len);
int urn_mem_add_foreign(struct urn_mem *mem, uint32_t pd, struct urn_space *space, uint64_t addr,
			uint64_t length, uint64_t iova, uint32_t access, uint32_t *key, char *why,
			size_t len);
/*
 * The address in its process of `addr`, which lies in a region that a check gave. returns: false
 * for a region of mapped memory, or of another space
 */
bool urn_mem_foreign_at(const struct urn_region *region, const struct urn_space *space,
			uint64_t addr, uint64_t *to);
/*
 * Take a region away in two steps, so that engines can finish operations under way: _kill makes
 * every later check fail (EBUSY while windows are bound to the region, EINVAL: no such lkey); _free
 * forgets the region once no engine holds operations on it (urn_memx_holds).
 */
int urn_mem_kill_mr(struct urn_mem *mem, uint32_t key, struct urn_region **region);
void urn_mem_free_mr(struct urn_mem *mem, struct urn_region *region);
/* Take back a kill. key: of the region that was killed */
void urn_mem_revive_mr(struct urn_mem *mem, struct urn_region *region, uint32_t key);
/*
 * In place of two _free: the memory, domain and rights of one killed region are another one's from
 * now on, whose key works again.
 */
void urn_mem_replace_mr(struct urn_mem *mem, struct urn_region *region, uint32_t key,
			struct urn_region *by);

/*
 * type 1 or 2. The key of a fresh window reaches nothing. EINVAL: no such PD
 * or type; ENOMEM: no memory or all max_keys in use.
 */
int urn_mem_alloc_mw(struct urn_mem *mem, uint32_t pd, int type, uint32_t *rkey);
/*
 * Take a window away, bound or not, in steps, like a region. Only the index of rkey counts: its low
 * 8 bits belong to the consumer, which changes them. EINVAL: no such window. _kill makes every later check fail; where dead->qpn names
 * the QP that the window is bound to, the engine of that QP takes the window off the QP's list
 * (_unlist); _free forgets the window once everything accepted through it is done.
 */
struct urn_mem_dead {
	struct urn_region *window;
	struct urn_region *mr; /* region that the window was bound to; NULL: none. Counts the window until _free */
	uint32_t key;          /* last key of the window */
	uint32_t qpn;          /* type 2, bound: the QP; else 0 */
};
int urn_mem_kill_mw(struct urn_mem *mem, uint32_t rkey, struct urn_mem_dead *dead);
void urn_mem_unlist_mw(struct urn_mem *mem, const struct urn_mem_dead *dead, uint32_t *windows);
void urn_mem_free_mw(struct urn_mem *mem, const struct urn_mem_dead *dead);

/* ---- fast path */

/*
 * Check whether `len` bytes at `addr` may be used under `key`. access: all the bits of enum
 * urn_abi_access that are needed; 0 for a local read. qpn matters for type 2B windows only.
 * remote: 0 for an lkey (windows are refused), 1 for an rkey. len 0 still checks key and
 * access, at any address; callers skip the check where none is needed. The key is judged first,
 * then access, then range. On success *region is valid until the operation was answered: for a
 * window *region is the region that the window is bound to, which has the same addresses. Never
 * waits: a key that is being made, bound or taken away at this moment is BAD_KEY.
 */
enum urn_mem_error urn_mem_check(struct urn_mem *mem, uint32_t key, uint32_t pd, uint32_t qpn,
				 uint64_t addr, uint64_t len, uint32_t access, int remote,
				 struct urn_region **region);

/*
 * Bind a window (type 1: type == 1; type 2: type == 2, window must be free of a binding).
 * mw_rkey is the window's present rkey; for type 2 its low 8 bits are ignored, because the
 * consumer need not tell its library. new_rkey has the window's index; its low 8 bits are the
 * consumer's for type 2; for type 1 too (lib/ picks the next). The region must allow MW_BIND,
 * be of the same PD, cover the range, not be zero based, and allow local write if the window
 * allows remote write or atomics. Only the remote rights in `access` count. length 0 unbinds a
 * type 1 window, whatever mr_lkey and addr are; a type 2 window is freed by invalidation only
 * (IBTA o10-37.2.40). Zero-based windows are not supported, because a check returns the
 * region's addresses.
 *
 * returns: BAD_KEY: no such window or region in this PD; ACCESS: the region allows no windows,
 * or not with these rights; RANGE; WINDOW: wrong type or index, bound already (type 2), type 2
 * with length 0, zero based, or another engine is changing it. A refused bind changes nothing.
 *
 * b: changes besides the window; NULL: nobody keeps a list, and the old region need not be
 * held.
 */
struct urn_mem_binding {
	uint32_t *windows;      /* in: list of type 2 windows of the QP, whose engine calls */
	struct urn_region *old; /* out, when OK: region of the previous binding, NULL: none. That region counts the
				 * window, and exists, until urn_mem_let_go() */
};
enum urn_mem_error urn_mem_bind(struct urn_mem *mem, int type, uint32_t mw_rkey, uint32_t new_rkey,
				uint32_t mr_lkey, uint64_t addr, uint64_t length, uint32_t access,
				uint32_t pd, uint32_t qpn, struct urn_mem_binding *b);
/*
 * Invalidate the binding of a type 2 window (local or remote). Regions and type 1 windows:
 * URN_MEM_WINDOW. Unbound or other key: URN_MEM_BAD_KEY. b: see urn_mem_bind()
 */
enum urn_mem_error urn_mem_invalidate(struct urn_mem *mem, uint32_t rkey, uint32_t pd, uint32_t qpn,
				      struct urn_mem_binding *b);
/* A binding that was counted before has ended; NULL: there was none. */
void urn_mem_let_go(struct urn_mem *mem, const struct urn_region *mr);
/*
 * A QP goes away, or is reset: unbind its type 2 windows, at most `max` in a call. Called by the
 * QP's engine, again and again until *windows is 0.
 */
void urn_mem_unbind_some(struct urn_mem *mem, uint32_t *windows, uint32_t max);

/*
 * Engines that use one struct urn_mem tell each other when a turn of theirs begins, so that a
 * thread that took a key away knows that no engine has a check under that key in hand any more.
 * Nothing is written but after a question. engine: index, below URN_ABI_MAX_ENGINES
 */
void urn_mem_join(struct urn_mem *mem, unsigned int engine, const struct urn_memx *x);
/* Ask all engines for their next turn. returns: `asked` for urn_mem_turned() */
uint32_t urn_mem_ask_turn(struct urn_mem *mem);
/*
 * True when the engine has begun a turn since that question. *x: the engine's executor; true with
 * NULL: there is no such engine.
 */
bool urn_mem_turned(const struct urn_mem *mem, unsigned int engine, uint32_t asked,
		    const struct urn_memx **x);

/* ---- executing */

enum urn_memop_kind {
	URN_MEMOP_GATHER,    /* region -> frame */
	URN_MEMOP_PLACE,     /* frame -> region */
	URN_MEMOP_CMP_SWAP,  /* 8 bytes at addr: compare operand[0], swap operand[1]; old value to
				operand[0] */
	URN_MEMOP_FETCH_ADD, /* 8 bytes at addr: add operand[0]; old value to operand[0] */
	URN_MEMOP_FENCE,     /* nothing; answered when all before it on this region are done. len: 1
				byte */
	URN_MEMOP_GATHER_ICRC, /* region -> frame, which is then whole but for the ICRC: written as
				* well. Mapped memory only; m: a packet fresh from its pool */
};

enum urn_memop_status {
	URN_MEMOP_DONE,
	URN_MEMOP_FAILED,
	URN_MEMOP_PENDING,   /* the executor took a copy and will answer by urn_memx_poll() */
};

struct urn_memop {
	struct urn_region *region; /* from urn_mem_check() */
	uint64_t addr;             /* checked address (iova) */
	uint8_t *frame;            /* bytes in the mbuf; atomics: struct urn_abi_atomic to log in, or NULL */
	struct rte_mbuf *m;        /* owner of the frame; atomics use urn_pkt(m)->record.operand */
	uint32_t len;              /* bytes */
	uint8_t kind;              /* enum urn_memop_kind */
	uint8_t status;            /* enum urn_memop_status, set by the executor */
	uint16_t tag;              /* the submitter's; kept */
};

/* The executor of one engine (and adapter). */
struct urn_memx;

struct urn_memx_config {
	uint32_t pending; /* deferred operations that may be under way; further ones are done at once */
	uint32_t foreign; /* operations on foreign memory under way that close gates; 0: 1024 */
	uint32_t max_pds; /* max_pds of the struct urn_mem; 0: no gates */
	uint64_t delay_seed;   /* 0: answer at once; else delay operations, for tests */
	uint32_t delay_percent; /* percent of operations that are answered later */
	uint32_t delay_polls;  /* polls until the answer, at most */
	uint32_t fail_per_million; /* operations of a million that fail, for tests */
	unsigned int engine;	   /* index of the engine; used with count_stores */
	bool count_stores;	   /* count the stores of placements (urn_mem_count_stores()) */
};

/*
 * Gates: closed for protection domains whose foreign memory has too many operations under way. A
 * caller that can leave packets and requests of such a domain for later should; operations that are
 * handed over all the same are taken. pd[] by handle, 0 or 1; read between calls of the executor.
 * While any gate is closed, urn_memx_gated() also finds domains without an operation so far.
 */
struct urn_memx_gate {
	uint32_t closed; /* number of domains with a closed gate */
	uint32_t users;	 /* number of users whose clients together have too much under way */
	uint32_t pds;	 /* highest handle */
	uint32_t few; /* operations that one QP may have under way besides incoming ones: at least 1 */
	uint8_t *pd;	 /* 1: closed */
};

struct urn_memx *urn_memx_create(const struct urn_memx_config *cfg);
void urn_memx_destroy(struct urn_memx *x);
/*
 * Execute n operations; each status is set. Operations that touch the same bytes take effect in
 * the order given, over all calls; answers of PENDING ones come in any order, once each. An
 * atomic on an address that is not 8-byte aligned in its process, or an unknown kind, is
 * FAILED. A failed operation changed nothing; on foreign memory it may have written the bytes
 * before the one that can't be written. Operations on foreign memory are always PENDING, never
 * wait for those on mapped memory, and take effect in order among those of their space.
 * returns: how many are not DONE
 */
unsigned int urn_memx_execute(struct urn_memx *x, struct urn_memop *ops, unsigned int n);
/* Take up to max answers of PENDING operations. returns: their number */
unsigned int urn_memx_poll(struct urn_memx *x, struct urn_memop *ops, unsigned int max);
/* A protection domain goes away, with nothing under way on it: its gate is open from here on. */
void urn_memx_forget_pd(struct urn_memx *x, uint32_t pd);
/*
 * True when the gate of a domain is closed, or that of the client or of the user whose foreign
 * memory is registered there. pd: of an existing QP, in `mem`. In the engine's thread
 */
bool urn_memx_gated(const struct urn_memx *x, const struct urn_mem *mem, uint32_t pd);
/* Number of operations under way, on any region (NULL) or on one. */
unsigned int urn_memx_holds(const struct urn_memx *x, const struct urn_region *region);
/*
 * A point among the operations that an executor was given. The point is passed once all operations
 * before it on the memory of a region are done, and at once if there are none. Any thread may look,
 * while the region exists; an operation that was checked and not yet given to the executor is not
 * before the point.
 */
struct urn_memx_mark {
	uint32_t lane, list;
};
void urn_memx_mark(const struct urn_memx *x, const struct urn_region *region,
		   struct urn_memx_mark *mark);
bool urn_memx_passed(const struct urn_memx *x, const struct urn_region *region,
		     const struct urn_memx_mark *mark);
/* True when a worker that has operations of this executor runs on the caller's core. */
bool urn_memx_crowded(const struct urn_memx *x);
/* The gate of this executor, valid as long as the executor is. */
const struct urn_memx_gate *urn_memx_gate(const struct urn_memx *x);

#endif
