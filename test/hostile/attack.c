/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: attack SOCKET PAGE NAME    attack the dataplane, until killed
 *        attack --list              print name, family and text of each attack
 *
 * PAGE is a file with room for struct foe_page. Exit code: 1 the attack came through, or could not
 * begin; 77 this system does not allow it.
 */
#include "attacks.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

struct row {
	const char *name, *family, *what;
	foe_attack_fn *fn;
};

static const struct row rows[] = {
#define X(name, family, what) {#name, #family, what, attack_##name},
	FOE_ATTACKS(X)
#undef X
};

static const struct row *
find(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

static struct foe_page *
map_page(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED
			 : mmap(NULL, sizeof(struct foe_page), PROT_READ | PROT_WRITE, MAP_SHARED,
				fd, 0);

	FOE_MUST(p != MAP_FAILED, path);
	close(fd);
	return p;
}

int
main(int argc, char **argv)
{
	struct foe f = {.seed = 0x9e3779b97f4a7c15ull};
	const struct row *row = argc == 4 ? find(argv[3]) : NULL;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			printf("%s %s %s\n", rows[i].name, rows[i].family, rows[i].what);
		return 0;
	}
	if (row == NULL) {
		fprintf(stderr, "usage: attack SOCKET PAGE NAME | --list\n");
		return 2;
	}
	f.path = argv[1];
	f.page = map_page(argv[2]);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing outlives the test */
	signal(SIGPIPE, SIG_IGN);
	row->fn(&f);
	return 1;
}
