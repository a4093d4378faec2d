/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The commands that a client sends to the debugger: arrays of bulks, at any division into reads.
 * ANY_THREAD. */
#ifndef SCRIPT_DEBUG_FRAME_H
#define SCRIPT_DEBUG_FRAME_H

#include "base/slice.h"
#include "base/str.h"

enum { DEBUG_WORDS_MAX = 1024, DEBUG_WORD_BYTES_MAX = 1024, DEBUG_READ_BYTES = 16 * 1024 };

typedef struct debugFrames {
    str bytes;    /* what was read; the caller appends to it */
    size_t taken; /* of them, for the current command */
    slice words[DEBUG_WORDS_MAX];
    int count;
} debugFrames;

typedef enum debugFrameState {
    DEBUG_FRAME_READY,
    DEBUG_FRAME_INCOMPLETE,
    DEBUG_FRAME_BAD
} debugFrameState;
/* Takes the next command: `words` are valid until the next call. */
debugFrameState debugFrameNext(debugFrames *f);
void debugFramesClear(debugFrames *f);

#endif
