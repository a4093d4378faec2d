/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --check-config: what a start with this configuration would fail at, beyond its lines: files,
 * folders, users. Nothing is opened for writing, no code of a module runs. Values of directives
 * change, so the program must end after it. Main thread only. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "base/base.h"
#include "config/config.h"
#include "module/module.h"
#include "server/server.h"
#include "server/server_priv.h"

/* Appends "directive 'value': why (file:line)". */
static void tell(const configOption *o, slice value, const char *why, str *report) {
    str origin = STR_EMPTY;
    configGetOrigin(o, &origin);
    strAppendFormat(report, "%s '%.*s': %s (%s)\n", o->name, (int)value.len, value.ptr, why,
                    strText(&origin));
    strFree(&origin);
}

bool configCheckCertificates(str *report) {
    static const char *const names[] = {
        "tls-cert-file",    "tls-key-file",         "tls-alt-cert-file",
        "tls-alt-key-file", "tls-client-cert-file", "tls-client-key-file",
        "tls-ca-cert-file", "tls-ca-cert-dir",      "tls-dh-params-file"};
    size_t before = report->len;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const configOption *o = configFind(sliceOf(names[i]));
        str path = STR_EMPTY;
        if (o) configGet(o, &path);
        if (path.len && access(strText(&path), R_OK) != 0)
            tell(o, strSlice(&path), strerror(errno), report);
        strFree(&path);
    }
    return report->len == before;
}

/* The socket's file is made in its folder. */
static bool socketFits(str *report) {
    const configOption *o = configFind(SLICE("unixsocket"));
    size_t before = report->len;
    str path = STR_EMPTY;
    if (o) configGet(o, &path);
    char *folder = memDup(strText(&path), path.len);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = '\0';
    if (path.len && access(slash ? folder : ".", W_OK | X_OK) != 0)
        tell(o, strSlice(&path), strerror(errno), report);
    memFree(folder);
    strFree(&path);
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
    bool fits = configCheckCertificates(report);
    if (!socketFits(report)) fits = false;
    if (serverModeNow()->has_dataset && !modulesCheckFiles(report)) fits = false;
    if (!usersFit(report)) fits = false;
    return fits;
}
