/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TLS of the server (tls.h). Invariant: while TLS is on there is a context; it is replaced only by
 * a valid one. */
#include "net/tls.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "engine/hot.h"
#include "engine/options.h"
#include "engine/user.h"
#include "io/bio.h"
#include "io/net_addr.h"
#include "io/tls.h"
#include "net/io_threads.h"
#include "net/net.h"
#include "net/net_priv.h"
#include "net/net_thread.h"

enum { FAILURES_LOGGED_PER_S = 10 };

static struct {
    tlsContext *context;
    uint8_t fingerprint[TLS_FINGERPRINT_SIZE]; /* of the files of `context` */
    bool reloading;
    int64_t reload_s; /* Unix time of the last build or check */
    char last_failure[REASON_MAX];
    int64_t failures_since_ms; /* failed handshakes are logged up to a rate */
    int failures;
} tls;

bool netTlsIsOn(void) {
    return netConf.tls_port || netConf.cluster_gateway_tls_port || netConf.tls_replication ||
           netConf.tls_cluster;
}

static tlsSettings currentSettings(void) {
    return (tlsSettings){
        .cert_file = netConf.tls_cert_file,
        .key_file = netConf.tls_key_file,
        .key_pass = strSlice(&netConf.tls_key_file_pass),
        .alt_cert_file = netConf.tls_alt_cert_file,
        .alt_key_file = netConf.tls_alt_key_file,
        .alt_key_pass = strSlice(&netConf.tls_alt_key_file_pass),
        .client_cert_file = netConf.tls_client_cert_file,
        .client_key_file = netConf.tls_client_key_file,
        .client_key_pass = strSlice(&netConf.tls_client_key_file_pass),
        .ca_cert_file = netConf.tls_ca_cert_file,
        .ca_cert_dir = netConf.tls_ca_cert_dir,
        .dh_params_file = netConf.tls_dh_params_file,
        .protocols = netConf.tls_protocols,
        .ciphers = netConf.tls_ciphers,
        .ciphersuites = netConf.tls_ciphersuites,
        .prefer_server_ciphers = netConf.tls_prefer_server_ciphers,
        .session_caching = netConf.tls_session_caching,
        .session_cache_size = netConf.tls_session_cache_size,
        .session_cache_timeout_s = netConf.tls_session_cache_timeout,
        .needs_ca = netConf.tls_auth_clients != TLS_AUTH_NO || netConf.tls_replication ||
                    netConf.tls_cluster,
    };
}

static void warnIfExpired(const tlsContext *context) {
    static const char *const names[] = {[TLS_SERVER] = "tls-cert-file",
                                        [TLS_SERVER_ALT] = "tls-alt-cert-file",
                                        [TLS_CLIENT] = "tls-client-cert-file"};
    for (int role = TLS_SERVER; role <= TLS_CLIENT; role++) {
        const tlsCertificate *x = tlsContextCertificate(context, (tlsRole)role);
        if (x->expires_at_s && x->expires_at_s <= clockWallMs() / 1000)
            logWarning("The certificate of %s has expired: clients may refuse it", names[role]);
    }
}

static void useContext(tlsContext *context) {
    tlsContextFree(tls.context);
    tls.context = context;
    tls.reload_s = clockWallMs() / 1000;
    tls.last_failure[0] = 0;
    warnIfExpired(context);
}

/* Clients see the same text as Valkey's; the cause is in the log. */
static status refuse(reason *why) {
    return reasonSet(why, ERR_DENIED,
                     netIsListening() ? "Unable to update TLS configuration. Check server logs."
                                      : "Failed to configure TLS. Check logs for more info.");
}

status netTlsApply(reason *why) {
    hotCheck(threadIsMain());
    if (!netTlsIsOn()) return OK;
    if (netIsListening()) logDebug("Reconfiguring TLS");
    tlsSettings settings = currentSettings();
    reason cause;
    tlsContext *context = tlsContextNew(&settings, &cause);
    if (!context) {
        logWarning("%s", cause.text);
        return refuse(why);
    }
    useContext(context);
    if (tlsFingerprint(&settings, tls.fingerprint, &cause) != OK)
        memset(tls.fingerprint, 0, sizeof(tls.fingerprint)); /* the next check reloads */
    return OK;
}

status netTlsApplyAuth(reason *why) {
    hotCheck(threadIsMain());
    bool has_ca = netConf.tls_ca_cert_file[0] || netConf.tls_ca_cert_dir[0];
    if (!netTlsIsOn() || has_ca || netConf.tls_auth_clients == TLS_AUTH_NO) return OK;
    logWarning("tls-auth-clients needs tls-ca-cert-file or tls-ca-cert-dir: without one every "
               "client would be refused");
    return refuse(why);
}

/* ------------------------------------------------------------------ reload */

/* A check on a worker thread, with copies of the settings. */
typedef struct reloadJob {
    tlsSettings settings;
    uint8_t before[TLS_FINGERPRINT_SIZE], now[TLS_FINGERPRINT_SIZE];
    tlsContext *context; /* NULL: unchanged, or failed */
    reason why;
} reloadJob;

/* The texts of settings, to copy and free them. */
static const char **textsOf(tlsSettings *s, int i) {
    const char **texts[] = {&s->cert_file,    &s->key_file,         &s->alt_cert_file,
                            &s->alt_key_file, &s->client_cert_file, &s->client_key_file,
                            &s->ca_cert_file, &s->ca_cert_dir,      &s->dh_params_file,
                            &s->protocols,    &s->ciphers,          &s->ciphersuites,
                            &s->key_pass.ptr, &s->alt_key_pass.ptr, &s->client_key_pass.ptr};
    return i < (int)COUNT_OF(texts) ? texts[i] : NULL;
}

static int runReload(void *arg) {
    reloadJob *job = arg;
    if (tlsFingerprint(&job->settings, job->now, &job->why) != OK) return 1;
    if (!memcmp(job->before, job->now, TLS_FINGERPRINT_SIZE)) return 0;
    job->context = tlsContextNew(&job->settings, &job->why);
    return job->context ? 0 : 1;
}

/* A copy of a passphrase, which memory that is used again must not contain. */
static void wipe(slice secret) { explicit_bzero((void *)(uintptr_t)secret.ptr, secret.len); }

static void finishReload(void *arg, int failed) {
    reloadJob *job = arg;
    tls.reloading = false;
    if (failed) {
        /* The same failure is reported once, not at each try. */
        if (strcmp(tls.last_failure, job->why.text) != 0) {
            logWarning("%s", job->why.text);
            logWarning("Background TLS reload failed");
        }
        snprintf(tls.last_failure, sizeof(tls.last_failure), "%s", job->why.text);
    } else if (!job->context) {
        logDebug("TLS reload skipped: materials unchanged");
        tls.last_failure[0] = 0;
    } else if (netTlsIsOn()) {
        logNotice("TLS materials changed, reloading in background");
        memcpy(tls.fingerprint, job->now, sizeof(tls.fingerprint));
        useContext(job->context);
        job->context = NULL;
        logNotice("TLS materials reloaded successfully");
    }
    tlsContextFree(job->context);
    wipe(job->settings.key_pass);
    wipe(job->settings.alt_key_pass);
    wipe(job->settings.client_key_pass);
    const char **text;
    for (int i = 0; (text = textsOf(&job->settings, i)); i++) memFree((void *)(uintptr_t)*text);
    memFree(job);
}

void netTlsTick(int64_t budget_us) {
    hotCheck(threadIsMain());
    (void)budget_us; /* takes no time */
    int64_t now_s = clockWallMs() / 1000;
    if (!netConf.tls_auto_reload_interval || !tls.context || tls.reloading || !netTlsIsOn()) return;
    if (now_s - tls.reload_s < netConf.tls_auto_reload_interval) return;
    logDebug("Background TLS reconfiguration started");
    tls.reload_s = now_s;
    tls.reloading = true;
    reloadJob *job = memNew(reloadJob);
    *job = (reloadJob){.settings = currentSettings()};
    memcpy(job->before, tls.fingerprint, sizeof(job->before));
    const slice *secrets[] = {&job->settings.key_pass, &job->settings.alt_key_pass,
                              &job->settings.client_key_pass};
    const char **text;
    for (int i = 0; (text = textsOf(&job->settings, i)); i++) {
        const slice *secret = NULL;
        for (size_t k = 0; k < COUNT_OF(secrets); k++) {
            if (text == &secrets[k]->ptr) secret = secrets[k];
        }
        *text = memDup(*text, secret ? secret->len : strlen(*text));
    }
    bioSubmitTask(BIO_READ, runReload, finishReload, job);
}

/* ------------------------------------------------------------------ users of certificates */

static bool logIn(session *s, slice name) {
    user *u = userFind(name);
    if (!u || !userIsOn(u)) return false;
    sessionSetAuthenticated(s, u, true);
    bool hide = engineHidesUserData();
    logVerbose("TLS: Auto-authenticated client as %.*s", hide ? 10 : (int)name.len,
               hide ? "*redacted*" : name.ptr);
    return true;
}

typedef struct uriSearch {
    session *s;
    str last; /* the last one without a user */
    bool found;
} uriSearch;

static bool tryUri(void *arg, slice uri) {
    uriSearch *search = arg;
    if (uri.len == 0 || memchr(uri.ptr, 0, uri.len)) {
        logDebug("TLS: Invalid or malformed SAN URI in certificate");
        return false;
    }
    search->found = logIn(search->s, uri);
    strClear(&search->last);
    strAppendSlice(&search->last, uri);
    return search->found;
}

static void logInByUri(client *cl) {
    uriSearch search = {.s = &cl->session};
    tlsPeerUris(&cl->conn, tryUri, &search);
    if (!search.found) {
        logVerbose("TLS: No matching user found in certificate SAN URI fields");
        if (search.last.len) userLogCertificate(&cl->session, strSlice(&search.last));
    }
    strFree(&search.last);
}

static void logInByCommonName(client *cl) {
    str name = STR_EMPTY;
    if (!tlsPeerCommonName(&cl->conn, &name)) {
        logDebug("TLS: Failed to extract CN in certificate subject");
    } else if (!logIn(&cl->session, strSlice(&name))) {
        bool hide = engineHidesUserData();
        logVerbose("TLS: No matching user found for certificate CN %s%.*s%s", hide ? "" : "\"",
                   hide ? 10 : (int)name.len, hide ? "*redacted*" : name.ptr, hide ? "" : "\"");
        userLogCertificate(&cl->session, strSlice(&name));
    }
    strFree(&name);
}

static void logInByCertificate(client *cl) {
    if (netConf.tls_auth_clients_user == TLS_USER_OFF || !tlsPeerIsVerified(&cl->conn)) return;
    if (netConf.tls_auth_clients_user == TLS_USER_CN) {
        logInByCommonName(cl);
    } else {
        logInByUri(cl);
    }
}

/* ------------------------------------------------------------------ handshakes */

/* Port scans must not fill the log. */
static void logFailure(client *cl) {
    if (engineHot.now_ms - tls.failures_since_ms >= 1000) {
        if (tls.failures > FAILURES_LOGGED_PER_S)
            logWarning("%d more TLS handshakes have failed", tls.failures - FAILURES_LOGGED_PER_S);
        tls.failures = 0;
        tls.failures_since_ms = engineHot.now_ms;
    }
    if (tls.failures++ >= FAILURES_LOGGED_PER_S) return;
    char peer[NET_ADDR_TEXT_MAX], local[NET_ADDR_TEXT_MAX];
    bool has_peer = netPeerText(cl->conn.fd, peer), has_local = netLocalText(cl->conn.fd, local);
    logWarning("Error accepting a client connection: %s (addr=%s laddr=%s)",
               connErrorText(&cl->conn), has_peer ? peer : "", has_local ? local : "");
}

static void handshaken(conn *c) {
    client *cl = CONTAINER_OF(c, client, conn);
    if (c->state != CONN_OPEN) {
        netStats()->failed_handshakes++;
        logFailure(cl);
        clientCloseLater(cl);
        return;
    }
    logInByCertificate(cl);
    if (!clientAdmit(cl)) return;
    if (readerStart(cl) != OK) {
        clientCloseLater(cl);
        return;
    }
    if (c->type->has_pending(c)) connNotePending(c);
}

status netTlsAccept(conn *c) {
    hotCheck(threadIsMain());
    static const tlsVerify verify[] = {[TLS_AUTH_NO] = TLS_VERIFY_NONE,
                                       [TLS_AUTH_YES] = TLS_VERIFY_REQUIRED,
                                       [TLS_AUTH_OPTIONAL] = TLS_VERIFY_OPTIONAL};
    if (!tls.context) return ERR_DENIED;
    return tlsAccept(c, tls.context, verify[netConf.tls_auth_clients]);
}

status netTlsAcceptNode(conn *c) {
    hotCheck(threadIsMain());
    if (!tls.context) return ERR_DENIED;
    return tlsAccept(c, tls.context, TLS_VERIFY_REQUIRED);
}

bool netTlsForCluster(void) { return netConf.tls_cluster; }
bool netTlsForReplication(void) { return netConf.tls_replication; }
int netReplicationPort(void) { return netConf.tls_replication ? netConf.tls_port : netConf.port; }

status netTlsConnect(conn *c, const char *host) {
    if (!tls.context) return ERR_DENIED;
    return tlsConnect(c, tls.context, host, netConf.tls_check_hostname);
}

status netTlsBegin(client *cl) {
    hotCheck(threadIsMain());
    status st = netTlsAccept(&cl->conn);
    if (st != OK) return st;
    connOnHandshake(&cl->conn, ioThreadsHandshake);
    return connOnRead(&cl->conn, handshaken);
}

/* ------------------------------------------------------------------ INFO */

void netTlsPrintInfo(str *out) {
    hotCheck(threadIsMain());
    static const char *const names[] = {[TLS_SERVER] = "server",
                                        [TLS_SERVER_ALT] = "server_alt",
                                        [TLS_CLIENT] = "client",
                                        [TLS_CA] = "ca"};
    int64_t now_s = clockWallMs() / 1000;
    for (int role = TLS_SERVER; role <= TLS_CA; role++) {
        const tlsCertificate *x =
            tlsContextCertificate(netTlsIsOn() ? tls.context : NULL, (tlsRole)role);
        int64_t left_s = x->expires_at_s > now_s ? x->expires_at_s - now_s : 0;
        strAppendFormat(out, "tls_%s_cert_serial:%s\r\ntls_%s_cert_expires_in_seconds:%lld\r\n",
                        names[role], x->serial, names[role], (long long)left_s);
    }
}
