/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rules as text, in the order and form of ACL LIST. Applied to a new user, the text gives the same
 * rules again. Main thread only. */
#include "acl/catalog.h"
#include "acl/rules.h"
#include "base/base.h"

void aclAppendHash(str *out, const uint8_t *hash) {
    hotCheck(threadIsMain());
    char text[2 * ACL_HASH_SIZE];
    hexPrint(text, hash, ACL_HASH_SIZE);
    strAppend(out, text, sizeof(text));
}

/* Removes the blank that follows the last part. */
static void endParts(str *out, size_t start) {
    if (out->len > start && out->ptr[out->len - 1] == ' ') strCut(out, out->len - 1);
}

/* Words of a selector are parsed like a configuration line. Quotes are necessary where quotes would
 * be recognised, and where the word would end the selector. */
static void appendPattern(str *out, const char *prefix, const aclPattern *p, bool in_selector) {
    slice text = sliceMake(p->text, p->len);
    bool quoted = in_selector && text.len &&
                  (memchr(text.ptr, '"', text.len) || memchr(text.ptr, '\'', text.len) ||
                   text.ptr[text.len - 1] == ')');
    if (quoted) {
        str word = STR_EMPTY;
        strAppendText(&word, prefix);
        strAppendSlice(&word, text);
        strAppendQuoted(out, strSlice(&word));
        strFree(&word);
    } else {
        strAppendText(out, prefix);
        strAppendSlice(out, text);
    }
    strAppendByte(out, ' ');
}

static void appendKeys(const aclSelector *s, str *out, bool in_selector) {
    static const char *const prefixes[] = {"%~", "%R~", "%W~", "~"};
    if (s->flags & ACL_ALL_KEYS) strAppendText(out, "~* ");
    for (uint32_t i = 0; i < s->key_count; i++)
        appendPattern(out, prefixes[s->keys[i].access], &s->keys[i], in_selector);
}

static void appendChannels(const aclSelector *s, str *out, bool in_selector) {
    if (s->flags & ACL_ALL_CHANNELS) strAppendText(out, "&* ");
    for (uint32_t i = 0; i < s->channel_count; i++)
        appendPattern(out, "&", &s->channels[i], in_selector);
}

static void appendDatabases(const aclSelector *s, str *out) {
    if (s->flags & ACL_ALL_DBS) return;
    strAppendText(out, s->db_count ? "db=" : "resetdbs");
    for (uint32_t i = 0; i < s->db_count; i++)
        strAppendFormat(out, "%s%d", i ? "," : "", (int)s->dbs[i]);
    strAppendByte(out, ' ');
}

void aclDescribeKeys(const aclSelector *s, str *out) {
    size_t start = out->len;
    appendKeys(s, out, false);
    endParts(out, start);
}

void aclDescribeChannels(const aclSelector *s, str *out) {
    size_t start = out->len;
    appendChannels(s, out, false);
    endParts(out, start);
}

void aclDescribeDatabases(const aclSelector *s, str *out) {
    hotCheck(threadIsMain());
    size_t start = out->len;
    if (s->flags & ACL_ALL_DBS) {
        strAppendText(out, "alldbs");
    } else if (s->db_count) {
        appendDatabases(s, out);
    }
    endParts(out, start);
}

/* True if the command is of Valkey 9.2 or later. */
static bool isNewer(const command *cmd) {
    hotCheck(cmd->spec);
    const char *since = cmd->spec->since;
    return since && strncmp(since, "9.2", 3) == 0;
}

/* True for "+getpxt" or "-memory|explain": a rule for commands that Valkey 9.1 does not have. */
static bool namesExtension(slice rule) {
    if (rule.len < 2) return false;
    if (rule.ptr[1] == '@') return sliceIs(sliceMake(rule.ptr + 1, rule.len - 1), "@pathhash");
    slice name = sliceMake(rule.ptr + 1, rule.len - 1);
    const command *cmd = commandFindByFullName(name);
    const char *bar = memchr(name.ptr, '|', name.len);
    if (!cmd && bar) cmd = commandFindByFullName(sliceMake(name.ptr, (size_t)(bar - name.ptr)));
    return cmd && (cmd->flags & CMD_EXTENDED || isNewer(cmd));
}

/* Appends the rules for commands; with `portable` without those that name commands which Valkey
 * does not have. In a selector a rule whose first argument ends with ')', where the selector would
 * end, is quoted. */
static void appendRules(slice rules, str *out, bool in_selector, bool portable) {
    hotCheck(rules.len > 0);
    bool is_first = true;
    while (rules.len) {
        const char *blank = memchr(rules.ptr, ' ', rules.len);
        slice rule = sliceMake(rules.ptr, blank ? (size_t)(blank - rules.ptr) : rules.len);
        size_t used = rule.len + (blank != NULL);
        rules = sliceMake(rules.ptr + used, rules.len - used);
        if (portable && namesExtension(rule)) continue;
        if (!is_first) strAppendByte(out, ' ');
        is_first = false;
        if (in_selector && rule.len && rule.ptr[rule.len - 1] == ')') {
            strAppendQuoted(out, rule);
        } else {
            strAppendSlice(out, rule);
        }
    }
}

static void appendSelector(const aclSelector *s, str *out, bool in_selector, bool portable) {
    appendKeys(s, out, in_selector);
    if (!(s->flags & ACL_ALL_CHANNELS)) strAppendText(out, "resetchannels ");
    appendChannels(s, out, in_selector);
    appendDatabases(s, out);
    appendRules(s->rules, out, in_selector, portable);
}

static void appendRoles(const aclRules *rules, str *out) {
    hotCheck(rules->role_count > 0);
    strAppendText(out, " role=");
    for (uint32_t i = 0; i < rules->role_count; i++) {
        if (i) strAppendByte(out, ',');
        strAppendSlice(out, rules->roles[i]);
    }
}

static void appendLimits(uint64_t maxmemory, int cpu_percent, str *out) {
    hotCheck(cpu_percent >= 0);
    if (maxmemory) strAppendFormat(out, "maxmemory=%llu ", (unsigned long long)maxmemory);
    if (cpu_percent) strAppendFormat(out, "cpu=%d%% ", cpu_percent);
}

static void appendSelectors(const aclRules *rules, uint32_t count, bool portable, str *out) {
    hotCheck(count > 0);
    appendSelector(&rules->selectors[0], out, false, portable);
    for (uint32_t i = 1; i < count; i++) {
        strAppendText(out, " (");
        appendSelector(&rules->selectors[i], out, true, portable);
        strAppendByte(out, ')');
    }
}

static void appendLogin(const aclRules *rules, str *out) {
    hotCheck(threadIsMain());
    strAppendText(out, rules->on ? "on " : "off ");
    if (rules->nopass) strAppendText(out, "nopass ");
    for (uint32_t i = 0; i < rules->password_count; i++) {
        strAppendByte(out, '#');
        aclAppendHash(out, rules->passwords[i]);
        strAppendByte(out, ' ');
    }
}

void aclDescribe(const aclRules *rules, str *out) {
    appendLogin(rules, out);
    aclDescribeRole(rules, out);
    if (rules->role_count) appendRoles(rules, out);
}

void aclDescribePortable(const aclRules *rules, str *out) {
    appendLogin(rules, out);
    appendSelectors(rules, rules->selector_count, true, out);
}

void aclDescribeExpanded(const aclRules *rules, str *out) {
    appendLogin(rules, out);
    appendLimits(rules->maxmemory, rules->cpu_percent, out);
    appendSelectors(rules, rules->selector_count, false, out);
}

void aclDescribeRole(const aclRules *rules, str *out) {
    appendLimits(rules->own_maxmemory, rules->own_cpu_percent, out);
    appendSelectors(rules, rules->own_count, false, out);
}
