/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests as words. */
#ifndef TESTS_SIM_RESP_WORDS_H
#define TESTS_SIM_RESP_WORDS_H

#include "base/str.h"
#include "resp/resp.h"

typedef struct words {
    int argc;
    slice argv[32]; /* as many as the longest request of the servers, and some */
    size_t len;     /* of its bytes */
} words;
/* Reads the first request of `bytes`; the slices are in `bytes`. False if it is incomplete; `len`
 * is then the number of bytes at the start that belong to no request. Fails the simulation on an
 * invalid one. */
bool wordsRead(str *bytes, words *out);

#endif
