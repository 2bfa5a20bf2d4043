/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs of <infiniband/verbs.h>, by urnic.
 *
 * Include this header instead of <infiniband/verbs.h>, before anything that includes
 * <infiniband/verbs.h>, and write ibv_reg_mr(), ibv_post_send(), ... as always. The names
 * stay plain in the source; only the symbols behind them carry a prefix,
 * urn_ibv_reg_mr and so on. So one program can hold urnic beside the real
 * libibverbs, which the mlx5 driver needs: each file calls the library whose
 * header it includes.
 *
 * A symbol is renamed by the pragma, not by macros: verbs.h defines some of
 * these names as function-like macros itself and calls others in its inline
 * functions, and both go on working. gcc and clang know the pragma, in C and in
 * C++. Every function that verbs.h of rdma-core 44 declares is in the list;
 * its inline functions go through the context's function pointers.
 *
 * URN_VERBS_PLAIN_NAMES leaves the names alone.
 */
#ifndef URNIC_VERBS_H
#define URNIC_VERBS_H

#ifndef URN_VERBS_PLAIN_NAMES

#ifdef INFINIBAND_VERBS_H
#error "include <urnic/verbs.h> before <infiniband/verbs.h>: the calls would go to two libraries"
#endif

/* There are no provider plugins to link in. */
#undef RDMA_STATIC_PROVIDERS

#pragma redefine_extname ibv_wc_status_str urn_ibv_wc_status_str
#pragma redefine_extname ibv_rate_to_mult urn_ibv_rate_to_mult
#pragma redefine_extname mult_to_ibv_rate urn_mult_to_ibv_rate
#pragma redefine_extname ibv_rate_to_mbps urn_ibv_rate_to_mbps
#pragma redefine_extname mbps_to_ibv_rate urn_mbps_to_ibv_rate
#pragma redefine_extname ibv_qp_to_qp_ex urn_ibv_qp_to_qp_ex
#pragma redefine_extname ibv_free_device_list urn_ibv_free_device_list
#pragma redefine_extname ibv_get_device_list urn_ibv_get_device_list
#pragma redefine_extname ibv_open_device urn_ibv_open_device
#pragma redefine_extname ibv_get_device_name urn_ibv_get_device_name
#pragma redefine_extname ibv_get_device_index urn_ibv_get_device_index
#pragma redefine_extname ibv_get_device_guid urn_ibv_get_device_guid
#pragma redefine_extname ibv_close_device urn_ibv_close_device
#pragma redefine_extname ibv_import_device urn_ibv_import_device
#pragma redefine_extname ibv_import_pd urn_ibv_import_pd
#pragma redefine_extname ibv_unimport_pd urn_ibv_unimport_pd
#pragma redefine_extname ibv_import_mr urn_ibv_import_mr
#pragma redefine_extname ibv_unimport_mr urn_ibv_unimport_mr
#pragma redefine_extname ibv_import_dm urn_ibv_import_dm
#pragma redefine_extname ibv_unimport_dm urn_ibv_unimport_dm
#pragma redefine_extname ibv_get_async_event urn_ibv_get_async_event
#pragma redefine_extname ibv_ack_async_event urn_ibv_ack_async_event
#pragma redefine_extname ibv_query_device urn_ibv_query_device
#pragma redefine_extname ibv_query_port urn_ibv_query_port
#pragma redefine_extname ibv_query_gid urn_ibv_query_gid
#pragma redefine_extname _ibv_query_gid_ex urn_ibv_query_gid_ex
#pragma redefine_extname _ibv_query_gid_table urn_ibv_query_gid_table
#pragma redefine_extname ibv_query_pkey urn_ibv_query_pkey
#pragma redefine_extname ibv_get_pkey_index urn_ibv_get_pkey_index
#pragma redefine_extname ibv_alloc_pd urn_ibv_alloc_pd
#pragma redefine_extname ibv_dealloc_pd urn_ibv_dealloc_pd
#pragma redefine_extname ibv_reg_mr_iova2 urn_ibv_reg_mr_iova2
#pragma redefine_extname ibv_reg_mr urn_ibv_reg_mr
#pragma redefine_extname ibv_reg_mr_iova urn_ibv_reg_mr_iova
#pragma redefine_extname ibv_reg_dmabuf_mr urn_ibv_reg_dmabuf_mr
#pragma redefine_extname ibv_rereg_mr urn_ibv_rereg_mr
#pragma redefine_extname ibv_dereg_mr urn_ibv_dereg_mr
#pragma redefine_extname ibv_create_comp_channel urn_ibv_create_comp_channel
#pragma redefine_extname ibv_destroy_comp_channel urn_ibv_destroy_comp_channel
#pragma redefine_extname ibv_create_cq urn_ibv_create_cq
#pragma redefine_extname ibv_resize_cq urn_ibv_resize_cq
#pragma redefine_extname ibv_destroy_cq urn_ibv_destroy_cq
#pragma redefine_extname ibv_get_cq_event urn_ibv_get_cq_event
#pragma redefine_extname ibv_ack_cq_events urn_ibv_ack_cq_events
#pragma redefine_extname ibv_create_srq urn_ibv_create_srq
#pragma redefine_extname ibv_modify_srq urn_ibv_modify_srq
#pragma redefine_extname ibv_query_srq urn_ibv_query_srq
#pragma redefine_extname ibv_destroy_srq urn_ibv_destroy_srq
#pragma redefine_extname ibv_create_qp urn_ibv_create_qp
#pragma redefine_extname ibv_modify_qp urn_ibv_modify_qp
#pragma redefine_extname ibv_query_qp_data_in_order urn_ibv_query_qp_data_in_order
#pragma redefine_extname ibv_query_qp urn_ibv_query_qp
#pragma redefine_extname ibv_destroy_qp urn_ibv_destroy_qp
#pragma redefine_extname ibv_create_ah urn_ibv_create_ah
#pragma redefine_extname ibv_init_ah_from_wc urn_ibv_init_ah_from_wc
#pragma redefine_extname ibv_create_ah_from_wc urn_ibv_create_ah_from_wc
#pragma redefine_extname ibv_destroy_ah urn_ibv_destroy_ah
#pragma redefine_extname ibv_attach_mcast urn_ibv_attach_mcast
#pragma redefine_extname ibv_detach_mcast urn_ibv_detach_mcast
#pragma redefine_extname ibv_fork_init urn_ibv_fork_init
#pragma redefine_extname ibv_is_fork_initialized urn_ibv_is_fork_initialized
#pragma redefine_extname ibv_node_type_str urn_ibv_node_type_str
#pragma redefine_extname ibv_port_state_str urn_ibv_port_state_str
#pragma redefine_extname ibv_event_type_str urn_ibv_event_type_str
#pragma redefine_extname ibv_resolve_eth_l2_from_gid urn_ibv_resolve_eth_l2_from_gid
#pragma redefine_extname ibv_set_ece urn_ibv_set_ece
#pragma redefine_extname ibv_query_ece urn_ibv_query_ece

#endif

/* The library hides all names but those of public headers. */
#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop

#endif
