/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The nodes of a cluster and the table of slots, from CLUSTER SLOTS or CLUSTER NODES.
 *
 * A new map is built beside the old one and replaces it as a whole (but nodes in both remain the
 * same objects), so that an incomplete reply or a lack of memory leaves the old one in use. */
#include <stdio.h>
#include <stdlib.h>

#include "clientlib/cluster_priv.h"

/* A map being built. */
typedef struct mapDraft {
    valkeyClusterNode *nodes, **table;
    bool memory_exhausted;
    long slots; /* assigned */
} mapDraft;

void vkClusterError(valkeyClusterContext *cc, int type, const char *text) {
    cc->err = type;
    snprintf(cc->errstr, sizeof(cc->errstr), "%s", text);
}

void vkClusterEvent(valkeyClusterContext *cc, int event) {
    if (cc->event_callback) cc->event_callback(cc, event, cc->event_privdata);
}

/* ------------------------------------------------------------------ nodes */

/* Ends the connections of a node that has left the map. */
static void endConnection(valkeyClusterNode *n) {
    valkeyFree(n->con);
    n->con = NULL;
    if (!n->acon) return;
    vkClusterLink *link = n->acon->data;
    /* A node of the map that has left it may never reply: what waits there is called back with
     * NULL. The node that has just sent the map does reply, with redirects; so does the target of a
     * redirect that is not in the map yet. */
    if (n->in_map && !(n->acon->c.flags & VALKEY_IN_CALLBACK)) {
        valkeyAsyncFree(n->acon); /* clears n->acon */
    } else {
        valkeyAsyncContext *ac = n->acon;
        link->node = NULL;
        n->acon = NULL;
        valkeyAsyncDisconnect(ac);
    }
}

static void endConnections(valkeyClusterContext *cc) {
    /* A callback may even update the map. */
    for (valkeyClusterNode *n = cc->left; n;) {
        bool open = n->acon || n->con;
        endConnection(n);
        n = open ? cc->left : n->next;
    }
}

static void freeNode(valkeyClusterNode *n) {
    if (!n) return;
    endConnection(n);
    vk_free(n->name);
    vk_free(n->addr);
    vk_free(n->host);
    vk_free(n->slots);
    vk_free(n);
}

static void freeNodes(valkeyClusterNode *list) {
    while (list) {
        valkeyClusterNode *next = list->next;
        freeNode(list);
        list = next;
    }
}

static valkeyClusterNode *newNode(const char *host, int port) {
    char addr[VK_HOST_MAX + 16];
    snprintf(addr, sizeof(addr), "%s:%d", host, port);
    valkeyClusterNode *n = vk_calloc(1, sizeof(*n));
    if (!n) return NULL;
    n->host = vk_strdup(host);
    n->addr = vk_strdup(addr);
    n->port = (uint16_t)port;
    if (n->host && n->addr) return n;
    freeNode(n);
    return NULL;
}

static valkeyClusterNode *findNode(valkeyClusterNode *list, const char *host, int port) {
    while (list && (list->port != port || strcmp(list->host, host) != 0)) list = list->next;
    return list;
}

valkeyClusterNode *vkClusterNodeAt(valkeyClusterContext *cc, const char *host, int port) {
    valkeyClusterNode *n = findNode(cc->nodes, host, port);
    if (n) return n;
    n = newNode(host, port);
    if (!n) {
        vkClusterError(cc, VALKEY_ERR_OOM, "Out of memory");
        return NULL;
    }
    valkeyClusterNode **end = &cc->nodes;
    while (*end) end = &(*end)->next;
    *end = n;
    return n;
}

/* Negative if `a` is to be asked for the map before `b`. */
static int compareToAsk(const valkeyClusterNode *a, const valkeyClusterNode *b) {
    if (a->failure_count != b->failure_count) return a->failure_count < b->failure_count ? -1 : 1;
    return b->in_map - a->in_map;
}

valkeyClusterNode *vkClusterNextToAsk(valkeyClusterContext *cc) {
    valkeyClusterNode *best = NULL;
    /* Any of those that are equally good, so that not all clients ask the same one; initial nodes
     * in their order. */
    unsigned long long equal = 1, random = (unsigned long long)vkNowUs();
    for (valkeyClusterNode *n = cc->nodes; n; n = n->next) {
        if (n->asked_round == cc->map_round) continue;
        int order = best ? compareToAsk(n, best) : -1;
        if (order < 0) equal = 1;
        if (order < 0 || (order == 0 && n->in_map && random % ++equal == 0)) best = n;
    }
    if (best) best->asked_round = cc->map_round;
    return best;
}

bool vkClusterAddSeeds(valkeyClusterContext *cc) {
    for (const char *p = cc->seeds; *p;) {
        size_t len = strcspn(p, ",");
        char text[VK_HOST_MAX], *colon;
        snprintf(text, sizeof(text), "%.*s", (int)len, p);
        colon = strrchr(text, ':');
        int port = colon ? atoi(colon + 1) : 0;
        if (!colon || colon == text || port <= 0 || port > 65535) {
            vkClusterError(cc, VALKEY_ERR_OTHER, "Server address is incorrect, use host:port");
            return false;
        }
        *colon = '\0';
        if (!vkClusterNodeAt(cc, text, port)) return false;
        p += len + (p[len] == ',');
    }
    if (cc->nodes) return true;
    vkClusterError(cc, VALKEY_ERR_OTHER, "No server address");
    return false;
}

/* ------------------------------------------------------------------ life */

bool vkClusterCheckOptions(valkeyClusterContext *cc) {
    /* The others change how the library has to use its connections. */
    const int supported = VALKEY_OPT_USE_CLUSTER_NODES | VALKEY_OPT_USE_REPLICAS |
                          VALKEY_OPT_BLOCKING_INITIAL_UPDATE | VALKEY_OPT_PREFER_IP_UNSPEC |
                          VALKEY_OPT_MPTCP | VALKEY_OPT_REUSEADDR;
    if (!(cc->options & ~supported)) return true;
    vkClusterError(cc, VALKEY_ERR_OTHER, "Unsupported options");
    return false;
}

bool vkClusterCheckCommand(valkeyClusterContext *cc, const char *cmd, int len) {
    if (len > 0 && vkIsOneCommand(cmd, (size_t)len)) return true;
    vkClusterError(cc, VALKEY_ERR_OTHER, "Invalid command");
    return false;
}

bool vkClusterInit(valkeyClusterContext *cc, const valkeyClusterOptions *o) {
    cc->options = o->options;
    cc->max_retry_count = o->max_retry > 0 ? o->max_retry : VK_RETRIES;
    cc->select_db = o->select_db;
    cc->tls = o->tls;
    cc->tls_init_fn = o->tls_init_fn;
    cc->on_connect = o->connect_callback;
    cc->event_callback = o->event_callback;
    cc->event_privdata = o->event_privdata;
    cc->table = vk_calloc(VK_SLOTS, sizeof(*cc->table));
    return cc->table && vkCopyString(&cc->seeds, o->initial_nodes ? o->initial_nodes : "") &&
           vkCopyString(&cc->username, o->username) && vkCopyString(&cc->password, o->password) &&
           vkCopyTimeout(&cc->connect_timeout, o->connect_timeout) &&
           vkCopyTimeout(&cc->command_timeout, o->command_timeout);
}

void vkClusterClear(valkeyClusterContext *cc) {
    vkClusterFreePipeline(cc);
    freeNodes(cc->nodes);
    freeNodes(cc->left);
    vk_free(cc->table);
    vk_free(cc->seeds);
    vk_free(cc->username);
    vk_free(cc->password);
    vk_free(cc->connect_timeout);
    vk_free(cc->command_timeout);
}

valkeyOptions vkClusterNodeOptions(const valkeyClusterContext *cc, const valkeyClusterNode *node) {
    valkeyOptions o = {.connect_timeout = cc->connect_timeout,
                       .command_timeout = cc->command_timeout};
    VALKEY_OPTIONS_SET_TCP(&o, node->host, node->port);
    o.options =
        cc->options & (VALKEY_OPT_PREFER_IP_UNSPEC | VALKEY_OPT_MPTCP | VALKEY_OPT_REUSEADDR);
    return o;
}

/* ------------------------------------------------------------------ drafts */

static valkeyClusterNode *draftNode(mapDraft *d, const char *host, int port, const char *id,
                                    uint8_t role) {
    valkeyClusterNode *n = findNode(d->nodes, host, port);
    if (!n) {
        n = newNode(host, port);
        if (!n || (id && !(n->name = vk_strdup(id)))) {
            freeNode(n);
            d->memory_exhausted = true;
            return NULL;
        }
        n->next = d->nodes;
        d->nodes = n;
    }
    n->role = role;
    return n;
}

static void assignSlots(mapDraft *d, valkeyClusterNode *n, long long from, long long to) {
    if (from < 0 || to >= VK_SLOTS || from > to) return;
    /* Space doubles when the count is a power of two. */
    int count = n->slot_ranges;
    if ((count & (count - 1)) == 0) {
        size_t capacity = count ? (size_t)count * 2 : 1;
        cluster_slot *more = vk_realloc(n->slots, capacity * sizeof(*more));
        if (!more) {
            d->memory_exhausted = true;
            return;
        }
        n->slots = more;
    }
    n->slots[n->slot_ranges++] = (cluster_slot){.start = (uint32_t)from, .end = (uint32_t)to};
    for (long long slot = from; slot <= to; slot++) {
        d->slots += d->table[slot] == NULL;
        d->table[slot] = n;
    }
}

/* A node of CLUSTER SLOTS: address, port, id. */
static valkeyClusterNode *slotsNode(mapDraft *d, const valkeyReply *r, const char *from_host,
                                    uint8_t role) {
    if (r->type != VALKEY_REPLY_ARRAY || r->elements < 2) return NULL;
    const char *host = r->element[0]->str;
    if (!host || !*host) host = from_host; /* the one that it was asked at */
    if (!strcmp(host, "?")) return NULL;
    const char *id = r->elements > 2 ? r->element[2]->str : NULL;
    return draftNode(d, host, (int)r->element[1]->integer, id, role);
}

static bool draftSlots(mapDraft *d, const valkeyReply *r, const char *from_host, bool replicas) {
    if (r->type != VALKEY_REPLY_ARRAY) return false;
    for (size_t i = 0; i < r->elements; i++) {
        const valkeyReply *range = r->element[i];
        if (range->type != VALKEY_REPLY_ARRAY || range->elements < 3) return false;
        valkeyClusterNode *primary =
            slotsNode(d, range->element[2], from_host, VALKEY_ROLE_PRIMARY);
        if (!primary) continue;
        assignSlots(d, primary, range->element[0]->integer, range->element[1]->integer);
        for (size_t k = 3; replicas && k < range->elements; k++) {
            valkeyClusterNode *n = slotsNode(d, range->element[k], from_host, VALKEY_ROLE_REPLICA);
            if (n) n->primary = primary;
        }
    }
    return true;
}

/* The next word of a line; NULL at its end. */
static char *nextWord(char **line) {
    char *word = *line + strspn(*line, " ");
    if (!*word) return NULL;
    *line = word + strcspn(word, " ");
    if (**line) *(*line)++ = '\0';
    return word;
}

enum { NODE_WORDS = 8 };

/* "id host:port@bus,name flags primary ping pong epoch state slots ...". Replicas are entered in a
 * second pass, when their primaries are known. */
static void draftLine(mapDraft *d, char *line, const char *from_host, bool replicas) {
    char *words[NODE_WORDS];
    for (int i = 0; i < NODE_WORDS; i++) {
        if (!(words[i] = nextWord(&line))) return;
    }
    words[1][strcspn(words[1], "@,")] = '\0';
    char *colon = strrchr(words[1], ':');
    bool is_primary = strstr(words[2], "master") != NULL;
    if (!colon || strstr(words[2], "noaddr") || strstr(words[2], "handshake") ||
        is_primary == replicas)
        return;
    *colon = '\0';
    const char *host = words[1][0] ? words[1] : from_host;
    valkeyClusterNode *n = draftNode(d, host, atoi(colon + 1), words[0],
                                     is_primary ? VALKEY_ROLE_PRIMARY : VALKEY_ROLE_REPLICA);
    if (!n) return;
    for (valkeyClusterNode *p = d->nodes; replicas && p; p = p->next) {
        if (p->name && !strcmp(p->name, words[3])) n->primary = p;
    }
    for (char *range; is_primary && (range = nextWord(&line));) {
        if (*range == '[') continue; /* migrating or importing */
        char *dash = strchr(range, '-');
        assignSlots(d, n, atoi(range), dash ? atoi(dash + 1) : atoi(range));
    }
}

static bool draftNodes(mapDraft *d, const valkeyReply *r, const char *from_host, bool replicas) {
    if (!r->str) return false;
    for (int pass = 0; pass <= replicas && !d->memory_exhausted; pass++) {
        char *copy = vk_strdup(r->str);
        if (!copy) {
            d->memory_exhausted = true;
            break;
        }
        for (char *line = copy, *end; *line; line = end) {
            end = line + strcspn(line, "\n");
            if (*end) *end++ = '\0';
            line[strcspn(line, "\r")] = '\0';
            draftLine(d, line, from_host, pass == 1);
        }
        vk_free(copy);
    }
    return true;
}

/* ------------------------------------------------------------------ applying */

const char *vkClusterMapQuery(const valkeyClusterContext *cc) {
    return cc->options & VALKEY_OPT_USE_CLUSTER_NODES ? "CLUSTER NODES" : "CLUSTER SLOTS";
}

static valkeyClusterNode *knownAs(valkeyClusterNode *n) { return n && n->known ? n->known : n; }

/* Takes the node with the address of `n` from a list; NULL if there is none. */
static valkeyClusterNode *takeNode(valkeyClusterNode **list, const valkeyClusterNode *n) {
    for (; *list; list = &(*list)->next) {
        valkeyClusterNode *found = *list;
        if (found->port != n->port || strcmp(found->host, n->host) != 0) continue;
        *list = found->next;
        return found;
    }
    return NULL;
}

/* Gives the node `old` what the draft says about it. */
static void updateNode(valkeyClusterNode *old, valkeyClusterNode *draft) {
    char *name = old->name;
    old->name = draft->name;
    draft->name = name;
    cluster_slot *slots = old->slots;
    old->slots = draft->slots;
    draft->slots = slots;
    old->slot_ranges = draft->slot_ranges;
    old->role = draft->role;
    old->primary = draft->primary;
    draft->known = old;
}

/* Sets what refers to other nodes. */
static void connectNodes(valkeyClusterNode *list) {
    for (valkeyClusterNode *n = list; n; n = n->next) {
        n->in_map = 1;
        n->primary = knownAs(n->primary);
        n->replicas = NULL;
        for (int i = 0; i < n->slot_ranges; i++) n->slots[i].node = n;
    }
    for (valkeyClusterNode *n = list; n; n = n->next) {
        if (!n->primary) continue;
        n->next_replica = n->primary->replicas;
        n->primary->replicas = n;
    }
}

static valkeyClusterNode *reversed(valkeyClusterNode *list) {
    valkeyClusterNode *result = NULL, *next;
    for (valkeyClusterNode *n = list; n; n = next) {
        next = n->next;
        n->next = result;
        result = n;
    }
    return result;
}

/* Makes the draft the map. Nodes that are known stay where they are, with their connections, and
 * keep their order, so that iterators go on if there are no others; new nodes follow. Returns those
 * that are no longer in the map. */
static valkeyClusterNode *adopt(valkeyClusterContext *cc, mapDraft *d) {
    valkeyClusterNode *left = NULL, *replaced = NULL, **end = &cc->nodes, *next;
    for (valkeyClusterNode *n = cc->nodes; n; n = next) {
        next = n->next;
        valkeyClusterNode *draft = takeNode(&d->nodes, n);
        if (!draft) {
            n->next = left;
            left = n;
            continue;
        }
        updateNode(n, draft);
        draft->next = replaced;
        replaced = draft;
        *end = n;
        end = &n->next;
    }
    *end = reversed(d->nodes);
    if (*end || left) cc->nodes_version++;
    connectNodes(cc->nodes);
    for (int slot = 0; slot < VK_SLOTS; slot++) d->table[slot] = knownAs(d->table[slot]);
    freeNodes(replaced);
    vk_free(cc->table);
    cc->table = d->table;
    return left;
}

bool vkClusterApplyMap(valkeyClusterContext *cc, const valkeyReply *r, const char *from_host) {
    mapDraft d = {.table = vk_calloc(VK_SLOTS, sizeof(*d.table))};
    bool replicas = cc->options & VALKEY_OPT_USE_REPLICAS, ok = false;
    if (r->type == VALKEY_REPLY_ERROR) {
        vkClusterError(cc, VALKEY_ERR_OTHER, r->str);
    } else if (d.table) {
        ok = cc->options & VALKEY_OPT_USE_CLUSTER_NODES ? draftNodes(&d, r, from_host, replicas)
                                                        : draftSlots(&d, r, from_host, replicas);
        if (!ok || d.slots == 0) vkClusterError(cc, VALKEY_ERR_OTHER, "No slot information");
        ok = ok && d.slots > 0;
    }
    if (!d.table || d.memory_exhausted) {
        vkClusterError(cc, VALKEY_ERR_OOM, "Out of memory");
        ok = false;
    }
    if (!ok) {
        freeNodes(d.nodes);
        vk_free(d.table);
        return false;
    }
    valkeyClusterNode *before = cc->left;
    cc->left = adopt(cc, &d);
    cc->need_update_route = 0;
    bool first = ++cc->route_version == 1;
    vkClusterEvent(cc, VALKEYCLUSTER_EVENT_SLOTMAP_UPDATED);
    if (first) vkClusterEvent(cc, VALKEYCLUSTER_EVENT_READY);
    /* Last, as it runs callbacks, in which the caller uses the map, or frees the context. */
    endConnections(cc);
    freeNodes(before);
    return true;
}

/* ------------------------------------------------------------------ redirects */

redirect vkRedirectOf(const valkeyReply *r) {
    redirect d = {.kind = REDIRECT_NONE};
    if (r->type != VALKEY_REPLY_ERROR) return d;
    if (!strncmp(r->str, "TRYAGAIN", 8) || !strncmp(r->str, "CLUSTERDOWN", 11))
        d.kind = REDIRECT_RETRY;
    redirectKind kind = !strncmp(r->str, "MOVED ", 6) ? REDIRECT_MOVED
                        : !strncmp(r->str, "ASK ", 4) ? REDIRECT_ASK
                                                      : REDIRECT_NONE;
    if (kind == REDIRECT_NONE) return d;
    char *end, *address;
    const char *p = strchr(r->str, ' ') + 1;
    d.slot = (int)strtol(p, &end, 10);
    if (end == p || *end != ' ' || d.slot < 0 || d.slot >= VK_SLOTS) return d;
    address = end + 1;
    char *colon = strrchr(address, ':');
    if (!colon || (size_t)(colon - address) >= sizeof(d.host)) return d;
    d.port = atoi(colon + 1);
    if (d.port <= 0 || d.port > 65535) return d;
    memcpy(d.host, address, (size_t)(colon - address));
    d.kind = kind;
    return d;
}

/* ------------------------------------------------------------------ public lookups */

/* What a valkeyClusterNodeIterator contains. */
typedef struct nodeWalk {
    valkeyClusterContext *cc;
    uint64_t nodes_version;
    valkeyClusterNode *next;
    int retries_left;
} nodeWalk;
_Static_assert(sizeof(nodeWalk) <= sizeof(valkeyClusterNodeIterator), "fits the public type");

void valkeyClusterInitNodeIterator(valkeyClusterNodeIterator *iter, valkeyClusterContext *cc) {
    nodeWalk walk = {
        .cc = cc, .nodes_version = cc->nodes_version, .next = cc->nodes, .retries_left = 1};
    memcpy(iter, &walk, sizeof(walk));
}

valkeyClusterNode *valkeyClusterNodeNext(valkeyClusterNodeIterator *iter) {
    nodeWalk walk;
    memcpy(&walk, iter, sizeof(walk));
    if (walk.nodes_version != walk.cc->nodes_version) {
        /* Its nodes are gone. */
        if (walk.retries_left-- <= 0) return NULL;
        walk.nodes_version = walk.cc->nodes_version;
        walk.next = walk.cc->nodes;
    }
    valkeyClusterNode *n = walk.next;
    if (n) walk.next = n->next;
    memcpy(iter, &walk, sizeof(walk));
    return n;
}

unsigned int valkeyClusterGetSlotByKey(char *key) {
    return (unsigned)vkSlotOfKey(key, strlen(key));
}

valkeyClusterNode *valkeyClusterGetNodeByKey(valkeyClusterContext *cc, char *key) {
    return cc->table[vkSlotOfKey(key, strlen(key))];
}
