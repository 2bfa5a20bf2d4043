/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of a queue pair's attributes, as programs write them. */
#ifndef URN_TRANSPORT_ATTR_WORDS_H
#define URN_TRANSPORT_ATTR_WORDS_H

#include <stddef.h>
#include <stdint.h>

/*
 * List attributes by their names in ibv_modify_qp(): "IBV_QP_AV, IBV_QP_DEST_QPN", as many as there
 * is room for, and the number of the others.
 *
 * mask: URN_QPM_ bits
 * size: 40 at least
 * returns: out
 */
const char *urn_qp_attr_words(uint32_t mask, char *out, size_t size);

#endif
