/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of the bus for DEBUG and INFO. */
#ifndef CLUSTER_DEBUG_BUS_H
#define CLUSTER_DEBUG_BUS_H

/* Registers the functions; after serverBusInit(). */
void debugBusInit(void);

#endif
