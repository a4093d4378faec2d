/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to resp: the state of one request that is parsed in steps, and declarations shared by the
 * array and the inline parser. All offsets count from the first byte of the request in the caller's
 * buffer, which may move between calls. While a request is incomplete its slices hold that offset
 * in `ptr`. */
#ifndef RESP_REQUEST_PARTIAL_H
#define RESP_REQUEST_PARTIAL_H

#include "resp/resp.h"

typedef struct requestPartial {
    size_t next;    /* offset of the first unparsed byte */
    size_t scanned; /* bytes after `next` known to contain no end of line */
    slice *args;
    int arg_count;
    int arg_cap;
    bool args_owned; /* `args` was allocated with memAlloc(); else it is part of the batch's pool */
    bool filling;    /* the last element of `large` is being read into its block */
    bool failed;     /* an allocation failed */
    /* Announced number of arguments; 0 before the header line was read, and for inline requests. */
    int32_t expected;
    /* Announced length of the current argument; -1: its length line has not been read. */
    int64_t bulk;
    requestLarge *large;
    int large_count;
    size_t large_memory, large_bytes; /* memory and contents of the complete blocks, in bytes */
} requestPartial;

typedef enum requestStep {
    STEP_DONE,  /* the request is complete; `next` is after it */
    STEP_EMPTY, /* an empty request: nothing to run; `next` is after it */
    STEP_WAIT,  /* more bytes are needed */
    STEP_FULL,  /* the batch has no space for it */
    STEP_BAD,
} requestStep;

/* Input of one parser call. */
typedef struct requestInput {
    requestPartial *state;
    char *start; /* first byte of the request */
    size_t len;  /* bytes available */
    const requestLimits *limits;
    const requestBatch *batch;
    requestError *error;
} requestInput;

/* Makes space for one more argument; false if memory is exhausted (then sets `failed`). */
bool requestArgReserve(requestPartial *s);
/* Sets the error text, prefixed with "ERR Protocol error: ". Always returns STEP_BAD. */
requestStep requestRefuse(requestInput *in, const char *text);
/* Parses an inline request: words separated by blanks, with quoting. */
requestStep requestReadInline(requestInput *in);

#endif
