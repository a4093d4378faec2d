/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The decision whether rules allow a request. A selector must allow everything by itself: database,
 * command, keys, channels, in this order. Cost: a bit test for the command, and per key the
 * patterns until one matches. Main thread only. */
#ifndef ACL_CHECK_H
#define ACL_CHECK_H

#include "acl/rules.h"
#include "engine/command.h"

/* Kinds of refusals in the order of precedence: with several selectors, the one that came furthest
 * is reported. */
typedef enum aclVerdict {
    ACL_ALLOWED,
    ACL_DENIED_DATABASE,
    ACL_DENIED_COMMAND,
    ACL_DENIED_KEY,
    ACL_DENIED_CHANNEL,
} aclVerdict;

typedef struct aclRequest {
    const command *cmd; /* resolved, not a container */
    const slice *argv;
    int argc; /* fits the arity */
    int db_id;
} aclRequest;

/* `*arg_index` receives the refused argument; 0 if it is the command or the current database. */
aclVerdict aclDecide(const aclRules *rules, const aclRequest *q, int *arg_index);
/* Verdicts of one selector about all commands, one byte per command id, so that usual requests need
 * no further decision: ask aclDecide(), allow, or allow if argument 1 matches a key pattern
 * with this access. */
enum { ACTION_DECIDE, ACTION_ALLOW, ACTION_KEY /* + enum aclAccess */ };
/* The selector that these actions are about: the first one that allows some command. */
const aclSelector *aclUsualSelector(const aclRules *rules);
/* Fills the actions of the first `count` ids. */
void aclActionsFill(const aclRules *rules, uint8_t *actions, int count);
/* True if one of `count` patterns with all of `access` matches. */
ALWAYS_INLINE bool aclAllowsKey(const aclPattern *p, uint32_t count, slice key, uint32_t access) {
    for (; count > 0; count--, p++) {
        if ((p->access & access) == access && aclPatternMatches(p, key)) return true;
    }
    return false;
}
/* True if a selector allows the request and reading every key of the database, or of all. */
bool aclReadsEverything(const aclRules *rules, const aclRequest *q, bool of_all_dbs);
/* True if some selector allows the channel, or the pattern of a subscription, which must be listed
 * literally. */
bool aclAllowsChannel(const aclRules *rules, slice channel, bool is_pattern);

/* Which requests need a decision at all; see gate.c. */
enum aclCheckFlag { ACL_CHECK_ALL = 1, ACL_CHECK_KEYS = 2, ACL_CHECK_CHANNELS = 4 };
uint32_t aclChecksOf(const aclRules *rules);
/* True if some selector allows the key of the database to be read, and a command that reads. */
bool aclMayRead(const aclRules *rules, int db_id, slice key);
/* The same for writing. */
bool aclMayWrite(const aclRules *rules, int db_id, slice key);
/* True if a selector allows that for every key of every database; false does not mean that some may
 * not be read. */
bool aclMayReadAll(const aclRules *rules);
/* True if some selector does not allow every database. */
bool aclLimitsDatabases(const aclRules *rules);

#endif
