/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keeps the users, functions and directives of this server and the shared state equal
 * (shared_state.h).
 *
 * Invariant: at the end of a turn in which no command runs, each covered user, role, library and
 * directive is as the state says, or its entry is not marked as applied. Names that commands have
 * changed are noted when that happens, and compared with the state at the end of the turn, before
 * entries of other nodes are merged: so a version always has the changes that it says it has
 * seen. */
#include "cluster/shared_state.h"

#include <string.h>

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_bus.h"
#include "cluster/server_map.h"
#include "cluster/shared_config.h"
#include "cluster/shared_file.h"
#include "cluster/shared_link.h"
#include "engine/hot.h"
#include "engine/libraries.h"
#include "engine/propagate.h"
#include "engine/server_event.h"
#include "engine/user_texts.h"
#include "net/net.h"

sharedState serverShared;

/* The name of something that commands may have changed. */
typedef struct changedName {
    sharedKind kind;
    str name;
} changedName;

static struct {
    bool is_read;     /* the state is that of the file */
    bool is_loaded;   /* sharedStart() was called */
    bool is_on;       /* the state is kept */
    bool must_switch; /* directives have changed */
    bool is_applying, has_unapplied, is_unsaved;
    /* Libraries have changed: those that could not be loaded are tried again. */
    bool tries_libraries;
    /* This node has got what others had since its start, or since it has joined. */
    bool is_complete;
    bool was_alone, was_replica; /* when that was last looked at */
    changedName *changed;
    int changed_count, changed_cap;
    uint64_t conflicts;
    int64_t complained_ms, retried_ms;
} shared;

static const char *const kind_names[SHARED_KINDS] = {[SHARED_ROLE] = "role",
                                                     [SHARED_USER] = "user",
                                                     [SHARED_LIBRARY] = "library",
                                                     [SHARED_DIRECTIVE] = "directive"};

static bool isWanted(void) {
    return clusterConf.cluster_shared_acl || clusterConf.cluster_shared_functions ||
           clusterConf.cluster_shared_config.count;
}

static bool canProve(void) { return clusterConf.cluster_bus_secret[0] || netTlsForCluster(); }

bool sharedAnnouncesAcl(void) { return clusterConf.cluster_shared_acl && canProve(); }

bool sharedAnnouncesFunctions(void) { return clusterConf.cluster_shared_functions && canProve(); }

bool sharedAnnouncesConfig(void) { return clusterConf.cluster_shared_config.count && canProve(); }

bool sharedIsOn(void) { return shared.is_on && canProve(); }

static bool covers(sharedKind kind, slice name) {
    if (kind == SHARED_DIRECTIVE) return sharedConfigHas(name);
    return kind == SHARED_LIBRARY ? clusterConf.cluster_shared_functions
                                  : clusterConf.cluster_shared_acl;
}

/* ------------------------------------------------------------------ this server */

/* Appends the text of what has that name; false: this server has none. */
static bool printOwn(sharedKind kind, slice name, str *out, sharedForm *form) {
    bool is_on = true;
    if (kind == SHARED_LIBRARY) {
        slice code = librariesCode(name);
        if (!code.ptr) return false;
        strAppendSlice(out, code);
    } else if (kind == SHARED_DIRECTIVE) {
        if (!sharedConfigPrint(name, out)) return false;
    } else if (!userTextsPrint(kind == SHARED_ROLE, name, out, &is_on)) {
        return false;
    }
    *form = is_on ? SHARED_ON : SHARED_OFF;
    return true;
}

/* A change of the dataset that no command has made. */
static void propagateLibrary(int argc, const slice *argv) {
    check(!clusterIsReplica());
    propagateUnitBegin();
    propagateCopy((propagateTo){.db_id = 0, .targets = PROPAGATE_ALL, .slot = -1}, argc, argv);
    propagateUnitEnd();
    engineHot.dirty++;
}

static status setLibrary(slice name, const sharedVersion *v, reason *why) {
    if (v->form == SHARED_DELETED) {
        const slice argv[] = {SLICE("FUNCTION"), SLICE("DELETE"), name};
        if (librariesRemove(name)) propagateLibrary(3, argv);
        return OK;
    }
    const slice argv[] = {SLICE("FUNCTION"), SLICE("LOAD"), SLICE("REPLACE"), strSlice(&v->body)};
    status st = librariesLoad(strSlice(&v->body), true, why);
    if (st == OK) propagateLibrary(4, argv);
    return st;
}

static status setOwn(const sharedEntry *e, reason *why) {
    const sharedVersion *v = sharedChosen(e);
    slice name = strSlice(&e->name);
    bool is_role = e->kind == SHARED_ROLE;
    if (e->kind == SHARED_LIBRARY) return setLibrary(name, v, why);
    if (e->kind == SHARED_DIRECTIVE) /* nobody deletes one */
        return v->form == SHARED_DELETED ? OK : sharedConfigSet(name, strSlice(&v->body), why);
    if (v->form != SHARED_DELETED) return userTextsSet(is_role, name, strSlice(&v->body), why);
    if (userTextsRemove(is_role, name)) return OK;
    return reasonSet(why, ERR_AGAIN, "users hold the role, which gives no rights until then");
}

/* True if this server has what is chosen. */
static bool isAsChosen(const sharedEntry *e) {
    const sharedVersion *v = sharedChosen(e);
    str own = STR_EMPTY;
    sharedForm form;
    bool has = printOwn(e->kind, strSlice(&e->name), &own, &form);
    bool same =
        v->form == SHARED_DELETED ? !has : has && sliceEqual(strSlice(&own), strSlice(&v->body));
    strFree(&own);
    return same;
}

/* ------------------------------------------------------------------ from the state */

/* Libraries of a replica are those of its primary. */
static bool isApplicable(const sharedEntry *e) {
    bool needs_start = e->kind == SHARED_LIBRARY || e->kind == SHARED_DIRECTIVE;
    if (needs_start && !shared.is_loaded) return false;
    if (e->kind == SHARED_LIBRARY && clusterIsReplica()) return false;
    return covers(e->kind, strSlice(&e->name));
}

static void applyEntry(sharedEntry *e) {
    reason why;
    e->is_applied = isAsChosen(e) || setOwn(e, &why) == OK;
    if (e->is_applied) return;
    shared.has_unapplied = true;
    if (logIsDue(&shared.complained_ms, serverBusNowMs(), BUS_COMPLAINT_MS))
        logWarning("The shared %s '%s' cannot be applied: %s", kind_names[e->kind],
                   strText(&e->name), why.text);
}

void sharedApply(void) {
    check(!engineHot.current);
    if (!shared.has_unapplied) return;
    shared.has_unapplied = false;
    shared.is_applying = true;
    for (int i = 0; i < serverShared.count; i++) { /* roles come before the users that hold them */
        sharedEntry *e = serverShared.list[i];
        if (e->is_applied || !isApplicable(e)) continue;
        if (e->kind == SHARED_LIBRARY && !shared.tries_libraries) {
            shared.has_unapplied = true;
        } else {
            applyEntry(e);
        }
    }
    shared.is_applying = shared.tries_libraries = false;
}

/* A new primary has the libraries of its replicas in its own hands. */
static void followRole(void) {
    bool is_replica = clusterIsReplica();
    if (is_replica == shared.was_replica) return;
    shared.was_replica = is_replica;
    for (int i = 0; i < serverShared.count; i++)
        if (serverShared.list[i]->kind == SHARED_LIBRARY) serverShared.list[i]->is_applied = false;
    shared.has_unapplied = shared.tries_libraries = true;
}

/* ------------------------------------------------------------------ to the state */

static void noteChange(sharedKind kind, slice name) {
    if (shared.is_applying || !covers(kind, name)) return;
    if (kind == SHARED_LIBRARY && clusterIsReplica()) return;
    if (shared.changed_count == shared.changed_cap) {
        shared.changed_cap = shared.changed_cap ? shared.changed_cap * 2 : 16;
        shared.changed =
            memRealloc(shared.changed, (size_t)shared.changed_cap * sizeof(changedName));
    }
    shared.changed[shared.changed_count++] = (changedName){kind, strNew(name)};
    if (kind == SHARED_LIBRARY) shared.tries_libraries = true;
}

static void noteUser(bool is_role, slice name) {
    noteChange(is_role ? SHARED_ROLE : SHARED_USER, name);
}

static void noteLibrary(slice name) { noteChange(SHARED_LIBRARY, name); }

static void noteDirectives(const serverEvent *e) {
    check(e->kind == SERVER_CONFIG);
    for (int i = 0; i < e->config.count; i++) {
        const configOption *o = configFind(e->config.names[i]);
        if (o) noteChange(SHARED_DIRECTIVE, sliceOf(o->name));
    }
}

/* True if the change takes rights away from what was chosen so far. */
static bool takesRights(const sharedEntry *e, sharedKind kind, slice name, sharedForm form,
                        slice body) {
    if (kind == SHARED_LIBRARY || kind == SHARED_DIRECTIVE) return false;
    if (form == SHARED_DELETED) return true;
    /* The default user was there before its first change. */
    if (!e) return kind == SHARED_USER && sliceEqual(name, SLICE("default"));
    const sharedVersion *v = sharedChosen(e);
    return v->form != SHARED_DELETED &&
           userTextsTake(kind == SHARED_ROLE, strSlice(&v->body), body);
}

static bool isTooLarge(slice name, slice body) {
    return name.len > SHARED_NAME_MAX || body.len > SHARED_BODY_MAX;
}

/* Writes a version if this server has something else than the state. */
static void writeChange(sharedKind kind, slice name) {
    str own = STR_EMPTY;
    sharedForm form = SHARED_DELETED;
    sharedEntry *e = sharedFind(&serverShared, kind, name);
    bool has = printOwn(kind, name, &own, &form);
    if (isTooLarge(name, strSlice(&own))) {
        logWarning("The %s '%.*s' is too large to be shared with other nodes: %zu bytes",
                   kind_names[kind], (int)sizeMin(name.len, 64), name.ptr, own.len);
    } else if ((has || e) && (!e || !isAsChosen(e))) {
        bool takes = takesRights(e, kind, name, form, strSlice(&own));
        sharedWrite(&serverShared, kind, name, form, strSlice(&own), takes, serverMap.myself->id,
                    clockWallMs());
        shared.is_unsaved = true;
        e = sharedFind(&serverShared, kind, name);
        if (e) e->is_applied = true;
        if (e) sharedLinkPush(e);
    }
    strFree(&own);
}

static void writeChanges(void) {
    check(!shared.is_applying);
    for (int i = 0; i < shared.changed_count; i++) {
        writeChange(shared.changed[i].kind, strSlice(&shared.changed[i].name));
        strFree(&shared.changed[i].name);
    }
    shared.changed_count = 0;
}

static void seed(sharedKind kind, slice name) {
    str own = STR_EMPTY;
    sharedForm form;
    if (covers(kind, name) && printOwn(kind, name, &own, &form) &&
        !isTooLarge(name, strSlice(&own)))
        sharedSeed(&serverShared, kind, name, form, strSlice(&own));
    strFree(&own);
}

static void seedUser(void *arg, bool is_role, slice name) {
    (void)arg;
    seed(is_role ? SHARED_ROLE : SHARED_USER, name);
}

static void seedLibrary(void *arg, slice name) {
    (void)arg;
    seed(SHARED_LIBRARY, name);
}

static void seedDirective(void *arg, slice name) {
    (void)arg;
    seed(SHARED_DIRECTIVE, name);
}

/* Adds what this server has and the state has not. */
static void seedAll(void) {
    userTextsEach(seedUser, NULL);
    if (!clusterIsReplica()) librariesEachName(seedLibrary, NULL);
    sharedConfigEach(seedDirective, NULL);
    shared.has_unapplied = shared.tries_libraries = true;
    shared.is_unsaved = true;
}

/* ------------------------------------------------------------------ from other nodes */

bool sharedMayTake(void) {
    if (!sharedIsOn() || engineHot.current || engineHot.loading) return false;
    writeChanges();
    return true;
}

static void logConflict(const sharedEntry *e, const char *from) {
    const sharedVersion *v = sharedChosen(e);
    char id[NODE_ID_LEN];
    hexPrint(id, v->by, SHARED_ID_BYTES);
    shared.conflicts++;
    logWarning("The shared %s '%s' was changed on nodes that did not know of each other's change "
               "(told by %s). %s of node %.40s, version %llu, is in effect, until the next change, "
               "instead of %d other(s).",
               kind_names[e->kind], strText(&e->name), from,
               v->form == SHARED_DELETED ? "The deletion" : "The change", id,
               (unsigned long long)v->number, e->count > 1 ? e->count - 1 : 1);
}

void sharedTake(const sharedEntry *from, const char *label) {
    slice name = strSlice(&from->name);
    const sharedEntry *before = sharedFind(&serverShared, from->kind, name);
    int versions = before ? before->count : 0;
    sharedMerged merged = sharedMerge(&serverShared, from);
    if (merged == SHARED_KNOWN) return;
    shared.has_unapplied = shared.is_unsaved = true;
    if (from->kind == SHARED_LIBRARY) shared.tries_libraries = true;
    const sharedEntry *e = sharedFind(&serverShared, from->kind, name);
    if (!e) return; /* one deletion too many */
    if (merged == SHARED_CONFLICT && (e->count > versions || versions == 1)) logConflict(e, label);
}

/* A node that has just joined others serves when it has what they share; one with slots is the
 * cluster that others join. */
static void followMembers(void) {
    bool is_alone = serverMap.node_count == 1;
    if (shared.was_alone && !is_alone && !serverMap.myself->slot_count) shared.is_complete = false;
    shared.was_alone = is_alone;
    if (!shared.is_complete && !is_alone && !sharedLinkIsBehind()) shared.is_complete = true;
    bool lacks = sharedIsOn() && !shared.is_complete;
    if (lacks == serverClusterState.lacks_shared) return;
    serverClusterState.lacks_shared = lacks;
    serverMap.changed |= CLUSTER_MAP_STATE;
}

/* ------------------------------------------------------------------ on and off */

static void readFile(void) {
    check(!shared.is_on);
    if (!shared.is_read) sharedFileRead(&serverShared);
    shared.is_read = shared.has_unapplied = shared.tries_libraries = true;
    sharedApply(); /* what others have decided comes before what this server has read */
}

void sharedReadUsers(void) {
    if (isWanted()) readFile();
}

static void begin(void) {
    readFile();
    shared.is_on = true;
    shared.was_replica = clusterIsReplica();
    if (!canProve())
        logWarning(
            "Users, functions and directives are not shared: that needs cluster-bus-secret or "
            "tls-cluster, as anybody who reaches the port of the bus could change them.");
    seedAll();
    sharedApply(); /* marks what was added */
    userTextsListen(noteUser);
    librariesListen(noteLibrary);
    serverEventsListen(noteDirectives, 1u << SERVER_CONFIG);
}

static void end(void) {
    writeChanges();
    userTextsListen(NULL);
    librariesListen(NULL);
    serverEventsListen(noteDirectives, 0);
    sharedFileSaveNow(&serverShared);
    sharedLinkForget();
    sharedClear(&serverShared);
    shared.is_on = shared.is_read = shared.is_unsaved = shared.has_unapplied = false;
}

void sharedStart(void) {
    check(clusterIsEnabled());
    shared.is_loaded = true;
    shared.was_alone = serverMap.node_count == 1;
    shared.is_complete = shared.was_alone;
    if (isWanted()) begin();
    followMembers(); /* before any request */
}

status sharedApplyDirective(reason *why) {
    (void)why; /* it cannot fail */
    shared.must_switch = shared.is_loaded;
    return OK;
}

/* After the command that has changed directives. */
static void followDirectives(void) {
    if (!shared.must_switch) return;
    shared.must_switch = false;
    if (shared.is_on) end();
    if (!isWanted()) return;
    shared.is_complete = true; /* it serves already */
    begin();
}

void sharedReset(void) {
    if (!shared.is_on) return;
    writeChanges();
    sharedLinkForget();
    sharedClear(&serverShared);
    seedAll();
    shared.was_alone = shared.is_complete = true;
}

/* ------------------------------------------------------------------ periodically */

void sharedStep(void) {
    if (likely(!shared.is_on && !shared.must_switch)) return;
    if (engineHot.current || engineHot.loading) return;
    followDirectives();
    writeChanges();
    followRole();
    followMembers();
    if (shared.is_unsaved) sharedFileSave(&serverShared);
    shared.is_unsaved = false;
}

void sharedTick(int64_t budget_us) {
    (void)budget_us; /* takes little time */
    if (!sharedIsOn() || engineHot.current || engineHot.loading) return;
    int64_t now_ms = serverBusNowMs();
    sharedStep();
    sharedLinkTick(now_ms);
    if (!shared.has_unapplied || !logIsDue(&shared.retried_ms, now_ms, 1000)) return;
    sharedApply();
}

void sharedSaveNow(void) {
    if (!shared.is_on) return;
    writeChanges();
    sharedFileSaveNow(&serverShared);
}

/* ------------------------------------------------------------------ reports */

/* True if the node shares all that this one does. */
static bool isCovered(const clusterNode *n) {
    if (n->sharing < SHARING_BEGUN) return false;
    if (clusterConf.cluster_shared_acl && !n->shares_acl) return false;
    if (clusterConf.cluster_shared_config.count && !n->shares_config) return false;
    return !clusterConf.cluster_shared_functions || n->shares_functions;
}

static void printUncovered(str *out) {
    const char *before = "";
    strAppendText(out, "cluster_shared_not_covered:");
    for (int i = 0; i < serverMap.node_count; i++) {
        const clusterNode *n = serverMap.nodes[i];
        if (n == serverMap.myself || n->flags & NODE_HANDSHAKE || isCovered(n)) continue;
        strAppendText(out, before);
        strAppend(out, n->id, NODE_ID_LEN);
        before = ",";
    }
    strAppendText(out, "\r\n");
}

void sharedPrintInfo(str *out) {
    int unapplied = 0;
    if (!shared.is_on) return;
    for (int i = 0; i < serverShared.count; i++)
        unapplied += !serverShared.list[i]->is_applied && isApplicable(serverShared.list[i]);
    strAppendFormat(out, "cluster_shared_state:%s\r\ncluster_shared_digest:%016llx\r\n",
                    !canProve()                       ? "unproven"
                    : serverClusterState.lacks_shared ? "incomplete"
                                                      : "ok",
                    (unsigned long long)sharedDigest(&serverShared));
    strAppendFormat(out, "cluster_shared_entries:%d\r\ncluster_shared_deleted:%d\r\n",
                    serverShared.count - serverShared.deleted, serverShared.deleted);
    strAppendFormat(out, "cluster_shared_unapplied:%d\r\ncluster_shared_conflicts:%llu\r\n",
                    unapplied, (unsigned long long)shared.conflicts);
    printUncovered(out);
}
