/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules of a user, in two forms. A draft is edited rule by rule (ACL SETUSER, a line of an ACL
 * file). The compiled form is one immutable block that answers checks: a set of command ids,
 * patterns classified by the work they need. Drafts are made from compiled rules and compiled
 * again, so that a rule that fails changes nothing. Main thread only. */
#ifndef ACL_RULES_H
#define ACL_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"

enum { ACL_HASH_SIZE = 32 }; /* SHA-256 */

typedef struct aclRoleSet aclRoleSet; /* acl/roles.h */

enum aclSelectorFlag {
    ACL_ALL_KEYS = 1,     /* ~*, without other patterns */
    ACL_ALL_CHANNELS = 2, /* &* */
    ACL_ALL_DBS = 4,
};

/* ---- drafts */

typedef struct aclDraftPattern {
    str text;
    uint8_t access; /* enum aclAccess; of keys */
} aclDraftPattern;

typedef struct aclDraftSelector {
    uint32_t flags;
    aclDraftPattern *keys, *channels;
    int key_count, channel_count, db_count;
    int32_t *dbs; /* sorted */
    str commands; /* as listed: "-@all +get" */
} aclDraftSelector;

typedef struct aclDraft {
    bool on, nopass;
    uint64_t maxmemory; /* bytes, 0: no limit */
    int cpu_percent;    /* 0: no share */
    uint8_t (*passwords)[ACL_HASH_SIZE];
    int password_count, selector_count, role_count;
    aclDraftSelector *selectors; /* the first are the root permissions */
    str *roles;                  /* sorted, each once */
    bool is_role;                /* the rules of a role: rules of users are refused */
    const aclRoleSet *known;     /* roles= finds its roles there; borrowed */
} aclDraft;

/* The error of a rule that names a role which does not exist. */
extern const char ACL_UNKNOWN_ROLE[];
/* That of a rule that names a command or category which does not exist. */
extern const char ACL_UNKNOWN_COMMAND[];

/* A new user: off, without passwords and rights. `all_channels` is acl-pubsub-default. Its roles
 * are found among those that exist. */
void aclDraftInit(aclDraft *d, bool all_channels);
void aclDraftClear(aclDraft *d);
void aclDraftSelectorClear(aclDraftSelector *s);
/* Applies one rule; a selector is a single word in brackets. Returns NULL, or the error text
 * (constant) for which nothing has changed. */
const char *aclDraftApply(aclDraft *d, slice rule, bool all_channels);
/* Joins the words of selectors: from one starting with '(' to one ending with ')'. `joined`
 * receives an array of `*count` words, to be freed with strFreeWords(). Returns -1, or the index of
 * the word with an unmatched bracket. */
int aclJoinSelectors(const slice *words, int word_count, str **joined, int *count);

/* ---- compiled rules */

/* Literal; literal followed by '*'; literals with a few '*' between them; any glob. */
enum { PATTERN_LITERAL, PATTERN_PREFIX, PATTERN_STARS, PATTERN_GLOB };

typedef struct aclPattern {
    const char *text;
    uint32_t len;
    uint16_t literal; /* leading bytes without a special character, at most 65535 */
    uint16_t suffix;  /* literal bytes after the last '*', if known */
    uint8_t kind;
    uint8_t access;
    uint8_t head_shift; /* removes the bytes of a difference that do not matter */
    uint64_t head;      /* the first 8 literal bytes, little endian; fewer are followed by zeros */
} aclPattern;

/* Allows a command if its first argument is this word. */
typedef struct aclFirstArg {
    slice word;
    int command_id;
} aclFirstArg;

typedef struct aclSelector {
    const uint64_t *commands; /* allowed ids, `command_words` words */
    const aclPattern *keys, *channels;
    const int32_t *dbs;
    const aclFirstArg *first_args;
    slice rules; /* as listed */
    uint32_t key_count, channel_count, db_count, first_arg_count;
    uint16_t command_words;
    uint8_t flags;     /* enum aclSelectorFlag */
    uint8_t uses;      /* enum aclAccess: whether an allowed command reads, or writes, keys */
    bool all_commands; /* exactly +@all: every command, also those that are loaded later */
    bool by_default;   /* permission of commands that were loaded later */
} aclSelector;

typedef struct aclRules {
    bool on, nopass;
    uint64_t maxmemory;     /* of the keys that the user may write, bytes; 0: no limit */
    int cpu_percent;        /* share of the main thread's time; 0: none */
    uint64_t own_maxmemory; /* without the limits of roles */
    int own_cpu_percent;
    uint32_t password_count, selector_count;
    uint32_t own_count; /* selectors of its own; those of its roles follow them */
    uint32_t role_count;
    const slice *roles; /* names, sorted */
    const uint8_t (*passwords)[ACL_HASH_SIZE];
    aclSelector selectors[];
} aclRules;

/* Compiles a draft. The result is one block, freed with memFree(); it does not refer to the draft,
 * and contains the selectors of its roles. Without a limit of its own a user has the greatest one
 * of its roles. */
aclRules *aclRulesNew(const aclDraft *d);
/* The rules of a user or role that allow nothing; likewise. */
aclRules *aclRulesNone(void);
/* The draft that compiles to these rules, without roles that no longer exist. */
void aclDraftFrom(aclDraft *d, const aclRules *rules);
/* True if `role` is one of the roles. */
bool aclHoldsRole(const aclRules *rules, slice role);
/* aclPatternMatches() after its test of the first bytes. */
bool aclPatternMatchesAll(const aclPattern *p, slice text);
/* True if the pattern matches. Time: pattern times text. */
ALWAYS_INLINE bool aclPatternMatches(const aclPattern *p, slice text) {
    if (text.len >= sizeof(p->head) && p->literal) {
        if ((loadU64(text.ptr) ^ p->head) << p->head_shift) return false;
        if (p->kind == PATTERN_PREFIX && p->literal <= sizeof(p->head)) return true;
    }
    return aclPatternMatchesAll(p, text);
}
/* Logs a warning for each rule of the deprecated form +command|argument. */
void aclWarnFirstArgs(const aclSelector *s);

/* ---- text (describe.c) */

/* Appends "on nopass ~* &* +@all", the form of ACL LIST without name. */
void aclDescribe(const aclRules *rules, str *out);
/* Appends the same text without parts that Valkey 9.1 does not know: limits, and rules for commands
 * that it does not have. Roles are written as selectors, which give the same rights. */
void aclDescribePortable(const aclRules *rules, str *out);
/* Appends all rights and limits, roles as selectors: two users with equal texts may do the same. */
void aclDescribeExpanded(const aclRules *rules, str *out);
/* Appends the rules of a role. */
void aclDescribeRole(const aclRules *rules, str *out);
/* The parts of a selector as GETUSER shows them. */
void aclDescribeKeys(const aclSelector *s, str *out);
void aclDescribeChannels(const aclSelector *s, str *out);
void aclDescribeDatabases(const aclSelector *s, str *out);
/* Appends 64 lower-case hexadecimal digits. */
void aclAppendHash(str *out, const uint8_t *hash);

#endif
