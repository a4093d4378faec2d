/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Key finders of commands whose keys, or the access to them, depend on their options. They read
 * only argv and accept any request with valid arity. ANY_THREAD. */
#include "base/base.h"
#include "cmd/procs.h"
#include "engine/transaction.h"

static int onlyKey(keyPosition *out, int max, int arg_index, uint32_t flags) {
    hotCheck(arg_index > 0);
    if (max > 0) out[0] = (keyPosition){arg_index, flags};
    return 1;
}

/* The key at argument 1, which is read, and the one at argument `store`, which is written (0:
 * none). */
static int keyAndStore(keyPosition *out, int max, int store) {
    hotCheck(store >= 0);
    if (max > 0) out[0] = (keyPosition){1, KEY_RO | KEY_ACCESS};
    if (!store) return 1;
    if (max > 1) out[1] = (keyPosition){store, KEY_OW | KEY_UPDATE};
    return 2;
}

/* SET key value [... GET ...]: with GET the key is also read. */
int setFindKeys(const slice *argv, int argc, keyPosition *out, int max) {
    hotCheck(argc > 0);
    for (int i = 3; i < argc; i++) {
        if (sliceIs(argv[i], "get")) return onlyKey(out, max, 1, KEY_RW | KEY_ACCESS | KEY_UPDATE);
    }
    return onlyKey(out, max, 1, KEY_OW | KEY_UPDATE);
}

/* EXEC condition...: the key of each condition; none if they are malformed. */
int execFindKeys(const slice *argv, int argc, keyPosition *out, int max) {
    hotCheck(argc > 0);
    execCondition condition;
    int count = 0;
    for (int i = 1; i < argc; count++) {
        i = execConditionParse(argv, argc, i, &condition);
        if (i == 0) return 0;
        if (count < max) out[count] = (keyPosition){condition.key, KEY_RO | KEY_ACCESS};
    }
    return count;
}

/* DELEX key [condition]: with a condition the value is read. */
int delexFindKeys(const slice *argv, int argc, keyPosition *out, int max) {
    (void)argv; /* the condition does not matter */
    return onlyKey(out, max, 1, (argc > 2 ? KEY_RW : KEY_RM) | KEY_DELETE);
}

/* BITFIELD key operation ...: read-only if all operations are GET. */
int bitfieldFindKeys(const slice *argv, int argc, keyPosition *out, int max) {
    hotCheck(argc > 0);
    int i = 2;
    while (i < argc) {
        if (sliceIs(argv[i], "get") && argc - i > 2) {
            i += 3;
        } else if (sliceIs(argv[i], "overflow") && argc - i > 1) {
            i += 2;
        } else {
            return onlyKey(out, max, 1, KEY_RW | KEY_ACCESS | KEY_UPDATE);
        }
    }
    return onlyKey(out, max, 1, KEY_RO | KEY_ACCESS);
}

/* GEORADIUS key longitude latitude radius unit ... [STORE key|STOREDIST key], GEORADIUSBYMEMBER:
 * the last STORE or STOREDIST counts. */
int georadiusFindKeys(const slice *argv, int argc, keyPosition *out, int max) {
    hotCheck(argc > 0);
    int store = 0;
    for (int i = 5; i + 1 < argc; i++) {
        if (sliceIs(argv[i], "store") || sliceIs(argv[i], "storedist")) store = ++i;
    }
    return keyAndStore(out, max, store);
}

/* SORT key ... [STORE destination]: the last destination counts. Keys of BY and GET depend on the
 * elements and are not reported. */
int sortFindKeys(const slice *argv, int argc, keyPosition *out, int max) {
    hotCheck(argc > 0);
    int store = 0;
    for (int i = 2; i < argc; i++) {
        if (sliceIs(argv[i], "limit")) {
            i += 2;
        } else if (sliceIs(argv[i], "get") || sliceIs(argv[i], "by")) {
            i++;
        } else if (sliceIs(argv[i], "store") && i + 1 < argc) {
            store = ++i; /* the target may be a word such as BY */
        }
    }
    return keyAndStore(out, max, store);
}
