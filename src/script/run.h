/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A script or function that is being executed: what it may do, the commands that it runs, and how
 * it is ended from outside. At most one exists at a time. Main thread only. */
#ifndef SCRIPT_RUN_H
#define SCRIPT_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/ctx.h"
#include "resp/reply_sink.h"
#include "script/engine.h"

/* Flags of a header or of a function, in the order in which they are listed. */
enum scriptFlag {
    SCRIPT_NO_WRITES = 1u << 0,
    SCRIPT_ALLOW_OOM = 1u << 1,
    SCRIPT_ALLOW_STALE = 1u << 2,
    SCRIPT_NO_CLUSTER = 1u << 3,
    SCRIPT_ALLOW_CROSS_SLOT_KEYS = 1u << 4,
    SCRIPT_NO_HEADER =
        1u << 5, /* a script without "#!": no flags are declared, all slots are allowed */
};
enum { SCRIPT_FLAG_COUNT = 5 };
/* The name of flag 1 << index. */
extern const char *const scriptFlagNames[SCRIPT_FLAG_COUNT];
/* 0 if there is no such flag; `fold`: ignoring case. */
unsigned scriptFlagParse(slice name, bool fold);

typedef enum scriptStop { SCRIPT_GOES_ON, SCRIPT_KILLED } scriptStop;

struct scriptRun {
    ctx *caller;
    const slice *keys, *args;
    int key_count, arg_count;
    slice name; /* digest of the script, or name of the function */
    unsigned flags;
    bool is_function;
    bool is_read_only;
    bool wrote;
    bool is_busy; /* has exceeded the threshold */
    bool killed;
    uint8_t proto;   /* of the replies that the script gets */
    uint8_t targets; /* enum propagateTarget: what server.set_repl() has chosen */
    int slot;        /* of the keys used so far, or COMMAND_NO_SLOT */
    int64_t started_us;
    uint64_t memory_exempt; /* gates of memory that its commands do not meet */
};

/* Starts a run for the command `c`: keys and arguments are argv[first] on. The fields `flags`,
 * `name`, `is_function` and `is_read_only` of `run` are set. Returns false if the script may not be
 * run now; the error was replied. */
bool scriptRunBegin(scriptRun *run, ctx *c, int first, int key_count);
void scriptRunEnd(scriptRun *run);
/* busy-reply-threshold: ms after which clients are told that the server is busy; 0: never. */
int64_t scriptBusyReplyThreshold(void);
/* The script that is being executed, NULL if there is none. */
const scriptRun *scriptRunNow(void);

/* Runs a command of the script. Items of the reply go to `sink`; a refused command replies an
 * error. */
void scriptRunCommand(scriptRun *run, const slice *argv, int argc, replySink *sink);
/* The same with the reply in `out`, which the caller has initialised. */
void scriptRunCommandTo(scriptRun *run, const slice *argv, int argc, outbuf *out);
/* To be called by the engine at least once per ms of work, if possible. Serves other clients if the
 * script is slow. */
scriptStop scriptRunPoll(scriptRun *run);
/* Asks for the end of the running script. `function`: FUNCTION KILL. Replies. */
void scriptRunKill(ctx *c, bool function);

/* Replies an error as it is, without adding a code. `counted`: errorstats have it already. */
void scriptReplyError(ctx *c, slice text, bool counted);

#endif
