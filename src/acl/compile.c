/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compiles drafts to immutable rules (rules.h). A first pass measures, a second one fills one
 * block: structures first, then texts. Invariant: both passes go through the draft in the same
 * order, which check() verifies at the end. Main thread only. */
#define _GNU_SOURCE /* memmem() */
#include <string.h>

#include "acl/catalog.h"
#include "acl/roles.h"
#include "acl/rules.h"
#include "base/base.h"
#include "base/glob.h"

/* The block under construction. `at` NULL: only measuring. */
typedef struct block {
    char *at;
    size_t size;
} block;

/* Takes aligned bytes of the block; NULL while measuring or for 0 bytes. */
static void *take(block *b, size_t size, size_t align) {
    hotCheck((align & (align - 1)) == 0);
    hotCheck(align > 0);
    size_t start = (b->size + align - 1) & ~(align - 1);
    b->size = start + size;
    return b->at && size ? b->at + start : NULL;
}

static const char *takeText(block *b, slice text) {
    char *copy = take(b, text.len, 1);
    if (copy) memcpy(copy, text.ptr, text.len);
    return copy ? copy : "";
}

/* ------------------------------------------------------------------ patterns */

enum { STARS_MAX = 8 };

/* The kind of a pattern that is not too long for its fields. */
static uint8_t kindOf(slice text, size_t plain) {
    hotCheck(plain <= text.len);
    if (plain == text.len) return PATTERN_LITERAL;
    if (plain + 1 == text.len && text.ptr[plain] == '*') return PATTERN_PREFIX;
    int stars = 0;
    for (size_t i = plain; i < text.len; i++) {
        if (memchr("?[\\", text.ptr[i], 3)) return PATTERN_GLOB;
        stars += text.ptr[i] == '*';
    }
    return stars <= STARS_MAX ? PATTERN_STARS : PATTERN_GLOB;
}

/* Number of literal bytes after the last star, with which every match ends; 0 for patterns in which
 * a star may be escaped or in a class. */
static uint16_t suffixOf(slice text) {
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '[' || c == '\\') return 0;
        len = c == '*' ? 0 : len + 1;
        if (c == '?') len = SIZE_MAX / 2; /* no suffix, unless a star follows */
    }
    return len <= UINT16_MAX ? (uint16_t)len : 0;
}

static aclPattern classify(slice text, uint8_t access) {
    size_t plain = 0;
    while (plain < text.len && !memchr("*?[\\", text.ptr[plain], 4)) plain++;
    aclPattern p = {.text = text.ptr, .len = (uint32_t)text.len, .access = access};
    p.literal = (uint16_t)sizeMin(plain, UINT16_MAX);
    p.kind = text.len <= UINT16_MAX ? kindOf(text, plain) : PATTERN_GLOB;
    size_t head = sizeMin(p.literal, sizeof(p.head));
    for (size_t i = 0; i < head; i++) p.head |= (uint64_t)(uint8_t)text.ptr[i] << 8 * i;
    if (head) p.head_shift = (uint8_t)(64 - 8 * head);
    if (p.kind == PATTERN_STARS || p.kind == PATTERN_GLOB) p.suffix = suffixOf(text);
    return p;
}

/* Stars with literals between them: each literal is found at its first place after the one
 * before. */
static bool segmentsMatch(slice pattern, slice text) {
    check(pattern.len > 0);
    check(pattern.ptr[0] == '*');
    while (pattern.len) {
        const char *star = memchr(pattern.ptr, '*', pattern.len);
        size_t len = star ? (size_t)(star - pattern.ptr) : pattern.len;
        const char *at = text.ptr;
        if (len == 1) {
            at = memchr(text.ptr, pattern.ptr[0], text.len);
        } else if (len > 1) {
            at = memmem(text.ptr, text.len, pattern.ptr, len);
        }
        if (!at) return false;
        size_t used = (size_t)(at - text.ptr) + len;
        text = sliceMake(text.ptr + used, text.len - used);
        len += star != NULL;
        pattern = sliceMake(pattern.ptr + len, pattern.len - len);
    }
    return true;
}

static bool hasOnlyStars(slice pattern) {
    while (pattern.len && pattern.ptr[pattern.len - 1] == '*') pattern.len--;
    return pattern.len == 0;
}

bool aclPatternMatchesAll(const aclPattern *p, slice text) {
    size_t from = p->literal, end = p->suffix;
    const char *text_end = text.ptr + text.len, *pattern_end = p->text + p->len;
    if (text.len < from + end) return false;
    if (end && text_end[-1] != pattern_end[-1]) return false;
    bool head_matched = from <= sizeof(p->head) && text.len >= sizeof(p->head);
    if (!head_matched && memcmp(text.ptr, p->text, from) != 0) return false;
    if (p->kind == PATTERN_PREFIX) return text.len > 0; /* as for globMatch() */
    if (p->kind == PATTERN_LITERAL) return text.len == p->len;
    if (end > 1 && memcmp(text_end - end, pattern_end - end, end) != 0) return false;
    /* The middle of the pattern matches the middle of the text. */
    slice pattern = sliceMake(p->text + from, p->len - from - end);
    text = sliceMake(text.ptr + from, text.len - from - end);
    if (unlikely(!text.len)) return from + end > 0 && hasOnlyStars(pattern);
    return p->kind == PATTERN_STARS ? segmentsMatch(pattern, text) : globMatch(pattern, text);
}

static const aclPattern *takePatterns(block *b, const aclDraftPattern *from, int count) {
    hotCheck(count >= 0);
    aclPattern *list = take(b, sizeof(*list) * (size_t)count, _Alignof(aclPattern));
    for (int i = 0; list && i < count; i++)
        list[i] = classify(strSlice(&from[i].text), from[i].access);
    return list;
}

static void takePatternTexts(block *b, const aclPattern *list, const aclDraftPattern *from,
                             int count) {
    hotCheck(count >= 0);
    for (int i = 0; i < count; i++) {
        const char *copy = takeText(b, strSlice(&from[i].text));
        if (list) ((aclPattern *)list)[i].text = copy;
    }
}

/* ------------------------------------------------------------------ commands */

/* The sign and name of the next rule of a list; false at its end. */
static bool nextRule(slice *list, bool *allow, slice *name) {
    if (list->len == 0) return false;
    const char *blank = memchr(list->ptr, ' ', list->len);
    size_t len = blank ? (size_t)(blank - list->ptr) : list->len;
    check(len >= 2);
    *allow = list->ptr[0] == '+';
    *name = sliceMake(list->ptr + 1, len - 1);
    len += blank != NULL;
    *list = sliceMake(list->ptr + len, list->len - len);
    return true;
}

/* The command of +command|argument, NULL if `name` is something else; *word is the argument. */
static const command *firstArgOf(slice name, slice *word) {
    const char *bar = memchr(name.ptr, '|', name.len);
    if (!bar || aclCommandFind(name)) return NULL;
    size_t len = (size_t)(bar - name.ptr);
    *word = sliceMake(bar + 1, name.len - len - 1);
    return aclCommandFind(sliceMake(name.ptr, len));
}

static void setCommand(uint64_t *bits, const command *cmd, bool allow) {
    hotCheck(cmd->id >= 0);
    uint64_t bit = UINT64_C(1) << cmd->id % 64;
    bits[cmd->id / 64] = allow ? bits[cmd->id / 64] | bit : bits[cmd->id / 64] & ~bit;
    for (int i = 0; i < cmd->sub_count; i++) setCommand(bits, &cmd->subs[i], allow);
}

/* A rule for a category also removes first arguments of its commands. */
static void setCategory(uint64_t *bits, int words, slice name, bool allow, aclFirstArg *args,
                        uint32_t *arg_count) {
    const uint64_t *members = aclCategoryBits(name);
    check(members != NULL);
    for (int i = 0; i < words; i++) bits[i] = allow ? bits[i] | members[i] : bits[i] & ~members[i];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *arg_count; i++) {
        int id = args[i].command_id;
        if (!(members[id / 64] >> id % 64 & 1)) args[kept++] = args[i];
    }
    *arg_count = kept;
}

/* Evaluates the rules in order. `args` has space for one entry per rule. */
static void evaluate(aclSelector *s, uint64_t *bits, int words, aclFirstArg *args) {
    hotCheck(words > 0);
    slice list = s->rules, name;
    bool allow;
    while (nextRule(&list, &allow, &name)) {
        slice word;
        if (sliceIs(name, "@all")) {
            s->by_default = allow;
            memset(bits, allow ? 0xff : 0, sizeof(*bits) * (size_t)words);
        } else if (name.ptr[0] == '@') {
            slice category = sliceMake(name.ptr + 1, name.len - 1);
            setCategory(bits, words, category, allow, args, &s->first_arg_count);
        } else {
            const command *cmd = firstArgOf(name, &word);
            if (cmd) {
                args[s->first_arg_count++] = (aclFirstArg){word, cmd->id};
            } else {
                cmd = aclCommandFind(name);
                if (cmd) setCommand(bits, cmd, allow); /* else it was unloaded */
            }
        }
    }
    s->all_commands = sliceEqual(s->rules, SLICE("+@all"));
}

/* Returns whether the allowed commands read or write keys, as bits of enum aclAccess. */
static uint8_t usesOf(const aclSelector *s) {
    uint8_t uses = s->first_arg_count ? ACL_READ | ACL_WRITE : 0;
    for (int id = 0; id < commandIdCount() && id < s->command_words * 64; id++) {
        if (!(s->commands[id / 64] >> id % 64 & 1)) continue;
        uint64_t flags = commandById(id)->flags;
        if (flags & CMD_WRITE) return ACL_READ | ACL_WRITE;
        if (flags & CMD_READONLY) uses |= ACL_READ;
    }
    return uses;
}

/* Upper bound of the first arguments among the rules. */
static size_t firstArgsMax(slice rules) {
    size_t bars = 0;
    for (size_t i = 0; i < rules.len; i++) bars += rules.ptr[i] == '|';
    return bars;
}

/* ------------------------------------------------------------------ blocks */

/* `s` is NULL while measuring. */
static void takeSelector(block *b, aclSelector *s, const aclDraftSelector *from) {
    hotCheck(from->key_count >= 0);
    hotCheck(from->channel_count >= 0);
    hotCheck(from->db_count >= 0);
    int words = aclCommandWords();
    slice rules = strSlice(&from->commands);
    uint64_t *bits = take(b, sizeof(*bits) * (size_t)words, _Alignof(uint64_t));
    aclFirstArg *args = take(b, sizeof(*args) * firstArgsMax(rules), _Alignof(aclFirstArg));
    const aclPattern *keys = takePatterns(b, from->keys, from->key_count);
    const aclPattern *channels = takePatterns(b, from->channels, from->channel_count);
    int32_t *dbs = take(b, sizeof(*dbs) * (size_t)from->db_count, _Alignof(int32_t));
    takePatternTexts(b, keys, from->keys, from->key_count);
    takePatternTexts(b, channels, from->channels, from->channel_count);
    const char *text = takeText(b, rules);
    if (!s) return;
    *s = (aclSelector){.commands = bits,
                       .keys = keys,
                       .channels = channels,
                       .dbs = dbs,
                       .first_args = args,
                       .rules = sliceMake(text, rules.len),
                       .key_count = (uint32_t)from->key_count,
                       .channel_count = (uint32_t)from->channel_count,
                       .db_count = (uint32_t)from->db_count,
                       .command_words = (uint16_t)words,
                       .flags = (uint8_t)from->flags};
    if (dbs) memcpy(dbs, from->dbs, sizeof(*dbs) * (size_t)from->db_count);
    evaluate(s, bits, words, args);
    s->uses = usesOf(s);
}

/* Takes an array of the names. */
static const slice *takeNames(block *b, const str *names, int count) {
    hotCheck(count >= 0);
    slice *list = take(b, sizeof(*list) * (size_t)count, _Alignof(slice));
    for (int i = 0; i < count; i++) {
        const char *text = takeText(b, strSlice(&names[i]));
        if (list) list[i] = sliceMake(text, names[i].len);
    }
    return list;
}

static aclRules *fill(block *b, const aclDraft *d) {
    hotCheck(d->selector_count > 0);
    size_t selectors = (size_t)d->selector_count, passwords = (size_t)d->password_count;
    aclRules *rules = take(b, sizeof(*rules) + selectors * sizeof(aclSelector), _Alignof(aclRules));
    const slice *roles = takeNames(b, d->roles, d->role_count);
    uint8_t *hashes = take(b, passwords * ACL_HASH_SIZE, 1);
    if (hashes) memcpy(hashes, d->passwords, passwords * ACL_HASH_SIZE);
    if (rules) {
        *rules = (aclRules){.on = d->on,
                            .nopass = d->nopass,
                            .maxmemory = d->maxmemory,
                            .cpu_percent = d->cpu_percent,
                            .password_count = (uint32_t)passwords,
                            .selector_count = (uint32_t)selectors,
                            .role_count = (uint32_t)d->role_count,
                            .roles = roles,
                            .passwords = (const uint8_t(*)[ACL_HASH_SIZE])hashes};
    }
    for (size_t i = 0; i < selectors; i++)
        takeSelector(b, rules ? &rules->selectors[i] : NULL, &d->selectors[i]);
    return rules;
}

/* ------------------------------------------------------------------ drafts */

static aclDraftPattern *draftPatterns(const aclPattern *from, uint32_t count) {
    if (count == 0) return NULL;
    size_t cap = 1;
    while (cap < count) cap *= 2; /* as when they are added one by one */
    aclDraftPattern *list = memNewArray(aclDraftPattern, cap);
    for (uint32_t i = 0; i < count; i++) {
        list[i] = (aclDraftPattern){strNew(sliceMake(from[i].text, from[i].len)), from[i].access};
    }
    return list;
}

static void draftSelector(aclDraftSelector *d, const aclSelector *s) {
    *d = (aclDraftSelector){.flags = s->flags,
                            .keys = draftPatterns(s->keys, s->key_count),
                            .channels = draftPatterns(s->channels, s->channel_count),
                            .key_count = (int)s->key_count,
                            .channel_count = (int)s->channel_count,
                            .db_count = (int)s->db_count,
                            .commands = strNew(s->rules)};
    if (!s->db_count) return;
    d->dbs = memNewArray(int32_t, s->db_count);
    memcpy(d->dbs, s->dbs, sizeof(*d->dbs) * s->db_count);
}

static void takeSelectorsOf(aclDraft *d, const aclRules *rules) {
    hotCheck(rules->own_count > 0);
    size_t cap = 1;
    while (cap < rules->own_count) cap *= 2;
    d->selectors = memNewArray(aclDraftSelector, cap);
    d->selector_count = (int)rules->own_count;
    for (uint32_t i = 0; i < rules->own_count; i++)
        draftSelector(&d->selectors[i], &rules->selectors[i]);
}

void aclDraftFrom(aclDraft *d, const aclRules *rules) {
    hotCheck(threadIsMain());
    *d = (aclDraft){.on = rules->on,
                    .nopass = rules->nopass,
                    .maxmemory = rules->own_maxmemory,
                    .cpu_percent = rules->own_cpu_percent,
                    .password_count = (int)rules->password_count,
                    .known = rolesCurrent()};
    takeSelectorsOf(d, rules);
    if (rules->role_count) d->roles = memNewArray(str, rules->role_count);
    for (uint32_t i = 0; i < rules->role_count; i++) {
        if (rolesFind(d->known, rules->roles[i]))
            d->roles[d->role_count++] = strNew(rules->roles[i]);
    }
    if (!rules->password_count) return;
    size_t cap = 1;
    while (cap < rules->password_count) cap *= 2;
    d->passwords = memAlloc(cap * ACL_HASH_SIZE);
    memcpy(d->passwords, rules->passwords, rules->password_count * ACL_HASH_SIZE);
}

/* ------------------------------------------------------------------ compiling */

/* Takes one block for all of the draft. */
static aclRules *compile(const aclDraft *d, uint32_t own_count) {
    block measured = {0};
    (void)fill(&measured, d); /* counts only */
    block b = {.at = memAlloc(measured.size)};
    aclRules *rules = fill(&b, d);
    check(b.size == measured.size);
    check((char *)rules == b.at);
    rules->own_count = own_count;
    return rules;
}

/* Adds the selectors of a role, for which there is space; the limits become the greater ones. */
static void addRole(aclDraft *all, const aclRules *role, uint64_t *maxmemory, int *cpu_percent) {
    check(role->role_count == 0);
    for (uint32_t i = 0; i < role->own_count; i++)
        draftSelector(&all->selectors[all->selector_count++], &role->selectors[i]);
    if (role->maxmemory > *maxmemory) *maxmemory = role->maxmemory;
    if (role->cpu_percent > *cpu_percent) *cpu_percent = role->cpu_percent;
}

aclRules *aclRulesNew(const aclDraft *d) {
    check(d->selector_count >= 1);
    int own = d->selector_count, total = own, cpu_percent = 0;
    uint64_t maxmemory = 0;
    for (int i = 0; i < d->role_count; i++) {
        const aclRole *role = rolesFind(d->known, strSlice(&d->roles[i]));
        check(role != NULL);
        total += (int)role->rules->own_count;
    }
    aclDraft all = *d;
    all.selectors = memNewArray(aclDraftSelector, (size_t)total);
    memcpy(all.selectors, d->selectors, sizeof(*all.selectors) * (size_t)own);
    for (int i = 0; i < d->role_count; i++) {
        const aclRole *role = rolesFind(d->known, strSlice(&d->roles[i]));
        addRole(&all, role->rules, &maxmemory, &cpu_percent);
    }
    check(all.selector_count == total);
    if (!all.maxmemory) all.maxmemory = maxmemory;
    if (!all.cpu_percent) all.cpu_percent = cpu_percent;
    aclRules *rules = compile(&all, (uint32_t)own);
    rules->own_maxmemory = d->maxmemory;
    rules->own_cpu_percent = d->cpu_percent;
    for (int i = own; i < total; i++) aclDraftSelectorClear(&all.selectors[i]);
    memFree(all.selectors);
    return rules;
}

aclRules *aclRulesNone(void) {
    aclDraft d;
    aclDraftInit(&d, false);
    aclRules *none = aclRulesNew(&d);
    aclDraftClear(&d);
    return none;
}

bool aclHoldsRole(const aclRules *rules, slice role) {
    for (uint32_t i = 0; i < rules->role_count; i++) {
        if (sliceEqual(rules->roles[i], role)) return true;
    }
    return false;
}

void aclWarnFirstArgs(const aclSelector *s) {
    hotCheck(threadIsMain());
    slice list = s->rules, name, word;
    bool allow;
    while (nextRule(&list, &allow, &name)) {
        if (name.ptr[0] == '@' || !firstArgOf(name, &word)) continue;
        logWarning(
            "Deprecation warning: Allowing a first arg of an otherwise blocked command is a misuse of "
            "ACL and may get disabled in the future (offender: +%.*s)",
            (int)sizeMin(name.len, 256), name.ptr);
    }
}
