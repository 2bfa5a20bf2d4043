/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: clients have turns, and shares of the packets in flight (doc/inside/messages.md "Turns"). */
#include "flow_net.h"
int main(void){return 0;}
