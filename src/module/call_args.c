/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Arguments of commands that modules run or propagate, as a format describes them. */
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/session.h"
#include "module/call.h"

static void add(callArgs *a, slice arg) {
    hotCheck(a->argc <= a->max);
    if (a->argc == a->max) {
        int max = a->max * 2;
        slice *argv = memAlloc((size_t)max * sizeof(*argv));
        memcpy(argv, a->argv, (size_t)a->argc * sizeof(*argv));
        if (a->argv != a->few) memFree(a->argv);
        a->argv = argv;
        a->max = max;
    }
    a->argv[a->argc++] = arg;
}

static const struct {
    char letter;
    unsigned flag;
} modifiers[] = {
    {'!', VALKEYMODULE_CALL_ARGV_REPLICATE},        {'A', VALKEYMODULE_CALL_ARGV_NO_AOF},
    {'R', VALKEYMODULE_CALL_ARGV_NO_REPLICAS},      {'3', VALKEYMODULE_CALL_ARGV_RESP_3},
    {'0', VALKEYMODULE_CALL_ARGV_RESP_AUTO},        {'C', VALKEYMODULE_CALL_ARGV_RUN_AS_USER},
    {'S', VALKEYMODULE_CALL_ARGV_SCRIPT_MODE},      {'W', VALKEYMODULE_CALL_ARGV_NO_WRITES},
    {'M', VALKEYMODULE_CALL_ARGV_RESPECT_DENY_OOM}, {'E', VALKEYMODULE_CALL_ARGV_ERRORS_AS_REPLIES},
    {'D', VALKEYMODULE_CALL_ARGV_DRY_RUN},          {'K', VALKEYMODULE_CALL_ARGV_ALLOW_BLOCK},
    {'X', VALKEYMODULE_CALL_ARGV_REPLY_EXACT},
};

static bool takeModifier(callArgs *a, char letter) {
    for (size_t i = 0; i < sizeof(modifiers) / sizeof(modifiers[0]); i++) {
        if (modifiers[i].letter != letter) continue;
        a->flags |= modifiers[i].flag;
        return true;
    }
    return false;
}

static void addNumber(callArgs *a, long long number) {
    char *digits = poolAlloc(&a->digits, NUMBER_TEXT_MAX);
    size_t len = numberPrintInt(digits, number);
    add(a, sliceMake(digits, len));
}

bool callArgsTake(callArgs *a, const char *cmd, const char *format, va_list values) {
    *a = (callArgs){.max = CALL_ARGS_FEW};
    a->argv = a->few;
    add(a, sliceOf(cmd));
    for (const char *at = format; *at; at++) {
        if (*at == 'c') {
            add(a, sliceOf(va_arg(values, const char *)));
        } else if (*at == 's') {
            add(a, moduleStringSlice(va_arg(values, ValkeyModuleString *)));
        } else if (*at == 'b') {
            const char *bytes = va_arg(values, const char *);
            add(a, sliceMake(bytes, va_arg(values, size_t)));
        } else if (*at == 'l') {
            addNumber(a, va_arg(values, long long));
        } else if (*at == 'v') {
            ValkeyModuleString **strings = va_arg(values, ValkeyModuleString **);
            size_t count = va_arg(values, size_t);
            for (size_t i = 0; i < count; i++) add(a, moduleStringSlice(strings[i]));
        } else if (!takeModifier(a, *at)) {
            return false;
        }
    }
    hotCheck(a->argc >= 1);
    return true;
}

void callArgsClear(callArgs *a) {
    if (a->argv != a->few) memFree(a->argv);
    poolFree(&a->digits);
}

uint32_t callTargets(unsigned flags, uint32_t targets) {
    if (flags & VALKEYMODULE_CALL_ARGV_NO_AOF) targets &= ~(uint32_t)PROPAGATE_AOF;
    if (flags & VALKEYMODULE_CALL_ARGV_NO_REPLICAS)
        targets &= ~(uint32_t)(PROPAGATE_REPLICAS | PROPAGATE_SLOT_EXPORT);
    return targets;
}
