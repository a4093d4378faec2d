/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decisions about requests (check.h). The keys of a request are found once and compared with the
 * patterns of each selector. Main thread only. */
#include "acl/check.h"

#include "acl/catalog.h"
#include "base/base.h"
#include "base/number.h"
#include "engine/channel_use.h"
#include "engine/lifecycle.h"

enum { KEYS_ON_STACK = 64 };

/* The keys of a request. */
typedef struct keyList {
    keyPosition *keys, *block; /* `block` is NULL if they fit on the stack */
    int count;                 /* -1: not determined */
    keyPosition few[KEYS_ON_STACK];
} keyList;

/* ------------------------------------------------------------------ databases */

static bool allowsDb(const aclSelector *s, int64_t db) {
    hotCheck(db >= 0);
    if (s->flags & ACL_ALL_DBS) return true;
    for (uint32_t i = 0; i < s->db_count; i++) {
        if (s->dbs[i] == db) return true;
    }
    return false;
}

/* True if the database in argument `i` is allowed. An invalid id is allowed, as the command itself
 * refuses it. */
static bool allowsDbArg(const aclSelector *s, const aclRequest *q, int i) {
    int64_t db;
    if (!numberParseInt(q->argv[i], &db) || db < 0 || db >= engineDatabaseCount()) return true;
    return allowsDb(s, db);
}

static bool allowsAllDbs(const aclSelector *s) {
    for (int db = 0; db < engineDatabaseCount(); db++) {
        if (!allowsDb(s, db)) return false;
    }
    return true;
}

/* Returns the index of the refused argument, 0 for the current database, -1 if all are allowed. */
static int refusedDb(const aclSelector *s, const aclRequest *q, int databases) {
    switch (databases) {
    case DBS_NONE: return -1;
    case DBS_EXEC: /* its conditions are about keys of this database */
        if (q->argc == 1) return -1;
        break;
    case DBS_ALL: return allowsAllDbs(s) ? -1 : 0;
    case DBS_SELECT: return allowsDbArg(s, q, 1) ? -1 : 1;
    case DBS_SWAP:
        if (!allowsDbArg(s, q, 1)) return 1;
        return allowsDbArg(s, q, 2) ? -1 : 2;
    case DBS_MOVE:
        if (!allowsDbArg(s, q, 2)) return 2;
        break;
    case DBS_COPY:
        for (int i = 3; i + 1 < q->argc; i++) {
            if (sliceIs(q->argv[i], "db") && !allowsDbArg(s, q, ++i)) return i;
        }
        break;
    default: break;
    }
    return allowsDb(s, q->db_id) ? -1 : 0;
}

/* ------------------------------------------------------------------ commands */

static bool allowsCommand(const aclSelector *s, const aclRequest *q) {
    hotCheck(q->cmd->id >= 0);
    int id = q->cmd->id;
    if (unlikely(id >= s->command_words * 64)) return s->by_default; /* loaded since */
    if (likely(s->commands[id / 64] >> id % 64 & 1)) return true;
    if (q->cmd->flags & CMD_NO_AUTH) return true;
    for (uint32_t i = 0; i < s->first_arg_count; i++) {
        const aclFirstArg *allowed = &s->first_args[i];
        if (allowed->command_id == id && q->argc > 1 && sliceEqualFold(q->argv[1], allowed->word))
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------ keys */

static bool hasWord(const aclRequest *q, int from, const char *word) {
    hotCheck(from > 0);
    for (int i = from; i < q->argc; i++) {
        if (sliceIs(q->argv[i], word)) return true;
    }
    return false;
}

/* ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member: with INCR the reply is the score. */
static bool hasIncr(const aclRequest *q) {
    static const char *const options[] = {"nx", "xx", "gt", "lt", "ch"};
    for (int i = 2; i < q->argc; i++) {
        if (sliceIs(q->argv[i], "incr")) return true;
        size_t known = 0;
        while (known < COUNT_OF(options) && !sliceIs(q->argv[i], options[known])) known++;
        if (known == COUNT_OF(options)) return false;
    }
    return false;
}

/* True if the reply has data of the first key. */
static bool returnsData(const aclRequest *q, int returns) {
    if (returns == RETURNS_CLAIMED) return !hasWord(q, 5, "justid");
    return returns == RETURNS_SCORE && hasIncr(q);
}

/* A malformed request has no keys: the command replies its own error. */
static NO_INLINE void findKeys(keyList *list, const aclRequest *q, int returns) {
    list->keys = commandAllKeys(q->cmd, q->argv, q->argc, list->few, KEYS_ON_STACK, &list->count);
    if (list->keys != list->few) list->block = list->keys;
    if (list->count < 0) list->count = 0;
    if (list->count && returns && returnsData(q, returns)) list->keys[0].flags |= KEY_ACCESS;
}

/* True if a pattern allows all keys that begin with these bytes. One that ends with a star, and
 * matches them, does: the star may match more. Patterns with ? [ \ are not asked. */
static bool allowsPrefix(const aclSelector *s, slice prefix, uint32_t access) {
    for (uint32_t i = 0; i < s->key_count; i++) {
        const aclPattern *p = &s->keys[i];
        bool open =
            p->kind == PATTERN_PREFIX || (p->kind == PATTERN_STARS && p->text[p->len - 1] == '*');
        if (open && (p->access & access) == access && aclPatternMatches(p, prefix)) return true;
    }
    return false;
}

/* Returns the index of the first refused key, 0 if all are allowed. `list` may be NULL unless keys
 * have to be found. */
static int refusedKey(const aclSelector *s, const aclRequest *q, const aclNeeds *needs,
                      keyList *list) {
    if (needs->keys == KEYS_NONE || s->flags & ACL_ALL_KEYS) return 0;
    if (needs->keys == KEYS_FIRST) {
        if (q->argc < 2) return 0;
        return aclAllowsKey(s->keys, s->key_count, q->argv[1], needs->access) ? 0 : 1;
    }
    if (needs->keys == KEYS_PREFIX)
        return q->argc < 2 || allowsPrefix(s, q->argv[1], needs->access) ? 0 : 1;
    if (list->count < 0) findKeys(list, q, needs->returns);
    for (int i = 0; i < list->count; i++) {
        const keyPosition *key = &list->keys[i];
        if (!aclAllowsKey(s->keys, s->key_count, q->argv[key->arg_index], aclAccessOf(key->flags)))
            return key->arg_index;
    }
    return 0;
}

/* ------------------------------------------------------------------ channels */

static bool selectorAllowsChannel(const aclSelector *s, slice channel, bool is_pattern) {
    if (s->flags & ACL_ALL_CHANNELS) return true;
    for (uint32_t i = 0; i < s->channel_count; i++) {
        const aclPattern *p = &s->channels[i];
        bool allowed = is_pattern ? sliceEqual(sliceMake(p->text, p->len), channel)
                                  : aclPatternMatches(p, channel);
        if (allowed) return true;
    }
    return false;
}

/* Asks the command for its channels. It need not be allowed to leave a channel. */
static NO_INLINE int refusedReported(const aclSelector *s, const aclRequest *q) {
    enum { FEW = 16 };
    keyPosition few[FEW];
    int count, refused = 0;
    keyPosition *all = commandChannels(q->cmd, q->argv, q->argc, few, FEW, &count);
    for (int i = 0; i < count && !refused; i++) {
        bool is_used = all[i].flags & (CHANNEL_USE_PUBLISH | CHANNEL_USE_SUBSCRIBE);
        bool is_pattern = all[i].flags & CHANNEL_USE_PATTERN;
        int at = all[i].arg_index;
        if (is_used && !selectorAllowsChannel(s, q->argv[at], is_pattern)) refused = at;
    }
    if (all != few) memFree(all);
    return refused;
}

/* Returns the index of the first refused channel, 0 if all are allowed. */
static int refusedChannel(const aclSelector *s, const aclRequest *q, const aclNeeds *needs) {
    hotCheck(q->argc > 0);
    if (needs->channels == CHANNELS_NONE) return 0;
    if (needs->channels == CHANNELS_FIND)
        return s->flags & ACL_ALL_CHANNELS ? 0 : refusedReported(s, q);
    int last = needs->channel_list ? q->argc - 1 : needs->channel_first;
    for (int i = needs->channel_first; i <= last && i < q->argc; i++) {
        if (!selectorAllowsChannel(s, q->argv[i], needs->channels == CHANNELS_LITERAL)) return i;
    }
    return 0;
}

bool aclAllowsChannel(const aclRules *rules, slice channel, bool is_pattern) {
    for (uint32_t i = 0; i < rules->selector_count; i++) {
        if (selectorAllowsChannel(&rules->selectors[i], channel, is_pattern)) return true;
    }
    return false;
}

/* ------------------------------------------------------------------ the decision */

static inline aclVerdict decideOne(const aclSelector *s, const aclRequest *q, const aclNeeds *needs,
                                   keyList *list, int *arg_index) {
    hotCheck(q->argc > 0);
    *arg_index = 0;
    if (unlikely(!(s->flags & ACL_ALL_DBS))) {
        int db = refusedDb(s, q, needs->databases);
        if (db >= 0) {
            *arg_index = db;
            return ACL_DENIED_DATABASE;
        }
    }
    if (!allowsCommand(s, q)) return ACL_DENIED_COMMAND;
    *arg_index = refusedKey(s, q, needs, list);
    if (*arg_index) return ACL_DENIED_KEY;
    *arg_index = refusedChannel(s, q, needs);
    return *arg_index ? ACL_DENIED_CHANNEL : ACL_ALLOWED;
}

/* Asks the selectors from the second one on; `verdict` is that of the first. */
static aclVerdict decideFurther(const aclRules *rules, const aclRequest *q, const aclNeeds *needs,
                                keyList *list, aclVerdict verdict, int *arg_index) {
    for (uint32_t i = 1; verdict != ACL_ALLOWED && i < rules->selector_count; i++) {
        int index;
        aclVerdict other = decideOne(&rules->selectors[i], q, needs, list, &index);
        if (other == ACL_ALLOWED || other > verdict || (other == verdict && index > *arg_index)) {
            verdict = other;
            *arg_index = index;
        }
    }
    return verdict;
}

/* For commands whose keys have to be found. */
static NO_INLINE aclVerdict decideFinding(const aclRules *rules, const aclRequest *q,
                                          const aclNeeds *needs, int *arg_index) {
    keyList list;
    list.count = -1;
    list.block = NULL;
    aclVerdict verdict = decideOne(&rules->selectors[0], q, needs, &list, arg_index);
    verdict = decideFurther(rules, q, needs, &list, verdict, arg_index);
    memFree(list.block);
    return verdict;
}

static uint8_t actionOf(const aclSelector *s, const command *cmd, bool limits_dbs) {
    hotCheck(cmd->id >= 0);
    const aclNeeds *needs = aclNeedsOf(cmd);
    unsigned id = cmd->id;
    if (limits_dbs && needs->databases == DBS_SELECT) return ACTION_DECIDE; /* is noted in MULTI */
    if (!(s->flags & ACL_ALL_DBS) || id >= s->command_words * 64u) return ACTION_DECIDE;
    if (!(s->commands[id / 64] >> id % 64 & 1)) return ACTION_DECIDE;
    if (needs->channels && !(s->flags & ACL_ALL_CHANNELS)) return ACTION_DECIDE;
    if (s->flags & ACL_ALL_KEYS || needs->keys == KEYS_NONE) return ACTION_ALLOW;
    return needs->keys == KEYS_FIRST ? (uint8_t)(ACTION_KEY + needs->access) : ACTION_DECIDE;
}

const aclSelector *aclUsualSelector(const aclRules *rules) {
    hotCheck(rules->selector_count > 0);
    for (uint32_t i = 0; i < rules->selector_count; i++) {
        const aclSelector *s = &rules->selectors[i];
        for (int word = 0; word < s->command_words; word++) {
            if (s->commands[word]) return s;
        }
    }
    return &rules->selectors[0];
}

void aclActionsFill(const aclRules *rules, uint8_t *actions, int count) {
    hotCheck(count >= 0);
    bool limits_dbs = aclLimitsDatabases(rules);
    const aclSelector *usual = aclUsualSelector(rules);
    for (int id = 0; id < count; id++) actions[id] = actionOf(usual, commandById(id), limits_dbs);
}

aclVerdict aclDecide(const aclRules *rules, const aclRequest *q, int *arg_index) {
    const aclNeeds *needs = aclNeedsOf(q->cmd);
    if (unlikely(needs->keys == KEYS_FIND)) return decideFinding(rules, q, needs, arg_index);
    aclVerdict verdict = decideOne(&rules->selectors[0], q, needs, NULL, arg_index);
    if (likely(verdict == ACL_ALLOWED)) return ACL_ALLOWED;
    return decideFurther(rules, q, needs, NULL, verdict, arg_index);
}

static bool readsEverything(const aclSelector *s) {
    if (s->flags & ACL_ALL_KEYS) return true;
    for (uint32_t i = 0; i < s->key_count; i++) {
        const aclPattern *p = &s->keys[i];
        if (p->access & ACL_READ && p->len == 1 && p->text[0] == '*') return true;
    }
    return false;
}

bool aclReadsEverything(const aclRules *rules, const aclRequest *q, bool of_all_dbs) {
    hotCheck(q->argc > 0);
    const aclNeeds *needs = aclNeedsOf(q->cmd);
    keyList list;
    list.count = -1;
    list.block = NULL;
    bool does = false;
    for (uint32_t i = 0; i < rules->selector_count && !does; i++) {
        const aclSelector *s = &rules->selectors[i];
        int arg_index;
        does = readsEverything(s) && (!of_all_dbs || s->flags & ACL_ALL_DBS || allowsAllDbs(s)) &&
               decideOne(s, q, needs, &list, &arg_index) == ACL_ALLOWED;
    }
    memFree(list.block);
    return does;
}

uint32_t aclChecksOf(const aclRules *rules) {
    uint32_t checks = ACL_CHECK_ALL;
    bool unlimited = false;
    for (uint32_t i = 0; i < rules->selector_count; i++) {
        const aclSelector *s = &rules->selectors[i];
        if (!s->all_commands || !(s->flags & ACL_ALL_DBS)) continue;
        uint32_t own = 0;
        if (!(s->flags & ACL_ALL_KEYS)) own |= ACL_CHECK_KEYS;
        if (!(s->flags & ACL_ALL_CHANNELS)) own |= ACL_CHECK_CHANNELS;
        checks = checks == ACL_CHECK_ALL ? own : checks & own;
        if (!own) unlimited = true;
    }
    /* One selector allows all keys, and another one all channels: none a command with both. */
    if (!checks && !unlimited) checks = ACL_CHECK_KEYS;
    /* A queued SELECT decides about the commands after it. */
    return checks && aclLimitsDatabases(rules) ? ACL_CHECK_ALL : checks;
}

bool aclLimitsDatabases(const aclRules *rules) {
    for (uint32_t i = 0; i < rules->selector_count; i++) {
        if (!(rules->selectors[i].flags & ACL_ALL_DBS)) return true;
    }
    return false;
}

bool aclMayReadAll(const aclRules *rules) {
    for (uint32_t i = 0; i < rules->selector_count; i++) {
        const uint32_t all = ACL_ALL_KEYS | ACL_ALL_DBS;
        const aclSelector *s = &rules->selectors[i];
        if ((s->flags & all) == all && s->uses & ACL_READ) return true;
    }
    return false;
}

static bool mayAccess(const aclRules *rules, int db_id, slice key, uint32_t access) {
    hotCheck(db_id >= 0);
    for (uint32_t i = 0; i < rules->selector_count; i++) {
        const aclSelector *s = &rules->selectors[i];
        if (!(s->uses & access) || !allowsDb(s, db_id)) continue;
        if (s->flags & ACL_ALL_KEYS || aclAllowsKey(s->keys, s->key_count, key, access))
            return true;
    }
    return false;
}

bool aclMayRead(const aclRules *rules, int db_id, slice key) {
    return mayAccess(rules, db_id, key, ACL_READ);
}

bool aclMayWrite(const aclRules *rules, int db_id, slice key) {
    return mayAccess(rules, db_id, key, ACL_WRITE);
}
