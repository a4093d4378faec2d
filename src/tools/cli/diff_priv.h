/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parts of --diff: diff.c walks the keys of two servers, diff_keys.c, diff_stream.c and
 * diff_paths.c compare them, diff_reply.c compares two replies. One thread. */
#ifndef TOOLS_CLI_DIFF_PRIV_H
#define TOOLS_CLI_DIFF_PRIV_H

#include "tools/cli/connection.h"

enum {
    DIFF_SIDES = 2,
    DIFF_PART = 1000,    /* elements of a large value per request */
    DIFF_SHOWN_MAX = 64, /* bytes of a value that are shown */
};

/* One of the two servers. */
typedef struct diffSide {
    cliOptions options;
    connection link;
    const char *uri;
    bool has_expiretime;     /* PEXPIRETIME: since 7.0 */
    bool has_field_expiry;   /* HPEXPIRETIME */
    bool has_member_expiry;  /* SPEXPIRETIME and ZPEXPIRETIME */
    bool has_volatile_items; /* in the current database some fields or members have a TTL */
} diffSide;

typedef enum diffVerdict {
    DIFF_EQUAL,
    DIFF_ONLY_FIRST,
    DIFF_ONLY_SECOND,
    DIFF_TYPE,
    DIFF_VALUE,
    DIFF_TTL,
    DIFF_FIELD_TTL,
    DIFF_MEMBER_TTL,
    DIFF_NOT_COMPARED, /* a type of a module, whose value has no common form */
    DIFF_NOT_SERVED,   /* a key of another node of a cluster */
    DIFF_GONE,         /* removed from both meanwhile */
    DIFF_VERDICTS,
} diffVerdict;

/* A key, and what was found out about it. */
typedef struct diffKey {
    slice name; /* borrowed */
    diffVerdict verdict;
    str why; /* what differs, for people; to be freed */
    char type[DIFF_SIDES][32];
    int64_t expires_ms[DIFF_SIDES]; /* Unix time; -1: never */
    int64_t size[DIFF_SIDES];       /* bytes of a string, elements of others */
} diffKey;

/* Compares the keys, whose `name` is set, of the selected databases; sets everything else. The
 * program ends if a connection fails. */
void diffCompareKeys(diffSide sides[DIFF_SIDES], diffKey *keys, size_t count);

/* ------------------------------------------------------------------ between the files */

static inline bool diffIsOpen(const diffKey *key) { return key->verdict == DIFF_EQUAL; }
void diffCompareStream(diffSide sides[DIFF_SIDES], diffKey *key);
/* Compares two replies of fields and values, in any order. */
typedef void diffFieldsProc(diffKey *key, const valkeyReply *a, const valkeyReply *b);
void diffComparePaths(diffSide sides[DIFF_SIDES], diffKey *key, diffFieldsProc *compareFields);
/* diff_reply.c: a value as it is shown, at most DIFF_SHOWN_MAX bytes of it. */
void diffShow(str *out, slice value);
void diffShowReply(str *out, const valkeyReply *reply);
slice diffTextOf(const valkeyReply *reply);
bool diffIsText(const valkeyReply *reply);
/* Starts to send what is queued, so that both servers work at once. */
void diffFlush(diffSide sides[DIFF_SIDES]);
bool diffSameReply(const valkeyReply *a, const valkeyReply *b);
/* The verdict is a different value; appends both replies to what is said. */
void diffInValue(diffKey *key, const valkeyReply *first, const valkeyReply *second);

#endif
