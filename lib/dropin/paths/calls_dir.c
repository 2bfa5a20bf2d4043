/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls in the C library's place that read folders. The program holds a pointer to a struct of ours
 * as its DIR: the calls look it up in a table of those that are open.
 */
#include "dropin/paths/call.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Folders of ours that a program can have open at once. */
enum { URN_PATHS_OPEN = 16 };

/* Names in a folder, "." and ".." among them: the files of a GID table are most. */
enum { URN_PATHS_NAMES = URN_PATHS_GIDS + 2 };
_Static_assert(URN_PATHS_DEVICES < URN_PATHS_GIDS, "all devices are in one folder");

/* Both are one struct on the machines that urnic runs on. */
_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64) &&
		       offsetof(struct dirent, d_name) == offsetof(struct dirent64, d_name),
	       "struct dirent has 64-bit fields");

/* An open folder. */
struct urn_paths_dir {
	uint32_t n, at;	   /* names, and the next one */
	struct dirent now; /* the result of the last readdir() */
	struct {
		enum urn_paths_kind kind;
		char name[IBV_SYSFS_NAME_MAX];
	} entry[URN_PATHS_NAMES];
};

/* Open folders; NULL: a free place. */
static struct urn_paths_dir *_Atomic urn_paths_dirs[URN_PATHS_OPEN];
/* Number of places in use. */
static _Atomic uint32_t urn_paths_dirs_open;

/* The place of an open folder of ours; NULL: it is the system's */
static struct urn_paths_dir *_Atomic *
place_of(const void *dir)
{
	size_t i;

	if (dir == NULL || atomic_load(&urn_paths_dirs_open) == 0)
		return NULL;
	for (i = 0; i < URN_PATHS_OPEN; i++)
		if (atomic_load(&urn_paths_dirs[i]) == dir)
			return &urn_paths_dirs[i];
	return NULL;
}

/* Fill the names of a folder. returns: 0 or an errno value */
static int
list(struct urn_paths_dir *d, const char *path)
{
	static const char dots[][3] = {".", ".."};
	const struct urn_paths_devices *all;
	struct urn_paths_node node;
	char clean[URN_PATHS_LEN];
	uint32_t at = 0;
	int err;

	for (; d->n < 2; d->n++) {
		memcpy(d->entry[d->n].name, dots[d->n], sizeof(dots[0]));
		d->entry[d->n].kind = URN_PATHS_DIR;
	}
	(void)urn_paths_ours(path, clean);
	all = urn_paths_hold();
	err = urn_paths_find(clean, all, &node);
	if (err == 0 && node.kind != URN_PATHS_DIR)
		err = ENOTDIR;
	while (err == 0 && d->n < URN_PATHS_NAMES &&
	       urn_paths_next(&node, all, &at, d->entry[d->n].name, &d->entry[d->n].kind))
		d->n++;
	urn_paths_release();
	return err;
}

/* returns: the folder; NULL with errno, or pass set: the path is the system's */
static struct urn_paths_dir *
opendir_ours(const char *path, bool *pass)
{
	struct urn_paths_node node;
	struct urn_paths_dir *d;
	int err;

	*pass = !urn_paths_look(path, &node, &err);
	if (*pass)
		return NULL;
	d = calloc(1, sizeof(*d));
	err = d != NULL ? list(d, path) : ENOMEM;
	if (err == 0)
		return d;
	free(d);
	errno = err;
	return NULL;
}

URN_CALL DIR *
opendir(const char *path)
{
	bool pass;
	struct urn_paths_dir *d = opendir_ours(path, &pass), *none;
	size_t i;

	if (pass)
		return urn_paths_real()->opendir(path);
	for (i = 0; d != NULL && i < URN_PATHS_OPEN; i++) {
		none = NULL;
		if (!atomic_compare_exchange_strong(&urn_paths_dirs[i], &none, d))
			continue;
		atomic_fetch_add(&urn_paths_dirs_open, 1);
		return (DIR *)d;
	}
	if (d != NULL)
		errno = EMFILE;
	free(d);
	return NULL;
}

/* The next entry, in what readdir() gives. */
static void *
next(struct urn_paths_dir *d)
{
	static const unsigned char types[] = {
		[URN_PATHS_DIR] = DT_DIR, [URN_PATHS_FILE] = DT_REG, [URN_PATHS_CHAR] = DT_CHR};

	if (d->at >= d->n)
		return NULL;
	memset(&d->now, 0, sizeof(d->now));
	memcpy(d->now.d_name, d->entry[d->at].name, sizeof(d->entry[0].name));
	d->now.d_type = types[d->entry[d->at].kind];
	d->now.d_ino = ++d->at;
	d->now.d_off = d->at;
	d->now.d_reclen = sizeof(d->now);
	return &d->now;
}

URN_CALL struct dirent *
readdir(DIR *dir)
{
	struct urn_paths_dir *_Atomic *place = place_of(dir);

	return place == NULL ? urn_paths_real()->readdir(dir) : next(atomic_load(place));
}

URN_CALL struct dirent64 *
readdir64(DIR *dir)
{
	struct urn_paths_dir *_Atomic *place = place_of(dir);

	return place == NULL ? urn_paths_real()->readdir64(dir) : next(atomic_load(place));
}

URN_CALL int
closedir(DIR *dir)
{
	struct urn_paths_dir *_Atomic *place = place_of(dir);

	if (place == NULL)
		return urn_paths_real()->closedir(dir);
	atomic_store(place, NULL);
	atomic_fetch_sub(&urn_paths_dirs_open, 1);
	free(dir);
	return 0;
}

URN_CALL void
rewinddir(DIR *dir)
{
	seekdir(dir, -1);
}

URN_CALL long
telldir(DIR *dir)
{
	struct urn_paths_dir *_Atomic *place = place_of(dir);

	return place == NULL ? urn_paths_real()->telldir(dir) : (long)atomic_load(place)->at;
}

/* pos: from telldir(); -1: the beginning */
URN_CALL void
seekdir(DIR *dir, long pos)
{
	struct urn_paths_dir *_Atomic *place = place_of(dir);

	if (place != NULL)
		atomic_load(place)->at = pos < 0 ? 0 : (uint32_t)pos;
	else if (pos < 0)
		urn_paths_real()->rewinddir(dir);
	else
		urn_paths_real()->seekdir(dir, pos);
}

URN_CALL int
dirfd(DIR *dir)
{
	if (place_of(dir) == NULL)
		return urn_paths_real()->dirfd(dir);
	errno = ENOTSUP;
	return -1;
}

/* Sort names in the way of alphasort(), and drop those that the caller does not want. */
static int
scan(struct urn_paths_dir *d, struct dirent ***names, urn_paths_select *wants,
     urn_paths_compare *compare)
{
	struct dirent **all = calloc(d->n, sizeof(struct dirent *)), *e;
	bool full = all == NULL;
	int n = 0;

	while (!full && (e = next(d)) != NULL) {
		if (wants != NULL && !wants(e))
			continue;
		all[n] = malloc(sizeof(*e));
		full = all[n] == NULL;
		if (!full)
			memcpy(all[n++], e, sizeof(*e));
	}
	if (full) {
		while (n > 0)
			free(all[--n]);
		free((void *)all);
		errno = ENOMEM;
		return -1;
	}
	if (compare != NULL)
		qsort((void *)all, (size_t)n, sizeof(struct dirent *),
		      (int (*)(const void *, const void *))compare);
	*names = all;
	return n;
}

/* scandir() in a folder of ours; pass set: the path is the system's */
static int
scan_ours(const char *path, struct dirent ***names, urn_paths_select *wants,
	  urn_paths_compare *compare, bool *pass)
{
	struct urn_paths_dir *d = opendir_ours(path, pass);
	int n = d != NULL ? scan(d, names, wants, compare) : -1;

	free(d);
	return n;
}

URN_CALL int
scandir(const char *restrict path, struct dirent ***restrict names, urn_paths_select *wants,
	urn_paths_compare *compare)
{
	bool pass;
	int n = scan_ours(path, names, wants, compare, &pass);

	return pass ? urn_paths_real()->scandir(path, names, wants, compare) : n;
}

URN_CALL int
scandir64(const char *restrict path, struct dirent64 ***restrict names, urn_paths_select64 *wants,
	  urn_paths_compare64 *compare)
{
	bool pass;
	int n = scan_ours(path, (struct dirent ***)names, (urn_paths_select *)wants,
			  (urn_paths_compare *)compare, &pass);

	return pass ? urn_paths_real()->scandir64(path, names, wants, compare) : n;
}
