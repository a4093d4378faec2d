/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A codec for the tests of lists and streams (ds/node_codec.h). */
#ifndef TESTS_C_DS_CODED_NODES_H
#define TESTS_C_DS_CODED_NODES_H

#include "ds/node_codec.h"

/* A visit that codes nodes of a list or stream with another dictionary each time, and ends at
 * random. Sets the codec. */
const nodeVisit *randomVisit(void);
/* All coded nodes have been freed, or expanded. */
void assertNoneCoded(void);

#endif
