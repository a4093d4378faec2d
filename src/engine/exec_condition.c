/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Conditions of EXEC: IFEQ key value, IFNE key value, NX key, XX key. EXEC runs only if all of them
 * hold. Invariant: evaluating them changes nothing, neither access times nor statistics nor expired
 * keys, so a transaction that does not run leaves no trace. Main thread only, except the parser. */
#include "base/base.h"
#include "base/number.h"
#include "engine/reply.h"
#include "engine/transaction_priv.h"
#include "store/store.h"

int execConditionParse(const slice *argv, int argc, int i, execCondition *out) {
    hotCheck(i > 0);
    hotCheck(i < argc);
    bool equal = sliceIs(argv[i], "ifeq"), exists = sliceIs(argv[i], "xx");
    bool compares = equal || sliceIs(argv[i], "ifne");
    if (!compares && !exists && !sliceIs(argv[i], "nx")) return 0;
    int end = i + (compares ? 3 : 2);
    if (end > argc) return 0;
    *out = (execCondition){equal || exists, i + 1, compares ? i + 2 : 0};
    return end;
}

/* The object of a key of this database, NULL if it is missing or has expired. */
static const robj *findUntouched(const ctx *c, slice key) {
    const robj *o = dbPeek(c->db, key, storeHash(key));
    return o && !storeIsExpired(o, c->look) ? o : NULL;
}

static execVerdict judge(const ctx *c, const execCondition *condition, slice *error) {
    hotCheck(condition->key < c->argc);
    char digits[NUMBER_TEXT_MAX];
    const robj *o = findUntouched(c, c->argv[condition->key]);
    bool equal = o != NULL;
    if (o && condition->value) {
        if (objectType(o) != TYPE_STRING) {
            *error = ERR_WRONG_TYPE_TEXT;
            return EXEC_ERROR;
        }
        equal = sliceEqual(objectText(o, digits), c->argv[condition->value]);
    }
    return equal == condition->wants_equal ? EXEC_RUNS : EXEC_NULL;
}

execVerdict execConditionsJudge(const ctx *c, slice *error) {
    hotCheck(c->argc > 1);
    execCondition condition;
    for (int i = 1; i < c->argc;) {
        i = execConditionParse(c->argv, c->argc, i, &condition);
        if (i == 0) {
            *error = SLICE("invalid check condition syntax");
            return EXEC_ERROR;
        }
    }
    execVerdict verdict = EXEC_RUNS;
    for (int i = 1; i < c->argc && verdict == EXEC_RUNS;) {
        i = execConditionParse(c->argv, c->argc, i, &condition);
        verdict = judge(c, &condition, error);
    }
    return verdict;
}
