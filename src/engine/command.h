/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands as data: the contents of the spec files (const, generated), and the run-time state of
 * each command. The command table is passed by startup code; the engine refers to no command by
 * name. */
#ifndef ENGINE_COMMAND_H
#define ENGINE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"

typedef struct ctx ctx;
typedef void commandProc(ctx *c);

/* The flags of a spec, 64 bits in two ranges. COMMAND INFO prints those below CMD_PRINTED_BITS
 * under these names in lower case. They are macros because the constants of an enum are ints in
 * C. */
enum { CMD_PRINTED_BITS = 32 };
#define CMD_BIT(number) (UINT64_C(1) << (number))
#define CMD_WRITE CMD_BIT(0)
#define CMD_READONLY CMD_BIT(1)
#define CMD_DENYOOM CMD_BIT(2)
#define CMD_MODULE CMD_BIT(3)
#define CMD_ADMIN CMD_BIT(4)
#define CMD_PUBSUB CMD_BIT(5)
#define CMD_NOSCRIPT CMD_BIT(6)
#define CMD_BLOCKING CMD_BIT(7)
#define CMD_LOADING CMD_BIT(8)
#define CMD_STALE CMD_BIT(9)
#define CMD_SKIP_MONITOR CMD_BIT(10)
#define CMD_SKIP_COMMANDLOG CMD_BIT(11)
#define CMD_ASKING CMD_BIT(12)
#define CMD_FAST CMD_BIT(13)
#define CMD_NO_AUTH CMD_BIT(14)
#define CMD_NO_MANDATORY_KEYS CMD_BIT(15)
#define CMD_NO_ASYNC_LOADING CMD_BIT(16)
#define CMD_NO_MULTI CMD_BIT(17)
#define CMD_MOVABLEKEYS CMD_BIT(18)
#define CMD_ALLOW_BUSY CMD_BIT(19)

/* Internal ones. */
#define CMD_INTERNAL_BIT(number) CMD_BIT(CMD_PRINTED_BITS + (number))
#define CMD_MAY_REPLICATE CMD_INTERNAL_BIT(0)
/* Executed immediately inside MULTI instead of being queued. */
#define CMD_AT_ONCE CMD_INTERNAL_BIT(1)
/* EXEC: if it is refused, the transaction is discarded. */
#define CMD_RUNS_QUEUE CMD_INTERNAL_BIT(2)
/* The second, or the last, argument is an item of the key's value: a field, a member. */
#define CMD_ITEM CMD_INTERNAL_BIT(3)
#define CMD_LAST_ITEM CMD_INTERNAL_BIT(4)
/* Also, or only, available in Sentinel mode. */
#define CMD_SENTINEL CMD_INTERNAL_BIT(5)
#define CMD_ONLY_SENTINEL CMD_INTERNAL_BIT(6)
/* DEBUG, MODULE: requires an enable-... directive. */
#define CMD_PROTECTED CMD_INTERNAL_BIT(7)
#define CMD_INTERNAL CMD_INTERNAL_BIT(8) /* documented so ("doc_flags: syscmd") */
#define CMD_DEPRECATED CMD_INTERNAL_BIT(9)
/* The rest of the batch is parsed again after it. */
#define CMD_STOPS_BATCH CMD_INTERNAL_BIT(10)
#define CMD_QUICK CMD_INTERNAL_BIT(11)         /* bounded: identical ones share one time stamp */
#define CMD_EXTENDED CMD_INTERNAL_BIT(12)      /* not in Valkey: `extended-commands no` */
#define CMD_TELLS_NOTHING CMD_INTERNAL_BIT(13) /* of the dataset: replies need no confirmation */
#define CMD_ONLY_FREES CMD_INTERNAL_BIT(14)    /* a write that adds 8 bytes at most: a key's time */
#define CMD_OTHER_DB CMD_INTERNAL_BIT(15) /* changes keys of another database, or selects one */

/* Bit numbers of ACL categories, in the order of ACL CAT. */
enum commandCategory {
    CAT_KEYSPACE,
    CAT_READ,
    CAT_WRITE,
    CAT_SET,
    CAT_SORTEDSET,
    CAT_LIST,
    CAT_HASH,
    CAT_STRING,
    CAT_BITMAP,
    CAT_HYPERLOGLOG,
    CAT_GEO,
    CAT_STREAM,
    CAT_PUBSUB,
    CAT_ADMIN,
    CAT_FAST,
    CAT_SLOW,
    CAT_BLOCKING,
    CAT_DANGEROUS,
    CAT_CONNECTION,
    CAT_TRANSACTION,
    CAT_SCRIPTING,
    CAT_PATHHASH,
    CAT_COUNT,
    COMMAND_CATEGORIES_MAX = 64,
};
/* Number of categories; those from CAT_COUNT on were added at run time. */
int commandCategoryCount(void);
const char *commandCategoryName(int category);
/* The category of that name, ignoring case; -1: there is none. */
int commandCategoryFind(slice name);
/* ERR_EXISTS, ERR_LIMIT. */
status commandCategoryAdd(const char *name) MUST_USE;
/* Removes what was added when there were `count` categories; no command may have them. */
void commandCategoriesCut(int count);

/* In the order in which they are printed. */
enum keyFlag {
    KEY_RO = 1,
    KEY_RW = 2,
    KEY_OW = 4,
    KEY_RM = 8,
    KEY_ACCESS = 16,
    KEY_UPDATE = 32,
    KEY_INSERT = 64,
    KEY_DELETE = 128,
    KEY_NOT_KEY = 256,
    KEY_INCOMPLETE = 512,
    KEY_VARIABLE_FLAGS = 1024,
};

/* How to find keys: begin_search and find_keys of COMMAND INFO's key specifications. */
typedef struct keySpec {
    const char *notes; /* NULL if there are none */
    uint32_t flags;
    enum { KEY_BEGIN_INDEX, KEY_BEGIN_KEYWORD, KEY_BEGIN_UNKNOWN } begin;
    const char *keyword;
    int begin_at; /* index, or start of the search for the keyword */
    enum { KEY_FIND_RANGE, KEY_FIND_KEYNUM, KEY_FIND_UNKNOWN } find;
    int last, step, limit;                    /* range */
    int keynum_index, first_key, keynum_step; /* keynum */
} keySpec;

typedef enum argType {
    ARG_STRING,
    ARG_INTEGER,
    ARG_DOUBLE,
    ARG_KEY,
    ARG_PATTERN,
    ARG_UNIX_TIME,
    ARG_PURE_TOKEN,
    ARG_ONEOF,
    ARG_BLOCK,
} argType;
enum { ARG_OPTIONAL = 1, ARG_MULTIPLE = 2, ARG_MULTIPLE_TOKEN = 4, ARG_EXTENDED = 8 };

typedef struct commandArg {
    const char *name;
    const char *display; /* NULL: same as name */
    const char *token;   /* NULL: none */
    const char *summary; /* NULL: none */
    const char *since;   /* NULL: since the command */
    const char *deprecated_since;
    argType type;
    uint8_t flags;
    int8_t key_spec; /* index, -1 if none */
    int8_t count;    /* of `args` */
    const struct commandArg *args;
} commandArg;

typedef struct commandHistory {
    const char *since, *text;
} commandHistory;

/* Type of the reply: for documentation, the test suite's checker and clients. */
typedef enum replyClass {
    CLASS_ANY,
    CLASS_STATUS,
    CLASS_INTEGER,
    CLASS_BULK,
    CLASS_ARRAY,
    CLASS_MAP,
    CLASS_SET,
    CLASS_DOUBLE,
} replyClass;

/* One key of a request: its index in argv and its access flags (KEY_RO .. KEY_DELETE). */
typedef struct keyPosition {
    int arg_index;
    uint32_t flags;
} keyPosition;

/* Finds the keys of a request whose key specifications say too little. Stores the first `max` keys,
 * returns their number (which may exceed max), or -1 for a malformed request. ANY_THREAD. */
typedef int commandKeysProc(const slice *argv, int argc, keyPosition *out, int max);

typedef struct commandSpec {
    const char *name;               /* lower case; for a subcommand without its container */
    commandProc *proc;              /* NULL for a container */
    commandKeysProc *find_keys;     /* NULL: key_specs are sufficient */
    commandKeysProc *find_channels; /* the flags are enum channelUse. NULL: args name them */
    int16_t arity;
    int8_t first_key, last_key, key_step; /* first range of keys, as in COMMAND INFO */
    uint64_t flags;                       /* CMD_... */
    uint64_t categories;                  /* bits of enum commandCategory */
    replyClass reply;
    const char *group, *summary, *complexity, *since, *deprecated_since, *replaced_by;
    const char *const *tips;
    int tip_count;
    const keySpec *key_specs;
    int key_spec_count;
    const commandHistory *history;
    int history_count;
    const commandArg *args;
    int arg_count;
    const struct commandSpec *subs;
    int sub_count;
    const char *module; /* the module that it belongs to; NULL: none */
} commandSpec;

/* A command at run time. The hot path needs the first COMMAND_HOT_BYTES. */
typedef struct command command;
struct command {
    commandProc *proc;
    uint64_t flags; /* CMD_... */
    uint64_t gates; /* bits of the gates that select it */
    int16_t arity;  /* negative: minimum */
    int8_t first_key, last_key, key_step;
    uint8_t sub_count;
    uint16_t id; /* contiguous: bit number in ACL sets, index of statistics */
    /* Statistics, main thread only. */
    uint64_t calls, usec_ns; /* usec_ns: total time, in ns */
    uint64_t rejected, failed;
    struct histogram *latency; /* allocated on the first call with latency tracking */
    const commandSpec *spec;
    command *parent; /* the container of a subcommand */
    command *subs;   /* sub_count of them, contiguous */
    slice name;      /* "get", "config|get"; not changed by rename-command */
};
enum { COMMAND_HOT_BYTES = 48 };
_Static_assert(offsetof(command, rejected) == COMMAND_HOT_BYTES, "before what is read rarely");

/* Installs the table: creates commands and lookup table. Called once, at startup. */
void commandInstall(const commandSpec *specs, int count, bool sentinel);
void commandUninstall(void); /* for tests: removes everything */
/* Adds commands while the server runs (a module is loaded); `specs` stay the caller's, until they
 * are unloaded. ERR_EXISTS: a name is taken, ERR_LIMIT: there were too many; nothing has changed
 * then. An extension of that name is unloaded until the new command is. The lookup table is rebuilt
 * at once. Parsed requests are resolved again: the command that calls this needs CMD_STOPS_BATCH,
 * and I/O threads are parked. */
status commandLoad(const commandSpec *specs, int count);
/* Removes a loaded command with its subcommands, under the same conditions. It must not be running,
 * nor a session be blocked in it. References of sessions stay valid; its spec may be freed. */
status commandUnload(slice name);
/* Whether commandLoad() refuses the name. */
bool commandNameIsTaken(slice name);
/* Unloads all commands that Valkey does not have, for good. At startup: no session exists. */
void commandHideExtensions(void);
/* False once they, and arguments marked so, are hidden: ctxHasExtensions(). ANY_THREAD. */
bool commandHasExtensions(void);
/* A hidden extension: files and streams may have it all the same. NULL: none has the name. */
const command *commandFindHidden(slice name);
/* The command with that name (as renamed), ignoring case, or NULL. Never a subcommand. Reads only
 * the bytes of the slice. ANY_THREAD (between changes). */
const command *commandFind(slice name);
/* The subcommand `word` of a container, or NULL. ANY_THREAD. */
const command *commandFindSub(const command *parent, slice word);
/* The command of a request: the container itself if argc is 1 or it has no such subcommand, in
 * which case *unknown_sub is set. ANY_THREAD. */
const command *commandResolve(const slice *argv, int argc, bool *unknown_sub);
/* Finds "get" or "config|get", with the container as renamed. ANY_THREAD. */
const command *commandFindByFullName(slice name);
/* Changes whenever results of lookups may change; stored in parsed requests. */
uint32_t commandEpoch(void);
bool commandIsLoaded(const command *cmd); /* false: it was unloaded, or is hidden */
int commandCount(void);                   /* top-level commands without removed ones */
int commandIdCount(void);                 /* all, including subcommands and removed ones */
const command *commandById(int id);
/* Calls `proc` for each top-level command that was not removed, in the order of the table. */
void commandEach(void (*proc)(const command *cmd, void *arg), void *arg);
/* rename-command: "" removes the command. ERR_NOT_FOUND or ERR_EXISTS. Only before the loop
 * starts. */
status commandRename(slice from, slice to);
/* The name of a flag as printed by COMMAND INFO; NULL for internal flags. */
const char *commandFlagName(uint64_t flag);

/* The keys of a request, in the order of the key specifications: stores the first `max`, returns
 * their number (which may exceed max), or -1 if the request is malformed. A malformed request of a
 * command with CMD_NO_MANDATORY_KEYS has no keys. ANY_THREAD. */
int commandKeys(const command *cmd, const slice *argv, int argc, keyPosition *out, int max);
/* All of them: in `few`, which has room for `max`, or in memory that the caller frees if it is not
 * `few`; -1 as before. ANY_THREAD. */
keyPosition *commandAllKeys(const command *cmd, const slice *argv, int argc, keyPosition *few,
                            int max, int *count);
/* True if requests of the command may have keys, not only channels or the like. */
bool commandSpecHasKeys(const commandSpec *spec);
/* True for the commands of shard channels: their arguments have slots, but are no keys. */
static inline bool commandUsesShardChannels(const command *cmd) {
    return cmd->flags & CMD_PUBSUB && cmd->first_key;
}
static inline bool commandArityFits(const command *cmd, int argc) {
    return cmd->arity >= 0 ? argc == cmd->arity : argc >= -cmd->arity;
}
/* Combines `slot`, which is a slot or one of these values, with the slots of the keys or shard
 * channels of a request. A malformed request has none. ANY_THREAD. */
enum { COMMAND_NO_SLOT = -1, COMMAND_SEVERAL_SLOTS = -2 };
int commandSlots(int slot, const command *cmd, const slice *argv, int argc);

#endif
