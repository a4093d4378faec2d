/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gates: ordered admission checks. A command has the bits of the gates that select it; engineHot
 * and the session have the bits of armed gates. A gate is called only if both match. Invariant: a
 * gate's bit is its index in the order given by startup code. Main thread only. */
#include "engine/gate_priv.h"

#include "base/base.h"
#include "engine/ctx.h"
#include "engine/hot.h"

static struct {
    const gate *list[GATES_MAX];
    int count;
    uint64_t again, of_effects;
    uint64_t waived_for_writers, of_writers;
    uint64_t of_stale_data;
    uint64_t of_origin[ORIGIN_COUNT];
} gates;

void gateInstall(const gate *const *order, int count) {
    hotCheck(threadIsMain());
    check(count <= GATES_MAX);
    gates.again = gates.of_effects = 0;
    gates.waived_for_writers = gates.of_writers = gates.of_stale_data = 0;
    memset(gates.of_origin, 0, sizeof(gates.of_origin));
    for (int i = 0; i < count; i++) {
        gates.list[i] = order[i];
        if (order[i]->again) gates.again |= UINT64_C(1) << i;
        if (order[i]->again || order[i]->of_effects) gates.of_effects |= UINT64_C(1) << i;
        if (order[i]->waived_for_writer) gates.waived_for_writers |= UINT64_C(1) << i;
        if (order[i]->waived_for_writer || order[i]->asked_of_writers)
            gates.of_writers |= UINT64_C(1) << i;
        if (order[i]->of_stale_data) gates.of_stale_data |= UINT64_C(1) << i;
        uint64_t origins = order[i]->origins ? order[i]->origins : GATE_FOR_USERS;
        for (int origin = 0; origin < ORIGIN_COUNT; origin++) {
            if (origins & 1u << origin) gates.of_origin[origin] |= UINT64_C(1) << i;
        }
    }
    gates.count = count;
    engineHot.armed |= GATE_BIT_UNKNOWN;
}

void gateUninstall(void) {
    gates.count = 0;
    engineHot.armed = 0;
}

static uint64_t gateBit(const gate *g) {
    for (int i = 0; i < gates.count; i++) {
        if (gates.list[i] == g) return UINT64_C(1) << i;
    }
    panic("gate %s is not installed", g->name);
}

uint64_t gateMaskFor(const commandSpec *spec) {
    uint64_t mask = GATE_BIT_SPECIAL;
    for (int i = 0; i < gates.count; i++) {
        if (!gates.list[i]->selects || gates.list[i]->selects(spec)) mask |= UINT64_C(1) << i;
    }
    return mask;
}

void gateArm(const gate *g, bool on) {
    hotCheck(threadIsMain());
    if (on) {
        engineHot.armed |= gateBit(g);
    } else {
        engineHot.armed &= ~gateBit(g);
    }
}

void gateArmSession(session *s, const gate *g, bool on) {
    hotCheck(threadIsMain());
    if (on) {
        s->armed |= gateBit(g);
    } else {
        s->armed &= ~gateBit(g);
    }
}

uint64_t gateMask(const gate *g) { return gateBit(g); }

uint64_t gatesWaivedForWriters(void) { return gates.waived_for_writers; }

gateVerdict gatesAdmitWriter(ctx *c, uint64_t exempt) {
    hotCheck(c->origin < ORIGIN_COUNT);
    uint64_t applies = gates.of_origin[c->origin] & gates.of_writers;
    return gatesAdmit(c, engineHot.armed & applies & ~exempt);
}

gateVerdict gatesAdmitStale(ctx *c) {
    hotCheck(c->origin < ORIGIN_COUNT);
    uint64_t applies = gates.of_origin[c->origin] & gates.of_stale_data;
    return gatesAdmit(c, engineHot.armed & applies);
}

/* No gate was asked about the command that runs the script. Stale data is reported before a
 * read-only replica, and that before errors of the disk: the reverse of the order for commands. */
gateVerdict gatesAdmitScript(ctx *c, bool writes, bool needs_fresh) {
    hotCheck(c->origin < ORIGIN_COUNT);
    uint64_t kinds =
        (writes ? gates.waived_for_writers : 0) | (needs_fresh ? gates.of_stale_data : 0);
    uint64_t asked = engineHot.armed & gates.of_origin[c->origin] & kinds;
    for (int i = gates.count - 1; i >= 0; i--) {
        if (!(asked >> i & 1) || !gates.list[i]->refuse_script) continue;
        gates.list[i]->refuse_script(c);
        return GATE_REFUSED;
    }
    return GATE_PASS;
}

bool gateIsArmed(const gate *g) { return engineHot.armed & gateBit(g); }

uint64_t gateAgainMask(void) { return gates.again; }

bool gatesAdmitEffect(ctx *c) {
    hotCheck(c->origin < ORIGIN_COUNT);
    uint64_t armed = (engineHot.armed | c->who->armed) & c->cmd->gates;
    gateVerdict verdict = gatesAdmit(c, armed & gates.of_origin[c->origin] & gates.of_effects);
    check(verdict == GATE_PASS || verdict == GATE_REFUSED); /* none of them holds a command back */
    return verdict == GATE_PASS;
}

uint64_t gateMaskOfOrigin(ctxOrigin origin) { return gates.of_origin[origin]; }

gateVerdict gatesAdmit(ctx *c, uint64_t mask) {
    for (; mask; mask &= mask - 1) {
        gateVerdict verdict = gates.list[__builtin_ctzll(mask)]->admit(c);
        if (verdict != GATE_PASS) return verdict;
    }
    return GATE_PASS;
}
