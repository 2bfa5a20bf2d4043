/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/unsealed.h"

bool
urn_tp_unseal(struct urn_tp *tp)
{
	if (tp->cfg.icrc)
		tp->unsealed = urn_unsealed_bit();
	return tp->unsealed != 0;
}

void
urn_tp_seal_tx(struct urn_tp *tp)
{
	for (unsigned int i = 0; i < tp->tx_n; i++)
		urn_wire_seal(tp->tx[i]);
}
