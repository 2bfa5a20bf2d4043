/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of all commands to a running dataplane: the console, the control
 * socket and the help of urnicctl are made from it.
 *
 * X(function, "words", "arguments", "help")
 *
 * The text that describes arguments to a person is also their grammar:
 * PORT in capitals is a value of a kind (admin_words.h), `up|down` one of some
 * words, [...] may be left out, [state STATE] is a word with a value behind it.
 * Arguments that may be left out can come in any order.
 */
#ifndef URNICD_ADMIN_TABLE_H
#define URNICD_ADMIN_TABLE_H

#define ADMIN_COMMANDS(X)                                                                         \
	X(show_port, "show port", "[PORT]", "ports: link, addresses; one: its counters")          \
	X(show_adapter, "show adapter", "[ADAPTER]",                                              \
	  "adapters: node, port, addresses, objects in use")                                      \
	X(show_engine, "show engine", "[ENGINE]", "engines: how they wait when idle, turns")      \
	X(show_qp, "show qp", "[QPN] [adapter ADAPTER] [client CLIENT] [state STATE]",            \
	  "queue pairs; one by its number: PSNs, retries, round trip")                            \
	X(show_errors, "show errors", "[adapter ADAPTER] [client CLIENT] [qp QPN]",               \
	  "latest errors of programs, each with a sentence that says why")                        \
	X(show_cq, "show cq", "[adapter ADAPTER] [client CLIENT]", "completion queues")           \
	X(show_srq, "show srq", "[adapter ADAPTER] [client CLIENT]", "shared receive queues")     \
	X(show_msg, "show msg", "[adapter ADAPTER] [client CLIENT]",                              \
	  "register sets of messages and their receive queues")                                   \
	X(show_am, "show am", "[adapter ADAPTER] [client CLIENT]",                                \
	  "endpoints of remote memory access: operations, errors, regions")                       \
	X(show_mr, "show mr", "[adapter ADAPTER] [client CLIENT]", "memory regions and windows")  \
	X(show_client, "show client", "[CLIENT] [adapter ADAPTER]", "programs and their objects") \
	X(show_switch, "show switch", "[SWITCH] [all]",                                           \
	  "ports of switches, queues, impairments; one switch: its counters; all: zeros too")     \
	X(show_address, "show address", "[SWITCH]", "addresses that switches know")               \
	X(show_neigh, "show neigh", "[ADAPTER]", "neighbours: MAC addresses, urnic or not")       \
	X(show_route, "show route", "[ADAPTER]",                                                  \
	  "where destinations are: on the link, or behind which router")                          \
	X(show_counters, "show counters", "[ADAPTER] [all]",                                      \
	  "counters of adapters; all: zeros too")                                                 \
	X(show_limits, "show limits", "[client CLIENT]",                                          \
	  "limits of programs and the most that one has, or those of that client")                \
	X(show_server, "show server", "", "connections and control calls of programs")            \
	X(show_log, "show log", "", "areas of the log of events, and their levels")               \
	X(show_version, "show version", "", "versions")                                           \
	X(set_log, "set log", "LEVEL", "how much DPDK says: error, warning, notice, info, debug") \
	X(log, "log", "AREA LEVEL",                                                               \
	  "how much of an area, or of all, goes to the log of events: off, error, warning, "      \
	  "notice, info, debug")                                                                  \
	X(reload, "reload", "",                                                                   \
	  "read the configuration again: keys that can change do, the others wait for a start")   \
	X(set_engine, "set engine", "ENGINE [idle IDLE] [empty_polls N] [sleep TIME]",            \
	  "the way in which an idle engine waits")                                                \
	X(set_adapter, "set adapter", "ADAPTER [window N] [rto_floor TIME]",                      \
	  "packets under way of a queue pair; the least time to a repeat")                        \
	X(port, "port", "PORT up|down|fail", "a port's link; fail: as if it were unplugged")      \
	X(impair, "impair", "SWITCH WHO SPEC",                                                    \
	  "frames from WHO.in, to WHO.out, or both: drop=1%,delay=200us; none: no more")          \
	X(capture_start, "capture start", "PORT FILE [frames N] [size SIZE] [snap N] [qp QPN]",   \
	  "write the frames of a port, or all, to a file, or to urnicctl's standard output (-): " \
	  "until so much; of each so many bytes; of one queue pair")                              \
	X(capture_stop, "capture stop", "", "end the capture")                                    \
	X(show_capture, "show capture", "", "the capture under way, or the last one")             \
	X(clear_counters, "clear counters", "",                                                   \
	  "have counters of adapters, ports and switches shown from now on; telemetry goes on")   \
	X(client, "client", "CLIENT kick", "end a program's connection: it loses all it has")     \
	X(help, "help", "", "all commands")                                                       \
	X(quit, "quit", "", "end the dataplane; at its console only")

#endif
