/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --check-config: what a start with this configuration would fail at, beyond its lines: files,
 * folders, users. Nothing is opened for writing, no code of a module runs. Values of directives
 * change, so the program must end after it. Main thread only. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "acl/acl.h"
#include "base/base.h"
#include "config/config.h"
#include "module/module.h"
#include "server/server.h"
#include "server/server_priv.h"

enum { BUS_PORT_OFFSET = 10000 }; /* of the bus, unless cluster-port is set */

/* Appends "directive 'value': why (file:line)". */
static void tell(const configOption *o, slice value, const char *why, str *report) {
    str origin = STR_EMPTY;
    configGetOrigin(o, &origin);
    strAppendFormat(report, "%s '%.*s': %s (%s)\n", o->name, (int)value.len, value.ptr, why,
                    strText(&origin));
    strFree(&origin);
}

/* With `all` files that can be read are reported, too: which one TLS refused is in the log only. */
static bool checkCertificates(bool all, str *report) {
    static const char *const names[] = {
        "tls-cert-file",    "tls-key-file",         "tls-alt-cert-file",
        "tls-alt-key-file", "tls-client-cert-file", "tls-client-key-file",
        "tls-ca-cert-file", "tls-ca-cert-dir",      "tls-dh-params-file"};
    size_t before = report->len;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const configOption *o = configFind(sliceOf(names[i]));
        str path = STR_EMPTY;
        if (o) configGet(o, &path);
        bool readable = path.len && access(strText(&path), R_OK) == 0;
        if (path.len && (all || !readable))
            tell(o, strSlice(&path), readable ? "readable, see the reason above" : strerror(errno),
                 report);
        strFree(&path);
    }
    return report->len == before;
}

void configTellCertificates(str *report) {
    if (strstr(strText(report), "Failed to configure TLS") && checkCertificates(false, report))
        (void)checkCertificates(true, report);
}

/* The reason why no file can be made at the path; NULL if one can. */
static const char *folderFault(const char *path) {
    char *folder = memDup(path, strlen(path));
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = '\0';
    const char *fault = access(slash ? folder : ".", W_OK | X_OK) == 0 ? NULL : strerror(errno);
    memFree(folder);
    return fault;
}

static const char *socketFault(const char *path) {
    struct stat st;
    if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return "the path of a Unix socket has at most 107 bytes";
    if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) return "a file that is no socket is there";
    return folderFault(path);
}

static bool isYes(const char *name) {
    const configOption *o = configFind(sliceOf(name));
    str value = STR_EMPTY;
    if (o) configGet(o, &value);
    bool yes = sliceIs(strSlice(&value), "yes");
    strFree(&value);
    return yes;
}

/* Files that a start makes. */
static bool newFilesFit(str *report) {
    static const struct {
        const char *name;
        const char *(*fault)(const char *path);
    } files[] = {{"unixsocket", socketFault}, {"cluster-config-file", folderFault}};
    size_t before = report->len;
    for (size_t i = 0; i < COUNT_OF(files) - !isYes("cluster-enabled"); i++) {
        const configOption *o = configFind(sliceOf(files[i].name));
        str path = STR_EMPTY;
        if (o) configGet(o, &path);
        const char *fault = path.len ? files[i].fault(strText(&path)) : NULL;
        if (fault) tell(o, strSlice(&path), fault, report);
        strFree(&path);
    }
    return report->len == before;
}

static int portOf(const configOption *o) {
    str value = STR_EMPTY;
    configGet(o, &value);
    int port = atoi(strText(&value));
    strFree(&value);
    check(port >= 0);
    return port;
}

static void tellPort(const configOption *o, const char *why, str *report) {
    char value[16];
    snprintf(value, sizeof(value), "%d", portOf(o));
    tell(o, sliceOf(value), why, report);
}

/* No two ports at which the server listens are the same, and the bus of a cluster has one. */
static bool portsFit(str *report) {
    static const char *const names[] = {
        "port",
        "tls-port",
        "admin-port",
        "metrics-port",
        "cluster-gateway-port",
        "cluster-gateway-tls-port",
        "cluster-port",
    };
    const configOption *open[COUNT_OF(names)];
    bool in_cluster = isYes("cluster-enabled");
    size_t before = report->len, count = 0;
    for (size_t i = 0; i < COUNT_OF(names) - !in_cluster; i++) {
        const configOption *o = configFind(sliceOf(names[i]));
        if (!o || portOf(o) == 0) continue; /* not built, or closed */
        size_t same = 0;
        while (same < count && portOf(open[same]) != portOf(o)) same++;
        if (same < count) {
            str why = STR_EMPTY;
            strAppendFormat(&why, "it is also the port of the directive %s", open[same]->name);
            tellPort(o, strText(&why), report);
            strFree(&why);
        } else {
            open[count++] = o;
        }
    }
    const configOption *bus = configFind(SLICE("cluster-port"));
    const configOption *base = configFind(sliceOf(isYes("tls-cluster") ? "tls-port" : "port"));
    if (in_cluster && portOf(bus) == 0 && base && portOf(base) > CONFIG_PORT_MAX - BUS_PORT_OFFSET)
        tellPort(base, "the bus of the cluster needs a port that is 10000 higher", report);
    return report->len == before;
}

/* Rules may name commands of modules, which are not loaded here: with modules nothing is known. */
static bool usersFit(str *report) {
    hotCheck(threadIsMain());
    if (modulesAreStarting()) return true;
    reason why = {""};
    status st = aclFeature.init ? aclFeature.init(&why) : OK;
    if (st == OK) st = aclLoadUsers(&why);
    if (st != OK) strAppendFormat(report, "%s\n", why.text);
    return st == OK;
}

bool configCheckStart(str *report) {
    hotCheck(threadIsMain());
    logSetLevel(LOG_WARNING); /* the reasons of errors, no notices of a start */
    bool fits = checkCertificates(false, report);
    if (!newFilesFit(report)) fits = false;
    if (!portsFit(report)) fits = false;
    if (serverModeNow()->has_dataset && !modulesCheckFiles(report)) fits = false;
    if (!usersFit(report)) fits = false;
    return fits;
}
