/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses the options of SET, GETEX and MSETEX. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/string_priv.h"
#include "engine/reply.h"

typedef struct optionRow {
    const char *word;
    uint32_t flag;
    uint32_t excludes; /* mutually exclusive options */
    bool has_value;
} optionRow;

#define OF_TTL (OPTION_TIMES | OPTION_KEEPTTL | OPTION_PERSIST)

/* Options other than IFEQ may be repeated. */
static const optionRow rows[] = {
    {"nx", OPTION_NX, OPTION_XX | OPTION_IFEQ, false},
    {"xx", OPTION_XX, OPTION_NX | OPTION_IFEQ, false},
    {"ifeq", OPTION_IFEQ, OPTION_NX | OPTION_XX | OPTION_IFEQ, true},
    {"get", OPTION_GET, 0, false},
    {"ex", OPTION_EX, OF_TTL & ~OPTION_EX, true},
    {"px", OPTION_PX, OF_TTL & ~OPTION_PX, true},
    {"exat", OPTION_EXAT, OF_TTL & ~OPTION_EXAT, true},
    {"pxat", OPTION_PXAT, OF_TTL & ~OPTION_PXAT, true},
    {"keepttl", OPTION_KEEPTTL, OF_TTL & ~OPTION_KEEPTTL, false},
    {"persist", OPTION_PERSIST, OF_TTL & ~OPTION_PERSIST, false},
};

static const optionRow *findRow(slice word) {
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (sliceIs(word, rows[i].word)) return &rows[i];
    }
    return NULL;
}

bool stringParseTime(ctx *c, slice number, enum stringOption unit, int64_t *out) {
    int64_t value;
    if (!numberParseInt(number, &value)) {
        replyError(c, ERR_NOT_INTEGER_TEXT);
        return false;
    }
    bool valid = value > 0;
    if (valid && unit & (OPTION_EX | OPTION_EXAT)) valid = numberMul(value, 1000, &value);
    if (valid && unit & (OPTION_EX | OPTION_PX)) valid = numberAdd(value, c->now_ms, &value);
    if (!valid) {
        replyErrorFormat(c, "ERR invalid expire time in '%.*s' command", (int)c->cmd->name.len,
                         c->cmd->name.ptr);
        return false;
    }
    *out = value;
    return true;
}

bool stringOptionsParse(ctx *c, int first, uint32_t known, stringOptions *out) {
    *out = (stringOptions){.expire_ms = OBJECT_NO_EXPIRE};
    for (int i = first; i < c->argc; i++) {
        const optionRow *row = findRow(c->argv[i]);
        if (!row || !(row->flag & known) || row->excludes & out->given ||
            (row->has_value && i + 1 == c->argc)) {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
        out->given |= row->flag;
        if (!row->has_value) continue;
        i++;
        if (row->flag == OPTION_IFEQ) {
            out->compare = i;
        } else {
            out->time = i;
        }
    }
    uint32_t unit = out->given & OPTION_TIMES;
    return !unit || stringParseTime(c, c->argv[out->time], unit, &out->expire_ms);
}
