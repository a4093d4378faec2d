/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLIENT TRACKING, CACHING, GETREDIR, TRACKINGINFO. Main thread only. */
#include <stdlib.h>

#include "base/base.h"
#include "engine/reply.h"
#include "pubsub/cmd_tracking.h"
#include "pubsub/procs.h"

/* The options of the request. */
typedef struct trackOptions {
    uint32_t flags;
    session *target; /* NULL: no redirection */
    slice *prefixes;
    int prefix_count;
} trackOptions;

/* ------------------------------------------------------------------ options */

static bool parseRedirect(ctx *c, int i, trackOptions *o) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    int64_t id;
    if (o->target) {
        replyError(c, SLICE("ERR A client can only redirect to a single other client"));
        return false;
    }
    if (!ctxArgInt(c, i, &id)) return false;
    o->target = id > 0 ? sessionFindById((uint64_t)id) : NULL;
    if (o->target) return true;
    replyError(c, SLICE("ERR The client ID you want redirect to does not exist"));
    return false;
}

static bool parseOptions(ctx *c, trackOptions *o) {
    static const struct {
        const char *word;
        uint32_t flag;
    } words[] = {{"bcast", TRACK_BCAST},
                 {"optin", TRACK_OPTIN},
                 {"optout", TRACK_OPTOUT},
                 {"noloop", TRACK_NOLOOP}};
    for (int i = 3; i < c->argc; i++) {
        bool more = i + 1 < c->argc;
        if (more && ctxArgIs(c, i, "redirect")) {
            if (!parseRedirect(c, ++i, o)) return false;
            continue;
        }
        if (more && ctxArgIs(c, i, "prefix")) {
            o->prefixes[o->prefix_count++] = c->argv[++i];
            continue;
        }
        uint32_t flag = 0;
        for (size_t k = 0; k < COUNT_OF(words); k++) {
            if (ctxArgIs(c, i, words[k].word)) flag = words[k].flag;
        }
        if (!flag) {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
        o->flags |= flag;
    }
    return true;
}

/* True if the options may be combined, and fit to those in force. */
static bool optionsAgree(ctx *c, const trackOptions *o, uint32_t present) {
    const uint32_t opts = TRACK_OPTIN | TRACK_OPTOUT;
    bool on = present & TRACK_ON;
    const char *error = NULL;
    if (o->prefix_count && !(o->flags & TRACK_BCAST)) {
        error = "ERR PREFIX option requires BCAST mode to be enabled";
    } else if (on && (o->flags ^ present) & TRACK_BCAST) {
        error = "ERR You can't switch BCAST mode on/off before disabling tracking for this "
                "client, and then re-enabling it with a different mode.";
    } else if (o->flags & TRACK_BCAST && o->flags & opts) {
        error = "ERR OPTIN and OPTOUT are not compatible with BCAST";
    } else if ((o->flags & opts) == opts) {
        error = "ERR You can't specify both OPTIN mode and OPTOUT mode";
    } else if (on && ((o->flags & TRACK_OPTIN && present & TRACK_OPTOUT) ||
                      (o->flags & TRACK_OPTOUT && present & TRACK_OPTIN))) {
        error = "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this "
                "client, and then re-enabling it with a different mode.";
    }
    if (error) replyError(c, sliceOf(error));
    return !error;
}

/* ------------------------------------------------------------------ overlaps of prefixes */

static bool overlap(slice a, slice b) { return memcmp(a.ptr, b.ptr, sizeMin(a.len, b.len)) == 0; }

static int comparePrefixes(const void *a, const void *b) {
    return sliceCompare(*(const slice *)a, *(const slice *)b);
}

/* True if some of them overlap: in sorted order such a pair is adjacent. */
static bool anyOverlap(const tracker *t, const trackOptions *o) {
    hotCheck(o->prefix_count > 0);
    size_t held = t ? t->prefix_count : 0, count = held + (size_t)o->prefix_count;
    slice *all = memNewArray(slice, count + 1);
    for (size_t i = 0; i < held; i++) all[i] = prefixName(t->prefixes[i]);
    if (o->prefix_count) memcpy(all + held, o->prefixes, (size_t)o->prefix_count * sizeof(slice));
    qsort(all, count, sizeof(*all), comparePrefixes);
    bool found = false;
    for (size_t i = 1; i < count; i++) found |= overlap(all[i - 1], all[i]);
    memFree(all);
    return found;
}

static void replyOverlap(ctx *c, slice given, slice other, const char *which) {
    replyErrorFormat(c,
                     "ERR Prefix '%.*s' overlaps with %s prefix '%.*s'. Prefixes for a single "
                     "client must not overlap.",
                     (int)given.len, given.ptr, which, (int)other.len, other.ptr);
}

/* False: an overlap was replied. */
static bool prefixesFit(ctx *c, const tracker *t, const trackOptions *o) {
    if (!o->prefix_count || !anyOverlap(t, o)) return true;
    for (int i = 0; i < o->prefix_count; i++) {
        slice given = o->prefixes[i];
        for (uint32_t k = 0; t && k < t->prefix_count; k++) {
            slice held = prefixName(t->prefixes[k]);
            if (!overlap(given, held)) continue;
            replyOverlap(c, given, held, "an existing");
            return false;
        }
        for (int k = i + 1; k < o->prefix_count; k++) {
            if (!overlap(given, o->prefixes[k])) continue;
            replyOverlap(c, given, o->prefixes[k], "another provided");
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------ the commands */

static void switchOn(ctx *c, const trackOptions *o) {
    tracker *t = trackerOf(c->who);
    if (!optionsAgree(c, o, t ? t->flags : 0) || !prefixesFit(c, t, o)) return;
    t = trackerFor(c->who);
    trackingOn(t, o->flags, o->target);
    for (int i = 0; i < o->prefix_count; i++) prefixAdd(t, o->prefixes[i]);
    if (o->flags & TRACK_BCAST && !o->prefix_count) prefixAdd(t, SLICE(""));
    replyOk(c);
}

/* CLIENT TRACKING (ON|OFF) [REDIRECT id] [PREFIX prefix]... [BCAST] [OPTIN] [OPTOUT] [NOLOOP].
 * Reply: OK. */
void clientTrackingCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    trackOptions o = {.prefixes = memNewArray(slice, (size_t)c->argc)};
    if (!parseOptions(c, &o)) {
        /* The error was replied. */
    } else if (ctxArgIs(c, 2, "on")) {
        switchOn(c, &o);
    } else if (ctxArgIs(c, 2, "off")) {
        tracker *t = trackerOf(c->who);
        if (t) trackingOff(t);
        replyOk(c);
    } else {
        replyError(c, ERR_SYNTAX_TEXT);
    }
    memFree(o.prefixes);
}

/* CLIENT CACHING (YES|NO): whether the keys read by the next command are tracked. Reply: OK. */
void clientCachingCommand(ctx *c) {
    tracker *t = trackerOf(c->who);
    uint32_t flags = t ? t->flags : 0;
    if (!(flags & (TRACK_OPTIN | TRACK_OPTOUT))) {
        replyError(c, SLICE("ERR CLIENT CACHING can be called only when the client is in tracking "
                            "mode with OPTIN or OPTOUT mode enabled"));
        return;
    }
    if (ctxArgIs(c, 2, "yes")) {
        if (!(flags & TRACK_OPTIN)) {
            replyError(c, SLICE("ERR CLIENT CACHING YES is only valid when tracking is enabled in "
                                "OPTIN mode."));
            return;
        }
    } else if (!ctxArgIs(c, 2, "no")) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    } else if (!(flags & TRACK_OPTOUT)) {
        replyError(c, SLICE("ERR CLIENT CACHING NO is only valid when tracking is enabled in "
                            "OPTOUT mode."));
        return;
    }
    t->flags |= TRACK_CACHING;
    replyOk(c);
}

static int64_t redirectOf(const tracker *t) {
    return t && t->flags & TRACK_ON ? (int64_t)t->redirect : -1;
}

/* CLIENT GETREDIR. Reply: id of the client that gets the invalidations, 0: this one, -1: tracking
 * is off. */
void clientGetredirCommand(ctx *c) { replyInteger(c, redirectOf(trackerOf(c->who))); }

static void replyFlags(ctx *c, uint32_t flags) {
    const struct {
        const char *name;
        bool set;
    } names[] = {
        {"off", !(flags & TRACK_ON)},
        {"on", flags & TRACK_ON},
        {"bcast", flags & TRACK_BCAST},
        {"optin", flags & TRACK_OPTIN},
        {"caching-yes", flags & TRACK_OPTIN && flags & TRACK_CACHING},
        {"optout", flags & TRACK_OPTOUT},
        {"caching-no", flags & TRACK_OPTOUT && flags & TRACK_CACHING},
        {"noloop", flags & TRACK_NOLOOP},
        {"broken_redirect", flags & TRACK_BROKEN},
    };
    int64_t count = 0;
    for (size_t i = 0; i < COUNT_OF(names); i++) count += names[i].set;
    replySet(c, count);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (names[i].set) replyBulkText(c, names[i].name);
    }
}

/* CLIENT TRACKINGINFO. Reply: a map with flags, redirection and prefixes. */
void clientTrackinginfoCommand(ctx *c) {
    const tracker *t = trackerOf(c->who);
    uint32_t count = t ? t->prefix_count : 0;
    slice *prefixes = memNewArray(slice, count + 1);
    for (uint32_t i = 0; i < count; i++) prefixes[i] = prefixName(t->prefixes[i]);
    qsort(prefixes, count, sizeof(*prefixes), comparePrefixes);
    replyMap(c, 3);
    replyBulkText(c, "flags");
    replyFlags(c, t ? t->flags : 0);
    replyBulkText(c, "redirect");
    replyInteger(c, redirectOf(t));
    replyBulkText(c, "prefixes");
    replyArray(c, count);
    for (uint32_t i = 0; i < count; i++) replyBulk(c, prefixes[i]);
    memFree(prefixes);
}
