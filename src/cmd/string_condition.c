/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Conditions on the value of a string, by its bytes or by their digest, and the commands that exist
 * for them: DELEX, DIGEST. Main thread only. */
#include <xxhash.h>

#include "base/base.h"
#include "base/number.h"
#include "cmd/procs.h"
#include "cmd/string_priv.h"
#include "engine/reply.h"
#include "store/store.h"

enum { DIGEST_TEXT_LEN = 16, OPTION_OF_DELEX = OPTION_IFEQ | OPTION_IFNE /* in Valkey */ };

/* The digest of a string as users see it: XXH3 with 64 bits, in hexadecimal. `text` has
 * DIGEST_TEXT_LEN bytes. */
static slice digestOf(const robj *o, char *text) {
    static const char hex[] = "0123456789abcdef";
    char digits[NUMBER_TEXT_MAX];
    slice bytes = objectText(o, digits);
    uint64_t hash = XXH3_64bits(bytes.ptr, bytes.len);
    for (int i = DIGEST_TEXT_LEN - 1; i >= 0; i--, hash >>= 4) text[i] = hex[hash & 15];
    return sliceMake(text, DIGEST_TEXT_LEN);
}

bool stringMeets(ctx *c, uint32_t condition, const robj *o, slice operand, bool *out) {
    hotCheck(condition & OPTION_COMPARES);
    char digits[NUMBER_TEXT_MAX], digest[DIGEST_TEXT_LEN];
    bool by_digest = condition & (OPTION_IFDEQ | OPTION_IFDNE);
    if (o && by_digest && operand.len != DIGEST_TEXT_LEN) {
        replyError(c, SLICE("ERR must be exactly 16 hexadecimal characters"));
        return false;
    }
    bool equal = false;
    if (o && by_digest) equal = sliceEqualFold(digestOf(o, digest), operand);
    if (o && !by_digest) equal = sliceEqual(objectText(o, digits), operand);
    *out = equal == (bool)(condition & (OPTION_IFEQ | OPTION_IFDEQ));
    return true;
}

/* The condition of DELEX for a key of any type. False: the error was replied. */
static bool delexIsAllowed(ctx *c, const robj *o, bool *out) {
    hotCheck(c->argc == 4);
    uint32_t condition = stringConditionNamed(c->argv[2]);
    if (condition & OPTION_OF_DELEX && !stringIsType(c, o)) return false;
    if (objectType(o) != TYPE_STRING) {
        replyError(c, SLICE("ERR Key should be of string type if conditions are specified"));
        return false;
    }
    if (condition) return stringMeets(c, condition, o, c->argv[3], out);
    replyError(c, SLICE("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"));
    return false;
}

/* DELEX key [IFEQ value|IFNE value|IFDEQ digest|IFDNE digest]. Reply: 1 if the key was deleted,
 * else 0. A missing key meets no condition. Valkey has IFEQ and IFNE only. */
void delexCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    bool extended = ctxHasExtensions(c);
    if (c->argc != 4 && !(extended && c->argc == 2)) {
        replyErrorArity(c);
        return;
    }
    if (!extended && !(stringConditionNamed(c->argv[2]) & OPTION_OF_DELEX)) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    const robj *o = dbFind(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    bool allowed = o != NULL;
    if (o && c->argc == 4 && !delexIsAllowed(c, o, &allowed)) return;
    if (allowed) stringDeleteKey(c);
    replyInteger(c, allowed);
}

/* DIGEST key. Reply: the digest of the value, null if the key is missing. */
void digestCommand(ctx *c) {
    hotCheck(c->argc == 2);
    char text[DIGEST_TEXT_LEN];
    const robj *o = dbFindRead(c->db, c->argv[1], c->key_hash, c->look);
    if (!stringIsType(c, o)) return;
    if (o) {
        replyBulk(c, digestOf(o, text));
    } else {
        replyNull(c);
    }
}
