/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A simulated dataset as bytes. */
#ifndef TESTS_SIM_TRANSFER_H
#define TESTS_SIM_TRANSFER_H

#include <stdbool.h>

#include "base/str.h"

/* Of random length; sometimes damaged, if there are faults. `stream_db`: the database selected in
 * the stream that follows the dataset; -1: none. */
str transferEncode(int dataset, int stream_db);
/* False if it is damaged. */
bool transferDecode(slice bytes, int *dataset, int *stream_db);

#endif
