/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: server events.
 *
 *     EVENTS.LISTEN id        listens to one more event
 *     EVENTS.STOP id          ends that
 *     EVENTS.LOG              what was told since the last call: "<id> <sub-event> <data>"
 *     EVENTS.SUPPORTED id sub IsSubEventSupported()
 *     EVENTS.BAD              results of wrong subscriptions
 *
 * Loaded with an argument, it handles the migration of slots, and loads beside the dataset. */
#include <string.h>

#include "valkeymodule.h"

enum { LOG_MAX = 200 };
static ValkeyModuleString *seen[LOG_MAX];
static int count;

static ValkeyModuleCtx *context; /* of the event */

/* The text of a string, the field "name" of a hash. */
static ValkeyModuleString *valueOf(ValkeyModuleKey *key) {
    if (ValkeyModule_KeyType(key) == VALKEYMODULE_KEYTYPE_STRING) {
        size_t len;
        const char *text = ValkeyModule_StringDMA(key, &len, VALKEYMODULE_READ);
        return ValkeyModule_CreateString(NULL, text, len);
    }
    ValkeyModuleString *text = NULL;
    ValkeyModule_HashGet(key, VALKEYMODULE_HASH_CFIELDS, "name", &text, NULL);
    return text ? text : ValkeyModule_CreateString(NULL, "none", 4);
}

/* The name, type and length of a key that is being removed; and whether it can still be opened: of
 * "read:..." its value. */
static ValkeyModuleString *keyData(ValkeyModuleKeyInfo *d) {
    ValkeyModuleString *name = (ValkeyModuleString *)ValkeyModule_GetKeyNameFromModuleKey(d->key);
    ValkeyModuleKey *again = ValkeyModule_OpenKey(context, name, VALKEYMODULE_READ);
    ValkeyModuleString *text = ValkeyModule_CreateStringPrintf(
        NULL, "%s %d %d %d", ValkeyModule_StringPtrLen(name, NULL), ValkeyModule_KeyType(d->key),
        (int)ValkeyModule_ValueLength(d->key), again != NULL);
    if (strncmp(ValkeyModule_StringPtrLen(name, NULL), "read:", 5) == 0) {
        ValkeyModule_FreeString(NULL, text);
        text = valueOf(again);
    }
    ValkeyModule_CloseKey(again);
    return text;
}

static ValkeyModuleString *dataOf(uint64_t id, void *data) {
    switch (id) {
    case VALKEYMODULE_EVENT_REPLICATION_ROLE_CHANGED: {
        ValkeyModuleReplicationInfo *d = data;
        return ValkeyModule_CreateStringPrintf(NULL, "%d %s %d %d", d->primary, d->primary_host,
                                               d->primary_port, (int)strlen(d->replid1));
    }
    case VALKEYMODULE_EVENT_FLUSHDB: {
        ValkeyModuleFlushInfo *d = data;
        return ValkeyModule_CreateStringPrintf(NULL, "%d %d %d", d->sync, d->dbnum,
                                               ValkeyModule_GetSelectedDb(context));
    }
    case VALKEYMODULE_EVENT_CLIENT_CHANGE: {
        ValkeyModuleClientInfo *d = data;
        return ValkeyModule_CreateStringPrintf(NULL, "%s", d->addr);
    }
    case VALKEYMODULE_EVENT_MODULE_CHANGE: {
        ValkeyModuleModuleChange *d = data;
        return ValkeyModule_CreateStringPrintf(NULL, "%s %d", d->module_name, d->module_version);
    }
    case VALKEYMODULE_EVENT_SWAPDB: {
        ValkeyModuleSwapDbInfo *d = data;
        return ValkeyModule_CreateStringPrintf(NULL, "%d %d", d->dbnum_first, d->dbnum_second);
    }
    case VALKEYMODULE_EVENT_CONFIG: {
        ValkeyModuleConfigChange *d = data;
        return ValkeyModule_CreateStringPrintf(NULL, "%d %s", (int)d->num_changes,
                                               d->config_names[0]);
    }
    case VALKEYMODULE_EVENT_CRON_LOOP: {
        ValkeyModuleCronLoop *d = data;
        return ValkeyModule_CreateStringPrintf(NULL, "%d", d->hz);
    }
    case VALKEYMODULE_EVENT_COMMAND_RESULT_SUCCESS:
    case VALKEYMODULE_EVENT_COMMAND_RESULT_FAILURE: {
        ValkeyModuleCommandResultInfo *d = data;
        return ValkeyModule_CreateStringPrintf(NULL, "%s %d %d %d", d->command_name, (int)d->dirty,
                                               d->argc, d->is_module_client);
    }
    case VALKEYMODULE_EVENT_COMMAND_RESULT_REJECTED:
    case VALKEYMODULE_EVENT_COMMAND_RESULT_ACL_REJECTED: {
        ValkeyModuleCommandResultInfo *d = data;
        return ValkeyModule_CreateStringPrintf(
            NULL, "%s %d %d %d %d [%s]", d->command_name ? d->command_name : "(null)",
            (int)d->dirty, d->argc, d->is_module_client, (int)d->duration_us,
            d->rejection_context ? d->rejection_context : "NULL");
    }
    case VALKEYMODULE_EVENT_KEY: return keyData(data);
    case VALKEYMODULE_EVENT_AUTHENTICATION_ATTEMPT: {
        ValkeyModuleAuthenticationInfo *d = data;
        return ValkeyModule_CreateStringPrintf(NULL, "%s %s %d", d->username,
                                               d->module_name ? d->module_name : "NULL",
                                               (int)d->result);
    }
    case VALKEYMODULE_EVENT_ATOMIC_SLOT_MIGRATION: {
        ValkeyModuleAtomicSlotMigrationInfo *d = data;
        return ValkeyModule_CreateStringPrintf(NULL, "%s %d %d-%d", d->job_name,
                                               (int)d->num_slot_ranges, d->slot_ranges[0].start,
                                               d->slot_ranges[0].end);
    }
    default: return ValkeyModule_CreateString(NULL, "", 0);
    }
}

static void onEvent(ValkeyModuleCtx *ctx, ValkeyModuleEvent event, uint64_t sub, void *data) {
    if (count == LOG_MAX) return;
    context = ctx;
    ValkeyModuleString *text = dataOf(event.id, data);
    seen[count++] = ValkeyModule_CreateStringPrintf(NULL, "%d %d %s", (int)event.id, (int)sub,
                                                    ValkeyModule_StringPtrLen(text, NULL));
    ValkeyModule_FreeString(ctx, text);
}

static int setListening(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int on) {
    long long id;
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    if (ValkeyModule_StringToLongLong(argv[1], &id) == VALKEYMODULE_ERR) id = -1;
    ValkeyModuleEvent event = {(uint64_t)id, 1};
    return ValkeyModule_ReplyWithLongLong(
        ctx, ValkeyModule_SubscribeToServerEvent(ctx, event, on ? onEvent : NULL));
}

static int listenTo(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return setListening(ctx, argv, argc, 1);
}

static int stop(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return setListening(ctx, argv, argc, 0);
}

static void clearLog(void) {
    for (int i = 0; i < count; i++) ValkeyModule_FreeString(NULL, seen[i]);
    count = 0;
}

static int logCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, count);
    for (int i = 0; i < count; i++) ValkeyModule_ReplyWithString(ctx, seen[i]);
    clearLog();
    return VALKEYMODULE_OK;
}

static int supported(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long id, sub;
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    if (ValkeyModule_StringToLongLong(argv[1], &id) == VALKEYMODULE_ERR ||
        ValkeyModule_StringToLongLong(argv[2], &sub) == VALKEYMODULE_ERR)
        return ValkeyModule_ReplyWithError(ctx, "ERR not a number");
    ValkeyModuleEvent event = {(uint64_t)id, 1};
    return ValkeyModule_ReplyWithLongLong(ctx,
                                          ValkeyModule_IsSubEventSupported(event, (uint64_t)sub));
}

static int bad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModuleEvent unknown = {_VALKEYMODULE_EVENT_NEXT, 1};
    ValkeyModuleEvent newer = {VALKEYMODULE_EVENT_FLUSHDB, 2};
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_SubscribeToServerEvent(ctx, unknown, onEvent));
    return ValkeyModule_ReplyWithLongLong(ctx,
                                          ValkeyModule_SubscribeToServerEvent(ctx, newer, onEvent));
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    static const struct {
        const char *name;
        ValkeyModuleCmdFunc func;
    } commands[] = {{"events.listen", listenTo},
                    {"events.stop", stop},
                    {"events.log", logCommand},
                    {"events.supported", supported},
                    {"events.bad", bad}};
    (void)argv;
    if (ValkeyModule_Init(ctx, "events", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (ValkeyModule_CreateCommand(ctx, commands[i].name, commands[i].func, "", 0, 0, 0) ==
            VALKEYMODULE_ERR)
            return VALKEYMODULE_ERR;
    }
    if (argc)
        ValkeyModule_SetModuleOptions(ctx, VALKEYMODULE_OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION |
                                               VALKEYMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD);
    return VALKEYMODULE_OK;
}

int ValkeyModule_OnUnload(ValkeyModuleCtx *ctx) {
    (void)ctx;
    clearLog();
    return VALKEYMODULE_OK;
}
