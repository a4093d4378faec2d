/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to resp: the state of one request that is read step by step, and what the array and the inline
 * reader share. All offsets count from the request's first byte in the caller's buffer, which may move
 * between calls; a slice in the making holds its offset in `ptr` until the request is complete. */
#ifndef RESP_REQUEST_PARTIAL_H
#define RESP_REQUEST_PARTIAL_H

#include "resp/resp.h"

typedef struct requestPartial {
    size_t next;    /* first byte that is not understood yet */
    size_t scanned; /* bytes behind `next` known to hold no end of line */
    slice *args;
    int arg_count;
    int arg_room;
    bool args_owned;  /* `args` is a block of memAlloc, not the batch's pool */
    bool filling;     /* the last of `large` is being read into its block */
    bool failed;      /* memory ran out */
    int32_t expected; /* arguments announced; 0 while the head line is to come, and for inline */
    int64_t bulk; /* announced length of the argument being read; -1: its length line is to come */
    requestLarge *large;
    int large_count;
    size_t large_memory, large_bytes; /* of the blocks that are full: what they take and hold */
} requestPartial;

typedef enum requestStep {
    STEP_DONE,  /* the request is complete; `next` stands behind it */
    STEP_EMPTY, /* there is nothing to run; `next` stands behind it */
    STEP_WAIT,  /* bytes are missing */
    STEP_FULL,  /* the batch has no room for it */
    STEP_BAD,
} requestStep;

/* What one call works on. */
typedef struct requestInput {
    requestPartial *state;
    char *start; /* the request's first byte */
    size_t len;  /* bytes there */
    const requestLimits *limits;
    const requestBatch *batch;
    requestError *error;
} requestInput;

/* Room for one more argument; false when memory is out (then `failed` is set). */
bool requestArgReserve(requestPartial *s);
/* Sets the error's text behind "ERR Protocol error: ". Always STEP_BAD. */
requestStep requestRefuse(requestInput *in, const char *text);
/* Reads an inline line from the request's first byte on: blanks separate words, quotes join. */
requestStep requestReadInline(requestInput *in);

#endif
