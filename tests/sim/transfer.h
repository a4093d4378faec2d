/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A simulated dataset as bytes. */
#ifndef TESTS_SIM_TRANSFER_H
#define TESTS_SIM_TRANSFER_H

#include <stdbool.h>

#include "base/str.h"

typedef struct simTransfer {
    int dataset;
    int stream_db; /* selected in the stream that follows the dataset; -1: none */
    int origin;    /* simServer.origin, is_fresh */
    bool is_fresh;
} simTransfer;

/* Of random length; sometimes damaged, if there are faults. */
str transferEncode(const simTransfer *what);
/* False if it is damaged. */
bool transferDecode(slice bytes, simTransfer *what);

#endif
