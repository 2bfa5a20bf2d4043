/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/fds.h"
#include "pmd_glue/bpf.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* BPF objects are known by the names of their links in /proc/self/fd. */
static const struct {
	const char *link;
	enum urn_fd_kind kind;
} links[] = {
	{"anon_inode:bpf-map", URN_FD_MAP},
	{"anon_inode:bpf-prog", URN_FD_PROG},
	{"anon_inode:btf", URN_FD_BTF},
};

static bool
is_xdp(int fd, uint64_t *id)
{
	socklen_t len = sizeof(int);
	struct stat st;
	int domain;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) != 0 || domain != AF_XDP ||
	    fstat(fd, &st) != 0)
		return false;
	*id = st.st_ino;
	return true;
}

/* Fill in *f for a descriptor. returns: true when it is of a kind that is looked for */
static bool
identify(int fd, struct urn_fd *f)
{
	char path[32], link[32];
	ssize_t n;

	*f = (struct urn_fd){.fd = fd};
	if (is_xdp(fd, &f->id)) {
		f->kind = URN_FD_XDP;
		return true;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	for (unsigned int i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		if (strcmp(link, links[i].link) != 0)
			continue;
		f->kind = (uint8_t)links[i].kind;
		return urn_bpf_id(fd, f->kind == URN_FD_BTF, &f->id) == 0;
	}
	return false;
}

static bool
same(const struct urn_fd *a, const struct urn_fd *b)
{
	return a->fd == b->fd && a->kind == b->kind && a->id == b->id;
}

static bool
knows(const struct urn_fds *s, const struct urn_fd *f)
{
	for (unsigned int i = 0; s != NULL && i < s->n; i++)
		if (same(&s->of[i], f))
			return true;
	return false;
}

bool
urn_fds_find(struct urn_fds *s, const struct urn_fds *but, bool bpf)
{
	DIR *d = opendir("/proc/self/fd");
	bool all = d != NULL;
	struct dirent *e;
	struct urn_fd f;

	while (all && (e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.' || !identify(atoi(e->d_name), &f) || knows(but, &f) ||
		    (!bpf && f.kind != URN_FD_XDP))
			continue;
		all = s->n < URN_FDS_MAX;
		if (all)
			s->of[s->n++] = f;
	}
	if (d != NULL)
		closedir(d);
	return all;
}

void
urn_fds_close(struct urn_fds *s)
{
	struct urn_fd now;

	for (unsigned int i = 0; i < s->n; i++)
		if (identify(s->of[i].fd, &now) && same(&now, &s->of[i]))
			close(now.fd);
	s->n = 0;
}
