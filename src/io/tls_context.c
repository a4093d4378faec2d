/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TLS contexts (tls.h): the directives' files and words to OpenSSL's SSL_CTX, one for accepted
 * connections and one for outgoing ones. */
#ifdef HAVE_TLS

#include <dirent.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509err.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "base/base.h"
#include "io/file.h"
#include "io/tls_priv.h"

enum { FILE_MAX_BYTES = 16 * 1024 * 1024, HEX_DIGITS_MAX = 63 };

bool tlsIsSupported(void) { return true; }

void tlsErrorText(char *dst, size_t cap) {
    unsigned long code = ERR_get_error();
    ERR_error_string_n(code, dst, cap);
    ERR_clear_error();
}

static status failed(reason *why, const char *what) {
    char text[256];
    tlsErrorText(text, sizeof(text));
    return reasonSet(why, ERR_DENIED, "%s: %s", what, text);
}

static status failedFile(reason *why, const char *what, const char *path) {
    char text[256];
    tlsErrorText(text, sizeof(text));
    return reasonSet(why, ERR_DENIED, "%s: %s: %s", what, path, text);
}

/* ------------------------------------------------------------------ protocols and ciphers */

/* Reads the words of tls-protocols to the options that forbid the others. */
static status parseProtocols(const char *words, uint64_t *forbidden, reason *why) {
    static const struct {
        const char *word;
        uint64_t option;
        bool by_default;
    } known[] = {{"TLSv1", SSL_OP_NO_TLSv1, false},
                 {"TLSv1.1", SSL_OP_NO_TLSv1_1, false},
                 {"TLSv1.2", SSL_OP_NO_TLSv1_2, true},
                 {"TLSv1.3", SSL_OP_NO_TLSv1_3, true}};
    bool allowed[COUNT_OF(known)] = {false};
    const char *p = words;
    bool any = false;
    while (*p) {
        size_t len = strcspn(p, " "), i = 0;
        while (i < COUNT_OF(known) &&
               (strlen(known[i].word) != len || strncasecmp(known[i].word, p, len) != 0))
            i++;
        if (len > 0 && i == COUNT_OF(known))
            return reasonSet(why, ERR_SYNTAX,
                             "Invalid tls-protocols specified. Use a combination of 'TLSv1', "
                             "'TLSv1.1', 'TLSv1.2' and 'TLSv1.3'.");
        if (len > 0) allowed[i] = any = true;
        p += len;
        while (*p == ' ') p++;
    }
    *forbidden = 0;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (any ? !allowed[i] : !known[i].by_default) *forbidden |= known[i].option;
    return OK;
}

static status setCiphers(SSL_CTX *ctx, const tlsSettings *s, reason *why) {
    if (s->ciphers[0] && !SSL_CTX_set_cipher_list(ctx, s->ciphers))
        return reasonSet(why, ERR_DENIED, "Failed to configure ciphers: %s", s->ciphers);
    if (s->ciphersuites[0] && !SSL_CTX_set_ciphersuites(ctx, s->ciphersuites))
        return reasonSet(why, ERR_DENIED, "Failed to configure ciphersuites: %s", s->ciphersuites);
    return OK;
}

/* ------------------------------------------------------------------ certificates */

/* Gives OpenSSL the pass phrase; it would ask on the terminal otherwise. */
static int givePassPhrase(char *buf, int size, int writing, void *arg) {
    const slice *pass = arg;
    (void)writing;
    if (!pass->len || (size_t)size < pass->len) return -1;
    memcpy(buf, pass->ptr, pass->len);
    return (int)pass->len;
}

/* The file of a key was refused: says in words if it is that of another certificate, or if it needs
 * a pass phrase. */
static status failedKey(reason *why, const char *cert, const char *key, bool has_pass) {
    unsigned long code = ERR_peek_error();
    bool is_other =
        ERR_GET_LIB(code) == ERR_LIB_X509 && ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH;
    bool needs_pass = !has_pass && ERR_GET_LIB(code) == ERR_LIB_CRYPTO &&
                      ERR_GET_REASON(code) == ERR_R_INTERRUPTED_OR_CANCELLED;
    status st = failedFile(why, "Failed to load private key", key);
    reason first = *why;
    if (needs_pass)
        return reasonSet(why, st, "%s (the key has a pass phrase, and none is set)", first.text);
    if (!is_other) return st;
    return reasonSet(why, st, "%s (the key does not belong to the certificate %s)", first.text,
                     cert);
}

static status loadPair(SSL_CTX *ctx, const char *cert, const char *key, const slice *pass,
                       reason *why) {
    SSL_CTX_set_default_passwd_cb(ctx, givePassPhrase);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, (void *)(uintptr_t)pass);
    status st = OK;
    if (SSL_CTX_use_certificate_chain_file(ctx, cert) <= 0)
        st = failedFile(why, "Failed to load certificate", cert);
    else {
        /* A key of another type than the certificate would become that of another pair. */
        const X509 *loaded = SSL_CTX_get0_certificate(ctx);
        if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) <= 0)
            st = failedKey(why, cert, key, pass->len > 0);
        else if (SSL_CTX_get0_certificate(ctx) != loaded)
            st = reasonSet(why, ERR_DENIED,
                           "Failed to load private key: %s: the key does not belong to the "
                           "certificate %s",
                           key, cert);
    }
    SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
    return st;
}

static status loadCa(SSL_CTX *ctx, const tlsSettings *s, reason *why) {
    if (!s->ca_cert_file[0] && !s->ca_cert_dir[0]) return OK;
    if (SSL_CTX_load_verify_locations(ctx, s->ca_cert_file[0] ? s->ca_cert_file : NULL,
                                      s->ca_cert_dir[0] ? s->ca_cert_dir : NULL))
        return OK;
    return failed(why, "Failed to configure CA certificate(s) file/directory");
}

static status loadDhParams(SSL_CTX *ctx, const char *path, reason *why) {
    if (!path[0]) {
        SSL_CTX_set_dh_auto(ctx, 1);
        return OK;
    }
    BIO *file = BIO_new_file(path, "r");
    if (!file) {
        ERR_clear_error();
        return reasonSet(why, ERR_DENIED, "Failed to load %s: %s", path, strerror(errno));
    }
    EVP_PKEY *params = PEM_read_bio_Parameters(file, NULL);
    BIO_free(file);
    if (params && EVP_PKEY_is_a(params, "DH") && SSL_CTX_set0_tmp_dh_pkey(ctx, params)) return OK;
    EVP_PKEY_free(params);
    ERR_clear_error();
    return reasonSet(why, ERR_DENIED, "%s: failed to read DH params.", path);
}

static void describe(const X509 *x, tlsCertificate *out) {
    struct tm tm;
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x), NULL);
    char *hex = number ? BN_bn2hex(number) : NULL;
    snprintf(out->serial, sizeof(out->serial), "%.*s", HEX_DIGITS_MAX, hex ? hex : "none");
    OPENSSL_free(hex);
    BN_free(number);
    out->expires_at_s = ASN1_TIME_to_tm(X509_get0_notAfter(x), &tm) ? (int64_t)timegm(&tm) : 0;
}

/* Describes the certificate of a file that expires first, if it expires before `out`. */
static void describeFirstExpiring(const char *path, tlsCertificate *out) {
    BIO *file = BIO_new_file(path, "r");
    X509 *x;
    while (file && (x = PEM_read_bio_X509(file, NULL, NULL, NULL))) {
        tlsCertificate found;
        describe(x, &found);
        X509_free(x);
        if (out->serial[0] == 'n' || found.expires_at_s < out->expires_at_s) *out = found;
    }
    BIO_free(file);
    ERR_clear_error();
}

/* Calls `visit` for each regular file of the folder. */
static void eachFile(const char *folder, void (*visit)(const char *path, void *arg), void *arg) {
    DIR *dir = folder[0] ? opendir(folder) : NULL;
    if (!dir) return;
    for (struct dirent *e; (e = readdir(dir));) {
        str path = STR_EMPTY;
        struct stat info;
        strAppendFormat(&path, "%s/%s", folder, e->d_name);
        if (stat(strText(&path), &info) == 0 && S_ISREG(info.st_mode)) visit(strText(&path), arg);
        strFree(&path);
    }
    closedir(dir);
}

static void describeCaFile(const char *path, void *arg) { describeFirstExpiring(path, arg); }

/* Describes the certificates that are not those of the server. */
static void describeOthers(tlsContext *t, const tlsSettings *s) {
    if (s->client_cert_file[0] && s->client_key_file[0])
        describe(SSL_CTX_get0_certificate(t->client), &t->certificates[TLS_CLIENT]);
    if (s->ca_cert_file[0]) describeFirstExpiring(s->ca_cert_file, &t->certificates[TLS_CA]);
    eachFile(s->ca_cert_dir, describeCaFile, &t->certificates[TLS_CA]);
}

/* ------------------------------------------------------------------ contexts */

/* What both contexts have in common. */
static SSL_CTX *newContext(const SSL_METHOD *method, const tlsSettings *s, uint64_t forbidden,
                           reason *why) {
    SSL_CTX *ctx = SSL_CTX_new(method);
    if (!ctx) {
        (void)failed(why, "Failed to create a TLS context");
        return NULL;
    }
    SSL_CTX_set_options(ctx, forbidden | SSL_OP_NO_SSLv3 | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_NO_RENEGOTIATION | SSL_OP_SINGLE_DH_USE |
                                 SSL_OP_ENABLE_KTLS);
    /* The writer retries with the same bytes at another address; idle connections hold no
     * buffers. */
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    status st = setCiphers(ctx, s, why);
    if (st == OK) st = loadCa(ctx, s, why);
    if (st == OK) return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

static void setSessions(SSL_CTX *ctx, const tlsSettings *s) {
    static const unsigned char id[] = "valkey";
    SSL_CTX_set_session_id_context(ctx, id, sizeof(id) - 1);
    if (s->session_caching) {
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_SERVER);
        SSL_CTX_sess_set_cache_size(ctx, s->session_cache_size);
        SSL_CTX_set_timeout(ctx, s->session_cache_timeout_s);
        return;
    }
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(ctx, 0);
}

static const char *keyTypeOf(const X509 *x) {
    const EVP_PKEY *key = X509_get0_pubkey(x);
    const char *name = key ? EVP_PKEY_get0_type_name(key) : NULL;
    return name ? name : "";
}

/* Loads the second pair of the server, if there is one. With keys of the same type it would replace
 * the first. */
static status loadAlternative(tlsContext *t, const tlsSettings *s, reason *why) {
    if (!s->alt_cert_file[0]) return OK;
    const char *first = keyTypeOf(SSL_CTX_get0_certificate(t->server));
    status st = loadPair(t->server, s->alt_cert_file, s->alt_key_file, &s->alt_key_pass, why);
    if (st != OK) return st;
    const X509 *second = SSL_CTX_get0_certificate(t->server);
    if (strcmp(first, keyTypeOf(second)) == 0)
        return reasonSet(why, ERR_DENIED,
                         "tls-alt-cert-file %s has a key of the same type (%s) as tls-cert-file",
                         s->alt_cert_file, keyTypeOf(second));
    describe(second, &t->certificates[TLS_SERVER_ALT]);
    return OK;
}

static status buildServer(tlsContext *t, const tlsSettings *s, uint64_t forbidden, reason *why) {
    t->server = newContext(TLS_server_method(), s, forbidden, why);
    if (!t->server) return ERR_DENIED;
    if (s->prefer_server_ciphers) SSL_CTX_set_options(t->server, SSL_OP_CIPHER_SERVER_PREFERENCE);
    setSessions(t->server, s);
    status st = loadPair(t->server, s->cert_file, s->key_file, &s->key_pass, why);
    if (st != OK) return st;
    describe(SSL_CTX_get0_certificate(t->server), &t->certificates[TLS_SERVER]);
    st = loadAlternative(t, s, why);
    return st == OK ? loadDhParams(t->server, s->dh_params_file, why) : st;
}

static status buildClient(tlsContext *t, const tlsSettings *s, uint64_t forbidden, reason *why) {
    t->client = newContext(TLS_client_method(), s, forbidden, why);
    if (!t->client) return ERR_DENIED;
    SSL_CTX_set_verify(t->client, SSL_VERIFY_PEER, NULL);
    bool own = s->client_cert_file[0] && s->client_key_file[0];
    return own ? loadPair(t->client, s->client_cert_file, s->client_key_file, &s->client_key_pass,
                          why)
               : loadPair(t->client, s->cert_file, s->key_file, &s->key_pass, why);
}

static status checkSettings(const tlsSettings *s, reason *why) {
    if (!s->cert_file[0]) return reasonSet(why, ERR_DENIED, "No tls-cert-file configured!");
    if (!s->key_file[0]) return reasonSet(why, ERR_DENIED, "No tls-key-file configured!");
    if (s->alt_cert_file[0] && !s->alt_key_file[0])
        return reasonSet(why, ERR_DENIED, "tls-alt-cert-file needs tls-alt-key-file");
    if (s->alt_key_file[0] && !s->alt_cert_file[0])
        return reasonSet(why, ERR_DENIED, "tls-alt-key-file needs tls-alt-cert-file");
    if (s->needs_ca && !s->ca_cert_file[0] && !s->ca_cert_dir[0])
        return reasonSet(why, ERR_DENIED,
                         "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when "
                         "tls-cluster, tls-replication or tls-auth-clients are enabled!");
    return OK;
}

tlsContext *tlsContextNew(const tlsSettings *s, reason *why) {
    uint64_t forbidden = 0;
    tlsContext *t = memCalloc(1, sizeof(*t));
    for (int role = 0; role <= TLS_CA; role++)
        t->certificates[role] = (tlsCertificate){.serial = "none"};
    ERR_clear_error();
    status st = checkSettings(s, why);
    if (st == OK) st = parseProtocols(s->protocols, &forbidden, why);
    if (st == OK) st = buildServer(t, s, forbidden, why);
    if (st == OK) st = buildClient(t, s, forbidden, why);
    if (st == OK) {
        describeOthers(t, s);
        return t;
    }
    tlsContextFree(t);
    return NULL;
}

void tlsContextFree(tlsContext *t) {
    if (!t) return;
    SSL_CTX_free(t->server);
    SSL_CTX_free(t->client);
    memFree(t);
}

const tlsCertificate *tlsContextCertificate(const tlsContext *t, tlsRole role) {
    static const tlsCertificate none = {.serial = "none"};
    return t ? &t->certificates[role] : &none;
}

/* ------------------------------------------------------------------ fingerprint */

typedef struct hashing {
    EVP_MD_CTX *md;
    status st;
    reason *why;
} hashing;

static void hashFile(const char *path, void *arg) {
    hashing *h = arg;
    str content = STR_EMPTY;
    if (!path[0] || h->st != OK) return;
    h->st = fileReadAll(path, FILE_MAX_BYTES, &content, h->why);
    EVP_DigestUpdate(h->md, path, strlen(path) + 1);
    EVP_DigestUpdate(h->md, content.ptr, content.len);
    strFree(&content);
}

/* Files of the CA folder that vanish meanwhile do not matter. */
static void hashCaFile(const char *path, void *arg) {
    hashing *h = arg;
    status st = h->st;
    hashFile(path, arg);
    h->st = st;
}

status tlsFingerprint(const tlsSettings *s, uint8_t out[TLS_FINGERPRINT_SIZE], reason *why) {
    hashing h = {.md = EVP_MD_CTX_new(), .st = OK, .why = why};
    if (!h.md || !EVP_DigestInit_ex(h.md, EVP_sha256(), NULL)) {
        EVP_MD_CTX_free(h.md);
        return failed(why, "Failed to compute a fingerprint");
    }
    const char *files[] = {s->cert_file,    s->key_file,         s->alt_cert_file,
                           s->alt_key_file, s->client_cert_file, s->client_key_file,
                           s->ca_cert_file};
    for (size_t i = 0; i < COUNT_OF(files); i++) hashFile(files[i], &h);
    eachFile(s->ca_cert_dir, hashCaFile, &h);
    EVP_DigestFinal_ex(h.md, out, NULL);
    EVP_MD_CTX_free(h.md);
    return h.st;
}

#endif
