/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Output that waits for the append only file (aof_output.h). persist decides when output waits, and
 * which changes are safe. Positions of this hold are the numbers of propagateCount(). */
#include "repl/aof_output.h"

#include "base/base.h"
#include "engine/propagate.h"
#include "persist/sync.h"
#include "repl/durable_offset.h"
#include "repl/held_output.h"
#include "repl/quorum_server.h"
#include "repl/replica.h"

static struct {
    int64_t written, confirmed; /* of the last change; of the last one that is safe */
} numbers;

static const sessionSlot held_slot = {"aof output", heldOutputFree, heldOutputMemory};
static outputHold output = {.latency_event = "aof-held-reply",
                            .written = &numbers.written,
                            .confirmed = &numbers.confirmed};

static gateVerdict note(ctx *c) { return heldOutputNote(&output, c); }

const gate aofOutputGate = {
    .name = "aof output", .selects = heldOutputSelects, .admit = note, .origins = GATE_FOR_CLIENTS};

static void take(const propagated *p) {
    int64_t number = (int64_t)propagateCount();
    (void)heldOutputWrote(&output, p, number); /* with one that changes no key, too */
    numbers.written = number;
}

const sink aofOutputSink = {.name = "aof output", .take = take, .targets = PROPAGATE_AOF};

static void setOn(bool on) {
    gateArm(&aofOutputGate, on);
    sinkArm(&aofOutputSink, on);
}

static void begin(uint64_t number) {
    hotCheck(number <= propagateCount());
    numbers.written = (int64_t)propagateCount();
    numbers.confirmed = (int64_t)number;
    heldOutputBegin(&output);
    setOn(true);
}

static void confirm(uint64_t number) {
    hotCheck(number <= propagateCount());
    if ((int64_t)number <= numbers.confirmed) return; /* less after a change of appendfsync */
    numbers.confirmed = (int64_t)number;
    heldOutputRelease(&output);
}

static void end(void) {
    setOn(false);
    heldOutputEnd(&output);
}

/* A primary that restarts must have what its replicas have confirmed. */
static bool isStrict(void) { return quorumIsBusy(); }

void aofOutputInit(void) {
    static const syncHold hold = {
        begin, confirm, end, isStrict, durableOffsetMark, replicaNoteFlushed,
    };
    heldOutputInit(&output, &held_slot);
    syncSetHold(&hold);
}
