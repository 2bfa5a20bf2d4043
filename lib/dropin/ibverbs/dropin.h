/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the drop-in libibverbs.so.1 jumps to by its list of names (names.txt); no source
 * calls them. */
#ifndef URN_DROPIN_IBVERBS_H
#define URN_DROPIN_IBVERBS_H

#include <urnic/verbs.h>

#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <stddef.h>
#include <stdint.h>

/* The type of a GID by its number in sysfs, the private interface's result of ibv_query_gid_type().
 */
enum urn_dropin_gid_type {
	URN_DROPIN_GID_IB_ROCE_V1 = 0,
	URN_DROPIN_GID_ROCE_V2 = 1,
};

/* ---- stubs.c: their arguments are not looked at */
int urn_dropin_error(void);
int urn_dropin_minus(void);
void *urn_dropin_null(void);
void urn_dropin_none(void);
uint64_t urn_dropin_zero(void);

/* ---- sysfs.c */

/*
 * Ask for the type of an entry of the GID table.
 *
 * port_num: 1
 * index: of the entry
 * type: set on success
 * returns: 0; -1 with errno set
 */
int urn_dropin_ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
				  enum urn_dropin_gid_type *type);
/* returns: the folder where sysfs is: SYSFS_PATH of the environment, or /sys */
const char *urn_dropin_ibv_get_sysfs_path(void);
/*
 * Read a small file, without the newline at its end.
 *
 * dir, file: the path's two parts
 * buf: gets the text, and a zero byte if there is room
 * returns: the text's length; -1 with errno set
 */
int urn_dropin_ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* ---- copy.c: attributes between the kernel's structs and those of verbs.h; the callers are
 * libraries that talk to the kernel's connection manager */
void urn_dropin_ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void urn_dropin_ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
void urn_dropin_ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst,
					    struct ib_user_path_rec *src);
void urn_dropin_ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst,
					  struct ibv_sa_path_rec *src);

#endif
