/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The interface of modules: shared objects that a server loads, which add commands, types of
 * values and more. A module includes this header, defines
 *
 *     int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc)
 *
 * which calls ValkeyModule_Init() before anything else, and is linked to nothing of the server:
 * the functions are pointers that Init() asks the server for by name. One that the server lacks is
 * NULL: RMAPI_FUNC_SUPPORTED(ValkeyModule_X).
 *
 * Names, values and layouts are those of Valkey 9.1, so a module may be loaded by either, whichever
 * header it was compiled with. A module of several files includes it in each. The functions are
 * described in docs/modules.md. */
#ifndef VALKEYMODULE_H
#define VALKEYMODULE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#ifndef VALKEYMODULE_ATTR_PRINTF
#define VALKEYMODULE_ATTR_PRINTF(text, first) __attribute__((format(printf, text, first)))
#endif
#ifndef VALKEYMODULE_ATTR_UNUSED
#define VALKEYMODULE_ATTR_UNUSED __attribute__((unused))
#endif
/* The pointers of all files of a module are the same ones. */
#ifndef VALKEYMODULE_ATTR_COMMON
#ifdef __cplusplus
#define VALKEYMODULE_ATTR_COMMON __attribute__((weak))
#else
#define VALKEYMODULE_ATTR_COMMON __attribute__((common))
#endif
#endif
#ifndef VALKEYMODULE_ATTR
#define VALKEYMODULE_ATTR VALKEYMODULE_ATTR_COMMON
#endif
#ifndef VALKEYMODULE_API
#define VALKEYMODULE_API
#endif

/* ------------------------------------------------------------------ status and versions */

#define VALKEYMODULE_OK 0
#define VALKEYMODULE_ERR 1
#define VALKEYMODULE_AUTH_HANDLED 0
#define VALKEYMODULE_AUTH_NOT_HANDLED 1

#define VALKEYMODULE_APIVER_1 1
#define VALKEYMODULE_TYPE_METHOD_VERSION 5
#define VALKEYMODULE_NODE_ID_LEN 40

#define VALKEYMODULE_ERRORMSG_WRONGTYPE \
    "WRONGTYPE Operation against a key holding the wrong kind of value"
#define VALKEYMODULE_POSITIVE_INFINITE (1.0 / 0.0)
#define VALKEYMODULE_NEGATIVE_INFINITE (-1.0 / 0.0)

/* ------------------------------------------------------------------ keys */

#define VALKEYMODULE_READ (1 << 0)
#define VALKEYMODULE_WRITE (1 << 1)
#define VALKEYMODULE_OPEN_KEY_NOTOUCH (1 << 16)
#define VALKEYMODULE_OPEN_KEY_NONOTIFY (1 << 17)
#define VALKEYMODULE_OPEN_KEY_NOSTATS (1 << 18)
#define VALKEYMODULE_OPEN_KEY_NOEXPIRE (1 << 19)
#define VALKEYMODULE_OPEN_KEY_NOEFFECTS (1 << 20)
#define _VALKEYMODULE_OPEN_KEY_ALL \
    (VALKEYMODULE_READ | VALKEYMODULE_WRITE | VALKEYMODULE_OPEN_KEY_NOTOUCH | \
     VALKEYMODULE_OPEN_KEY_NONOTIFY | VALKEYMODULE_OPEN_KEY_NOSTATS | \
     VALKEYMODULE_OPEN_KEY_NOEXPIRE | VALKEYMODULE_OPEN_KEY_NOEFFECTS)

#define VALKEYMODULE_KEYTYPE_EMPTY 0
#define VALKEYMODULE_KEYTYPE_STRING 1
#define VALKEYMODULE_KEYTYPE_LIST 2
#define VALKEYMODULE_KEYTYPE_HASH 3
#define VALKEYMODULE_KEYTYPE_SET 4
#define VALKEYMODULE_KEYTYPE_ZSET 5
#define VALKEYMODULE_KEYTYPE_MODULE 6
#define VALKEYMODULE_KEYTYPE_STREAM 7
#define VALKEYMODULE_KEYTYPE_PATHHASH 8

#define VALKEYMODULE_NO_EXPIRE (-1)
#define VALKEYMODULE_LIST_HEAD 0
#define VALKEYMODULE_LIST_TAIL 1

#define VALKEYMODULE_ZADD_XX (1 << 0)
#define VALKEYMODULE_ZADD_NX (1 << 1)
#define VALKEYMODULE_ZADD_ADDED (1 << 2)
#define VALKEYMODULE_ZADD_UPDATED (1 << 3)
#define VALKEYMODULE_ZADD_NOP (1 << 4)
#define VALKEYMODULE_ZADD_GT (1 << 5)
#define VALKEYMODULE_ZADD_LT (1 << 6)

#define VALKEYMODULE_HASH_NONE 0
#define VALKEYMODULE_HASH_NX (1 << 0)
#define VALKEYMODULE_HASH_XX (1 << 1)
#define VALKEYMODULE_HASH_CFIELDS (1 << 2)
#define VALKEYMODULE_HASH_EXISTS (1 << 3)
#define VALKEYMODULE_HASH_COUNT_ALL (1 << 4)
/* A value that deletes its field. */
#define VALKEYMODULE_HASH_DELETE ((ValkeyModuleString *)(long)1)

#define VALKEYMODULE_STREAM_ADD_AUTOID (1 << 0)
#define VALKEYMODULE_STREAM_ITERATOR_EXCLUSIVE (1 << 0)
#define VALKEYMODULE_STREAM_ITERATOR_REVERSE (1 << 1)
#define VALKEYMODULE_STREAM_TRIM_APPROX (1 << 0)

/* ------------------------------------------------------------------ replies */

#define VALKEYMODULE_REPLY_UNKNOWN (-1)
#define VALKEYMODULE_REPLY_STRING 0
#define VALKEYMODULE_REPLY_ERROR 1
#define VALKEYMODULE_REPLY_INTEGER 2
#define VALKEYMODULE_REPLY_ARRAY 3
#define VALKEYMODULE_REPLY_NULL 4
#define VALKEYMODULE_REPLY_MAP 5
#define VALKEYMODULE_REPLY_SET 6
#define VALKEYMODULE_REPLY_BOOL 7
#define VALKEYMODULE_REPLY_DOUBLE 8
#define VALKEYMODULE_REPLY_BIG_NUMBER 9
#define VALKEYMODULE_REPLY_VERBATIM_STRING 10
#define VALKEYMODULE_REPLY_ATTRIBUTE 11
#define VALKEYMODULE_REPLY_PROMISE 12
#define VALKEYMODULE_REPLY_SIMPLE_STRING 13
#define VALKEYMODULE_REPLY_ARRAY_NULL 14

#define VALKEYMODULE_POSTPONED_LEN (-1)
#define VALKEYMODULE_POSTPONED_ARRAY_LEN VALKEYMODULE_POSTPONED_LEN

/* ------------------------------------------------------------------ flags of other functions */

#define VALKEYMODULE_CONFIG_DEFAULT 0
#define VALKEYMODULE_CONFIG_IMMUTABLE (1ULL << 0)
#define VALKEYMODULE_CONFIG_SENSITIVE (1ULL << 1)
#define VALKEYMODULE_CONFIG_HIDDEN (1ULL << 4)
#define VALKEYMODULE_CONFIG_PROTECTED (1ULL << 5)
#define VALKEYMODULE_CONFIG_DENY_LOADING (1ULL << 6)
#define VALKEYMODULE_CONFIG_MEMORY (1ULL << 7)
#define VALKEYMODULE_CONFIG_BITFLAGS (1ULL << 8)
#define VALKEYMODULE_CONFIG_UNSIGNED (1ULL << 9)

#define VALKEYMODULE_CTX_FLAGS_LUA (1 << 0)
#define VALKEYMODULE_CTX_FLAGS_MULTI (1 << 1)
#define VALKEYMODULE_CTX_FLAGS_PRIMARY (1 << 2)
#define VALKEYMODULE_CTX_FLAGS_REPLICA (1 << 3)
#define VALKEYMODULE_CTX_FLAGS_READONLY (1 << 4)
#define VALKEYMODULE_CTX_FLAGS_CLUSTER (1 << 5)
#define VALKEYMODULE_CTX_FLAGS_AOF (1 << 6)
#define VALKEYMODULE_CTX_FLAGS_RDB (1 << 7)
#define VALKEYMODULE_CTX_FLAGS_MAXMEMORY (1 << 8)
#define VALKEYMODULE_CTX_FLAGS_EVICT (1 << 9)
#define VALKEYMODULE_CTX_FLAGS_OOM (1 << 10)
#define VALKEYMODULE_CTX_FLAGS_OOM_WARNING (1 << 11)
#define VALKEYMODULE_CTX_FLAGS_REPLICATED (1 << 12)
#define VALKEYMODULE_CTX_FLAGS_LOADING (1 << 13)
#define VALKEYMODULE_CTX_FLAGS_REPLICA_IS_STALE (1 << 14)
#define VALKEYMODULE_CTX_FLAGS_REPLICA_IS_CONNECTING (1 << 15)
#define VALKEYMODULE_CTX_FLAGS_REPLICA_IS_TRANSFERRING (1 << 16)
#define VALKEYMODULE_CTX_FLAGS_REPLICA_IS_ONLINE (1 << 17)
#define VALKEYMODULE_CTX_FLAGS_ACTIVE_CHILD (1 << 18)
#define VALKEYMODULE_CTX_FLAGS_MULTI_DIRTY (1 << 19)
#define VALKEYMODULE_CTX_FLAGS_IS_CHILD (1 << 20)
#define VALKEYMODULE_CTX_FLAGS_DENY_BLOCKING (1 << 21)
#define VALKEYMODULE_CTX_FLAGS_RESP3 (1 << 22)
#define VALKEYMODULE_CTX_FLAGS_ASYNC_LOADING (1 << 23)
#define VALKEYMODULE_CTX_FLAGS_SERVER_STARTUP (1 << 24)
#define VALKEYMODULE_CTX_FLAGS_SLOT_IMPORT_CLIENT (1 << 25)
#define VALKEYMODULE_CTX_FLAGS_SLOT_EXPORT_CLIENT (1 << 26)
#define _VALKEYMODULE_CTX_FLAGS_NEXT (1 << 27)

#define VALKEYMODULE_NOTIFY_KEYSPACE (1 << 0)
#define VALKEYMODULE_NOTIFY_KEYEVENT (1 << 1)
#define VALKEYMODULE_NOTIFY_GENERIC (1 << 2)
#define VALKEYMODULE_NOTIFY_STRING (1 << 3)
#define VALKEYMODULE_NOTIFY_LIST (1 << 4)
#define VALKEYMODULE_NOTIFY_SET (1 << 5)
#define VALKEYMODULE_NOTIFY_HASH (1 << 6)
#define VALKEYMODULE_NOTIFY_ZSET (1 << 7)
#define VALKEYMODULE_NOTIFY_EXPIRED (1 << 8)
#define VALKEYMODULE_NOTIFY_EVICTED (1 << 9)
#define VALKEYMODULE_NOTIFY_STREAM (1 << 10)
#define VALKEYMODULE_NOTIFY_KEY_MISS (1 << 11)
#define VALKEYMODULE_NOTIFY_LOADED (1 << 12)
#define VALKEYMODULE_NOTIFY_MODULE (1 << 13)
#define VALKEYMODULE_NOTIFY_NEW (1 << 14)
#define VALKEYMODULE_NOTIFY_PATHHASH (1 << 15)
#define _VALKEYMODULE_NOTIFY_NEXT (1 << 16)
#define VALKEYMODULE_NOTIFY_ALL \
    (VALKEYMODULE_NOTIFY_GENERIC | VALKEYMODULE_NOTIFY_STRING | VALKEYMODULE_NOTIFY_LIST | \
     VALKEYMODULE_NOTIFY_SET | VALKEYMODULE_NOTIFY_HASH | VALKEYMODULE_NOTIFY_ZSET | \
     VALKEYMODULE_NOTIFY_EXPIRED | VALKEYMODULE_NOTIFY_EVICTED | VALKEYMODULE_NOTIFY_STREAM | \
     VALKEYMODULE_NOTIFY_MODULE | VALKEYMODULE_NOTIFY_PATHHASH)

#define VALKEYMODULE_OPTIONS_HANDLE_IO_ERRORS (1 << 0)
#define VALKEYMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED (1 << 1)
#define VALKEYMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD (1 << 2)
#define VALKEYMODULE_OPTIONS_ALLOW_NESTED_KEYSPACE_NOTIFICATIONS (1 << 3)
#define VALKEYMODULE_OPTIONS_SKIP_COMMAND_VALIDATION (1 << 4)
#define VALKEYMODULE_OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION (1 << 5)
/* Of Valkey 9.2: values are changed only after they were opened, and can be saved meanwhile. */
#define VALKEYMODULE_OPTIONS_HANDLE_FORKLESS (1 << 6)

#define VALKEYMODULE_NODE_MYSELF (1 << 0)
#define VALKEYMODULE_NODE_PRIMARY (1 << 1)
#define VALKEYMODULE_NODE_REPLICA (1 << 2)
#define VALKEYMODULE_NODE_PFAIL (1 << 3)
#define VALKEYMODULE_NODE_FAIL (1 << 4)
#define VALKEYMODULE_NODE_NOFAILOVER (1 << 5)

#define VALKEYMODULE_CLUSTER_FLAG_NONE 0
#define VALKEYMODULE_CLUSTER_FLAG_NO_FAILOVER (1 << 1)
#define VALKEYMODULE_CLUSTER_FLAG_NO_REDIRECTION (1 << 2)

#define VALKEYMODULE_AUX_BEFORE_RDB (1 << 0)
#define VALKEYMODULE_AUX_AFTER_RDB (1 << 1)
#define VALKEYMODULE_YIELD_FLAG_NONE (1 << 0)
#define VALKEYMODULE_YIELD_FLAG_CLIENTS (1 << 1)
#define VALKEYMODULE_BLOCK_UNBLOCK_DEFAULT 0
#define VALKEYMODULE_BLOCK_UNBLOCK_DELETED (1 << 0)
#define VALKEYMODULE_CMDFILTER_NOSELF (1 << 0)
#define VALKEYMODULE_EVENTLOOP_READABLE 1
#define VALKEYMODULE_EVENTLOOP_WRITABLE 2
#define VALKEYMODULE_LOGLEVEL_DEBUG "debug"
#define VALKEYMODULE_LOGLEVEL_VERBOSE "verbose"
#define VALKEYMODULE_LOGLEVEL_NOTICE "notice"
#define VALKEYMODULE_LOGLEVEL_WARNING "warning"

/* Flags of CallArgv(). */
#define VALKEYMODULE_CALL_ARGV_REPLICATE (1 << 0)
#define VALKEYMODULE_CALL_ARGV_NO_AOF (1 << 1)
#define VALKEYMODULE_CALL_ARGV_NO_REPLICAS (1 << 2)
#define VALKEYMODULE_CALL_ARGV_RESP_3 (1 << 3)
#define VALKEYMODULE_CALL_ARGV_RESP_AUTO (1 << 4)
#define VALKEYMODULE_CALL_ARGV_RUN_AS_USER (1 << 5)
#define VALKEYMODULE_CALL_ARGV_SCRIPT_MODE (1 << 6)
#define VALKEYMODULE_CALL_ARGV_NO_WRITES (1 << 7)
#define VALKEYMODULE_CALL_ARGV_ERRORS_AS_REPLIES (1 << 8)
#define VALKEYMODULE_CALL_ARGV_RESPECT_DENY_OOM (1 << 9)
#define VALKEYMODULE_CALL_ARGV_DRY_RUN (1 << 10)
#define VALKEYMODULE_CALL_ARGV_ALLOW_BLOCK (1 << 11)
#define VALKEYMODULE_CALL_ARGV_REPLY_EXACT (1 << 12)

typedef enum {
    VALKEYMODULE_ACL_LOG_AUTH,
    VALKEYMODULE_ACL_LOG_CMD,
    VALKEYMODULE_ACL_LOG_KEY,
    VALKEYMODULE_ACL_LOG_CHANNEL,
    VALKEYMODULE_ACL_LOG_DB
} ValkeyModuleACLLogEntryReason;

/* ------------------------------------------------------------------ description of commands */

typedef enum {
    VALKEYMODULE_ARG_TYPE_STRING,
    VALKEYMODULE_ARG_TYPE_INTEGER,
    VALKEYMODULE_ARG_TYPE_DOUBLE,
    VALKEYMODULE_ARG_TYPE_KEY,
    VALKEYMODULE_ARG_TYPE_PATTERN,
    VALKEYMODULE_ARG_TYPE_UNIX_TIME,
    VALKEYMODULE_ARG_TYPE_PURE_TOKEN,
    VALKEYMODULE_ARG_TYPE_ONEOF,
    VALKEYMODULE_ARG_TYPE_BLOCK
} ValkeyModuleCommandArgType;

#define VALKEYMODULE_CMD_ARG_NONE 0
#define VALKEYMODULE_CMD_ARG_OPTIONAL (1 << 0)
#define VALKEYMODULE_CMD_ARG_MULTIPLE (1 << 1)
#define VALKEYMODULE_CMD_ARG_MULTIPLE_TOKEN (1 << 2)

typedef enum {
    VALKEYMODULE_KSPEC_BS_INVALID,
    VALKEYMODULE_KSPEC_BS_UNKNOWN,
    VALKEYMODULE_KSPEC_BS_INDEX,
    VALKEYMODULE_KSPEC_BS_KEYWORD
} ValkeyModuleKeySpecBeginSearchType;

typedef enum {
    VALKEYMODULE_KSPEC_FK_OMITTED,
    VALKEYMODULE_KSPEC_FK_UNKNOWN,
    VALKEYMODULE_KSPEC_FK_RANGE,
    VALKEYMODULE_KSPEC_FK_KEYNUM
} ValkeyModuleKeySpecFindKeysType;

#define VALKEYMODULE_CMD_KEY_RO (1ULL << 0)
#define VALKEYMODULE_CMD_KEY_RW (1ULL << 1)
#define VALKEYMODULE_CMD_KEY_OW (1ULL << 2)
#define VALKEYMODULE_CMD_KEY_RM (1ULL << 3)
#define VALKEYMODULE_CMD_KEY_ACCESS (1ULL << 4)
#define VALKEYMODULE_CMD_KEY_UPDATE (1ULL << 5)
#define VALKEYMODULE_CMD_KEY_INSERT (1ULL << 6)
#define VALKEYMODULE_CMD_KEY_DELETE (1ULL << 7)
#define VALKEYMODULE_CMD_KEY_NOT_KEY (1ULL << 8)
#define VALKEYMODULE_CMD_KEY_INCOMPLETE (1ULL << 9)
#define VALKEYMODULE_CMD_KEY_VARIABLE_FLAGS (1ULL << 10)

#define VALKEYMODULE_CMD_CHANNEL_PATTERN (1ULL << 0)
#define VALKEYMODULE_CMD_CHANNEL_PUBLISH (1ULL << 1)
#define VALKEYMODULE_CMD_CHANNEL_SUBSCRIBE (1ULL << 2)
#define VALKEYMODULE_CMD_CHANNEL_UNSUBSCRIBE (1ULL << 3)

typedef struct ValkeyModuleCommandArg {
    const char *name;
    ValkeyModuleCommandArgType type;
    int key_spec_index; /* of the key specification that finds it, for type KEY; else -1 */
    const char *token;  /* comes before it, or is it */
    const char *summary;
    const char *since;
    int flags; /* VALKEYMODULE_CMD_ARG_ */
    const char *deprecated_since;
    struct ValkeyModuleCommandArg *subargs; /* of types ONEOF and BLOCK */
    const char *display_text;
} ValkeyModuleCommandArg; /* the end of an array: name is NULL */

typedef struct {
    const char *since;
    const char *changes;
} ValkeyModuleCommandHistoryEntry; /* the end: since is NULL */

typedef struct {
    const char *notes;
    uint64_t flags; /* VALKEYMODULE_CMD_KEY_ */
    ValkeyModuleKeySpecBeginSearchType begin_search_type;
    union {
        struct {
            int pos;
        } index;
        struct {
            const char *keyword;
            int startfrom;
        } keyword;
    } bs;
    ValkeyModuleKeySpecFindKeysType find_keys_type;
    union {
        struct {
            int lastkey;
            int keystep;
            int limit;
        } range;
        struct {
            int keynumidx;
            int firstkey;
            int keystep;
        } keynum;
    } fk;
} ValkeyModuleCommandKeySpec; /* the end: begin_search_type is 0 */

/* The sizes of elements, so that a later header may have larger ones. */
typedef struct {
    int version;
    size_t sizeof_historyentry;
    size_t sizeof_keyspec;
    size_t sizeof_arg;
} ValkeyModuleCommandInfoVersion;

static const ValkeyModuleCommandInfoVersion ValkeyModule_CurrentCommandInfoVersion
    VALKEYMODULE_ATTR_UNUSED = {1, sizeof(ValkeyModuleCommandHistoryEntry),
                                sizeof(ValkeyModuleCommandKeySpec), sizeof(ValkeyModuleCommandArg)};
#define VALKEYMODULE_COMMAND_INFO_VERSION (&ValkeyModule_CurrentCommandInfoVersion)

typedef struct {
    const ValkeyModuleCommandInfoVersion *version; /* VALKEYMODULE_COMMAND_INFO_VERSION */
    const char *summary;
    const char *complexity;
    const char *since;
    ValkeyModuleCommandHistoryEntry *history;
    const char *tips; /* separated by blanks */
    int arity;        /* negative: at least so many */
    ValkeyModuleCommandKeySpec *key_specs;
    ValkeyModuleCommandArg *args;
} ValkeyModuleCommandInfo;

/* ------------------------------------------------------------------ opaque types */

typedef long long mstime_t;
typedef long long ustime_t;

typedef struct ValkeyModuleString ValkeyModuleString;
typedef struct ValkeyModuleKey ValkeyModuleKey;
typedef struct ValkeyModuleCtx ValkeyModuleCtx;
typedef struct ValkeyModuleIO ValkeyModuleIO;
typedef struct ValkeyModuleDigest ValkeyModuleDigest;
typedef struct ValkeyModuleInfoCtx ValkeyModuleInfoCtx;
typedef struct ValkeyModuleDefragCtx ValkeyModuleDefragCtx;
typedef struct ValkeyModuleCommand ValkeyModuleCommand;
typedef struct ValkeyModuleCallReply ValkeyModuleCallReply;
typedef struct ValkeyModuleType ValkeyModuleType;
typedef struct ValkeyModuleBlockedClient ValkeyModuleBlockedClient;
typedef struct ValkeyModuleClusterInfo ValkeyModuleClusterInfo;
typedef struct ValkeyModuleDict ValkeyModuleDict;
typedef struct ValkeyModuleDictIter ValkeyModuleDictIter;
typedef struct ValkeyModuleCommandFilterCtx ValkeyModuleCommandFilterCtx;
typedef struct ValkeyModuleCommandFilter ValkeyModuleCommandFilter;
typedef struct ValkeyModuleServerInfoData ValkeyModuleServerInfoData;
typedef struct ValkeyModuleScanCursor ValkeyModuleScanCursor;
typedef struct ValkeyModuleUser ValkeyModuleUser;
typedef struct ValkeyModuleKeyOptCtx ValkeyModuleKeyOptCtx;
typedef struct ValkeyModuleRdbStream ValkeyModuleRdbStream;
typedef struct ValkeyModuleAsyncRMCallPromise ValkeyModuleAsyncRMCallPromise;
typedef ValkeyModuleAsyncRMCallPromise ValkeyModuleCallArgvBlockedHandle;
typedef void ValkeyModuleScriptingEngineCtx;
typedef void ValkeyModuleScriptingEngineServerRuntimeCtx;
typedef uint64_t ValkeyModuleTimerID;

typedef struct ValkeyModuleStreamID {
    uint64_t ms;
    uint64_t seq;
} ValkeyModuleStreamID;

typedef struct ValkeyModuleKeyInfo {
    uint64_t version;
    ValkeyModuleKey *key;
} ValkeyModuleKeyInfoV1;
#define VALKEYMODULE_KEYINFO_VERSION 1

typedef struct ValkeyModuleCommandResultInfo {
    uint64_t version;
    const char *command_name;
    int64_t duration_us;
    int64_t dirty;
    uint64_t client_id;
    int is_module_client;
    int argc;
    ValkeyModuleString **argv;
    const char *rejection_context;
} ValkeyModuleCommandResultInfoV1;
#define VALKEYMODULE_COMMANDRESULTINFO_VERSION 1

typedef struct ValkeyModuleClientInfo ValkeyModuleClientInfo;
typedef struct ValkeyModuleReplicationInfo ValkeyModuleReplicationInfo;
typedef struct ValkeyModuleFlushInfo ValkeyModuleFlushInfo;
typedef struct ValkeyModuleModuleChange ValkeyModuleModuleChange;
typedef struct ValkeyModuleConfigChange ValkeyModuleConfigChange;
typedef struct ValkeyModuleCronLoopInfo ValkeyModuleCronLoop;
typedef struct ValkeyModuleLoadingProgressInfo ValkeyModuleLoadingProgress;
typedef struct ValkeyModuleSwapDbInfo ValkeyModuleSwapDbInfo;
typedef struct ValkeyModuleKeyInfo ValkeyModuleKeyInfo;
typedef struct ValkeyModuleAuthenticationInfo ValkeyModuleAuthenticationInfo;
typedef struct ValkeyModuleAtomicSlotMigrationInfo ValkeyModuleAtomicSlotMigrationInfo;
typedef struct ValkeyModuleCommandResultInfo ValkeyModuleCommandResultInfo;

/* ------------------------------------------------------------------ callbacks */

typedef int (*ValkeyModuleCmdFunc)(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc);
typedef void (*ValkeyModuleDisconnectFunc)(ValkeyModuleCtx *ctx, ValkeyModuleBlockedClient *bc);
typedef int (*ValkeyModuleAuthCallback)(ValkeyModuleCtx *ctx, ValkeyModuleString *username,
                                        ValkeyModuleString *password, ValkeyModuleString **err);
typedef int (*ValkeyModuleNotificationFunc)(ValkeyModuleCtx *ctx, int type, const char *event,
                                            ValkeyModuleString *key);
typedef void (*ValkeyModulePostNotificationJobFunc)(ValkeyModuleCtx *ctx, void *pd);
typedef void (*ValkeyModuleClusterMessageReceiver)(ValkeyModuleCtx *ctx, const char *sender_id,
                                                   uint8_t type, const unsigned char *payload,
                                                   uint32_t len);
typedef void (*ValkeyModuleTimerProc)(ValkeyModuleCtx *ctx, void *data);
typedef void (*ValkeyModuleCommandFilterFunc)(ValkeyModuleCommandFilterCtx *filter);
typedef void (*ValkeyModuleForkDoneHandler)(int exitcode, int bysignal, void *user_data);
typedef void (*ValkeyModuleInfoFunc)(ValkeyModuleInfoCtx *ctx, int for_crash_report);
typedef void (*ValkeyModuleDefragFunc)(ValkeyModuleDefragCtx *ctx);
typedef void (*ValkeyModuleUserChangedFunc)(uint64_t client_id, void *privdata);
typedef void (*ValkeyModuleScanCB)(ValkeyModuleCtx *ctx, ValkeyModuleString *keyname,
                                   ValkeyModuleKey *key, void *privdata);
typedef void (*ValkeyModuleScanKeyCB)(ValkeyModuleKey *key, ValkeyModuleString *field,
                                      ValkeyModuleString *value, void *privdata);
typedef void (*ValkeyModuleOnUnblocked)(ValkeyModuleCtx *ctx, ValkeyModuleCallReply *reply,
                                        void *private_data);
typedef void (*ValkeyModuleEventLoopFunc)(int fd, void *user_data, int mask);
typedef void (*ValkeyModuleEventLoopOneShotFunc)(void *user_data);
typedef ValkeyModuleString *(*ValkeyModuleConfigGetStringFunc)(const char *name, void *privdata);
typedef long long (*ValkeyModuleConfigGetNumericFunc)(const char *name, void *privdata);
typedef unsigned long long (*ValkeyModuleConfigGetUnsignedNumericFunc)(const char *name,
                                                                       void *privdata);
typedef int (*ValkeyModuleConfigGetBoolFunc)(const char *name, void *privdata);
typedef int (*ValkeyModuleConfigGetEnumFunc)(const char *name, void *privdata);
typedef int (*ValkeyModuleConfigSetStringFunc)(const char *name, ValkeyModuleString *val,
                                               void *privdata, ValkeyModuleString **err);
typedef int (*ValkeyModuleConfigSetNumericFunc)(const char *name, long long val, void *privdata,
                                                ValkeyModuleString **err);
typedef int (*ValkeyModuleConfigSetUnsignedNumericFunc)(const char *name, unsigned long long val,
                                                        void *privdata, ValkeyModuleString **err);
typedef int (*ValkeyModuleConfigSetBoolFunc)(const char *name, int val, void *privdata,
                                             ValkeyModuleString **err);
typedef int (*ValkeyModuleConfigSetEnumFunc)(const char *name, int val, void *privdata,
                                             ValkeyModuleString **err);
typedef int (*ValkeyModuleConfigApplyFunc)(ValkeyModuleCtx *ctx, void *privdata,
                                           ValkeyModuleString **err);

/* ------------------------------------------------------------------ server events */

typedef struct {
    uint64_t id;
    uint64_t dataver;
} ValkeyModuleEvent;

#define VALKEYMODULE_EVENT_REPLICATION_ROLE_CHANGED 0
#define VALKEYMODULE_EVENT_PERSISTENCE 1
#define VALKEYMODULE_EVENT_FLUSHDB 2
#define VALKEYMODULE_EVENT_LOADING 3
#define VALKEYMODULE_EVENT_CLIENT_CHANGE 4
#define VALKEYMODULE_EVENT_SHUTDOWN 5
#define VALKEYMODULE_EVENT_REPLICA_CHANGE 6
#define VALKEYMODULE_EVENT_PRIMARY_LINK_CHANGE 7
#define VALKEYMODULE_EVENT_CRON_LOOP 8
#define VALKEYMODULE_EVENT_MODULE_CHANGE 9
#define VALKEYMODULE_EVENT_LOADING_PROGRESS 10
#define VALKEYMODULE_EVENT_SWAPDB 11
#define VALKEYMODULE_EVENT_REPL_BACKUP 12 /* never signalled */
#define VALKEYMODULE_EVENT_FORK_CHILD 13
#define VALKEYMODULE_EVENT_REPL_ASYNC_LOAD 14
#define VALKEYMODULE_EVENT_EVENTLOOP 15
#define VALKEYMODULE_EVENT_CONFIG 16
#define VALKEYMODULE_EVENT_KEY 17
#define VALKEYMODULE_EVENT_AUTHENTICATION_ATTEMPT 18
#define VALKEYMODULE_EVENT_ATOMIC_SLOT_MIGRATION 19
#define VALKEYMODULE_EVENT_COMMAND_RESULT_SUCCESS 20
#define VALKEYMODULE_EVENT_COMMAND_RESULT_FAILURE 21
#define VALKEYMODULE_EVENT_COMMAND_RESULT_REJECTED 22
#define VALKEYMODULE_EVENT_COMMAND_RESULT_ACL_REJECTED 23
#define _VALKEYMODULE_EVENT_NEXT 24

#define VALKEYMODULE_EVENT_DEFINE(name, id) \
    static const ValkeyModuleEvent ValkeyModuleEvent_##name VALKEYMODULE_ATTR_UNUSED = { \
        VALKEYMODULE_EVENT_##id, 1}
VALKEYMODULE_EVENT_DEFINE(ReplicationRoleChanged, REPLICATION_ROLE_CHANGED);
VALKEYMODULE_EVENT_DEFINE(Persistence, PERSISTENCE);
VALKEYMODULE_EVENT_DEFINE(FlushDB, FLUSHDB);
VALKEYMODULE_EVENT_DEFINE(Loading, LOADING);
VALKEYMODULE_EVENT_DEFINE(ClientChange, CLIENT_CHANGE);
VALKEYMODULE_EVENT_DEFINE(Shutdown, SHUTDOWN);
VALKEYMODULE_EVENT_DEFINE(ReplicaChange, REPLICA_CHANGE);
VALKEYMODULE_EVENT_DEFINE(PrimaryLinkChange, PRIMARY_LINK_CHANGE);
VALKEYMODULE_EVENT_DEFINE(CronLoop, CRON_LOOP);
VALKEYMODULE_EVENT_DEFINE(ModuleChange, MODULE_CHANGE);
VALKEYMODULE_EVENT_DEFINE(LoadingProgress, LOADING_PROGRESS);
VALKEYMODULE_EVENT_DEFINE(SwapDB, SWAPDB);
VALKEYMODULE_EVENT_DEFINE(ForkChild, FORK_CHILD);
VALKEYMODULE_EVENT_DEFINE(ReplAsyncLoad, REPL_ASYNC_LOAD);
VALKEYMODULE_EVENT_DEFINE(EventLoop, EVENTLOOP);
VALKEYMODULE_EVENT_DEFINE(Config, CONFIG);
VALKEYMODULE_EVENT_DEFINE(Key, KEY);
VALKEYMODULE_EVENT_DEFINE(AuthenticationAttempt, AUTHENTICATION_ATTEMPT);
VALKEYMODULE_EVENT_DEFINE(AtomicSlotMigration, ATOMIC_SLOT_MIGRATION);
VALKEYMODULE_EVENT_DEFINE(CommandResultSuccess, COMMAND_RESULT_SUCCESS);
VALKEYMODULE_EVENT_DEFINE(CommandResultFailure, COMMAND_RESULT_FAILURE);
VALKEYMODULE_EVENT_DEFINE(CommandResultRejected, COMMAND_RESULT_REJECTED);
VALKEYMODULE_EVENT_DEFINE(CommandResultACLRejected, COMMAND_RESULT_ACL_REJECTED);

#define VALKEYMODULE_EVENT_REPLROLECHANGED_NOW_PRIMARY 0
#define VALKEYMODULE_EVENT_REPLROLECHANGED_NOW_REPLICA 1
#define VALKEYMODULE_SUBEVENT_PERSISTENCE_RDB_START 0
#define VALKEYMODULE_SUBEVENT_PERSISTENCE_AOF_START 1
#define VALKEYMODULE_SUBEVENT_PERSISTENCE_SYNC_RDB_START 2
#define VALKEYMODULE_SUBEVENT_PERSISTENCE_ENDED 3
#define VALKEYMODULE_SUBEVENT_PERSISTENCE_FAILED 4
#define VALKEYMODULE_SUBEVENT_PERSISTENCE_SYNC_AOF_START 5
#define VALKEYMODULE_SUBEVENT_FLUSHDB_START 0
#define VALKEYMODULE_SUBEVENT_FLUSHDB_END 1
#define VALKEYMODULE_SUBEVENT_LOADING_RDB_START 0
#define VALKEYMODULE_SUBEVENT_LOADING_AOF_START 1
#define VALKEYMODULE_SUBEVENT_LOADING_REPL_START 2
#define VALKEYMODULE_SUBEVENT_LOADING_ENDED 3
#define VALKEYMODULE_SUBEVENT_LOADING_FAILED 4
#define VALKEYMODULE_SUBEVENT_CLIENT_CHANGE_CONNECTED 0
#define VALKEYMODULE_SUBEVENT_CLIENT_CHANGE_DISCONNECTED 1
#define VALKEYMODULE_SUBEVENT_REPLICA_CHANGE_ONLINE 0
#define VALKEYMODULE_SUBEVENT_REPLICA_CHANGE_OFFLINE 1
#define VALKEYMODULE_SUBEVENT_PRIMARY_LINK_UP 0
#define VALKEYMODULE_SUBEVENT_PRIMARY_LINK_DOWN 1
#define VALKEYMODULE_SUBEVENT_MODULE_LOADED 0
#define VALKEYMODULE_SUBEVENT_MODULE_UNLOADED 1
#define VALKEYMODULE_SUBEVENT_LOADING_PROGRESS_RDB 0
#define VALKEYMODULE_SUBEVENT_LOADING_PROGRESS_AOF 1
#define VALKEYMODULE_SUBEVENT_FORK_CHILD_BORN 0
#define VALKEYMODULE_SUBEVENT_FORK_CHILD_DIED 1
#define VALKEYMODULE_SUBEVENT_REPL_ASYNC_LOAD_STARTED 0
#define VALKEYMODULE_SUBEVENT_REPL_ASYNC_LOAD_ABORTED 1
#define VALKEYMODULE_SUBEVENT_REPL_ASYNC_LOAD_COMPLETED 2
#define VALKEYMODULE_SUBEVENT_EVENTLOOP_BEFORE_SLEEP 0
#define VALKEYMODULE_SUBEVENT_EVENTLOOP_AFTER_SLEEP 1
#define VALKEYMODULE_SUBEVENT_CONFIG_CHANGE 0
#define VALKEYMODULE_SUBEVENT_KEY_DELETED 0
#define VALKEYMODULE_SUBEVENT_KEY_EXPIRED 1
#define VALKEYMODULE_SUBEVENT_KEY_EVICTED 2
#define VALKEYMODULE_SUBEVENT_KEY_OVERWRITTEN 3
#define VALKEYMODULE_SUBEVENT_ATOMIC_SLOT_MIGRATION_IMPORT_STARTED 0
#define VALKEYMODULE_SUBEVENT_ATOMIC_SLOT_MIGRATION_EXPORT_STARTED 1
#define VALKEYMODULE_SUBEVENT_ATOMIC_SLOT_MIGRATION_IMPORT_ABORTED 2
#define VALKEYMODULE_SUBEVENT_ATOMIC_SLOT_MIGRATION_EXPORT_ABORTED 3
#define VALKEYMODULE_SUBEVENT_ATOMIC_SLOT_MIGRATION_IMPORT_COMPLETED 4
#define VALKEYMODULE_SUBEVENT_ATOMIC_SLOT_MIGRATION_EXPORT_COMPLETED 5

#define VALKEYMODULE_CLIENTINFO_FLAG_SSL (1 << 0)
#define VALKEYMODULE_CLIENTINFO_FLAG_PUBSUB (1 << 1)
#define VALKEYMODULE_CLIENTINFO_FLAG_BLOCKED (1 << 2)
#define VALKEYMODULE_CLIENTINFO_FLAG_TRACKING (1 << 3)
#define VALKEYMODULE_CLIENTINFO_FLAG_UNIXSOCKET (1 << 4)
#define VALKEYMODULE_CLIENTINFO_FLAG_MULTI (1 << 5)
#define VALKEYMODULE_CLIENTINFO_FLAG_READONLY (1 << 6)
#define VALKEYMODULE_CLIENTINFO_FLAG_PRIMARY (1 << 7)
#define VALKEYMODULE_CLIENTINFO_FLAG_REPLICA (1 << 8)
#define VALKEYMODULE_CLIENTINFO_FLAG_MONITOR (1 << 9)
#define VALKEYMODULE_CLIENTINFO_FLAG_MODULE (1 << 10)
#define VALKEYMODULE_CLIENTINFO_FLAG_AUTHENTICATED (1 << 11)
#define VALKEYMODULE_CLIENTINFO_FLAG_EVER_AUTHENTICATED (1 << 12)
#define VALKEYMODULE_CLIENTINFO_FLAG_FAKE (1 << 13)

/* The data of events, a struct for each kind. */
typedef struct ValkeyModuleClientInfo {
    uint64_t version; /* set by the module for GetClientInfoById() */
    uint64_t flags;   /* VALKEYMODULE_CLIENTINFO_FLAG_ */
    uint64_t id;
    char addr[46];
    uint16_t port;
    uint16_t db;
} ValkeyModuleClientInfoV1;
#define VALKEYMODULE_CLIENTINFO_VERSION 1
#define VALKEYMODULE_CLIENTINFO_INITIALIZER_V1 \
    { .version = 1 }

typedef struct ValkeyModuleReplicationInfo {
    uint64_t version;
    int primary;        /* 1: this server is a primary */
    char *primary_host; /* of a replica */
    int primary_port;
    char *replid1;
    char *replid2;
    uint64_t repl1_offset;
    uint64_t repl2_offset;
} ValkeyModuleReplicationInfoV1;
#define VALKEYMODULE_REPLICATIONINFO_VERSION 1

typedef struct ValkeyModuleFlushInfo {
    uint64_t version;
    int32_t sync;  /* 0: in the background */
    int32_t dbnum; /* -1: all */
} ValkeyModuleFlushInfoV1;
#define VALKEYMODULE_FLUSHINFO_VERSION 1

typedef struct ValkeyModuleModuleChange {
    uint64_t version;
    const char *module_name;
    int32_t module_version;
} ValkeyModuleModuleChangeV1;
#define VALKEYMODULE_MODULE_CHANGE_VERSION 1

typedef struct ValkeyModuleConfigChange {
    uint64_t version;
    uint32_t num_changes;
    const char **config_names;
} ValkeyModuleConfigChangeV1;
#define VALKEYMODULE_CONFIGCHANGE_VERSION 1

typedef struct ValkeyModuleCronLoopInfo {
    uint64_t version;
    int32_t hz;
} ValkeyModuleCronLoopV1;
#define VALKEYMODULE_CRON_LOOP_VERSION 1

typedef struct ValkeyModuleLoadingProgressInfo {
    uint64_t version;
    int32_t hz;
    int32_t progress; /* 0 to 1024; -1: unknown */
} ValkeyModuleLoadingProgressV1;
#define VALKEYMODULE_LOADING_PROGRESS_VERSION 1

typedef struct ValkeyModuleSwapDbInfo {
    uint64_t version;
    int32_t dbnum_first;
    int32_t dbnum_second;
} ValkeyModuleSwapDbInfoV1;
#define VALKEYMODULE_SWAPDBINFO_VERSION 1

typedef enum {
    VALKEYMODULE_AUTH_RESULT_GRANTED,
    VALKEYMODULE_AUTH_RESULT_DENIED
} ValkeyModuleAuthenticationResult;

typedef struct ValkeyModuleAuthenticationInfo {
    uint64_t version;
    uint64_t client_id;
    const char *username;
    const char *module_name; /* NULL: not by a module */
    ValkeyModuleAuthenticationResult result;
} ValkeyModuleAuthenticationInfoV1;
#define VALKEYMODULE_AUTHENTICATION_INFO_VERSION 1
#define VALKEYMODULE_AUTHENTICATIONINFO_INITIALIZER_V1 \
    { .version = 1 }

typedef struct {
    int start;
    int end;
} ValkeyModuleSlotRange;

typedef struct ValkeyModuleAtomicSlotMigrationInfo {
    uint64_t version;
    char job_name[VALKEYMODULE_NODE_ID_LEN + 1];
    ValkeyModuleSlotRange *slot_ranges;
    uint32_t num_slot_ranges;
} ValkeyModuleAtomicSlotMigrationInfoV1;
#define VALKEYMODULE_ATOMIC_SLOT_MIGRATION_INFO_VERSION 1

typedef void (*ValkeyModuleEventCallback)(ValkeyModuleCtx *ctx, ValkeyModuleEvent eid,
                                          uint64_t subevent, void *data);

/* ------------------------------------------------------------------ types of values */

typedef void *(*ValkeyModuleTypeLoadFunc)(ValkeyModuleIO *rdb, int encver);
typedef void (*ValkeyModuleTypeSaveFunc)(ValkeyModuleIO *rdb, void *value);
typedef int (*ValkeyModuleTypeAuxLoadFunc)(ValkeyModuleIO *rdb, int encver, int when);
typedef void (*ValkeyModuleTypeAuxSaveFunc)(ValkeyModuleIO *rdb, int when);
typedef void (*ValkeyModuleTypeRewriteFunc)(ValkeyModuleIO *aof, ValkeyModuleString *key,
                                            void *value);
typedef size_t (*ValkeyModuleTypeMemUsageFunc)(const void *value);
typedef size_t (*ValkeyModuleTypeMemUsageFunc2)(ValkeyModuleKeyOptCtx *ctx, const void *value,
                                                size_t sample_size);
typedef void (*ValkeyModuleTypeDigestFunc)(ValkeyModuleDigest *digest, void *value);
typedef void (*ValkeyModuleTypeFreeFunc)(void *value);
typedef size_t (*ValkeyModuleTypeFreeEffortFunc)(ValkeyModuleString *key, const void *value);
typedef size_t (*ValkeyModuleTypeFreeEffortFunc2)(ValkeyModuleKeyOptCtx *ctx, const void *value);
typedef void (*ValkeyModuleTypeUnlinkFunc)(ValkeyModuleString *key, const void *value);
typedef void (*ValkeyModuleTypeUnlinkFunc2)(ValkeyModuleKeyOptCtx *ctx, const void *value);
typedef void *(*ValkeyModuleTypeCopyFunc)(ValkeyModuleString *fromkey, ValkeyModuleString *tokey,
                                          const void *value);
typedef void *(*ValkeyModuleTypeCopyFunc2)(ValkeyModuleKeyOptCtx *ctx, const void *value);
typedef int (*ValkeyModuleTypeDefragFunc)(ValkeyModuleDefragCtx *ctx, ValkeyModuleString *key,
                                          void **value);

typedef struct ValkeyModuleTypeMethods {
    uint64_t version; /* VALKEYMODULE_TYPE_METHOD_VERSION */
    ValkeyModuleTypeLoadFunc rdb_load;
    ValkeyModuleTypeSaveFunc rdb_save;
    ValkeyModuleTypeRewriteFunc aof_rewrite;
    ValkeyModuleTypeMemUsageFunc mem_usage;
    ValkeyModuleTypeDigestFunc digest;
    ValkeyModuleTypeFreeFunc free;
    ValkeyModuleTypeAuxLoadFunc aux_load; /* from here on version 2 */
    ValkeyModuleTypeAuxSaveFunc aux_save;
    int aux_save_triggers;                      /* VALKEYMODULE_AUX_ */
    ValkeyModuleTypeFreeEffortFunc free_effort; /* 3 */
    ValkeyModuleTypeUnlinkFunc unlink;
    ValkeyModuleTypeCopyFunc copy;
    ValkeyModuleTypeDefragFunc defrag;
    ValkeyModuleTypeMemUsageFunc2 mem_usage2; /* 4 */
    ValkeyModuleTypeFreeEffortFunc2 free_effort2;
    ValkeyModuleTypeUnlinkFunc2 unlink2;
    ValkeyModuleTypeCopyFunc2 copy2;
    ValkeyModuleTypeAuxSaveFunc aux_save2; /* 5 */
} ValkeyModuleTypeMethods;

/* ------------------------------------------------------------------ scripting engines */

typedef enum ValkeyModuleScriptingEngineSubsystemType {
    VMSE_EVAL,
    VMSE_FUNCTION,
    VMSE_ALL
} ValkeyModuleScriptingEngineSubsystemType;

typedef enum ValkeyModuleScriptingEngineExecutionState {
    VMSE_STATE_EXECUTING,
    VMSE_STATE_KILLED
} ValkeyModuleScriptingEngineExecutionState;

typedef enum ValkeyModuleScriptingEngineScriptFlag {
    VMSE_SCRIPT_FLAG_NO_WRITES = (1ULL << 0),
    VMSE_SCRIPT_FLAG_ALLOW_OOM = (1ULL << 1),
    VMSE_SCRIPT_FLAG_ALLOW_STALE = (1ULL << 2),
    VMSE_SCRIPT_FLAG_NO_CLUSTER = (1ULL << 3),
    VMSE_SCRIPT_FLAG_EVAL_COMPAT_MODE = (1ULL << 4),
    VMSE_SCRIPT_FLAG_ALLOW_CROSS_SLOT = (1ULL << 5)
} ValkeyModuleScriptingEngineScriptFlag;

#define VALKEYMODULE_SCRIPTING_ENGINE_ABI_COMPILED_FUNCTION_VERSION 1UL
#define VALKEYMODULE_SCRIPTING_ENGINE_ABI_MEMORY_INFO_VERSION 1UL
#define VALKEYMODULE_SCRIPTING_ENGINE_ABI_DEBUGGER_COMMAND_VERSION 1UL
#define VALKEYMODULE_SCRIPTING_ENGINE_ABI_VERSION 4UL

typedef struct ValkeyModuleScriptingEngineCompiledFunction {
    uint64_t version;
    ValkeyModuleString *name;
    void *function;
    ValkeyModuleString *desc;
    uint64_t f_flags;
} ValkeyModuleScriptingEngineCompiledFunctionV1;
typedef ValkeyModuleScriptingEngineCompiledFunctionV1 ValkeyModuleScriptingEngineCompiledFunction;

typedef struct ValkeyModuleScriptingEngineMemoryInfo {
    uint64_t version;
    size_t used_memory;
    size_t engine_memory_overhead;
} ValkeyModuleScriptingEngineMemoryInfoV1;
typedef ValkeyModuleScriptingEngineMemoryInfoV1 ValkeyModuleScriptingEngineMemoryInfo;

typedef struct ValkeyModuleScriptingEngineCallableLazyEnvReset {
    void *context;
    void (*engineLazyEnvResetCallback)(void *context);
} ValkeyModuleScriptingEngineCallableLazyEnvReset;

typedef enum {
    VMSE_DEBUG_NOT_SUPPORTED,
    VMSE_DEBUG_ENABLED,
    VMSE_DEBUG_ENABLE_FAIL
} ValkeyModuleScriptingEngineDebuggerEnableRet;

typedef int (*ValkeyModuleScriptingEngineDebuggerCommandHandlerFunc)(ValkeyModuleString **argv,
                                                                     size_t argc, void *context);

typedef struct ValkeyModuleScriptingEngineDebuggerCommandParam {
    const char *name;
    int optional;
    int variadic;
} ValkeyModuleScriptingEngineDebuggerCommandParam;

typedef struct ValkeyModuleScriptingEngineDebuggerCommand {
    uint64_t version;
    const char *name;
    size_t prefix_len; /* the shortest abbreviation of the name */
    const ValkeyModuleScriptingEngineDebuggerCommandParam *params;
    size_t params_len;
    const char *desc;
    int invisible;
    ValkeyModuleScriptingEngineDebuggerCommandHandlerFunc handler;
    void *context;
} ValkeyModuleScriptingEngineDebuggerCommandV1;
typedef ValkeyModuleScriptingEngineDebuggerCommandV1 ValkeyModuleScriptingEngineDebuggerCommand;

typedef ValkeyModuleScriptingEngineCompiledFunction **(*ValkeyModuleScriptingEngineCompileCodeFunc)(
    ValkeyModuleCtx *module_ctx, ValkeyModuleScriptingEngineCtx *engine_ctx,
    ValkeyModuleScriptingEngineSubsystemType type, const char *code, size_t code_len,
    size_t timeout, size_t *out_num_compiled_functions, ValkeyModuleString **err);
typedef void (*ValkeyModuleScriptingEngineFreeFunctionFunc)(
    ValkeyModuleCtx *module_ctx, ValkeyModuleScriptingEngineCtx *engine_ctx,
    ValkeyModuleScriptingEngineSubsystemType type,
    ValkeyModuleScriptingEngineCompiledFunction *compiled_function);
typedef void (*ValkeyModuleScriptingEngineCallFunctionFunc)(
    ValkeyModuleCtx *module_ctx, ValkeyModuleScriptingEngineCtx *engine_ctx,
    ValkeyModuleScriptingEngineServerRuntimeCtx *server_ctx,
    ValkeyModuleScriptingEngineCompiledFunction *compiled_function,
    ValkeyModuleScriptingEngineSubsystemType type, ValkeyModuleString **keys, size_t nkeys,
    ValkeyModuleString **args, size_t nargs);
typedef size_t (*ValkeyModuleScriptingEngineGetFunctionMemoryOverheadFunc)(
    ValkeyModuleCtx *module_ctx, ValkeyModuleScriptingEngineCompiledFunction *compiled_function);
typedef ValkeyModuleScriptingEngineCallableLazyEnvReset *(*ValkeyModuleScriptingEngineResetEnvFunc)(
    ValkeyModuleCtx *module_ctx, ValkeyModuleScriptingEngineCtx *engine_ctx,
    ValkeyModuleScriptingEngineSubsystemType type, int async);
typedef ValkeyModuleScriptingEngineMemoryInfo (*ValkeyModuleScriptingEngineGetMemoryInfoFunc)(
    ValkeyModuleCtx *module_ctx, ValkeyModuleScriptingEngineCtx *engine_ctx,
    ValkeyModuleScriptingEngineSubsystemType type);
typedef ValkeyModuleScriptingEngineDebuggerEnableRet (
    *ValkeyModuleScriptingEngineDebuggerEnableFunc)(
    ValkeyModuleCtx *module_ctx, ValkeyModuleScriptingEngineCtx *engine_ctx,
    ValkeyModuleScriptingEngineSubsystemType type,
    const ValkeyModuleScriptingEngineDebuggerCommand **commands, size_t *commands_len);
typedef void (*ValkeyModuleScriptingEngineDebuggerDisableFunc)(
    ValkeyModuleCtx *module_ctx, ValkeyModuleScriptingEngineCtx *engine_ctx,
    ValkeyModuleScriptingEngineSubsystemType type);
typedef void (*ValkeyModuleScriptingEngineDebuggerStartFunc)(
    ValkeyModuleCtx *module_ctx, ValkeyModuleScriptingEngineCtx *engine_ctx,
    ValkeyModuleScriptingEngineSubsystemType type, ValkeyModuleString *source);
typedef void (*ValkeyModuleScriptingEngineDebuggerEndFunc)(
    ValkeyModuleCtx *module_ctx, ValkeyModuleScriptingEngineCtx *engine_ctx,
    ValkeyModuleScriptingEngineSubsystemType type);

typedef struct ValkeyModuleScriptingEngineMethods {
    uint64_t version; /* VALKEYMODULE_SCRIPTING_ENGINE_ABI_VERSION */
    ValkeyModuleScriptingEngineCompileCodeFunc compile_code;
    ValkeyModuleScriptingEngineFreeFunctionFunc free_function;
    ValkeyModuleScriptingEngineCallFunctionFunc call_function;
    ValkeyModuleScriptingEngineGetFunctionMemoryOverheadFunc get_function_memory_overhead;
    ValkeyModuleScriptingEngineResetEnvFunc reset_env;
    ValkeyModuleScriptingEngineGetMemoryInfoFunc get_memory_info;
    ValkeyModuleScriptingEngineDebuggerEnableFunc debugger_enable; /* from here on version 4 */
    ValkeyModuleScriptingEngineDebuggerDisableFunc debugger_disable;
    ValkeyModuleScriptingEngineDebuggerStartFunc debugger_start;
    ValkeyModuleScriptingEngineDebuggerEndFunc debugger_end;
} ValkeyModuleScriptingEngineMethodsV4;
typedef ValkeyModuleScriptingEngineMethodsV4 ValkeyModuleScriptingEngineMethods;

/* ------------------------------------------------------------------ replies of CallArgv() */

#define VALKEYMODULE_REPLY_HANDLERS_VERSION 1

/* Called item by item; NULL: the item is skipped. */
typedef struct ValkeyModuleReplyHandlers {
    uint64_t version; /* VALKEYMODULE_REPLY_HANDLERS_VERSION */
    void (*null)(void *ctx);
    void (*nullBulkString)(void *ctx);
    void (*nullArray)(void *ctx);
    void (*bulkString)(void *ctx, const char *str, size_t len);
    void (*simpleString)(void *ctx, const char *str, size_t len);
    void (*verbatimString)(void *ctx, const char *str, size_t len, const char *format);
    void (*error)(void *ctx, const char *msg, size_t len);
    void (*integer)(void *ctx, long long value);
    void (*doubleVal)(void *ctx, double value);
    void (*bigNumber)(void *ctx, const char *str, size_t len);
    void (*boolVal)(void *ctx, int value);
    void (*attributeStart)(void *ctx, size_t len);
    void (*attributeEnd)(void *ctx);
    void (*arrayStart)(void *ctx, size_t len);
    void (*arrayEnd)(void *ctx);
    void (*mapStart)(void *ctx, size_t len);
    void (*mapEnd)(void *ctx);
    void (*setStart)(void *ctx, size_t len);
    void (*setEnd)(void *ctx);
    void (*replyParsingError)(void *ctx);
    void (*onBlocked)(void *ctx, ValkeyModuleCtx *module_ctx,
                      ValkeyModuleCallArgvBlockedHandle *handle);
    int (*onRespAvailable)(void *ctx, ValkeyModuleCtx *module_ctx, const char *proto,
                           size_t proto_len);
} ValkeyModuleReplyHandlersV1;
typedef ValkeyModuleReplyHandlersV1 ValkeyModuleReplyHandlers;

/* ------------------------------------------------------------------ functions */

#ifndef VALKEYMODULE_CORE

#define VALKEYMODULE_NOT_USED(v) ((void)(v))
#define RMAPI_FUNC_SUPPORTED(func) ((func) != NULL)
/* Asks the server for one function: for those that an optional feature needs. */
#define VALKEYMODULE_GET_API(name) \
    ((void)ValkeyModule_GetApi("ValkeyModule_" #name, (void *)&ValkeyModule_##name))
#define ValkeyModule_IsAOFClient(id) ((id) == UINT64_MAX)
#define ValkeyModule_Assert(expression) \
    ((expression) ? (void)0 : (ValkeyModule__Assert(#expression, __FILE__, __LINE__), exit(1)))

VALKEYMODULE_API int (*ValkeyModule_GetApi)(const char *name, void *target) VALKEYMODULE_ATTR;
/* functions: utils/gen_module_api.py */
/* clang-format off */
VALKEYMODULE_API void *(*ValkeyModule_Alloc)(size_t bytes) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_TryAlloc)(size_t bytes) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_Calloc)(size_t nmemb, size_t size) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_TryCalloc)(size_t nmemb, size_t size) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_Realloc)(void *ptr, size_t bytes) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_TryRealloc)(void *ptr, size_t bytes) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_Free)(void *ptr) VALKEYMODULE_ATTR;
VALKEYMODULE_API char *(*ValkeyModule_Strdup)(const char *str) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_PoolAlloc)(ValkeyModuleCtx *ctx, size_t bytes) VALKEYMODULE_ATTR;
VALKEYMODULE_API size_t (*ValkeyModule_MallocSize)(void *ptr) VALKEYMODULE_ATTR;
VALKEYMODULE_API size_t (*ValkeyModule_MallocUsableSize)(void *ptr) VALKEYMODULE_ATTR;
VALKEYMODULE_API size_t (*ValkeyModule_MallocSizeString)(ValkeyModuleString *str) VALKEYMODULE_ATTR;
VALKEYMODULE_API size_t (*ValkeyModule_MallocSizeDict)(ValkeyModuleDict *dict) VALKEYMODULE_ATTR;
VALKEYMODULE_API float (*ValkeyModule_GetUsedMemoryRatio)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_AutoMemory)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_IsKeysPositionRequest)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_KeyAtPosWithFlags)(ValkeyModuleCtx *ctx, int pos, int flags) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_KeyAtPos)(ValkeyModuleCtx *ctx, int pos) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_IsChannelsPositionRequest)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ChannelAtPosWithFlags)(ValkeyModuleCtx *ctx, int pos, int flags) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_CreateCommand)(ValkeyModuleCtx *ctx, const char *name, ValkeyModuleCmdFunc cmdfunc, const char *strflags, int firstkey, int lastkey, int keystep) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleCommand *(*ValkeyModule_GetCommand)(ValkeyModuleCtx *ctx, const char *name) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_CreateSubcommand)(ValkeyModuleCommand *parent, const char *name, ValkeyModuleCmdFunc cmdfunc, const char *strflags, int firstkey, int lastkey, int keystep) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_SetCommandInfo)(ValkeyModuleCommand *command, const ValkeyModuleCommandInfo *info) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_SetCommandACLCategories)(ValkeyModuleCommand *command, const char *ctgrsflags) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_AddACLCategory)(ValkeyModuleCtx *ctx, const char *name) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_UpdateRuntimeArgs)(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) VALKEYMODULE_ATTR;
VALKEYMODULE_API int *(*ValkeyModule_GetCommandKeys)(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int *num_keys) VALKEYMODULE_ATTR;
VALKEYMODULE_API int *(*ValkeyModule_GetCommandKeysWithFlags)(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int *num_keys, int **out_flags) VALKEYMODULE_ATTR;
VALKEYMODULE_API const char *(*ValkeyModule_GetCurrentCommandName)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_SetModuleAttribs)(ValkeyModuleCtx *ctx, const char *name, int ver, int apiver) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_IsModuleNameBusy)(const char *name) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_SetModuleOptions)(ValkeyModuleCtx *ctx, int options) VALKEYMODULE_ATTR;
VALKEYMODULE_API mstime_t (*ValkeyModule_Milliseconds)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API ustime_t (*ValkeyModule_Microseconds)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API uint64_t (*ValkeyModule_MonotonicMicroseconds)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API ustime_t (*ValkeyModule_CachedMicroseconds)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_BlockedClientMeasureTimeStart)(ValkeyModuleBlockedClient *bc) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_BlockedClientMeasureTimeEnd)(ValkeyModuleBlockedClient *bc) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_Yield)(ValkeyModuleCtx *ctx, int flags, const char *busy_reply) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_SignalModifiedKey)(ValkeyModuleCtx *ctx, ValkeyModuleString *keyname) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_LatencyAddSample)(const char *event, mstime_t latency) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_CreateString)(ValkeyModuleCtx *ctx, const char *ptr, size_t len) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_CreateStringPrintf)(ValkeyModuleCtx *ctx, const char *fmt, ...) VALKEYMODULE_ATTR VALKEYMODULE_ATTR_PRINTF(2, 3);
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_CreateStringFromLongLong)(ValkeyModuleCtx *ctx, long long ll) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_CreateStringFromULongLong)(ValkeyModuleCtx *ctx, unsigned long long ull) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_CreateStringFromDouble)(ValkeyModuleCtx *ctx, double d) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_CreateStringFromLongDouble)(ValkeyModuleCtx *ctx, long double ld, int humanfriendly) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_CreateStringFromString)(ValkeyModuleCtx *ctx, const ValkeyModuleString *str) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_CreateStringFromStreamID)(ValkeyModuleCtx *ctx, const ValkeyModuleStreamID *id) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_CreateStringFromCallReply)(ValkeyModuleCallReply *reply) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_FreeString)(ValkeyModuleCtx *ctx, ValkeyModuleString *str) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_RetainString)(ValkeyModuleCtx *ctx, ValkeyModuleString *str) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_HoldString)(ValkeyModuleCtx *ctx, ValkeyModuleString *str) VALKEYMODULE_ATTR;
VALKEYMODULE_API const char *(*ValkeyModule_StringPtrLen)(const ValkeyModuleString *str, size_t *len) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StringToLongLong)(const ValkeyModuleString *str, long long *ll) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StringToULongLong)(const ValkeyModuleString *str, unsigned long long *ull) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StringToDouble)(const ValkeyModuleString *str, double *d) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StringToLongDouble)(const ValkeyModuleString *str, long double *d) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StringToStreamID)(const ValkeyModuleString *str, ValkeyModuleStreamID *id) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StringCompare)(const ValkeyModuleString *a, const ValkeyModuleString *b) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StringAppendBuffer)(ValkeyModuleCtx *ctx, ValkeyModuleString *str, const char *buf, size_t len) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_TrimStringAllocation)(ValkeyModuleString *str) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_WrongArity)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithLongLong)(ValkeyModuleCtx *ctx, long long ll) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithError)(ValkeyModuleCtx *ctx, const char *err) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithErrorFormat)(ValkeyModuleCtx *ctx, const char *fmt, ...) VALKEYMODULE_ATTR VALKEYMODULE_ATTR_PRINTF(2, 3);
VALKEYMODULE_API int (*ValkeyModule_ReplyWithCustomErrorFormat)(ValkeyModuleCtx *ctx, int update_error_stats, const char *fmt, ...) VALKEYMODULE_ATTR VALKEYMODULE_ATTR_PRINTF(3, 4);
VALKEYMODULE_API int (*ValkeyModule_ReplyWithSimpleString)(ValkeyModuleCtx *ctx, const char *msg) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithArray)(ValkeyModuleCtx *ctx, long len) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithMap)(ValkeyModuleCtx *ctx, long len) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithSet)(ValkeyModuleCtx *ctx, long len) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithAttribute)(ValkeyModuleCtx *ctx, long len) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithNullArray)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithEmptyArray)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ReplySetArrayLength)(ValkeyModuleCtx *ctx, long len) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ReplySetMapLength)(ValkeyModuleCtx *ctx, long len) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ReplySetSetLength)(ValkeyModuleCtx *ctx, long len) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ReplySetAttributeLength)(ValkeyModuleCtx *ctx, long len) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ReplySetPushLength)(ValkeyModuleCtx *ctx, long len) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithStringBuffer)(ValkeyModuleCtx *ctx, const char *buf, size_t len) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithCString)(ValkeyModuleCtx *ctx, const char *buf) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithString)(ValkeyModuleCtx *ctx, ValkeyModuleString *str) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithEmptyString)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithVerbatimStringType)(ValkeyModuleCtx *ctx, const char *buf, size_t len, const char *ext) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithVerbatimString)(ValkeyModuleCtx *ctx, const char *buf, size_t len) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithNull)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithBool)(ValkeyModuleCtx *ctx, int b) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithCallReply)(ValkeyModuleCtx *ctx, ValkeyModuleCallReply *reply) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithDouble)(ValkeyModuleCtx *ctx, double d) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithBigNumber)(ValkeyModuleCtx *ctx, const char *bignum, size_t len) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyWithLongDouble)(ValkeyModuleCtx *ctx, long double d) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_Replicate)(ValkeyModuleCtx *ctx, const char *cmdname, const char *fmt, ...) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplicateVerbatim)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API unsigned long long (*ValkeyModule_GetClientId)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_GetClientUserNameById)(ValkeyModuleCtx *ctx, uint64_t id) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetClientInfoById)(void *ci, uint64_t id) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_GetClientNameById)(ValkeyModuleCtx *ctx, uint64_t id) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_SetClientNameById)(uint64_t id, ValkeyModuleString *name) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_MustObeyClient)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_PublishMessage)(ValkeyModuleCtx *ctx, ValkeyModuleString *channel, ValkeyModuleString *message) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_PublishMessageShard)(ValkeyModuleCtx *ctx, ValkeyModuleString *channel, ValkeyModuleString *message) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetSelectedDb)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_SelectDb)(ValkeyModuleCtx *ctx, int newid) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetContextFlags)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetContextFlagsAll)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_AvoidReplicaTraffic)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_RedactClientCommandArgument)(ValkeyModuleCtx *ctx, int pos) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_GetClientCertificate)(ValkeyModuleCtx *ctx, uint64_t id) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_SetContextUser)(ValkeyModuleCtx *ctx, const ValkeyModuleUser *user) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_KeyExists)(ValkeyModuleCtx *ctx, ValkeyModuleString *keyname) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleKey *(*ValkeyModule_OpenKey)(ValkeyModuleCtx *ctx, ValkeyModuleString *keyname, int mode) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetOpenKeyModesAll)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_CloseKey)(ValkeyModuleKey *kp) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_KeyType)(ValkeyModuleKey *kp) VALKEYMODULE_ATTR;
VALKEYMODULE_API size_t (*ValkeyModule_ValueLength)(ValkeyModuleKey *kp) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_DeleteKey)(ValkeyModuleKey *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_UnlinkKey)(ValkeyModuleKey *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API mstime_t (*ValkeyModule_GetExpire)(ValkeyModuleKey *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_SetExpire)(ValkeyModuleKey *key, mstime_t expire) VALKEYMODULE_ATTR;
VALKEYMODULE_API mstime_t (*ValkeyModule_GetAbsExpire)(ValkeyModuleKey *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_SetAbsExpire)(ValkeyModuleKey *key, mstime_t expire) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ResetDataset)(int restart_aof, int async) VALKEYMODULE_ATTR;
VALKEYMODULE_API unsigned long long (*ValkeyModule_DbSize)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_RandomKey)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API const ValkeyModuleString *(*ValkeyModule_GetKeyNameFromOptCtx)(ValkeyModuleKeyOptCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API const ValkeyModuleString *(*ValkeyModule_GetToKeyNameFromOptCtx)(ValkeyModuleKeyOptCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetDbIdFromOptCtx)(ValkeyModuleKeyOptCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetToDbIdFromOptCtx)(ValkeyModuleKeyOptCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API const ValkeyModuleString *(*ValkeyModule_GetKeyNameFromModuleKey)(ValkeyModuleKey *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetDbIdFromModuleKey)(ValkeyModuleKey *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_SetLRU)(ValkeyModuleKey *key, mstime_t lru_idle) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetLRU)(ValkeyModuleKey *key, mstime_t *lru_idle) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_SetLFU)(ValkeyModuleKey *key, long long lfu_freq) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetLFU)(ValkeyModuleKey *key, long long *lfu_freq) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StringSet)(ValkeyModuleKey *key, ValkeyModuleString *str) VALKEYMODULE_ATTR;
VALKEYMODULE_API char *(*ValkeyModule_StringDMA)(ValkeyModuleKey *key, size_t *len, int mode) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StringTruncate)(ValkeyModuleKey *key, size_t newlen) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ListPush)(ValkeyModuleKey *kp, int where, ValkeyModuleString *ele) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_ListPop)(ValkeyModuleKey *key, int where) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_ListGet)(ValkeyModuleKey *key, long index) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ListSet)(ValkeyModuleKey *key, long index, ValkeyModuleString *value) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ListInsert)(ValkeyModuleKey *key, long index, ValkeyModuleString *value) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ListDelete)(ValkeyModuleKey *key, long index) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ZsetAdd)(ValkeyModuleKey *key, double score, ValkeyModuleString *ele, int *flagsptr) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ZsetIncrby)(ValkeyModuleKey *key, double score, ValkeyModuleString *ele, int *flagsptr, double *newscore) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ZsetRem)(ValkeyModuleKey *key, ValkeyModuleString *ele, int *deleted) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ZsetScore)(ValkeyModuleKey *key, ValkeyModuleString *ele, double *score) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ZsetRangeStop)(ValkeyModuleKey *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ZsetRangeEndReached)(ValkeyModuleKey *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ZsetFirstInScoreRange)(ValkeyModuleKey *key, double min, double max, int minex, int maxex) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ZsetLastInScoreRange)(ValkeyModuleKey *key, double min, double max, int minex, int maxex) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ZsetFirstInLexRange)(ValkeyModuleKey *key, ValkeyModuleString *min, ValkeyModuleString *max) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ZsetLastInLexRange)(ValkeyModuleKey *key, ValkeyModuleString *min, ValkeyModuleString *max) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_ZsetRangeCurrentElement)(ValkeyModuleKey *key, double *score) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ZsetRangeNext)(ValkeyModuleKey *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ZsetRangePrev)(ValkeyModuleKey *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_HashSet)(ValkeyModuleKey *key, int flags, ...) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_HashGet)(ValkeyModuleKey *key, int flags, ...) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_HashSetStringRef)(ValkeyModuleKey *key, ValkeyModuleString *field, const char *buf, size_t len) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_HashHasStringRef)(ValkeyModuleKey *key, ValkeyModuleString *field) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StreamAdd)(ValkeyModuleKey *key, int flags, ValkeyModuleStreamID *id, ValkeyModuleString **argv, int64_t numfields) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StreamDelete)(ValkeyModuleKey *key, ValkeyModuleStreamID *id) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StreamIteratorStart)(ValkeyModuleKey *key, int flags, ValkeyModuleStreamID *startid, ValkeyModuleStreamID *endid) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StreamIteratorStop)(ValkeyModuleKey *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StreamIteratorNextID)(ValkeyModuleKey *key, ValkeyModuleStreamID *id, long *numfields) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StreamIteratorNextField)(ValkeyModuleKey *key, ValkeyModuleString **field_ptr, ValkeyModuleString **value_ptr) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StreamIteratorDelete)(ValkeyModuleKey *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API long long (*ValkeyModule_StreamTrimByLength)(ValkeyModuleKey *key, int flags, long long length) VALKEYMODULE_ATTR;
VALKEYMODULE_API long long (*ValkeyModule_StreamTrimByID)(ValkeyModuleKey *key, int flags, ValkeyModuleStreamID *id) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleCallReply *(*ValkeyModule_Call)(ValkeyModuleCtx *ctx, const char *cmdname, const char *fmt, ...) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_FreeCallReply)(ValkeyModuleCallReply *reply) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_CallReplyType)(ValkeyModuleCallReply *reply) VALKEYMODULE_ATTR;
VALKEYMODULE_API size_t (*ValkeyModule_CallReplyLength)(ValkeyModuleCallReply *reply) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleCallReply *(*ValkeyModule_CallReplyArrayElement)(ValkeyModuleCallReply *reply, size_t idx) VALKEYMODULE_ATTR;
VALKEYMODULE_API long long (*ValkeyModule_CallReplyInteger)(ValkeyModuleCallReply *reply) VALKEYMODULE_ATTR;
VALKEYMODULE_API double (*ValkeyModule_CallReplyDouble)(ValkeyModuleCallReply *reply) VALKEYMODULE_ATTR;
VALKEYMODULE_API const char *(*ValkeyModule_CallReplyBigNumber)(ValkeyModuleCallReply *reply, size_t *len) VALKEYMODULE_ATTR;
VALKEYMODULE_API const char *(*ValkeyModule_CallReplyVerbatim)(ValkeyModuleCallReply *reply, size_t *len, const char **format) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_CallReplyBool)(ValkeyModuleCallReply *reply) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleCallReply *(*ValkeyModule_CallReplySetElement)(ValkeyModuleCallReply *reply, size_t idx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_CallReplyMapElement)(ValkeyModuleCallReply *reply, size_t idx, ValkeyModuleCallReply **key, ValkeyModuleCallReply **val) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleCallReply *(*ValkeyModule_CallReplyAttribute)(ValkeyModuleCallReply *reply) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_CallReplyAttributeElement)(ValkeyModuleCallReply *reply, size_t idx, ValkeyModuleCallReply **key, ValkeyModuleCallReply **val) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_CallReplyPromiseSetUnblockHandler)(ValkeyModuleCallReply *reply, ValkeyModuleOnUnblocked on_unblock, void *private_data) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_CallReplyPromiseAbort)(ValkeyModuleCallReply *reply, void **private_data) VALKEYMODULE_ATTR;
VALKEYMODULE_API const char *(*ValkeyModule_CallReplyStringPtr)(ValkeyModuleCallReply *reply, size_t *len) VALKEYMODULE_ATTR;
VALKEYMODULE_API const char *(*ValkeyModule_CallReplyProto)(ValkeyModuleCallReply *reply, size_t *len) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleType *(*ValkeyModule_CreateDataType)(ValkeyModuleCtx *ctx, const char *name, int encver, ValkeyModuleTypeMethods *typemethods) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ModuleTypeSetValue)(ValkeyModuleKey *key, ValkeyModuleType *mt, void *value) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ModuleTypeReplaceValue)(ValkeyModuleKey *key, ValkeyModuleType *mt, void *new_value, void **old_value) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleType *(*ValkeyModule_ModuleTypeGetType)(ValkeyModuleKey *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_ModuleTypeGetValue)(ValkeyModuleKey *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetTypeMethodVersion)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_IsIOError)(ValkeyModuleIO *io) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_SaveUnsigned)(ValkeyModuleIO *io, uint64_t value) VALKEYMODULE_ATTR;
VALKEYMODULE_API uint64_t (*ValkeyModule_LoadUnsigned)(ValkeyModuleIO *io) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_SaveSigned)(ValkeyModuleIO *io, int64_t value) VALKEYMODULE_ATTR;
VALKEYMODULE_API int64_t (*ValkeyModule_LoadSigned)(ValkeyModuleIO *io) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_SaveString)(ValkeyModuleIO *io, ValkeyModuleString *s) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_SaveStringBuffer)(ValkeyModuleIO *io, const char *str, size_t len) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_LoadString)(ValkeyModuleIO *io) VALKEYMODULE_ATTR;
VALKEYMODULE_API char *(*ValkeyModule_LoadStringBuffer)(ValkeyModuleIO *io, size_t *lenptr) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_SaveDouble)(ValkeyModuleIO *io, double value) VALKEYMODULE_ATTR;
VALKEYMODULE_API double (*ValkeyModule_LoadDouble)(ValkeyModuleIO *io) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_SaveFloat)(ValkeyModuleIO *io, float value) VALKEYMODULE_ATTR;
VALKEYMODULE_API float (*ValkeyModule_LoadFloat)(ValkeyModuleIO *io) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_SaveLongDouble)(ValkeyModuleIO *io, long double value) VALKEYMODULE_ATTR;
VALKEYMODULE_API long double (*ValkeyModule_LoadLongDouble)(ValkeyModuleIO *io) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_SaveDataTypeToString)(ValkeyModuleCtx *ctx, void *data, const ValkeyModuleType *mt) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_LoadDataTypeFromString)(const ValkeyModuleString *str, const ValkeyModuleType *mt) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_LoadDataTypeFromStringEncver)(const ValkeyModuleString *str, const ValkeyModuleType *mt, int encver) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_EmitAOF)(ValkeyModuleIO *io, const char *cmdname, const char *fmt, ...) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleCtx *(*ValkeyModule_GetContextFromIO)(ValkeyModuleIO *io) VALKEYMODULE_ATTR;
VALKEYMODULE_API const ValkeyModuleString *(*ValkeyModule_GetKeyNameFromIO)(ValkeyModuleIO *io) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetDbIdFromIO)(ValkeyModuleIO *io) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleRdbStream *(*ValkeyModule_RdbStreamCreateFromFile)(const char *filename) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_RdbStreamFree)(ValkeyModuleRdbStream *stream) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_RdbLoad)(ValkeyModuleCtx *ctx, ValkeyModuleRdbStream *stream, int flags) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_RdbSave)(ValkeyModuleCtx *ctx, ValkeyModuleRdbStream *stream, int flags) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_DigestAddStringBuffer)(ValkeyModuleDigest *md, const char *ele, size_t len) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_DigestAddLongLong)(ValkeyModuleDigest *md, long long ele) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_DigestEndSequence)(ValkeyModuleDigest *md) VALKEYMODULE_ATTR;
VALKEYMODULE_API const ValkeyModuleString *(*ValkeyModule_GetKeyNameFromDigest)(ValkeyModuleDigest *dig) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetDbIdFromDigest)(ValkeyModuleDigest *dig) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_Log)(ValkeyModuleCtx *ctx, const char *level, const char *fmt, ...) VALKEYMODULE_ATTR VALKEYMODULE_ATTR_PRINTF(3, 4);
VALKEYMODULE_API void (*ValkeyModule_LogIOError)(ValkeyModuleIO *io, const char *levelstr, const char *fmt, ...) VALKEYMODULE_ATTR VALKEYMODULE_ATTR_PRINTF(3, 4);
VALKEYMODULE_API void (*ValkeyModule__Assert)(const char *estr, const char *file, int line) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleBlockedClient *(*ValkeyModule_BlockClient)(ValkeyModuleCtx *ctx, ValkeyModuleCmdFunc reply_callback, ValkeyModuleCmdFunc timeout_callback, void (*free_privdata)(ValkeyModuleCtx *, void *), long long timeout_ms) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleBlockedClient *(*ValkeyModule_BlockClientOnAuth)(ValkeyModuleCtx *ctx, ValkeyModuleAuthCallback reply_callback, void (*free_privdata)(ValkeyModuleCtx *, void *)) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_BlockClientGetPrivateData)(ValkeyModuleBlockedClient *blocked_client) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_BlockClientSetPrivateData)(ValkeyModuleBlockedClient *blocked_client, void *private_data) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleBlockedClient *(*ValkeyModule_BlockClientOnKeys)(ValkeyModuleCtx *ctx, ValkeyModuleCmdFunc reply_callback, ValkeyModuleCmdFunc timeout_callback, void (*free_privdata)(ValkeyModuleCtx *, void *), long long timeout_ms, ValkeyModuleString **keys, int numkeys, void *privdata) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleBlockedClient *(*ValkeyModule_BlockClientOnKeysWithFlags)(ValkeyModuleCtx *ctx, ValkeyModuleCmdFunc reply_callback, ValkeyModuleCmdFunc timeout_callback, void (*free_privdata)(ValkeyModuleCtx *, void *), long long timeout_ms, ValkeyModuleString **keys, int numkeys, void *privdata, int flags) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_SignalKeyAsReady)(ValkeyModuleCtx *ctx, ValkeyModuleString *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_UnblockClient)(ValkeyModuleBlockedClient *bc, void *privdata) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_AbortBlock)(ValkeyModuleBlockedClient *bc) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_SetDisconnectCallback)(ValkeyModuleBlockedClient *bc, ValkeyModuleDisconnectFunc callback) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_IsBlockedReplyRequest)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_IsBlockedTimeoutRequest)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_GetBlockedClientPrivateData)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_GetBlockedClientReadyKey)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleBlockedClient *(*ValkeyModule_GetBlockedClientHandle)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_BlockedClientDisconnected)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleCtx *(*ValkeyModule_GetThreadSafeContext)(ValkeyModuleBlockedClient *bc) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleCtx *(*ValkeyModule_GetDetachedThreadSafeContext)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_FreeThreadSafeContext)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ThreadSafeContextLock)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ThreadSafeContextTryLock)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ThreadSafeContextUnlock)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_SubscribeToKeyspaceEvents)(ValkeyModuleCtx *ctx, int types, ValkeyModuleNotificationFunc cb) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_AddPostNotificationJob)(ValkeyModuleCtx *ctx, ValkeyModulePostNotificationJobFunc callback, void *pd, void (*free_pd)(void *)) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetNotifyKeyspaceEvents)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetKeyspaceNotificationFlagsAll)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_NotifyKeyspaceEvent)(ValkeyModuleCtx *ctx, int type, const char *event, ValkeyModuleString *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_RegisterClusterMessageReceiver)(ValkeyModuleCtx *ctx, uint8_t type, ValkeyModuleClusterMessageReceiver callback) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_SendClusterMessage)(ValkeyModuleCtx *ctx, const char *target_id, uint8_t type, const char *msg, uint32_t len) VALKEYMODULE_ATTR;
VALKEYMODULE_API char **(*ValkeyModule_GetClusterNodesList)(ValkeyModuleCtx *ctx, size_t *numnodes) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_FreeClusterNodesList)(char **ids) VALKEYMODULE_ATTR;
VALKEYMODULE_API const char *(*ValkeyModule_GetMyClusterID)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API size_t (*ValkeyModule_GetClusterSize)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetClusterNodeInfo)(ValkeyModuleCtx *ctx, const char *id, char *ip, char *primary_id, int *port, int *flags) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetClusterNodeInfoForClient)(ValkeyModuleCtx *ctx, uint64_t client_id, const char *node_id, char *ip, char *primary_id, int *port, int *flags) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_SetClusterFlags)(ValkeyModuleCtx *ctx, uint64_t flags) VALKEYMODULE_ATTR;
VALKEYMODULE_API unsigned int (*ValkeyModule_ClusterKeySlotC)(const char *key, size_t keylen) VALKEYMODULE_ATTR;
VALKEYMODULE_API unsigned int (*ValkeyModule_ClusterKeySlot)(ValkeyModuleString *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API const char *(*ValkeyModule_ClusterCanonicalKeyNameInSlot)(unsigned int slot) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleTimerID (*ValkeyModule_CreateTimer)(ValkeyModuleCtx *ctx, mstime_t period, ValkeyModuleTimerProc callback, void *data) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_StopTimer)(ValkeyModuleCtx *ctx, ValkeyModuleTimerID id, void **data) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetTimerInfo)(ValkeyModuleCtx *ctx, ValkeyModuleTimerID id, uint64_t *remaining, void **data) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_EventLoopAdd)(int fd, int mask, ValkeyModuleEventLoopFunc func, void *user_data) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_EventLoopDel)(int fd, int mask) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_EventLoopAddOneShot)(ValkeyModuleEventLoopOneShotFunc func, void *user_data) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleUser *(*ValkeyModule_CreateModuleUser)(const char *name) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_FreeModuleUser)(ValkeyModuleUser *user) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_SetModuleUserACL)(ValkeyModuleUser *user, const char *acl) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_SetModuleUserACLString)(ValkeyModuleCtx *ctx, ValkeyModuleUser *user, const char *acl, ValkeyModuleString **error) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_GetModuleUserACLString)(ValkeyModuleUser *user) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_GetCurrentUserName)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleUser *(*ValkeyModule_GetModuleUserFromUserName)(ValkeyModuleString *name) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ACLCheckCommandPermissions)(ValkeyModuleUser *user, ValkeyModuleString **argv, int argc) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ACLCheckPermissions)(ValkeyModuleUser *user, ValkeyModuleString **argv, int argc, int dbid, ValkeyModuleACLLogEntryReason *denial_reason) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ACLCheckKeyPermissions)(ValkeyModuleUser *user, ValkeyModuleString *key, int flags) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ACLCheckKeyPrefixPermissions)(ValkeyModuleUser *user, const char *key, size_t len, unsigned int flags) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ACLCheckChannelPermissions)(ValkeyModuleUser *user, ValkeyModuleString *ch, int literal) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ACLAddLogEntry)(ValkeyModuleCtx *ctx, ValkeyModuleUser *user, ValkeyModuleString *object, ValkeyModuleACLLogEntryReason reason) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ACLAddLogEntryByUserName)(ValkeyModuleCtx *ctx, ValkeyModuleString *user, ValkeyModuleString *object, ValkeyModuleACLLogEntryReason reason) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_AuthenticateClientWithUser)(ValkeyModuleCtx *ctx, ValkeyModuleUser *user, ValkeyModuleUserChangedFunc callback, void *privdata, uint64_t *client_id) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_AuthenticateClientWithACLUser)(ValkeyModuleCtx *ctx, const char *name, size_t len, ValkeyModuleUserChangedFunc callback, void *privdata, uint64_t *client_id) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_DeauthenticateAndCloseClient)(ValkeyModuleCtx *ctx, uint64_t client_id) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_RegisterAuthCallback)(ValkeyModuleCtx *ctx, ValkeyModuleAuthCallback cb) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleDict *(*ValkeyModule_CreateDict)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_FreeDict)(ValkeyModuleCtx *ctx, ValkeyModuleDict *d) VALKEYMODULE_ATTR;
VALKEYMODULE_API uint64_t (*ValkeyModule_DictSize)(ValkeyModuleDict *d) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_DictSetC)(ValkeyModuleDict *d, void *key, size_t keylen, void *ptr) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_DictReplaceC)(ValkeyModuleDict *d, void *key, size_t keylen, void *ptr) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_DictSet)(ValkeyModuleDict *d, ValkeyModuleString *key, void *ptr) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_DictReplace)(ValkeyModuleDict *d, ValkeyModuleString *key, void *ptr) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_DictGetC)(ValkeyModuleDict *d, void *key, size_t keylen, int *nokey) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_DictGet)(ValkeyModuleDict *d, ValkeyModuleString *key, int *nokey) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_DictDelC)(ValkeyModuleDict *d, void *key, size_t keylen, void *oldval) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_DictDel)(ValkeyModuleDict *d, ValkeyModuleString *key, void *oldval) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleDictIter *(*ValkeyModule_DictIteratorStartC)(ValkeyModuleDict *d, const char *op, void *key, size_t keylen) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleDictIter *(*ValkeyModule_DictIteratorStart)(ValkeyModuleDict *d, const char *op, ValkeyModuleString *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_DictIteratorStop)(ValkeyModuleDictIter *di) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_DictIteratorReseekC)(ValkeyModuleDictIter *di, const char *op, void *key, size_t keylen) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_DictIteratorReseek)(ValkeyModuleDictIter *di, const char *op, ValkeyModuleString *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_DictNextC)(ValkeyModuleDictIter *di, size_t *keylen, void **dataptr) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_DictPrevC)(ValkeyModuleDictIter *di, size_t *keylen, void **dataptr) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_DictNext)(ValkeyModuleCtx *ctx, ValkeyModuleDictIter *di, void **dataptr) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_DictPrev)(ValkeyModuleCtx *ctx, ValkeyModuleDictIter *di, void **dataptr) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_DictCompareC)(ValkeyModuleDictIter *di, const char *op, void *key, size_t keylen) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_DictCompare)(ValkeyModuleDictIter *di, const char *op, ValkeyModuleString *key) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_RegisterInfoFunc)(ValkeyModuleCtx *ctx, ValkeyModuleInfoFunc cb) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_InfoAddSection)(ValkeyModuleInfoCtx *ctx, const char *name) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_InfoBeginDictField)(ValkeyModuleInfoCtx *ctx, const char *name) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_InfoEndDictField)(ValkeyModuleInfoCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_InfoAddFieldString)(ValkeyModuleInfoCtx *ctx, const char *field, ValkeyModuleString *value) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_InfoAddFieldCString)(ValkeyModuleInfoCtx *ctx, const char *field, const char *value) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_InfoAddFieldDouble)(ValkeyModuleInfoCtx *ctx, const char *field, double value) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_InfoAddFieldLongLong)(ValkeyModuleInfoCtx *ctx, const char *field, long long value) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_InfoAddFieldULongLong)(ValkeyModuleInfoCtx *ctx, const char *field, unsigned long long value) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleServerInfoData *(*ValkeyModule_GetServerInfo)(ValkeyModuleCtx *ctx, const char *section) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_FreeServerInfo)(ValkeyModuleCtx *ctx, ValkeyModuleServerInfoData *data) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_ServerInfoGetField)(ValkeyModuleCtx *ctx, ValkeyModuleServerInfoData *data, const char *field) VALKEYMODULE_ATTR;
VALKEYMODULE_API const char *(*ValkeyModule_ServerInfoGetFieldC)(ValkeyModuleServerInfoData *data, const char *field) VALKEYMODULE_ATTR;
VALKEYMODULE_API long long (*ValkeyModule_ServerInfoGetFieldSigned)(ValkeyModuleServerInfoData *data, const char *field, int *out_err) VALKEYMODULE_ATTR;
VALKEYMODULE_API unsigned long long (*ValkeyModule_ServerInfoGetFieldUnsigned)(ValkeyModuleServerInfoData *data, const char *field, int *out_err) VALKEYMODULE_ATTR;
VALKEYMODULE_API double (*ValkeyModule_ServerInfoGetFieldDouble)(ValkeyModuleServerInfoData *data, const char *field, int *out_err) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_GetRandomBytes)(unsigned char *dst, size_t len) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_GetRandomHexChars)(char *dst, size_t len) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ExportSharedAPI)(ValkeyModuleCtx *ctx, const char *apiname, void *func) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_GetSharedAPI)(ValkeyModuleCtx *ctx, const char *apiname) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleCommandFilter *(*ValkeyModule_RegisterCommandFilter)(ValkeyModuleCtx *ctx, ValkeyModuleCommandFilterFunc cb, int flags) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_UnregisterCommandFilter)(ValkeyModuleCtx *ctx, ValkeyModuleCommandFilter *filter) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_CommandFilterArgsCount)(ValkeyModuleCommandFilterCtx *fctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_CommandFilterArgGet)(ValkeyModuleCommandFilterCtx *fctx, int pos) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_CommandFilterArgInsert)(ValkeyModuleCommandFilterCtx *fctx, int pos, ValkeyModuleString *arg) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_CommandFilterArgReplace)(ValkeyModuleCommandFilterCtx *fctx, int pos, ValkeyModuleString *arg) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_CommandFilterArgDelete)(ValkeyModuleCommandFilterCtx *fctx, int pos) VALKEYMODULE_ATTR;
VALKEYMODULE_API unsigned long long (*ValkeyModule_CommandFilterGetClientId)(ValkeyModuleCommandFilterCtx *fctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleScanCursor *(*ValkeyModule_ScanCursorCreate)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ScanCursorRestart)(ValkeyModuleScanCursor *cursor) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ScanCursorDestroy)(ValkeyModuleScanCursor *cursor) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_Scan)(ValkeyModuleCtx *ctx, ValkeyModuleScanCursor *cursor, ValkeyModuleScanCB fn, void *privdata) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ScanKey)(ValkeyModuleKey *key, ValkeyModuleScanCursor *cursor, ValkeyModuleScanKeyCB fn, void *privdata) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_Fork)(ValkeyModuleForkDoneHandler cb, void *user_data) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_SendChildHeartbeat)(double progress) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ExitFromChild)(int retcode) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_KillForkChild)(int child_pid) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_SubscribeToServerEvent)(ValkeyModuleCtx *ctx, ValkeyModuleEvent event, ValkeyModuleEventCallback callback) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_IsSubEventSupported)(ValkeyModuleEvent event, uint64_t subevent) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_RegisterStringConfig)(ValkeyModuleCtx *ctx, const char *name, const char *default_val, unsigned int flags, ValkeyModuleConfigGetStringFunc getfn, ValkeyModuleConfigSetStringFunc setfn, ValkeyModuleConfigApplyFunc applyfn, void *privdata) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_RegisterBoolConfig)(ValkeyModuleCtx *ctx, const char *name, int default_val, unsigned int flags, ValkeyModuleConfigGetBoolFunc getfn, ValkeyModuleConfigSetBoolFunc setfn, ValkeyModuleConfigApplyFunc applyfn, void *privdata) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_RegisterEnumConfig)(ValkeyModuleCtx *ctx, const char *name, int default_val, unsigned int flags, const char **enum_values, const int *int_values, int num_enum_vals, ValkeyModuleConfigGetEnumFunc getfn, ValkeyModuleConfigSetEnumFunc setfn, ValkeyModuleConfigApplyFunc applyfn, void *privdata) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_RegisterNumericConfig)(ValkeyModuleCtx *ctx, const char *name, long long default_val, unsigned int flags, long long min, long long max, ValkeyModuleConfigGetNumericFunc getfn, ValkeyModuleConfigSetNumericFunc setfn, ValkeyModuleConfigApplyFunc applyfn, void *privdata) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_RegisterUnsignedNumericConfig)(ValkeyModuleCtx *ctx, const char *name, unsigned long long default_val, unsigned int flags, unsigned long long min, unsigned long long max, ValkeyModuleConfigGetUnsignedNumericFunc getfn, ValkeyModuleConfigSetUnsignedNumericFunc setfn, ValkeyModuleConfigApplyFunc applyfn, void *privdata) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_LoadConfigs)(ValkeyModuleCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetModuleOptionsAll)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetServerVersion)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_RegisterDefragFunc)(ValkeyModuleCtx *ctx, ValkeyModuleDefragFunc func) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_DefragShouldStop)(ValkeyModuleDefragCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_DefragCursorSet)(ValkeyModuleDefragCtx *ctx, unsigned long cursor) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_DefragCursorGet)(ValkeyModuleDefragCtx *ctx, unsigned long *cursor) VALKEYMODULE_ATTR;
VALKEYMODULE_API void *(*ValkeyModule_DefragAlloc)(ValkeyModuleDefragCtx *ctx, void *ptr) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleString *(*ValkeyModule_DefragValkeyModuleString)(ValkeyModuleDefragCtx *ctx, ValkeyModuleString *str) VALKEYMODULE_ATTR;
VALKEYMODULE_API const ValkeyModuleString *(*ValkeyModule_GetKeyNameFromDefragCtx)(ValkeyModuleDefragCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_GetDbIdFromDefragCtx)(ValkeyModuleDefragCtx *ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_RegisterScriptingEngine)(ValkeyModuleCtx *module_ctx, const char *engine_name, ValkeyModuleScriptingEngineCtx *engine_ctx, ValkeyModuleScriptingEngineMethods *engine_methods) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_UnregisterScriptingEngine)(ValkeyModuleCtx *module_ctx, const char *engine_name) VALKEYMODULE_ATTR;
VALKEYMODULE_API ValkeyModuleScriptingEngineExecutionState (*ValkeyModule_GetFunctionExecutionState)(ValkeyModuleScriptingEngineServerRuntimeCtx *server_ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ScriptingEngineDebuggerLog)(ValkeyModuleString *msg, int truncate) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ScriptingEngineDebuggerLogRespReplyStr)(const char *reply) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ScriptingEngineDebuggerLogRespReply)(ValkeyModuleCallReply *reply) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ScriptingEngineDebuggerFlushLogs)(void) VALKEYMODULE_ATTR;
VALKEYMODULE_API void (*ValkeyModule_ScriptingEngineDebuggerProcessCommands)(int *client_disconnected, ValkeyModuleString **err) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_CallArgv)(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int flags, const ValkeyModuleReplyHandlers *resp_handlers, void *reply_ctx) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_CallArgvAbort)(ValkeyModuleCallArgvBlockedHandle *handle) VALKEYMODULE_ATTR;
VALKEYMODULE_API int (*ValkeyModule_ReplyRaw)(ValkeyModuleCtx *ctx, const char *proto, size_t proto_len) VALKEYMODULE_ATTR;
/* clang-format on */
/* functions: end */

/* clang-format off */
static const struct {
    const char *name;
    void *pointer;
} ValkeyModule_Functions[] VALKEYMODULE_ATTR_UNUSED = {
    /* names: utils/gen_module_api.py */
    {"ValkeyModule_Alloc", (void *)&ValkeyModule_Alloc},
    {"ValkeyModule_TryAlloc", (void *)&ValkeyModule_TryAlloc},
    {"ValkeyModule_Calloc", (void *)&ValkeyModule_Calloc},
    {"ValkeyModule_TryCalloc", (void *)&ValkeyModule_TryCalloc},
    {"ValkeyModule_Realloc", (void *)&ValkeyModule_Realloc},
    {"ValkeyModule_TryRealloc", (void *)&ValkeyModule_TryRealloc},
    {"ValkeyModule_Free", (void *)&ValkeyModule_Free},
    {"ValkeyModule_Strdup", (void *)&ValkeyModule_Strdup},
    {"ValkeyModule_PoolAlloc", (void *)&ValkeyModule_PoolAlloc},
    {"ValkeyModule_MallocSize", (void *)&ValkeyModule_MallocSize},
    {"ValkeyModule_MallocUsableSize", (void *)&ValkeyModule_MallocUsableSize},
    {"ValkeyModule_MallocSizeString", (void *)&ValkeyModule_MallocSizeString},
    {"ValkeyModule_MallocSizeDict", (void *)&ValkeyModule_MallocSizeDict},
    {"ValkeyModule_GetUsedMemoryRatio", (void *)&ValkeyModule_GetUsedMemoryRatio},
    {"ValkeyModule_AutoMemory", (void *)&ValkeyModule_AutoMemory},
    {"ValkeyModule_IsKeysPositionRequest", (void *)&ValkeyModule_IsKeysPositionRequest},
    {"ValkeyModule_KeyAtPosWithFlags", (void *)&ValkeyModule_KeyAtPosWithFlags},
    {"ValkeyModule_KeyAtPos", (void *)&ValkeyModule_KeyAtPos},
    {"ValkeyModule_IsChannelsPositionRequest", (void *)&ValkeyModule_IsChannelsPositionRequest},
    {"ValkeyModule_ChannelAtPosWithFlags", (void *)&ValkeyModule_ChannelAtPosWithFlags},
    {"ValkeyModule_CreateCommand", (void *)&ValkeyModule_CreateCommand},
    {"ValkeyModule_GetCommand", (void *)&ValkeyModule_GetCommand},
    {"ValkeyModule_CreateSubcommand", (void *)&ValkeyModule_CreateSubcommand},
    {"ValkeyModule_SetCommandInfo", (void *)&ValkeyModule_SetCommandInfo},
    {"ValkeyModule_SetCommandACLCategories", (void *)&ValkeyModule_SetCommandACLCategories},
    {"ValkeyModule_AddACLCategory", (void *)&ValkeyModule_AddACLCategory},
    {"ValkeyModule_UpdateRuntimeArgs", (void *)&ValkeyModule_UpdateRuntimeArgs},
    {"ValkeyModule_GetCommandKeys", (void *)&ValkeyModule_GetCommandKeys},
    {"ValkeyModule_GetCommandKeysWithFlags", (void *)&ValkeyModule_GetCommandKeysWithFlags},
    {"ValkeyModule_GetCurrentCommandName", (void *)&ValkeyModule_GetCurrentCommandName},
    {"ValkeyModule_SetModuleAttribs", (void *)&ValkeyModule_SetModuleAttribs},
    {"ValkeyModule_IsModuleNameBusy", (void *)&ValkeyModule_IsModuleNameBusy},
    {"ValkeyModule_SetModuleOptions", (void *)&ValkeyModule_SetModuleOptions},
    {"ValkeyModule_Milliseconds", (void *)&ValkeyModule_Milliseconds},
    {"ValkeyModule_Microseconds", (void *)&ValkeyModule_Microseconds},
    {"ValkeyModule_MonotonicMicroseconds", (void *)&ValkeyModule_MonotonicMicroseconds},
    {"ValkeyModule_CachedMicroseconds", (void *)&ValkeyModule_CachedMicroseconds},
    {"ValkeyModule_BlockedClientMeasureTimeStart", (void *)&ValkeyModule_BlockedClientMeasureTimeStart},
    {"ValkeyModule_BlockedClientMeasureTimeEnd", (void *)&ValkeyModule_BlockedClientMeasureTimeEnd},
    {"ValkeyModule_Yield", (void *)&ValkeyModule_Yield},
    {"ValkeyModule_SignalModifiedKey", (void *)&ValkeyModule_SignalModifiedKey},
    {"ValkeyModule_LatencyAddSample", (void *)&ValkeyModule_LatencyAddSample},
    {"ValkeyModule_CreateString", (void *)&ValkeyModule_CreateString},
    {"ValkeyModule_CreateStringPrintf", (void *)&ValkeyModule_CreateStringPrintf},
    {"ValkeyModule_CreateStringFromLongLong", (void *)&ValkeyModule_CreateStringFromLongLong},
    {"ValkeyModule_CreateStringFromULongLong", (void *)&ValkeyModule_CreateStringFromULongLong},
    {"ValkeyModule_CreateStringFromDouble", (void *)&ValkeyModule_CreateStringFromDouble},
    {"ValkeyModule_CreateStringFromLongDouble", (void *)&ValkeyModule_CreateStringFromLongDouble},
    {"ValkeyModule_CreateStringFromString", (void *)&ValkeyModule_CreateStringFromString},
    {"ValkeyModule_CreateStringFromStreamID", (void *)&ValkeyModule_CreateStringFromStreamID},
    {"ValkeyModule_CreateStringFromCallReply", (void *)&ValkeyModule_CreateStringFromCallReply},
    {"ValkeyModule_FreeString", (void *)&ValkeyModule_FreeString},
    {"ValkeyModule_RetainString", (void *)&ValkeyModule_RetainString},
    {"ValkeyModule_HoldString", (void *)&ValkeyModule_HoldString},
    {"ValkeyModule_StringPtrLen", (void *)&ValkeyModule_StringPtrLen},
    {"ValkeyModule_StringToLongLong", (void *)&ValkeyModule_StringToLongLong},
    {"ValkeyModule_StringToULongLong", (void *)&ValkeyModule_StringToULongLong},
    {"ValkeyModule_StringToDouble", (void *)&ValkeyModule_StringToDouble},
    {"ValkeyModule_StringToLongDouble", (void *)&ValkeyModule_StringToLongDouble},
    {"ValkeyModule_StringToStreamID", (void *)&ValkeyModule_StringToStreamID},
    {"ValkeyModule_StringCompare", (void *)&ValkeyModule_StringCompare},
    {"ValkeyModule_StringAppendBuffer", (void *)&ValkeyModule_StringAppendBuffer},
    {"ValkeyModule_TrimStringAllocation", (void *)&ValkeyModule_TrimStringAllocation},
    {"ValkeyModule_WrongArity", (void *)&ValkeyModule_WrongArity},
    {"ValkeyModule_ReplyWithLongLong", (void *)&ValkeyModule_ReplyWithLongLong},
    {"ValkeyModule_ReplyWithError", (void *)&ValkeyModule_ReplyWithError},
    {"ValkeyModule_ReplyWithErrorFormat", (void *)&ValkeyModule_ReplyWithErrorFormat},
    {"ValkeyModule_ReplyWithCustomErrorFormat", (void *)&ValkeyModule_ReplyWithCustomErrorFormat},
    {"ValkeyModule_ReplyWithSimpleString", (void *)&ValkeyModule_ReplyWithSimpleString},
    {"ValkeyModule_ReplyWithArray", (void *)&ValkeyModule_ReplyWithArray},
    {"ValkeyModule_ReplyWithMap", (void *)&ValkeyModule_ReplyWithMap},
    {"ValkeyModule_ReplyWithSet", (void *)&ValkeyModule_ReplyWithSet},
    {"ValkeyModule_ReplyWithAttribute", (void *)&ValkeyModule_ReplyWithAttribute},
    {"ValkeyModule_ReplyWithNullArray", (void *)&ValkeyModule_ReplyWithNullArray},
    {"ValkeyModule_ReplyWithEmptyArray", (void *)&ValkeyModule_ReplyWithEmptyArray},
    {"ValkeyModule_ReplySetArrayLength", (void *)&ValkeyModule_ReplySetArrayLength},
    {"ValkeyModule_ReplySetMapLength", (void *)&ValkeyModule_ReplySetMapLength},
    {"ValkeyModule_ReplySetSetLength", (void *)&ValkeyModule_ReplySetSetLength},
    {"ValkeyModule_ReplySetAttributeLength", (void *)&ValkeyModule_ReplySetAttributeLength},
    {"ValkeyModule_ReplySetPushLength", (void *)&ValkeyModule_ReplySetPushLength},
    {"ValkeyModule_ReplyWithStringBuffer", (void *)&ValkeyModule_ReplyWithStringBuffer},
    {"ValkeyModule_ReplyWithCString", (void *)&ValkeyModule_ReplyWithCString},
    {"ValkeyModule_ReplyWithString", (void *)&ValkeyModule_ReplyWithString},
    {"ValkeyModule_ReplyWithEmptyString", (void *)&ValkeyModule_ReplyWithEmptyString},
    {"ValkeyModule_ReplyWithVerbatimStringType", (void *)&ValkeyModule_ReplyWithVerbatimStringType},
    {"ValkeyModule_ReplyWithVerbatimString", (void *)&ValkeyModule_ReplyWithVerbatimString},
    {"ValkeyModule_ReplyWithNull", (void *)&ValkeyModule_ReplyWithNull},
    {"ValkeyModule_ReplyWithBool", (void *)&ValkeyModule_ReplyWithBool},
    {"ValkeyModule_ReplyWithCallReply", (void *)&ValkeyModule_ReplyWithCallReply},
    {"ValkeyModule_ReplyWithDouble", (void *)&ValkeyModule_ReplyWithDouble},
    {"ValkeyModule_ReplyWithBigNumber", (void *)&ValkeyModule_ReplyWithBigNumber},
    {"ValkeyModule_ReplyWithLongDouble", (void *)&ValkeyModule_ReplyWithLongDouble},
    {"ValkeyModule_Replicate", (void *)&ValkeyModule_Replicate},
    {"ValkeyModule_ReplicateVerbatim", (void *)&ValkeyModule_ReplicateVerbatim},
    {"ValkeyModule_GetClientId", (void *)&ValkeyModule_GetClientId},
    {"ValkeyModule_GetClientUserNameById", (void *)&ValkeyModule_GetClientUserNameById},
    {"ValkeyModule_GetClientInfoById", (void *)&ValkeyModule_GetClientInfoById},
    {"ValkeyModule_GetClientNameById", (void *)&ValkeyModule_GetClientNameById},
    {"ValkeyModule_SetClientNameById", (void *)&ValkeyModule_SetClientNameById},
    {"ValkeyModule_MustObeyClient", (void *)&ValkeyModule_MustObeyClient},
    {"ValkeyModule_PublishMessage", (void *)&ValkeyModule_PublishMessage},
    {"ValkeyModule_PublishMessageShard", (void *)&ValkeyModule_PublishMessageShard},
    {"ValkeyModule_GetSelectedDb", (void *)&ValkeyModule_GetSelectedDb},
    {"ValkeyModule_SelectDb", (void *)&ValkeyModule_SelectDb},
    {"ValkeyModule_GetContextFlags", (void *)&ValkeyModule_GetContextFlags},
    {"ValkeyModule_GetContextFlagsAll", (void *)&ValkeyModule_GetContextFlagsAll},
    {"ValkeyModule_AvoidReplicaTraffic", (void *)&ValkeyModule_AvoidReplicaTraffic},
    {"ValkeyModule_RedactClientCommandArgument", (void *)&ValkeyModule_RedactClientCommandArgument},
    {"ValkeyModule_GetClientCertificate", (void *)&ValkeyModule_GetClientCertificate},
    {"ValkeyModule_SetContextUser", (void *)&ValkeyModule_SetContextUser},
    {"ValkeyModule_KeyExists", (void *)&ValkeyModule_KeyExists},
    {"ValkeyModule_OpenKey", (void *)&ValkeyModule_OpenKey},
    {"ValkeyModule_GetOpenKeyModesAll", (void *)&ValkeyModule_GetOpenKeyModesAll},
    {"ValkeyModule_CloseKey", (void *)&ValkeyModule_CloseKey},
    {"ValkeyModule_KeyType", (void *)&ValkeyModule_KeyType},
    {"ValkeyModule_ValueLength", (void *)&ValkeyModule_ValueLength},
    {"ValkeyModule_DeleteKey", (void *)&ValkeyModule_DeleteKey},
    {"ValkeyModule_UnlinkKey", (void *)&ValkeyModule_UnlinkKey},
    {"ValkeyModule_GetExpire", (void *)&ValkeyModule_GetExpire},
    {"ValkeyModule_SetExpire", (void *)&ValkeyModule_SetExpire},
    {"ValkeyModule_GetAbsExpire", (void *)&ValkeyModule_GetAbsExpire},
    {"ValkeyModule_SetAbsExpire", (void *)&ValkeyModule_SetAbsExpire},
    {"ValkeyModule_ResetDataset", (void *)&ValkeyModule_ResetDataset},
    {"ValkeyModule_DbSize", (void *)&ValkeyModule_DbSize},
    {"ValkeyModule_RandomKey", (void *)&ValkeyModule_RandomKey},
    {"ValkeyModule_GetKeyNameFromOptCtx", (void *)&ValkeyModule_GetKeyNameFromOptCtx},
    {"ValkeyModule_GetToKeyNameFromOptCtx", (void *)&ValkeyModule_GetToKeyNameFromOptCtx},
    {"ValkeyModule_GetDbIdFromOptCtx", (void *)&ValkeyModule_GetDbIdFromOptCtx},
    {"ValkeyModule_GetToDbIdFromOptCtx", (void *)&ValkeyModule_GetToDbIdFromOptCtx},
    {"ValkeyModule_GetKeyNameFromModuleKey", (void *)&ValkeyModule_GetKeyNameFromModuleKey},
    {"ValkeyModule_GetDbIdFromModuleKey", (void *)&ValkeyModule_GetDbIdFromModuleKey},
    {"ValkeyModule_SetLRU", (void *)&ValkeyModule_SetLRU},
    {"ValkeyModule_GetLRU", (void *)&ValkeyModule_GetLRU},
    {"ValkeyModule_SetLFU", (void *)&ValkeyModule_SetLFU},
    {"ValkeyModule_GetLFU", (void *)&ValkeyModule_GetLFU},
    {"ValkeyModule_StringSet", (void *)&ValkeyModule_StringSet},
    {"ValkeyModule_StringDMA", (void *)&ValkeyModule_StringDMA},
    {"ValkeyModule_StringTruncate", (void *)&ValkeyModule_StringTruncate},
    {"ValkeyModule_ListPush", (void *)&ValkeyModule_ListPush},
    {"ValkeyModule_ListPop", (void *)&ValkeyModule_ListPop},
    {"ValkeyModule_ListGet", (void *)&ValkeyModule_ListGet},
    {"ValkeyModule_ListSet", (void *)&ValkeyModule_ListSet},
    {"ValkeyModule_ListInsert", (void *)&ValkeyModule_ListInsert},
    {"ValkeyModule_ListDelete", (void *)&ValkeyModule_ListDelete},
    {"ValkeyModule_ZsetAdd", (void *)&ValkeyModule_ZsetAdd},
    {"ValkeyModule_ZsetIncrby", (void *)&ValkeyModule_ZsetIncrby},
    {"ValkeyModule_ZsetRem", (void *)&ValkeyModule_ZsetRem},
    {"ValkeyModule_ZsetScore", (void *)&ValkeyModule_ZsetScore},
    {"ValkeyModule_ZsetRangeStop", (void *)&ValkeyModule_ZsetRangeStop},
    {"ValkeyModule_ZsetRangeEndReached", (void *)&ValkeyModule_ZsetRangeEndReached},
    {"ValkeyModule_ZsetFirstInScoreRange", (void *)&ValkeyModule_ZsetFirstInScoreRange},
    {"ValkeyModule_ZsetLastInScoreRange", (void *)&ValkeyModule_ZsetLastInScoreRange},
    {"ValkeyModule_ZsetFirstInLexRange", (void *)&ValkeyModule_ZsetFirstInLexRange},
    {"ValkeyModule_ZsetLastInLexRange", (void *)&ValkeyModule_ZsetLastInLexRange},
    {"ValkeyModule_ZsetRangeCurrentElement", (void *)&ValkeyModule_ZsetRangeCurrentElement},
    {"ValkeyModule_ZsetRangeNext", (void *)&ValkeyModule_ZsetRangeNext},
    {"ValkeyModule_ZsetRangePrev", (void *)&ValkeyModule_ZsetRangePrev},
    {"ValkeyModule_HashSet", (void *)&ValkeyModule_HashSet},
    {"ValkeyModule_HashGet", (void *)&ValkeyModule_HashGet},
    {"ValkeyModule_HashSetStringRef", (void *)&ValkeyModule_HashSetStringRef},
    {"ValkeyModule_HashHasStringRef", (void *)&ValkeyModule_HashHasStringRef},
    {"ValkeyModule_StreamAdd", (void *)&ValkeyModule_StreamAdd},
    {"ValkeyModule_StreamDelete", (void *)&ValkeyModule_StreamDelete},
    {"ValkeyModule_StreamIteratorStart", (void *)&ValkeyModule_StreamIteratorStart},
    {"ValkeyModule_StreamIteratorStop", (void *)&ValkeyModule_StreamIteratorStop},
    {"ValkeyModule_StreamIteratorNextID", (void *)&ValkeyModule_StreamIteratorNextID},
    {"ValkeyModule_StreamIteratorNextField", (void *)&ValkeyModule_StreamIteratorNextField},
    {"ValkeyModule_StreamIteratorDelete", (void *)&ValkeyModule_StreamIteratorDelete},
    {"ValkeyModule_StreamTrimByLength", (void *)&ValkeyModule_StreamTrimByLength},
    {"ValkeyModule_StreamTrimByID", (void *)&ValkeyModule_StreamTrimByID},
    {"ValkeyModule_Call", (void *)&ValkeyModule_Call},
    {"ValkeyModule_FreeCallReply", (void *)&ValkeyModule_FreeCallReply},
    {"ValkeyModule_CallReplyType", (void *)&ValkeyModule_CallReplyType},
    {"ValkeyModule_CallReplyLength", (void *)&ValkeyModule_CallReplyLength},
    {"ValkeyModule_CallReplyArrayElement", (void *)&ValkeyModule_CallReplyArrayElement},
    {"ValkeyModule_CallReplyInteger", (void *)&ValkeyModule_CallReplyInteger},
    {"ValkeyModule_CallReplyDouble", (void *)&ValkeyModule_CallReplyDouble},
    {"ValkeyModule_CallReplyBigNumber", (void *)&ValkeyModule_CallReplyBigNumber},
    {"ValkeyModule_CallReplyVerbatim", (void *)&ValkeyModule_CallReplyVerbatim},
    {"ValkeyModule_CallReplyBool", (void *)&ValkeyModule_CallReplyBool},
    {"ValkeyModule_CallReplySetElement", (void *)&ValkeyModule_CallReplySetElement},
    {"ValkeyModule_CallReplyMapElement", (void *)&ValkeyModule_CallReplyMapElement},
    {"ValkeyModule_CallReplyAttribute", (void *)&ValkeyModule_CallReplyAttribute},
    {"ValkeyModule_CallReplyAttributeElement", (void *)&ValkeyModule_CallReplyAttributeElement},
    {"ValkeyModule_CallReplyPromiseSetUnblockHandler", (void *)&ValkeyModule_CallReplyPromiseSetUnblockHandler},
    {"ValkeyModule_CallReplyPromiseAbort", (void *)&ValkeyModule_CallReplyPromiseAbort},
    {"ValkeyModule_CallReplyStringPtr", (void *)&ValkeyModule_CallReplyStringPtr},
    {"ValkeyModule_CallReplyProto", (void *)&ValkeyModule_CallReplyProto},
    {"ValkeyModule_CreateDataType", (void *)&ValkeyModule_CreateDataType},
    {"ValkeyModule_ModuleTypeSetValue", (void *)&ValkeyModule_ModuleTypeSetValue},
    {"ValkeyModule_ModuleTypeReplaceValue", (void *)&ValkeyModule_ModuleTypeReplaceValue},
    {"ValkeyModule_ModuleTypeGetType", (void *)&ValkeyModule_ModuleTypeGetType},
    {"ValkeyModule_ModuleTypeGetValue", (void *)&ValkeyModule_ModuleTypeGetValue},
    {"ValkeyModule_GetTypeMethodVersion", (void *)&ValkeyModule_GetTypeMethodVersion},
    {"ValkeyModule_IsIOError", (void *)&ValkeyModule_IsIOError},
    {"ValkeyModule_SaveUnsigned", (void *)&ValkeyModule_SaveUnsigned},
    {"ValkeyModule_LoadUnsigned", (void *)&ValkeyModule_LoadUnsigned},
    {"ValkeyModule_SaveSigned", (void *)&ValkeyModule_SaveSigned},
    {"ValkeyModule_LoadSigned", (void *)&ValkeyModule_LoadSigned},
    {"ValkeyModule_SaveString", (void *)&ValkeyModule_SaveString},
    {"ValkeyModule_SaveStringBuffer", (void *)&ValkeyModule_SaveStringBuffer},
    {"ValkeyModule_LoadString", (void *)&ValkeyModule_LoadString},
    {"ValkeyModule_LoadStringBuffer", (void *)&ValkeyModule_LoadStringBuffer},
    {"ValkeyModule_SaveDouble", (void *)&ValkeyModule_SaveDouble},
    {"ValkeyModule_LoadDouble", (void *)&ValkeyModule_LoadDouble},
    {"ValkeyModule_SaveFloat", (void *)&ValkeyModule_SaveFloat},
    {"ValkeyModule_LoadFloat", (void *)&ValkeyModule_LoadFloat},
    {"ValkeyModule_SaveLongDouble", (void *)&ValkeyModule_SaveLongDouble},
    {"ValkeyModule_LoadLongDouble", (void *)&ValkeyModule_LoadLongDouble},
    {"ValkeyModule_SaveDataTypeToString", (void *)&ValkeyModule_SaveDataTypeToString},
    {"ValkeyModule_LoadDataTypeFromString", (void *)&ValkeyModule_LoadDataTypeFromString},
    {"ValkeyModule_LoadDataTypeFromStringEncver", (void *)&ValkeyModule_LoadDataTypeFromStringEncver},
    {"ValkeyModule_EmitAOF", (void *)&ValkeyModule_EmitAOF},
    {"ValkeyModule_GetContextFromIO", (void *)&ValkeyModule_GetContextFromIO},
    {"ValkeyModule_GetKeyNameFromIO", (void *)&ValkeyModule_GetKeyNameFromIO},
    {"ValkeyModule_GetDbIdFromIO", (void *)&ValkeyModule_GetDbIdFromIO},
    {"ValkeyModule_RdbStreamCreateFromFile", (void *)&ValkeyModule_RdbStreamCreateFromFile},
    {"ValkeyModule_RdbStreamFree", (void *)&ValkeyModule_RdbStreamFree},
    {"ValkeyModule_RdbLoad", (void *)&ValkeyModule_RdbLoad},
    {"ValkeyModule_RdbSave", (void *)&ValkeyModule_RdbSave},
    {"ValkeyModule_DigestAddStringBuffer", (void *)&ValkeyModule_DigestAddStringBuffer},
    {"ValkeyModule_DigestAddLongLong", (void *)&ValkeyModule_DigestAddLongLong},
    {"ValkeyModule_DigestEndSequence", (void *)&ValkeyModule_DigestEndSequence},
    {"ValkeyModule_GetKeyNameFromDigest", (void *)&ValkeyModule_GetKeyNameFromDigest},
    {"ValkeyModule_GetDbIdFromDigest", (void *)&ValkeyModule_GetDbIdFromDigest},
    {"ValkeyModule_Log", (void *)&ValkeyModule_Log},
    {"ValkeyModule_LogIOError", (void *)&ValkeyModule_LogIOError},
    {"ValkeyModule__Assert", (void *)&ValkeyModule__Assert},
    {"ValkeyModule_BlockClient", (void *)&ValkeyModule_BlockClient},
    {"ValkeyModule_BlockClientOnAuth", (void *)&ValkeyModule_BlockClientOnAuth},
    {"ValkeyModule_BlockClientGetPrivateData", (void *)&ValkeyModule_BlockClientGetPrivateData},
    {"ValkeyModule_BlockClientSetPrivateData", (void *)&ValkeyModule_BlockClientSetPrivateData},
    {"ValkeyModule_BlockClientOnKeys", (void *)&ValkeyModule_BlockClientOnKeys},
    {"ValkeyModule_BlockClientOnKeysWithFlags", (void *)&ValkeyModule_BlockClientOnKeysWithFlags},
    {"ValkeyModule_SignalKeyAsReady", (void *)&ValkeyModule_SignalKeyAsReady},
    {"ValkeyModule_UnblockClient", (void *)&ValkeyModule_UnblockClient},
    {"ValkeyModule_AbortBlock", (void *)&ValkeyModule_AbortBlock},
    {"ValkeyModule_SetDisconnectCallback", (void *)&ValkeyModule_SetDisconnectCallback},
    {"ValkeyModule_IsBlockedReplyRequest", (void *)&ValkeyModule_IsBlockedReplyRequest},
    {"ValkeyModule_IsBlockedTimeoutRequest", (void *)&ValkeyModule_IsBlockedTimeoutRequest},
    {"ValkeyModule_GetBlockedClientPrivateData", (void *)&ValkeyModule_GetBlockedClientPrivateData},
    {"ValkeyModule_GetBlockedClientReadyKey", (void *)&ValkeyModule_GetBlockedClientReadyKey},
    {"ValkeyModule_GetBlockedClientHandle", (void *)&ValkeyModule_GetBlockedClientHandle},
    {"ValkeyModule_BlockedClientDisconnected", (void *)&ValkeyModule_BlockedClientDisconnected},
    {"ValkeyModule_GetThreadSafeContext", (void *)&ValkeyModule_GetThreadSafeContext},
    {"ValkeyModule_GetDetachedThreadSafeContext", (void *)&ValkeyModule_GetDetachedThreadSafeContext},
    {"ValkeyModule_FreeThreadSafeContext", (void *)&ValkeyModule_FreeThreadSafeContext},
    {"ValkeyModule_ThreadSafeContextLock", (void *)&ValkeyModule_ThreadSafeContextLock},
    {"ValkeyModule_ThreadSafeContextTryLock", (void *)&ValkeyModule_ThreadSafeContextTryLock},
    {"ValkeyModule_ThreadSafeContextUnlock", (void *)&ValkeyModule_ThreadSafeContextUnlock},
    {"ValkeyModule_SubscribeToKeyspaceEvents", (void *)&ValkeyModule_SubscribeToKeyspaceEvents},
    {"ValkeyModule_AddPostNotificationJob", (void *)&ValkeyModule_AddPostNotificationJob},
    {"ValkeyModule_GetNotifyKeyspaceEvents", (void *)&ValkeyModule_GetNotifyKeyspaceEvents},
    {"ValkeyModule_GetKeyspaceNotificationFlagsAll", (void *)&ValkeyModule_GetKeyspaceNotificationFlagsAll},
    {"ValkeyModule_NotifyKeyspaceEvent", (void *)&ValkeyModule_NotifyKeyspaceEvent},
    {"ValkeyModule_RegisterClusterMessageReceiver", (void *)&ValkeyModule_RegisterClusterMessageReceiver},
    {"ValkeyModule_SendClusterMessage", (void *)&ValkeyModule_SendClusterMessage},
    {"ValkeyModule_GetClusterNodesList", (void *)&ValkeyModule_GetClusterNodesList},
    {"ValkeyModule_FreeClusterNodesList", (void *)&ValkeyModule_FreeClusterNodesList},
    {"ValkeyModule_GetMyClusterID", (void *)&ValkeyModule_GetMyClusterID},
    {"ValkeyModule_GetClusterSize", (void *)&ValkeyModule_GetClusterSize},
    {"ValkeyModule_GetClusterNodeInfo", (void *)&ValkeyModule_GetClusterNodeInfo},
    {"ValkeyModule_GetClusterNodeInfoForClient", (void *)&ValkeyModule_GetClusterNodeInfoForClient},
    {"ValkeyModule_SetClusterFlags", (void *)&ValkeyModule_SetClusterFlags},
    {"ValkeyModule_ClusterKeySlotC", (void *)&ValkeyModule_ClusterKeySlotC},
    {"ValkeyModule_ClusterKeySlot", (void *)&ValkeyModule_ClusterKeySlot},
    {"ValkeyModule_ClusterCanonicalKeyNameInSlot", (void *)&ValkeyModule_ClusterCanonicalKeyNameInSlot},
    {"ValkeyModule_CreateTimer", (void *)&ValkeyModule_CreateTimer},
    {"ValkeyModule_StopTimer", (void *)&ValkeyModule_StopTimer},
    {"ValkeyModule_GetTimerInfo", (void *)&ValkeyModule_GetTimerInfo},
    {"ValkeyModule_EventLoopAdd", (void *)&ValkeyModule_EventLoopAdd},
    {"ValkeyModule_EventLoopDel", (void *)&ValkeyModule_EventLoopDel},
    {"ValkeyModule_EventLoopAddOneShot", (void *)&ValkeyModule_EventLoopAddOneShot},
    {"ValkeyModule_CreateModuleUser", (void *)&ValkeyModule_CreateModuleUser},
    {"ValkeyModule_FreeModuleUser", (void *)&ValkeyModule_FreeModuleUser},
    {"ValkeyModule_SetModuleUserACL", (void *)&ValkeyModule_SetModuleUserACL},
    {"ValkeyModule_SetModuleUserACLString", (void *)&ValkeyModule_SetModuleUserACLString},
    {"ValkeyModule_GetModuleUserACLString", (void *)&ValkeyModule_GetModuleUserACLString},
    {"ValkeyModule_GetCurrentUserName", (void *)&ValkeyModule_GetCurrentUserName},
    {"ValkeyModule_GetModuleUserFromUserName", (void *)&ValkeyModule_GetModuleUserFromUserName},
    {"ValkeyModule_ACLCheckCommandPermissions", (void *)&ValkeyModule_ACLCheckCommandPermissions},
    {"ValkeyModule_ACLCheckPermissions", (void *)&ValkeyModule_ACLCheckPermissions},
    {"ValkeyModule_ACLCheckKeyPermissions", (void *)&ValkeyModule_ACLCheckKeyPermissions},
    {"ValkeyModule_ACLCheckKeyPrefixPermissions", (void *)&ValkeyModule_ACLCheckKeyPrefixPermissions},
    {"ValkeyModule_ACLCheckChannelPermissions", (void *)&ValkeyModule_ACLCheckChannelPermissions},
    {"ValkeyModule_ACLAddLogEntry", (void *)&ValkeyModule_ACLAddLogEntry},
    {"ValkeyModule_ACLAddLogEntryByUserName", (void *)&ValkeyModule_ACLAddLogEntryByUserName},
    {"ValkeyModule_AuthenticateClientWithUser", (void *)&ValkeyModule_AuthenticateClientWithUser},
    {"ValkeyModule_AuthenticateClientWithACLUser", (void *)&ValkeyModule_AuthenticateClientWithACLUser},
    {"ValkeyModule_DeauthenticateAndCloseClient", (void *)&ValkeyModule_DeauthenticateAndCloseClient},
    {"ValkeyModule_RegisterAuthCallback", (void *)&ValkeyModule_RegisterAuthCallback},
    {"ValkeyModule_CreateDict", (void *)&ValkeyModule_CreateDict},
    {"ValkeyModule_FreeDict", (void *)&ValkeyModule_FreeDict},
    {"ValkeyModule_DictSize", (void *)&ValkeyModule_DictSize},
    {"ValkeyModule_DictSetC", (void *)&ValkeyModule_DictSetC},
    {"ValkeyModule_DictReplaceC", (void *)&ValkeyModule_DictReplaceC},
    {"ValkeyModule_DictSet", (void *)&ValkeyModule_DictSet},
    {"ValkeyModule_DictReplace", (void *)&ValkeyModule_DictReplace},
    {"ValkeyModule_DictGetC", (void *)&ValkeyModule_DictGetC},
    {"ValkeyModule_DictGet", (void *)&ValkeyModule_DictGet},
    {"ValkeyModule_DictDelC", (void *)&ValkeyModule_DictDelC},
    {"ValkeyModule_DictDel", (void *)&ValkeyModule_DictDel},
    {"ValkeyModule_DictIteratorStartC", (void *)&ValkeyModule_DictIteratorStartC},
    {"ValkeyModule_DictIteratorStart", (void *)&ValkeyModule_DictIteratorStart},
    {"ValkeyModule_DictIteratorStop", (void *)&ValkeyModule_DictIteratorStop},
    {"ValkeyModule_DictIteratorReseekC", (void *)&ValkeyModule_DictIteratorReseekC},
    {"ValkeyModule_DictIteratorReseek", (void *)&ValkeyModule_DictIteratorReseek},
    {"ValkeyModule_DictNextC", (void *)&ValkeyModule_DictNextC},
    {"ValkeyModule_DictPrevC", (void *)&ValkeyModule_DictPrevC},
    {"ValkeyModule_DictNext", (void *)&ValkeyModule_DictNext},
    {"ValkeyModule_DictPrev", (void *)&ValkeyModule_DictPrev},
    {"ValkeyModule_DictCompareC", (void *)&ValkeyModule_DictCompareC},
    {"ValkeyModule_DictCompare", (void *)&ValkeyModule_DictCompare},
    {"ValkeyModule_RegisterInfoFunc", (void *)&ValkeyModule_RegisterInfoFunc},
    {"ValkeyModule_InfoAddSection", (void *)&ValkeyModule_InfoAddSection},
    {"ValkeyModule_InfoBeginDictField", (void *)&ValkeyModule_InfoBeginDictField},
    {"ValkeyModule_InfoEndDictField", (void *)&ValkeyModule_InfoEndDictField},
    {"ValkeyModule_InfoAddFieldString", (void *)&ValkeyModule_InfoAddFieldString},
    {"ValkeyModule_InfoAddFieldCString", (void *)&ValkeyModule_InfoAddFieldCString},
    {"ValkeyModule_InfoAddFieldDouble", (void *)&ValkeyModule_InfoAddFieldDouble},
    {"ValkeyModule_InfoAddFieldLongLong", (void *)&ValkeyModule_InfoAddFieldLongLong},
    {"ValkeyModule_InfoAddFieldULongLong", (void *)&ValkeyModule_InfoAddFieldULongLong},
    {"ValkeyModule_GetServerInfo", (void *)&ValkeyModule_GetServerInfo},
    {"ValkeyModule_FreeServerInfo", (void *)&ValkeyModule_FreeServerInfo},
    {"ValkeyModule_ServerInfoGetField", (void *)&ValkeyModule_ServerInfoGetField},
    {"ValkeyModule_ServerInfoGetFieldC", (void *)&ValkeyModule_ServerInfoGetFieldC},
    {"ValkeyModule_ServerInfoGetFieldSigned", (void *)&ValkeyModule_ServerInfoGetFieldSigned},
    {"ValkeyModule_ServerInfoGetFieldUnsigned", (void *)&ValkeyModule_ServerInfoGetFieldUnsigned},
    {"ValkeyModule_ServerInfoGetFieldDouble", (void *)&ValkeyModule_ServerInfoGetFieldDouble},
    {"ValkeyModule_GetRandomBytes", (void *)&ValkeyModule_GetRandomBytes},
    {"ValkeyModule_GetRandomHexChars", (void *)&ValkeyModule_GetRandomHexChars},
    {"ValkeyModule_ExportSharedAPI", (void *)&ValkeyModule_ExportSharedAPI},
    {"ValkeyModule_GetSharedAPI", (void *)&ValkeyModule_GetSharedAPI},
    {"ValkeyModule_RegisterCommandFilter", (void *)&ValkeyModule_RegisterCommandFilter},
    {"ValkeyModule_UnregisterCommandFilter", (void *)&ValkeyModule_UnregisterCommandFilter},
    {"ValkeyModule_CommandFilterArgsCount", (void *)&ValkeyModule_CommandFilterArgsCount},
    {"ValkeyModule_CommandFilterArgGet", (void *)&ValkeyModule_CommandFilterArgGet},
    {"ValkeyModule_CommandFilterArgInsert", (void *)&ValkeyModule_CommandFilterArgInsert},
    {"ValkeyModule_CommandFilterArgReplace", (void *)&ValkeyModule_CommandFilterArgReplace},
    {"ValkeyModule_CommandFilterArgDelete", (void *)&ValkeyModule_CommandFilterArgDelete},
    {"ValkeyModule_CommandFilterGetClientId", (void *)&ValkeyModule_CommandFilterGetClientId},
    {"ValkeyModule_ScanCursorCreate", (void *)&ValkeyModule_ScanCursorCreate},
    {"ValkeyModule_ScanCursorRestart", (void *)&ValkeyModule_ScanCursorRestart},
    {"ValkeyModule_ScanCursorDestroy", (void *)&ValkeyModule_ScanCursorDestroy},
    {"ValkeyModule_Scan", (void *)&ValkeyModule_Scan},
    {"ValkeyModule_ScanKey", (void *)&ValkeyModule_ScanKey},
    {"ValkeyModule_Fork", (void *)&ValkeyModule_Fork},
    {"ValkeyModule_SendChildHeartbeat", (void *)&ValkeyModule_SendChildHeartbeat},
    {"ValkeyModule_ExitFromChild", (void *)&ValkeyModule_ExitFromChild},
    {"ValkeyModule_KillForkChild", (void *)&ValkeyModule_KillForkChild},
    {"ValkeyModule_SubscribeToServerEvent", (void *)&ValkeyModule_SubscribeToServerEvent},
    {"ValkeyModule_IsSubEventSupported", (void *)&ValkeyModule_IsSubEventSupported},
    {"ValkeyModule_RegisterStringConfig", (void *)&ValkeyModule_RegisterStringConfig},
    {"ValkeyModule_RegisterBoolConfig", (void *)&ValkeyModule_RegisterBoolConfig},
    {"ValkeyModule_RegisterEnumConfig", (void *)&ValkeyModule_RegisterEnumConfig},
    {"ValkeyModule_RegisterNumericConfig", (void *)&ValkeyModule_RegisterNumericConfig},
    {"ValkeyModule_RegisterUnsignedNumericConfig", (void *)&ValkeyModule_RegisterUnsignedNumericConfig},
    {"ValkeyModule_LoadConfigs", (void *)&ValkeyModule_LoadConfigs},
    {"ValkeyModule_GetModuleOptionsAll", (void *)&ValkeyModule_GetModuleOptionsAll},
    {"ValkeyModule_GetServerVersion", (void *)&ValkeyModule_GetServerVersion},
    {"ValkeyModule_RegisterDefragFunc", (void *)&ValkeyModule_RegisterDefragFunc},
    {"ValkeyModule_DefragShouldStop", (void *)&ValkeyModule_DefragShouldStop},
    {"ValkeyModule_DefragCursorSet", (void *)&ValkeyModule_DefragCursorSet},
    {"ValkeyModule_DefragCursorGet", (void *)&ValkeyModule_DefragCursorGet},
    {"ValkeyModule_DefragAlloc", (void *)&ValkeyModule_DefragAlloc},
    {"ValkeyModule_DefragValkeyModuleString", (void *)&ValkeyModule_DefragValkeyModuleString},
    {"ValkeyModule_GetKeyNameFromDefragCtx", (void *)&ValkeyModule_GetKeyNameFromDefragCtx},
    {"ValkeyModule_GetDbIdFromDefragCtx", (void *)&ValkeyModule_GetDbIdFromDefragCtx},
    {"ValkeyModule_RegisterScriptingEngine", (void *)&ValkeyModule_RegisterScriptingEngine},
    {"ValkeyModule_UnregisterScriptingEngine", (void *)&ValkeyModule_UnregisterScriptingEngine},
    {"ValkeyModule_GetFunctionExecutionState", (void *)&ValkeyModule_GetFunctionExecutionState},
    {"ValkeyModule_ScriptingEngineDebuggerLog", (void *)&ValkeyModule_ScriptingEngineDebuggerLog},
    {"ValkeyModule_ScriptingEngineDebuggerLogRespReplyStr", (void *)&ValkeyModule_ScriptingEngineDebuggerLogRespReplyStr},
    {"ValkeyModule_ScriptingEngineDebuggerLogRespReply", (void *)&ValkeyModule_ScriptingEngineDebuggerLogRespReply},
    {"ValkeyModule_ScriptingEngineDebuggerFlushLogs", (void *)&ValkeyModule_ScriptingEngineDebuggerFlushLogs},
    {"ValkeyModule_ScriptingEngineDebuggerProcessCommands", (void *)&ValkeyModule_ScriptingEngineDebuggerProcessCommands},
    {"ValkeyModule_CallArgv", (void *)&ValkeyModule_CallArgv},
    {"ValkeyModule_CallArgvAbort", (void *)&ValkeyModule_CallArgvAbort},
    {"ValkeyModule_ReplyRaw", (void *)&ValkeyModule_ReplyRaw},
    /* names: end */
};
/* clang-format on */

/* The first call of OnLoad. VALKEYMODULE_ERR: the name is in use. */
static int ValkeyModule_Init(ValkeyModuleCtx *ctx, const char *name, int ver,
                             int apiver) VALKEYMODULE_ATTR_UNUSED;
static int ValkeyModule_Init(ValkeyModuleCtx *ctx, const char *name, int ver, int apiver) {
    const size_t count = sizeof(ValkeyModule_Functions) / sizeof(ValkeyModule_Functions[0]);
    ValkeyModule_GetApi = *(int (**)(const char *, void *))ctx; /* what a context begins with */
    for (size_t i = 0; i < count; i++) {                        /* unknown ones stay NULL */
        (void)ValkeyModule_GetApi(ValkeyModule_Functions[i].name,
                                  ValkeyModule_Functions[i].pointer);
    }
    if (ValkeyModule_IsModuleNameBusy && ValkeyModule_IsModuleNameBusy(name))
        return VALKEYMODULE_ERR;
    ValkeyModule_SetModuleAttribs(ctx, name, ver, apiver);
    return VALKEYMODULE_OK;
}

#endif /* VALKEYMODULE_CORE */
#endif
