/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What modules hold pointers to, remembered by address if `module-checks` is on: so a function can
 * tell a handle from one that was freed, and unloading tells what is left. If it is off, that costs
 * one test where a handle begins and where it ends. ANY_THREAD. */
#ifndef MODULE_HANDLES_H
#define MODULE_HANDLES_H

#include <stdbool.h>

#include "base/base.h"
#include "ds/list.h"

typedef enum handleKind {
    HANDLE_CONTEXT,
    HANDLE_STRING,
    HANDLE_KEY,
    HANDLE_REPLY,
    HANDLE_DICT,
    HANDLE_DICT_ITERATOR,
    HANDLE_SCAN_CURSOR,
    HANDLE_USER,
    HANDLE_SERVER_INFO,
    HANDLE_IO,
    HANDLE_DIGEST,
    HANDLE_FILTER_CONTEXT,
    HANDLE_KINDS,
    HANDLE_NONE = HANDLE_KINDS,
} handleKind;

/* The value of `module-checks`, which is fixed at start. */
extern bool handlesChecked;

/* What is known of a handle. */
typedef struct handleRecord {
    listNode node; /* private */
    const void *address;
    handleKind kind;
    bool is_lent;       /* belongs to the server: arguments, contexts */
    bool is_told;       /* as one that was not freed */
    const char *maker;  /* the function of the interface that has made it; NULL: none has */
    const void *caller; /* the place in the module that called it */
} handleRecord;

/* Called through the functions below. */
void handleTrack(handleKind kind, const void *address, bool is_lent);
void handleUntrack(const void *address);
void handleMove(const void *from, const void *to);
void handleQuarantine(void *block);

/* A handle that the module has to free begins; one that the server frees. */
static inline void handleMade(handleKind kind, const void *address) {
    if (unlikely(handlesChecked)) handleTrack(kind, address, false);
}
static inline void handleLent(handleKind kind, const void *address) {
    if (unlikely(handlesChecked)) handleTrack(kind, address, true);
}
/* It ends. */
static inline void handleEnded(const void *address) {
    if (unlikely(handlesChecked)) handleUntrack(address);
}
/* It has another address now; its kind and who has made it are the same. */
static inline void handleMoved(const void *from, const void *to) {
    if (unlikely(handlesChecked)) handleMove(from, to);
}
/* Frees the block of a handle; with checks later, so that its address is not used again soon. */
static inline void handleFree(void *block) {
    if (unlikely(handlesChecked)) {
        handleQuarantine(block);
    } else {
        memFree(block);
    }
}

/* Number of handles of a kind. */
size_t handleCount(handleKind kind);
/* The kind of the handle at this address; HANDLE_NONE: there is none. */
handleKind handleKindOf(const void *address);
/* Calls `visit` for each handle. It must not add or remove any. */
typedef void handleVisitProc(handleRecord *handle, void *arg);
void handlesEach(handleVisitProc *visit, void *arg);

#endif
