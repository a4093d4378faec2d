/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What DEBUG and INFO ask about the bus. */
#ifndef CLUSTER_DEBUG_BUS_H
#define CLUSTER_DEBUG_BUS_H

/* Registers the functions; after serverBusInit(). */
void debugBusInit(void);

#endif
