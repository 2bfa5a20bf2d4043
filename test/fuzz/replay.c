/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a target on kept inputs, without a fuzzer:
 *   replay_TARGET FILE|FOLDER...
 * Prints the number of inputs; a finding aborts, after its file was named.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static unsigned int done;

static int
run_file(const char *path)
{
	long size = -1;
	uint8_t *bytes;
	FILE *f = fopen(path, "rb");

	if (f && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0)
		rewind(f);
	/* The buffer has the input's exact size, so that a sanitizer sees reads behind it. */
	bytes = malloc(size > 0 ? (size_t)size : 1);
	if (!f || size < 0 || !bytes || fread(bytes, 1, (size_t)size, f) != (size_t)size) {
		fprintf(stderr, "cannot read the input %s\n", path);
		free(bytes);
		if (f)
			fclose(f);
		return -1;
	}
	fclose(f);
	fprintf(stderr, "%s\n", path);
	LLVMFuzzerTestOneInput(bytes, (size_t)size);
	free(bytes);
	done++;
	return 0;
}

static int
visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int
run_folder(const char *path)
{
	struct dirent **list;
	int n = scandir(path, &list, visible, alphasort), rc = 0;

	if (n < 0) {
		fprintf(stderr, "cannot read the folder %s\n", path);
		return -1;
	}
	for (int i = 0; i < n; i++) {
		char file[4096];

		snprintf(file, sizeof(file), "%s/%s", path, list[i]->d_name);
		rc |= run_file(file);
		free(list[i]);
	}
	free(list);
	return rc;
}

int
main(int argc, char **argv)
{
	struct stat st;
	int rc = 0;

	LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++)
		rc |= stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode) ? run_folder(argv[i])
								     : run_file(argv[i]);
	printf("%u inputs\n", done);
	return rc == 0 && done > 0 ? 0 : 1;
}
