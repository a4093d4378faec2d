/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: the description of a command, which COMMAND INFO and DOCS show and by which
 * its keys are found. All of it is copied. The module passes the sizes that elements of its arrays
 * have in its header, and the arrays are walked with these, so a module compiled with a later
 * header may have larger elements.
 *
 * Main thread only. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "module/commands.h"
#include "module/generated/api.h"
#include "module/generated/command_info.h"

typedef ValkeyModuleCommandKeySpec givenKeys;
typedef ValkeyModuleCommandArg givenArg;
typedef ValkeyModuleCommandHistoryEntry givenHistory;

/* Element `i` of an array. */
static const void *elementAt(const void *array, size_t size, int i) {
    hotCheck(i >= 0);
    return (const char *)array + size * (size_t)i;
}

static bool refuse(const char *what) {
    logWarning("Invalid command info: %s", what);
    return false;
}

/* ------------------------------------------------------------------ validation */

enum { ACCESS_BITS = KEY_RO | KEY_RW | KEY_OW | KEY_RM };

static bool keysAreValid(const givenKeys *k) {
    uint32_t access = (uint32_t)k->flags & ACCESS_BITS;
    if (!(k->flags & KEY_NOT_KEY) && __builtin_popcount(access) != 1)
        return refuse("key_specs: exactly one of the flags RO, RW, OW, RM is required");
    if (k->begin_search_type == VALKEYMODULE_KSPEC_BS_INDEX && k->bs.index.pos < 1)
        return refuse("key_specs: the position of an index must be positive");
    if (k->begin_search_type == VALKEYMODULE_KSPEC_BS_KEYWORD && !k->bs.keyword.keyword)
        return refuse("key_specs: a keyword is missing");
    if (k->begin_search_type > VALKEYMODULE_KSPEC_BS_KEYWORD)
        return refuse("key_specs: unknown begin_search_type");
    if (k->find_keys_type > VALKEYMODULE_KSPEC_FK_KEYNUM)
        return refuse("key_specs: unknown find_keys_type");
    if (k->find_keys_type == VALKEYMODULE_KSPEC_FK_RANGE && k->fk.range.keystep < 1)
        return refuse("key_specs: the step of a range must be positive");
    if (k->find_keys_type == VALKEYMODULE_KSPEC_FK_KEYNUM &&
        (k->fk.keynum.keynumidx < 0 || k->fk.keynum.keystep < 1))
        return refuse("key_specs: a number of keys has an invalid place or step");
    return true;
}

static int countArgs(const givenArg *args, size_t size) {
    int count = 0;
    while (args && ((const givenArg *)elementAt(args, size, count))->name) count++;
    return count;
}

enum { ARGS_MAX = INT8_MAX };

static bool argsAreValid(const givenArg *args, size_t size, int key_specs) {
    hotCheck(key_specs >= 0);
    int count = countArgs(args, size);
    if (count > ARGS_MAX) return refuse("args: too many");
    for (int i = 0; i < count; i++) {
        const givenArg *a = elementAt(args, size, i);
        if (a->type > VALKEYMODULE_ARG_TYPE_BLOCK) return refuse("args: unknown type");
        if (a->type == VALKEYMODULE_ARG_TYPE_PURE_TOKEN && !a->token)
            return refuse("args: a token of type PURE_TOKEN is missing");
        if (a->type == VALKEYMODULE_ARG_TYPE_KEY && a->key_spec_index >= key_specs)
            return refuse("args: a key names a key specification that is not there");
        bool has_parts =
            a->type == VALKEYMODULE_ARG_TYPE_ONEOF || a->type == VALKEYMODULE_ARG_TYPE_BLOCK;
        if (has_parts != (a->subargs != NULL))
            return refuse("args: subargs are for the types ONEOF and BLOCK, which need them");
        if (has_parts && !argsAreValid(a->subargs, size, key_specs)) return false;
    }
    return true;
}

static int countKeys(const ValkeyModuleCommandInfo *info) {
    int count = 0;
    while (info->key_specs &&
           ((const givenKeys *)elementAt(info->key_specs, info->version->sizeof_keyspec, count))
               ->begin_search_type)
        count++;
    return count;
}

static bool isValid(const ValkeyModuleCommandInfo *info) {
    int keys = countKeys(info);
    for (int i = 0; i < keys; i++) {
        if (!keysAreValid(elementAt(info->key_specs, info->version->sizeof_keyspec, i)))
            return false;
    }
    return argsAreValid(info->args, info->version->sizeof_arg, keys);
}

/* ------------------------------------------------------------------ copies */

static void copyHistory(moduleCommand *m, const givenHistory *from, size_t size) {
    hotCheck(!m->spec.history);
    int count = 0;
    while (from && ((const givenHistory *)elementAt(from, size, count))->since) count++;
    if (!count) return;
    commandHistory *to = poolAlloc(&m->texts, (size_t)count * sizeof(*to));
    for (int i = 0; i < count; i++) {
        const givenHistory *h = elementAt(from, size, i);
        to[i] = (commandHistory){poolText(&m->texts, h->since), poolText(&m->texts, h->changes)};
    }
    m->spec.history = to;
    m->spec.history_count = count;
}

/* Words with blanks between them. */
static void copyTips(moduleCommand *m, const char *tips) {
    if (!tips) return;
    char *text = poolText(&m->texts, tips), *state = NULL;
    const char **list = poolAlloc(&m->texts, (strlen(tips) / 2 + 1) * sizeof(*list));
    int count = 0;
    for (char *w = strtok_r(text, " ", &state); w; w = strtok_r(NULL, " ", &state))
        list[count++] = w;
    m->spec.tips = list;
    m->spec.tip_count = count;
}

static keySpec keySpecOf(moduleCommand *m, const givenKeys *k) {
    keySpec s = {.notes = poolText(&m->texts, k->notes), .flags = (uint32_t)k->flags};
    s.begin = KEY_BEGIN_UNKNOWN;
    s.find = KEY_FIND_UNKNOWN;
    if (k->begin_search_type == VALKEYMODULE_KSPEC_BS_INDEX) {
        s.begin = KEY_BEGIN_INDEX;
        s.begin_at = k->bs.index.pos;
    } else if (k->begin_search_type == VALKEYMODULE_KSPEC_BS_KEYWORD) {
        s.begin = KEY_BEGIN_KEYWORD;
        s.keyword = poolText(&m->texts, k->bs.keyword.keyword);
        s.begin_at = k->bs.keyword.startfrom;
    }
    if (k->find_keys_type == VALKEYMODULE_KSPEC_FK_RANGE) {
        s.find = KEY_FIND_RANGE;
        s.last = k->fk.range.lastkey;
        s.step = k->fk.range.keystep;
        s.limit = k->fk.range.limit;
    } else if (k->find_keys_type == VALKEYMODULE_KSPEC_FK_KEYNUM) {
        s.find = KEY_FIND_KEYNUM;
        s.keynum_index = k->fk.keynum.keynumidx;
        s.first_key = k->fk.keynum.firstkey;
        s.keynum_step = k->fk.keynum.keystep;
    } else if (k->find_keys_type == VALKEYMODULE_KSPEC_FK_OMITTED) {
        s.find = KEY_FIND_RANGE; /* the one key */
        s.step = 1;
    }
    return s;
}

static bool isPlainRange(const keySpec *s) {
    return s->begin == KEY_BEGIN_INDEX && s->find == KEY_FIND_RANGE;
}

/* The three numbers that older clients read: of the first range, with those that continue it. */
static void summarizeKeys(moduleCommand *m) {
    hotCheck(m->spec.key_specs);
    int first = 0, last = 0, step = 0;
    for (int i = 0; i < m->spec.key_spec_count; i++) {
        const keySpec *s = &m->spec.key_specs[i];
        if (!isPlainRange(s)) {
            m->spec.flags |= CMD_MOVABLEKEYS;
            continue;
        }
        int end = s->last >= 0 ? s->begin_at + s->last : s->last;
        if (!first) {
            first = s->begin_at;
            last = end;
            step = s->step;
        } else if (last >= 0 && s->begin_at == last + 1 && s->step == step) {
            last = end;
        } else {
            m->spec.flags |= CMD_MOVABLEKEYS;
        }
    }
    m->spec.first_key = (int8_t)first;
    m->spec.last_key = (int8_t)last;
    m->spec.key_step = (int8_t)step;
}

static void copyKeys(moduleCommand *m, const ValkeyModuleCommandInfo *info) {
    hotCheck(m->described);
    int count = countKeys(info);
    if (!count) return;
    keySpec *to = poolAlloc(&m->texts, (size_t)count * sizeof(*to));
    for (int i = 0; i < count; i++) {
        to[i] = keySpecOf(m, elementAt(info->key_specs, info->version->sizeof_keyspec, i));
        if (m->reports_keys) to[i].flags |= KEY_VARIABLE_FLAGS;
    }
    m->spec.key_specs = to;
    m->spec.key_spec_count = count;
    summarizeKeys(m);
}

static const argType arg_types[] = {[VALKEYMODULE_ARG_TYPE_STRING] = ARG_STRING,
                                    [VALKEYMODULE_ARG_TYPE_INTEGER] = ARG_INTEGER,
                                    [VALKEYMODULE_ARG_TYPE_DOUBLE] = ARG_DOUBLE,
                                    [VALKEYMODULE_ARG_TYPE_KEY] = ARG_KEY,
                                    [VALKEYMODULE_ARG_TYPE_PATTERN] = ARG_PATTERN,
                                    [VALKEYMODULE_ARG_TYPE_UNIX_TIME] = ARG_UNIX_TIME,
                                    [VALKEYMODULE_ARG_TYPE_PURE_TOKEN] = ARG_PURE_TOKEN,
                                    [VALKEYMODULE_ARG_TYPE_ONEOF] = ARG_ONEOF,
                                    [VALKEYMODULE_ARG_TYPE_BLOCK] = ARG_BLOCK};

static const commandArg *copyArgs(moduleCommand *m, const givenArg *args, size_t size,
                                  int *out_count) {
    hotCheck(m->owner->loading);
    int count = countArgs(args, size);
    *out_count = count;
    if (!count) return NULL;
    commandArg *to = poolAlloc(&m->texts, (size_t)count * sizeof(*to));
    for (int i = 0; i < count; i++) {
        const givenArg *a = elementAt(args, size, i);
        int parts = 0;
        const commandArg *sub = copyArgs(m, a->subargs, size, &parts);
        bool has_key = a->type == VALKEYMODULE_ARG_TYPE_KEY;
        to[i] = (commandArg){.name = poolText(&m->texts, a->name),
                             .display = poolText(&m->texts, a->display_text),
                             .token = poolText(&m->texts, a->token),
                             .summary = poolText(&m->texts, a->summary),
                             .since = poolText(&m->texts, a->since),
                             .deprecated_since = poolText(&m->texts, a->deprecated_since),
                             .type = arg_types[a->type],
                             .flags = (uint8_t)a->flags,
                             .key_spec = (int8_t)(has_key ? a->key_spec_index : -1),
                             .count = (int8_t)parts,
                             .args = sub};
    }
    return to;
}

int apiSetCommandInfo(ValkeyModuleCommand *command, const ValkeyModuleCommandInfo *info) {
    moduleCommand *m = (moduleCommand *)command;
    if (!m || !info || !info->version || !m->owner->loading || !isValid(info)) {
        errno = EINVAL;
        return VALKEYMODULE_ERR;
    }
    if (m->described) {
        errno = EEXIST;
        return VALKEYMODULE_ERR;
    }
    m->described = true;
    m->spec.summary = poolText(&m->texts, info->summary);
    m->spec.complexity = poolText(&m->texts, info->complexity);
    m->spec.since = poolText(&m->texts, info->since);
    copyHistory(m, info->history, info->version->sizeof_historyentry);
    copyTips(m, info->tips);
    if (info->arity) m->spec.arity = (int16_t)info->arity;
    copyKeys(m, info);
    m->spec.args = copyArgs(m, info->args, info->version->sizeof_arg, &m->spec.arg_count);
    return VALKEYMODULE_OK;
}
