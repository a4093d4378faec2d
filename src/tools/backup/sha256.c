/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHA-256 (sha256.h) by libcrypto, which all builds are linked with. */
#include "tools/backup/sha256.h"

#include <openssl/evp.h>

#include "base/base.h"
#include "io/file_stream.h"

enum { FILE_STEP_BYTES = 256 * 1024, DIGEST_BYTES = SHA256_TEXT / 2 };

struct sha256 {
    EVP_MD_CTX *ctx;
};

sha256 *sha256New(void) {
    sha256 *s = memNew(sha256);
    s->ctx = EVP_MD_CTX_new();
    check(s->ctx);
    check(EVP_DigestInit_ex(s->ctx, EVP_sha256(), NULL) == 1);
    return s;
}

void sha256Free(sha256 *s) {
    if (!s) return;
    EVP_MD_CTX_free(s->ctx);
    memFree(s);
}

void sha256Add(sha256 *s, const void *bytes, size_t len) {
    check(EVP_DigestUpdate(s->ctx, bytes, len) == 1);
}

void sha256End(sha256 *s, char out[SHA256_TEXT + 1]) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    check(EVP_DigestFinal_ex(s->ctx, digest, &len) == 1);
    check(len == DIGEST_BYTES);
    hexPrint(out, digest, len);
    out[SHA256_TEXT] = '\0';
}

void sha256OfSlice(slice bytes, char out[SHA256_TEXT + 1]) {
    sha256 *s = sha256New();
    sha256Add(s, bytes.ptr, bytes.len);
    sha256End(s, out);
    sha256Free(s);
}

status sha256OfFile(const char *path, char out[SHA256_TEXT + 1], reason *why) {
    fileReader file;
    status st = fileReaderOpen(&file, path, why);
    if (st != OK) return st;
    char *buffer = memAlloc(FILE_STEP_BYTES);
    sha256 *s = sha256New();
    size_t len = 0;
    do {
        st = fileReaderRead(&file, buffer, FILE_STEP_BYTES, &len, why);
        if (st == OK) sha256Add(s, buffer, len);
    } while (st == OK && len > 0);
    sha256End(s, out);
    sha256Free(s);
    memFree(buffer);
    fileReaderClose(&file);
    return st;
}
