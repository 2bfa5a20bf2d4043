/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is not mapped, or not writable, is refused when it is registered. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 5 };

/* Pages: 0 and 1 writable, 2 read only, 3 not mapped, 4 not accessible. */
static uint8_t *
pages(size_t *page)
{
	uint8_t *p;

	*page = (size_t)sysconf(_SC_PAGESIZE);
	p = mmap(NULL, PAGES * *page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p + 2 * *page, *page, PROT_READ), 0);
	assert_int_equal(munmap(p + 3 * *page, *page), 0);
	assert_int_equal(mprotect(p + 4 * *page, *page, PROT_NONE), 0);
	return p;
}

static void
allowed(struct env *e, void *at, size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, at, length, access);

	if (mr == NULL)
		fail_msg("%s", urn_attach_error());
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void
refused(struct env *e, void *at, size_t length, int access, const char *why)
{
	errno = 0;
	assert_null(ibv_reg_mr(e->pd, at, length, access));
	assert_int_equal(errno, EFAULT);
	if (strstr(urn_attach_error(), why) == NULL)
		fail_msg("'%s' is not in: %s", why, urn_attach_error());
}

static void
test_pages(void **state)
{
	struct env *e = *state;
	volatile int write = IBV_ACCESS_LOCAL_WRITE, read = 0;
	size_t page;
	uint8_t *p = pages(&page);

	allowed(e, p, 2 * page, write);
	allowed(e, p + 1, 2 * page - 1, write);
	allowed(e, p, 3 * page, read);
	allowed(e, p + 2 * page - 1, 1, write);
	refused(e, p, 2 * page + 1, write, "may not be written");
	refused(e, p + 2 * page, 1, write, "may not be written");
	refused(e, p, 3 * page + 1, read, "is not mapped");
	refused(e, p + 3 * page, 1, read, "is not mapped");
	refused(e, p + 4 * page, 1, read, "may not be read");
	refused(e, p + 3 * page - 1, 2 * page, read, "is not mapped");
	refused(e, NULL, 1, read, "is not mapped");
	/* Length 0 needs no memory. */
	allowed(e, p + 3 * page, 0, write);
	munmap(p, 3 * page);
	munmap(p + 4 * page, page);
}

/* Usual places of programs' data: stack, heap, constants. */
static void
test_usual_places(void **state)
{
	static const char constant[] = "sent often";
	static char data[100000];
	struct env *e = *state;
	char stack[1000], *heap = malloc(1 << 20);

	assert_non_null(heap);
	allowed(e, stack, sizeof(stack), IBV_ACCESS_LOCAL_WRITE);
	allowed(e, heap, 1 << 20, IBV_ACCESS_LOCAL_WRITE);
	allowed(e, data, sizeof(data), IBV_ACCESS_LOCAL_WRITE);
	allowed(e, (void *)(uintptr_t)constant, sizeof(constant), 0);
	free(heap);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pages, env_setup, env_teardown),
		cmocka_unit_test_setup_teardown(test_usual_places, env_setup, env_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
