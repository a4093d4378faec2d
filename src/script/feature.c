/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Scripts as a feature: gate, INFO, collection of garbage. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "engine/transaction.h"
#include "script/debug.h"
#include "script/engines.h"
#include "script/functions.h"
#include "script/procs.h"
#include "script/run.h"
#include "script/script.h"
#include "script/script_priv.h"

static const gate *const gates[] = {&scriptBusyGate, &scriptRulesGate, NULL};

/* ------------------------------------------------------------------ garbage */

static bool may_have_garbage;

void scriptNoteWork(void) { may_have_garbage = true; }

enum { COLLECT_EVERY_MS = 100, COLLECT_US_MAX = 500 };

static void collectGarbage(int64_t budget_us) {
    if (!may_have_garbage || scriptRunNow()) return;
    int64_t us = budget_us < COLLECT_US_MAX ? budget_us : COLLECT_US_MAX;
    may_have_garbage = scriptEnginesCollect(us);
}

static bool hasGarbage(void) { return may_have_garbage; }

static const tickJob ticks[] = {{"script-garbage", COLLECT_EVERY_MS, collectGarbage, hasGarbage},
                                {0}};

/* ------------------------------------------------------------------ INFO */

static size_t evalMemory(void) { return scriptEnginesMemory(SCRIPT_USE_EVAL); }
static size_t functionVmMemory(void) { return scriptEnginesMemory(SCRIPT_USE_FUNCTIONS); }

static void printBytes(str *out, const char *name, size_t bytes) {
    char human[NUMBER_TEXT_MAX];
    numberPrintHuman(human, bytes);
    strAppendFormat(out, "%s:%zu\r\n%s_human:%s\r\n", name, bytes, name, human);
}

static void printMemory(str *out) {
    scriptCacheUse use = scriptCacheUseNow();
    size_t eval = evalMemory(), of_functions = functionVmMemory();
    printBytes(out, "used_memory_lua", eval);
    strAppendField(out, "used_memory_vm_eval", eval);
    strAppendField(out, "used_memory_scripts_eval", use.bytes);
    strAppendField(out, "number_of_cached_scripts", use.scripts);
    strAppendField(out, "number_of_functions", functionCount());
    strAppendField(out, "number_of_libraries", librariesAll()->count);
    strAppendField(out, "used_memory_vm_functions", of_functions);
    printBytes(out, "used_memory_vm_total", eval + of_functions);
    strAppendField(out, "used_memory_functions", functionMemory());
    printBytes(out, "used_memory_scripts", use.bytes + functionMemory());
}

static void printStats(str *out) {
    strAppendField(out, "evicted_scripts", scriptCacheUseNow().evicted);
}

/* The lines of engines are numbered. */
typedef struct engineLines {
    str *out;
    int count;
    scriptMemory all;
} engineLines;

static void printEngine(const scriptEngineRow *row, void *arg) {
    engineLines *lines = arg;
    scriptMemory m = scriptEngineMemory(row->engine);
    lines->all.used += m.used;
    lines->all.overhead += m.overhead;
    strAppendFormat(
        lines->out,
        "engine_%d:name=%s,module=%s,abi_version=%d,used_memory=%zu,memory_overhead=%zu\r\n",
        lines->count++, row->engine->name, row->module, row->abi_version, m.used, m.overhead);
}

static void printEngines(str *out) {
    str text = STR_EMPTY;
    engineLines lines = {.out = &text};
    scriptEnginesEach(printEngine, &lines);
    strAppendFormat(out,
                    "engines_count:%d\r\nengines_total_used_memory:%zu\r\n"
                    "engines_total_memory_overhead:%zu\r\n",
                    lines.count, lines.all.used, lines.all.overhead);
    strAppendSlice(out, strSlice(&text));
    strFree(&text);
}

size_t scriptCacheBytes(void) { return scriptCacheUseNow().bytes; }
size_t scriptLibraryBytes(void) { return functionMemory(); }
size_t scriptVmBytes(void) { return evalMemory() + functionVmMemory(); }

static const infoSection sections[] = {
    {"memory", "# Memory", INFO_NORMAL, INFO_MEMORY, printMemory},
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
    {"scriptingengines", "# Scripting Engines", INFO_IN_ALL | INFO_IN_EVERYTHING,
     INFO_SCRIPTING_ENGINES, printEngines},
    {NULL, NULL, 0, 0, NULL},
};

static uint64_t flagsOfRequest(const ctx *c) {
    commandProc *proc = c->cmd->spec->proc;
    if (proc == fcallCommand || proc == fcallRoCommand) return scriptCallFlags(c);
    bool evaluates = proc == evalCommand || proc == evalRoCommand || proc == evalshaCommand ||
                     proc == evalshaRoCommand;
    return evaluates ? scriptEvalFlags(c) : c->cmd->flags;
}

static status init(reason *why) {
    scriptEnginesStart();
    transactionSetFlagsProc(flagsOfRequest);
    return functionsInit(why);
}

const feature scriptFeature = {
    .name = "script",
    .options = scriptOptions,
    .info = sections,
    .ticks = ticks,
    .gates = gates,
    .init = init,
    .on_session = debugSessionEvent,
    .on_stats_reset = scriptCacheResetStats,
};
