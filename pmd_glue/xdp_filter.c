/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/xdp_filter.h"
#include "pmd_glue/bpf.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef URN_XDP_OBJECT
#include "pmd_glue/xdp_object.h" /* made by the build: the compiled program, urn_xdp_object[] */
#endif

#define NAME_(name) #name
#define NAME(name) NAME_(name)

/* ---- the program's file */

static char object_path[32]; /* "": none; written once, by object_make() */

#ifdef URN_XDP_OBJECT
static pthread_once_t object_once = PTHREAD_ONCE_INIT;

/* The PMD wants a file: one in memory, whatever becomes of the installation's files. */
static void
object_make(void)
{
	int fd = memfd_create("urnic-xdp-filter", MFD_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, urn_xdp_object, sizeof(urn_xdp_object)) != (ssize_t)sizeof(urn_xdp_object)) {
		close(fd);
		return;
	}
	snprintf(object_path, sizeof(object_path), "/proc/self/fd/%d", fd);
}
#endif

const char *
urn_xdp_filter_path(void)
{
#ifdef URN_XDP_OBJECT
	pthread_once(&object_once, object_make);
#endif
	return object_path[0] != '\0' ? object_path : NULL;
}

/* ---- the loaded program */

/* Note a map of ours by its name. */
static void
map_note(struct urn_xdp_filter *f, int fd)
{
	char name[16];

	if (urn_bpf_map_name(fd, name) != 0)
		return;
	if (strcmp(name, NAME(URN_FILTER_MAP_ADDRESSES)) == 0)
		f->addresses = fd;
	else if (strcmp(name, NAME(URN_FILTER_MAP_COUNTS)) == 0)
		f->counts = fd;
	else if (strcmp(name, NAME(URN_FILTER_MAP_VLAN)) == 0)
		f->vlan = fd;
}

int
urn_xdp_filter_begin(struct urn_xdp_filter *f, const struct urn_fds *own, unsigned int ifindex,
		     struct urn_err *err)
{
	int prog = -1, ret;

	*f = (struct urn_xdp_filter){
		.begun = true, .addresses = -1, .counts = -1, .vlan = -1, .link = -1, .watch = -1};
	for (unsigned int i = 0; i < own->n; i++) {
		if (own->of[i].kind == URN_FD_MAP)
			map_note(f, own->of[i].fd);
		else if (own->of[i].kind == URN_FD_PROG)
			prog = own->of[i].fd;
	}
	if (prog < 0 || f->addresses < 0 || f->counts < 0 || f->vlan < 0) {
		urn_err_set(err, "the driver did not load urnic's XDP program; \"filter = no\" "
				 "goes without");
		return -1;
	}
	/* Between the two, frames are the kernel's. */
	ret = urn_bpf_detach(ifindex);
	if (ret == 0)
		ret = f->link = urn_bpf_link(prog, ifindex);
	if (ret < 0) {
		urn_err_set(err,
			    "the kernel does not tie the XDP program to this process: %s; "
			    "\"filter = no\" goes without",
			    strerror(-ret));
		f->link = -1;
		return -1;
	}
	f->cpus = urn_bpf_cpus();
	f->watch = urn_filter_watch();
	return 0;
}

void
urn_xdp_filter_end(struct urn_xdp_filter *f)
{
	if (!f->begun)
		return;
	if (f->link >= 0)
		close(f->link);
	if (f->watch >= 0)
		close(f->watch);
	f->link = f->watch = -1;
}

/* ---- addresses */

enum { RETRY = 200 }; /* calls of urn_xdp_filter_tend(), about a second */

/*
 * Write urnic's share of each address. While the kernel does not say what it has, a share that is
 * written stays, and a new one is the least, for the kernel may need the rest. returns 0, or -errno
 */
static int
share(struct urn_xdp_filter *f, bool is_new)
{
	uint32_t how[URN_FILTER_ADDRESSES];
	bool known;
	int ret = 0;

	for (unsigned int i = 0; i < f->n; i++)
		how[i] = URN_FILTER_ROCE;
	known = urn_filter_shares(f->key, how, f->n);
	for (unsigned int i = 0; i < f->n && ret == 0 && (known || is_new); i++)
		ret = urn_bpf_map_set(f->addresses, &f->key[i], &how[i]);
	f->retry = known && ret == 0 ? 0 : RETRY;
	return ret;
}

int
urn_xdp_filter_set(struct urn_xdp_filter *f, const struct urn_filter_key *key, unsigned int n,
		   uint16_t vlan, struct urn_err *err)
{
	const uint32_t first = 0, number = vlan;
	int ret = 0;

	while (atomic_flag_test_and_set(&f->busy))
		sched_yield();
	for (unsigned int i = 0; i < f->n && ret == 0; i++)
		ret = urn_bpf_map_drop(f->addresses, &f->key[i]);
	f->n = n;
	memcpy(f->key, key, n * sizeof(*key));
	if (ret == 0)
		ret = urn_bpf_map_set(f->vlan, &first, &number);
	if (ret == 0)
		ret = share(f, true);
	atomic_flag_clear(&f->busy);
	if (ret == 0)
		return 0;
	urn_err_set(err, "the kernel does not take the addresses of the XDP program: %s",
		    strerror(-ret));
	return -1;
}

void
urn_xdp_filter_tend(struct urn_xdp_filter *f)
{
	bool due;

	/* Two threads in here would write what each saw, and the older picture perhaps last. */
	if (atomic_flag_test_and_set(&f->busy))
		return;
	/* A failure changes nothing, for the map has all of the keys, and is tried again. */
	due = f->retry > 0 && --f->retry == 0;
	if (urn_filter_changed(f->watch) || due)
		(void)share(f, false);
	atomic_flag_clear(&f->busy);
}

bool
urn_xdp_filter_counts(const struct urn_xdp_filter *f, struct urn_port_filter_counts *out)
{
	uint64_t *cpu = calloc(f->cpus, sizeof(*cpu));
	bool ok = cpu != NULL;

	for (uint32_t i = 0; i < URN_FILTER_COUNTS && ok; i++) {
		ok = urn_bpf_map_get(f->counts, &i, cpu) == 0;
		for (unsigned int c = 0; c < f->cpus && ok; c++)
			out->v[i] += cpu[c];
	}
	free(cpu);
	return ok;
}
