/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The names of shared directives (shared_config.h). Invariant: each of them can be changed while
 * the server runs, is no secret, belongs to no module, and means the same on all nodes. Main thread
 * only. */
#include "cluster/shared_config.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cluster/cluster_priv.h"
#include "engine/server_event.h"

/* Directives about one node. A name with a dash at its end stands for all that begin with it. */
static const char *const of_one_node[] = {
    "admin-port",
    "bind",
    "bind-source-addr",
    "cluster-announce-",
    "cluster-gateway-port",
    "cluster-gateway-tls-port",
    "cluster-replica-priority",
    "cluster-seeds",
    "cluster-shared-",
    "logfile",
    "metrics-port",
    "port",
    "primaryauth",
    "primaryuser",
    "replica-announce-",
    "replica-priority",
    "requirepass",
    "tls-",
};

static bool isOfOneNode(const char *name) {
    for (size_t i = 0; i < COUNT_OF(of_one_node); i++) {
        size_t len = strlen(of_one_node[i]);
        bool begins = of_one_node[i][len - 1] == '-';
        if (begins ? !strncmp(name, of_one_node[i], len) : !strcmp(name, of_one_node[i]))
            return true;
    }
    return false;
}

/* The directive of that name; NULL: it cannot be shared, for the reason. */
static const configOption *find(slice name, reason *why) {
    const configOption *o = configFind(name);
    const char *fault = NULL;
    /* Other nodes may lack the module, and it may be unloaded. */
    if (name.len && memchr(name.ptr, '.', name.len)) {
        fault = "it belongs to a module";
    } else if (!o || o->kind == CONFIG_KIND_FILE_ONLY) {
        fault = "there is no such directive";
    } else if (o->flags & CONFIG_IMMUTABLE) {
        fault = "it can be set only at the start";
    } else if (o->flags & CONFIG_SENSITIVE) {
        fault = "it is a secret";
    } else if (o->flags & CONFIG_PROTECTED || isOfOneNode(o->name)) {
        fault = "it is about one node";
    }
    if (!fault) return o;
    (void)reasonSet(why, ERR_SYNTAX, "'%.*s' cannot be shared: %s", (int)sizeMin(name.len, 64),
                    name.ptr, fault);
    return NULL;
}

static int compareNames(const void *a, const void *b) {
    return strcmp((*(const configOption *const *)a)->name, (*(const configOption *const *)b)->name);
}

static status setNames(const slice *words, int count, bool more, reason *why) {
    const configOption **list = count ? memNewArray(const configOption *, (size_t)count) : NULL;
    int found = 0;
    (void)more; /* the last line applies */
    for (int i = 0; i < count; i++) {
        const configOption *o = find(words[i], why);
        if (!o) {
            memFree(list);
            return ERR_SYNTAX;
        }
        list[found++] = o;
    }
    if (found) qsort(list, (size_t)found, sizeof(*list), compareNames);
    int kept = 0;
    for (int i = 0; i < found; i++)
        if (!kept || list[kept - 1] != list[i]) list[kept++] = list[i];
    memFree(clusterConf.cluster_shared_config.list);
    clusterConf.cluster_shared_config = (sharedNames){list, kept};
    return OK;
}

static void getNames(str *out) {
    const sharedNames *names = &clusterConf.cluster_shared_config;
    for (int i = 0; i < names->count; i++)
        strAppendFormat(out, "%s%s", i ? " " : "", names->list[i]->name);
}

const configSpecial sharedConfigNames = {.set = setNames, .get = getNames};

bool sharedConfigHas(slice name) {
    const sharedNames *names = &clusterConf.cluster_shared_config;
    for (int i = 0; i < names->count; i++)
        if (sliceIs(name, names->list[i]->name)) return true;
    return false;
}

void sharedConfigEach(void (*visit)(void *arg, slice name), void *arg) {
    const sharedNames *names = &clusterConf.cluster_shared_config;
    check(names->count >= 0);
    for (int i = 0; i < names->count; i++) {
        str origin = STR_EMPTY;
        configGetOrigin(names->list[i], &origin);
        if (!sliceIs(strSlice(&origin), "default")) visit(arg, sliceOf(names->list[i]->name));
        strFree(&origin);
    }
}

bool sharedConfigPrint(slice name, str *out) {
    const configOption *o = configFind(name);
    if (!o || o->kind == CONFIG_KIND_FILE_ONLY) return false;
    configGet(o, out);
    return true;
}

status sharedConfigSet(slice name, slice value, reason *why) {
    str error = STR_EMPTY;
    const slice pair[] = {name, value};
    check(sharedConfigHas(name));
    status st = configSet(pair, 1, CONFIG_ALLOW_NOT_WHILE_LOADING, &error);
    if (st == OK) {
        serverEventSignal(&(serverEvent){.kind = SERVER_CONFIG, .config = {&name, 1}});
    } else {
        (void)reasonSet(why, st, "%s", strText(&error));
    }
    strFree(&error);
    return st;
}
