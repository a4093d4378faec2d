/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BITFIELD: reads and writes integers of 1 to 64 bits at any bit offset of a string. All operations
 * of a request are parsed before the first one is executed. Main thread only. */
#include "base/base.h"
#include "base/bits.h"
#include "base/number.h"
#include "cmd/procs.h"
#include "cmd/string_priv.h"
#include "engine/options.h"
#include "engine/reply.h"
#include "store/store.h"
#include "store/type_string.h"

typedef enum fieldVerb { FIELD_GET, FIELD_SET, FIELD_INCRBY } fieldVerb;
/* Behaviour on overflow. */
typedef enum fieldOverflow { OVERFLOW_WRAP, OVERFLOW_SAT, OVERFLOW_FAIL } fieldOverflow;

typedef struct fieldOperation {
    uint64_t offset; /* of the first bit */
    int64_t value;   /* to set, or to add */
    uint8_t verb, overflow, bits;
    bool is_signed;
} fieldOperation;

typedef struct fieldRequest {
    fieldOperation *operations; /* NULL if there are none */
    int count;
    bool writes;
    uint64_t end; /* bit offset after the last bit that may be written */
} fieldRequest;

/* ------------------------------------------------------------------ parsing */

/* Parses a type such as "i8" or "u63". False: the error was replied. */
static bool parseType(ctx *c, int arg_index, fieldOperation *out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    slice word = c->argv[arg_index];
    int64_t bits = 0;
    bool valid = word.len > 1 && (word.ptr[0] == 'i' || word.ptr[0] == 'u');
    if (valid) {
        out->is_signed = word.ptr[0] == 'i';
        valid = numberParseInt(sliceMake(word.ptr + 1, word.len - 1), &bits) && bits >= 1 &&
                bits <= (out->is_signed ? 64 : 63);
    }
    if (!valid)
        replyError(
            c, SLICE("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not "
                     "supported but i64 is."));
    out->bits = (uint8_t)bits;
    return valid;
}

/* Parses an offset in bits, or after '#' in units of the type's width. False: the error was
 * replied. */
static bool parseOffset(ctx *c, int arg_index, fieldOperation *out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    slice word = c->argv[arg_index];
    bool counts_numbers = word.len > 0 && word.ptr[0] == '#';
    int64_t offset;
    if (counts_numbers) word = sliceMake(word.ptr + 1, word.len - 1);
    if (!numberParseInt(word, &offset) || offset < 0 ||
        (counts_numbers && !numberMul(offset, out->bits, &offset)) ||
        offset / 8 >= engineBulkMax()) {
        replyError(c, SLICE("ERR bit offset is not an integer or out of range"));
        return false;
    }
    out->offset = (uint64_t)offset;
    return true;
}

static bool parseOverflow(ctx *c, int arg_index, fieldOverflow *out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    static const char *const names[] = {"wrap", "sat", "fail"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!ctxArgIs(c, arg_index, names[i])) continue;
        *out = (fieldOverflow)i;
        return true;
    }
    replyError(c, SLICE("ERR Invalid OVERFLOW type specified"));
    return false;
}

/* Parses the operation at *arg_index and moves *arg_index past it. False: the error was replied. */
static bool parseOperation(ctx *c, int *arg_index, fieldOperation *out) {
    hotCheck(*arg_index > 0);
    hotCheck(*arg_index < c->argc);
    int left = c->argc - *arg_index - 1;
    if (ctxArgIs(c, *arg_index, "get") && left >= 2) {
        out->verb = FIELD_GET;
    } else if (ctxArgIs(c, *arg_index, "set") && left >= 3) {
        out->verb = FIELD_SET;
    } else if (ctxArgIs(c, *arg_index, "incrby") && left >= 3) {
        out->verb = FIELD_INCRBY;
    } else {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    if (!parseType(c, *arg_index + 1, out) || !parseOffset(c, *arg_index + 2, out)) return false;
    if (out->verb != FIELD_GET && !ctxArgInt(c, *arg_index + 3, &out->value)) return false;
    *arg_index += out->verb == FIELD_GET ? 3 : 4;
    return true;
}

static bool parseAll(ctx *c, fieldRequest *r) {
    fieldOverflow overflow = OVERFLOW_WRAP;
    for (int arg_index = 2; arg_index < c->argc;) {
        if (ctxArgIs(c, arg_index, "overflow") && arg_index + 1 < c->argc) {
            if (!parseOverflow(c, arg_index + 1, &overflow)) return false;
            arg_index += 2;
            continue;
        }
        fieldOperation op = {.overflow = (uint8_t)overflow};
        if (!parseOperation(c, &arg_index, &op)) return false;
        if (op.verb != FIELD_GET) {
            r->writes = true;
            r->end = op.offset + op.bits > r->end ? op.offset + op.bits : r->end;
        }
        r->operations[r->count++] = op;
    }
    return true;
}

/* Parses the operations of the request. False: the error was replied, and nothing is allocated. */
static bool fieldsParse(ctx *c, fieldRequest *r) {
    *r = (fieldRequest){.operations = NULL};
    if (c->argc > 2) r->operations = memNewArray(fieldOperation, (size_t)c->argc / 3);
    if (parseAll(c, r)) return true;
    memFree(r->operations);
    return false;
}

/* ------------------------------------------------------------------ numbers */

static __int128 fieldMin(const fieldOperation *op) {
    return op->is_signed ? -((__int128)1 << (op->bits - 1)) : 0;
}

static __int128 fieldMax(const fieldOperation *op) {
    return ((__int128)1 << (op->is_signed ? op->bits - 1 : op->bits)) - 1;
}

/* The lowest bits of `value`, as a number of the operation's type. */
static int64_t fieldTruncate(const fieldOperation *op, uint64_t value) {
    hotCheck(op->bits > 0);
    hotCheck(op->bits <= 64);
    unsigned unused = 64u - op->bits;
    if (op->is_signed) return (int64_t)(value << unused) >> unused;
    return (int64_t)(value << unused >> unused);
}

/* Computes the number that replaces `old`. False if it overflows and the operation's mode is
 * FAIL. */
static bool fieldResult(const fieldOperation *op, int64_t old, int64_t *out) {
    hotCheck(op->bits > 0);
    hotCheck(op->bits <= 64);
    __int128 sum = op->value;
    if (op->verb == FIELD_INCRBY) {
        sum += old;
    } else if (!op->is_signed) {
        sum = (uint64_t)op->value; /* unsigned: -1 is the largest number */
    }
    __int128 min = fieldMin(op), max = fieldMax(op);
    /* Valkey's behaviour: a number so far below the range that its distance to the maximum exceeds
     * 64 bits saturates at the maximum. */
    bool wrapped = op->verb == FIELD_SET && op->is_signed && op->bits < 64 && max - sum > INT64_MAX;
    bool above = sum > max || wrapped;
    if (!above && sum >= min) {
        *out = (int64_t)sum;
    } else if (op->overflow == OVERFLOW_WRAP) {
        *out = fieldTruncate(op, (uint64_t)sum);
    } else if (op->overflow == OVERFLOW_SAT) {
        *out = (int64_t)(above ? max : min);
    }
    return (!above && sum >= min) || op->overflow != OVERFLOW_FAIL;
}

/* ------------------------------------------------------------------ commands */

static int64_t fieldRead(const fieldOperation *op, const char *bytes, size_t len) {
    return fieldTruncate(op, bitsRead(bytes, len, op->offset, op->bits));
}

static void runReads(ctx *c, const fieldRequest *r, const robj *o) {
    hotCheck(r->count >= 0);
    char digits[NUMBER_TEXT_MAX];
    slice text = o ? objectText(o, digits) : SLICE("");
    replyArray(c, r->count);
    for (int i = 0; i < r->count; i++)
        replyInteger(c, fieldRead(&r->operations[i], text.ptr, text.len));
}

/* Returns the number of operations that changed the value; if the string `grew`, all writing ones
 * count. */
static uint64_t runAll(ctx *c, const fieldRequest *r, char *bytes, size_t len, bool grew) {
    hotCheck(r->count > 0);
    uint64_t changes = 0;
    replyArray(c, r->count);
    for (int i = 0; i < r->count; i++) {
        const fieldOperation *op = &r->operations[i];
        int64_t old = fieldRead(op, bytes, len), value = 0;
        if (op->verb == FIELD_GET) {
            replyInteger(c, old);
        } else if (fieldResult(op, old, &value)) {
            bitsWrite(bytes, op->offset, op->bits, (uint64_t)value);
            changes += grew || value != old;
            replyInteger(c, op->verb == FIELD_SET ? old : value);
        } else {
            replyNull(c);
        }
    }
    return changes;
}

static void runWrites(ctx *c, const fieldRequest *r) {
    robj *o = dbFind(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    if (!stringIsType(c, o)) return;
    size_t len = (r->end + 7) / 8;
    bool grew = !o || stringLen(o) < len;
    char *bytes;
    status st = o ? stringStretch(&o, len, &bytes) : stringNewRaw(c->argv[1], len, &o, &bytes);
    if (st != OK) {
        stringReplyNoMemory(c);
        return;
    }
    uint64_t changes = runAll(c, r, bytes, stringLen(o), grew);
    dbPlace(c->db, &c->at, o); /* stays a raw string of this length even if nothing was written */
    if (!changes) return;
    ctxKeyChanged(c, c->argv[1], &eventSetbit);
    engineHot.dirty += changes - 1;
}

/* BITFIELD key [GET type offset | [OVERFLOW WRAP|SAT|FAIL] SET type offset value | INCRBY type
 * offset increment] ... Reply: an array with the number read (GET), the old number (SET), the new
 * number (INCRBY), or null if FAIL prevented the operation. */
void bitfieldCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    fieldRequest r;
    if (!fieldsParse(c, &r)) return;
    if (r.writes) {
        runWrites(c, &r);
    } else {
        const robj *o = dbFindRead(c->db, c->argv[1], c->key_hash, c->look);
        if (stringIsType(c, o)) runReads(c, &r, o);
    }
    memFree(r.operations);
}

/* BITFIELD_RO key [GET type offset ...]. Reply: the numbers. */
void bitfieldRoCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    fieldRequest r;
    if (!fieldsParse(c, &r)) return;
    if (r.writes) {
        replyError(c, SLICE("ERR BITFIELD_RO only supports the GET subcommand"));
    } else {
        const robj *o = dbFindRead(c->db, c->argv[1], c->key_hash, c->look);
        if (stringIsType(c, o)) runReads(c, &r, o);
    }
    memFree(r.operations);
}
