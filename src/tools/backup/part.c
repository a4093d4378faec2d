/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parts of a backup (part.h). Invariant: a part has its name only when it is complete and on
 * disk. */
#define _GNU_SOURCE /* pipe2() */
#include "tools/backup/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "io/append_file.h"
#include "io/file.h"
#include "tools/backup/child.h"
#include "tools/backup/record.h"

enum { STEP_BYTES = 128 * 1024 };

/* ------------------------------------------------------------------ descriptions */

void partInfoClear(partInfo *info) { strFree(&info->file); }

void partInfoWrite(str *record, const partInfo *info) {
    recordText(record, "file", strSlice(&info->file));
    recordNumber(record, "bytes", (int64_t)info->bytes);
    recordNumber(record, "plain_bytes", (int64_t)info->plain_bytes);
    recordText(record, "sha256", sliceOf(info->digest));
}

status partInfoRead(const str *record, partInfo *out, reason *why) {
    str digest = STR_EMPTY;
    strClear(&out->file);
    recordReadText(record, "file", &out->file);
    recordReadText(record, "sha256", &digest);
    int64_t bytes = recordReadNumber(record, "bytes");
    int64_t plain = recordReadNumber(record, "plain_bytes");
    bool good = out->file.len && !strchr(out->file.ptr, '/') && digest.len == SHA256_TEXT &&
                bytes >= 0 && plain >= 0;
    out->bytes = (uint64_t)bytes;
    out->plain_bytes = (uint64_t)plain;
    if (good) memcpy(out->digest, digest.ptr, SHA256_TEXT + 1);
    strFree(&digest);
    return good ? OK : reasonSet(why, ERR_SYNTAX, "the description lacks its file");
}

/* ------------------------------------------------------------------ ciphers */

static bool isForAge(const char *recipient) {
    return !strncmp(recipient, "age1", 4) || !strncmp(recipient, "ssh-", 4);
}

static status encryptInto(partWriter *w, const char *recipient, reason *why) {
    const char *age[] = {"age", "-r", recipient, NULL};
    const char *gpg[] = {"gpg",       "--batch",    "--yes",       "--trust-model", "always",
                         "--encrypt", "--no-armor", "--recipient", recipient,       NULL};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) return reasonSetErrno(why, "cannot make a pipe");
    status st = childStart(isForAge(recipient) ? age : gpg, ends[0], w->fd, false, &w->cipher, why);
    close(ends[0]);
    if (st == OK) {
        w->into = ends[1];
    } else {
        close(ends[1]);
    }
    return st;
}

/* ------------------------------------------------------------------ writing */

static void clearWriter(partWriter *w) {
    if (w->into >= 0 && w->into != w->fd) close(w->into);
    if (w->fd >= 0 && !w->to_stdout) close(w->fd);
    w->into = w->fd = -1;
    if (w->cipher) childForget(&w->cipher);
    sha256Free(w->hash);
    compressorFree(w->packer);
    strFree(&w->packed);
    w->hash = NULL;
    w->packer = NULL;
    strFree(&w->file);
    strFree(&w->path);
    strFree(&w->temporary);
}

void partWriterAbort(partWriter *w) {
    if (w->temporary.len) (void)unlink(w->temporary.ptr); /* of no use, if it exists */
    clearWriter(w);
}

status partWriterOpen(partWriter *w, const char *folder, const char *name, const partForm *form,
                      reason *why) {
    *w = (partWriter){.fd = -1, .into = -1, .to_stdout = !strcmp(folder, "-")};
    status st = OK;
    strAppendText(&w->file, name);
    if (form->compress) strAppendText(&w->file, ".zst");
    if (form->encrypt_to) strAppendText(&w->file, isForAge(form->encrypt_to) ? ".age" : ".gpg");
    if (w->to_stdout) {
        w->fd = STDOUT_FILENO;
    } else {
        strAppendFormat(&w->path, "%s/%s", folder, strText(&w->file));
        strAppendFormat(&w->temporary, "%s.tmp", w->path.ptr);
        w->fd = open(w->temporary.ptr, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
        if (w->fd < 0) st = reasonSetErrno(why, "cannot create %s", w->temporary.ptr);
    }
    w->into = w->fd;
    const compressChecksums sums = {.content = true};
    if (st == OK && form->compress) st = compressorNew(COMPRESS_ZSTD, sums, &w->packer, why);
    if (st == OK && form->encrypt_to) st = encryptInto(w, form->encrypt_to, why);
    if (st == OK && !w->cipher) w->hash = sha256New();
    if (st != OK) partWriterAbort(w);
    return st;
}

/* The cipher reads no more: says why, if it has failed. */
static status cipherEnded(partWriter *w, reason *why) {
    close(w->into);
    w->into = w->fd;
    status st = childAwait(&w->cipher, "encryption", why);
    return st != OK ? st : reasonSet(why, ERR_IO, "the program for encryption ended too early");
}

static status writeStored(partWriter *w, const char *bytes, size_t len, reason *why) {
    if (w->hash) sha256Add(w->hash, bytes, len);
    w->bytes += len;
    while (len > 0) {
        ssize_t count = write(w->into, bytes, len);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && w->cipher && errno == EPIPE) return cipherEnded(w, why);
        if (count < 0)
            return reasonSetErrno(why, "cannot write %s",
                                  w->to_stdout ? "standard output" : w->temporary.ptr);
        bytes += count;
        len -= (size_t)count;
    }
    return OK;
}

static status writePacked(partWriter *w, reason *why) {
    status st = w->packed.len ? writeStored(w, w->packed.ptr, w->packed.len, why) : OK;
    strClear(&w->packed);
    return st;
}

static status pack(partWriter *w, const char *bytes, size_t len, bool end, reason *why) {
    status st = OK;
    for (size_t n; len && st == OK; bytes += n, len -= n) {
        n = sizeMin(len, STEP_BYTES);
        st = compressorAdd(w->packer, bytes, n, &w->packed, why);
        if (st == OK) st = writePacked(w, why);
    }
    if (st == OK && end) st = compressorEnd(w->packer, &w->packed, why);
    return st == OK ? writePacked(w, why) : st;
}

status partWriterAdd(partWriter *w, const void *bytes, size_t len, reason *why) {
    w->plain_bytes += len;
    return w->packer ? pack(w, bytes, len, false, why) : writeStored(w, bytes, len, why);
}

/* Flushes the file, and finds size and digest of one that the cipher has written. */
static status settle(partWriter *w, partInfo *out, reason *why) {
    if (w->to_stdout) return OK;
    if (fileSync(w->fd) < 0) return reasonSetErrno(why, "cannot flush %s", w->temporary.ptr);
    if (w->hash) {
        sha256End(w->hash, out->digest);
        return OK;
    }
    w->bytes = (uint64_t)fileSize(w->temporary.ptr);
    return sha256OfFile(w->temporary.ptr, out->digest, why);
}

status partWriterEnd(partWriter *w, partInfo *out, reason *why) {
    *out = (partInfo){.plain_bytes = w->plain_bytes};
    status st = w->packer ? pack(w, NULL, 0, true, why) : OK;
    if (st == OK && w->cipher) {
        close(w->into);
        w->into = w->fd;
        st = childAwait(&w->cipher, "encryption", why);
    }
    if (st == OK) st = settle(w, out, why);
    if (st == OK && !w->to_stdout && rename(w->temporary.ptr, w->path.ptr) < 0)
        st = reasonSetErrno(why, "cannot rename %s", w->temporary.ptr);
    if (st == OK && !w->to_stdout) {
        strClear(&w->temporary);
        st = fileSyncFolder(w->path.ptr, why);
    }
    if (st == OK) {
        out->bytes = w->bytes;
        strAppendSlice(&out->file, strSlice(&w->file));
    }
    partWriterAbort(w);
    return st;
}

/* ------------------------------------------------------------------ reading */

status partVerify(const char *folder, const partInfo *info, reason *why) {
    str path = STR_EMPTY;
    char digest[SHA256_TEXT + 1];
    strAppendFormat(&path, "%s/%s", folder, strText(&info->file));
    int64_t size = fileSize(path.ptr);
    status st = OK;
    if (size < 0) {
        st = reasonSetErrno(why, "%s", path.ptr);
    } else if ((uint64_t)size != info->bytes) {
        st = reasonSet(why, ERR_SYNTAX, "%s: has %lld bytes, %llu were written", path.ptr,
                       (long long)size, (unsigned long long)info->bytes);
    } else {
        st = sha256OfFile(path.ptr, digest, why);
        if (st == OK && strcmp(digest, info->digest) != 0)
            st = reasonSet(why, ERR_SYNTAX, "%s: damaged: its SHA-256 differs", path.ptr);
    }
    strFree(&path);
    return st;
}

static bool hasEnding(const char *text, const char *ending) {
    size_t len = strlen(text), more = strlen(ending);
    return len > more && !strcmp(text + len - more, ending);
}

static status decrypt(partReader *r, bool by_age, const partForm *form, reason *why) {
    const char *age[] = {"age", "-d", NULL}, *gpg[] = {"gpg", "--batch", "--decrypt", NULL};
    const char *own[] = {"/bin/sh", "-c", form->decrypt_with, NULL};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) return reasonSetErrno(why, "cannot make a pipe");
    status st = childStart(form->decrypt_with ? own
                           : by_age           ? age
                                              : gpg,
                           r->fd, ends[1], false, &r->cipher, why);
    close(ends[1]);
    close(r->fd);
    r->fd = ends[0];
    return st;
}

/* Reads stored bytes that are decrypted; 0 at the end. */
static status readStored(partReader *r, void *dst, size_t cap, size_t *len, reason *why) {
    ssize_t count;
    while ((count = read(r->fd, dst, cap)) < 0 && errno == EINTR) {}
    if (count < 0) return reasonSetErrno(why, "cannot read a part");
    *len = (size_t)count;
    if (count > 0 || !r->cipher) return OK;
    return childAwait(&r->cipher, "decryption", why);
}

static status readPlain(rdbSource *source, void *dst, size_t cap, size_t *len, reason *why) {
    partReader *r = (partReader *)source;
    if (!r->unpacker) return readStored(r, dst, cap, len, why);
    *len = 0;
    while (*len == 0 && !r->ended) {
        if (r->at == r->end) {
            r->at = 0;
            status st = readStored(r, r->buffer, STEP_BYTES, &r->end, why);
            if (st != OK) return st;
            if (!r->end) return reasonSet(why, ERR_SYNTAX, "a compressed part ends too early");
        }
        size_t taken = r->end - r->at, made = cap;
        status st =
            decompressorStep(r->unpacker, r->buffer + r->at, &taken, dst, &made, &r->ended, why);
        if (st != OK) return st;
        r->at += taken;
        *len = made;
    }
    return OK;
}

status partReaderOpen(partReader *r, const char *folder, const char *file, const partForm *form,
                      reason *why) {
    *r = (partReader){.source = {.read = readPlain}, .fd = -1};
    str path = STR_EMPTY, name = STR_EMPTY;
    strAppendFormat(&path, "%s/%s", folder, file);
    strAppendText(&name, file);
    status st = OK;
    r->fd = open(path.ptr, O_RDONLY | O_CLOEXEC);
    if (r->fd < 0) st = reasonSetErrno(why, "cannot open %s", path.ptr);
    bool by_age = hasEnding(name.ptr, ".age");
    if (by_age || hasEnding(name.ptr, ".gpg")) {
        strCut(&name, name.len - 4);
        if (st == OK) st = decrypt(r, by_age, form, why);
    }
    if (st == OK && hasEnding(name.ptr, ".zst")) {
        r->buffer = memAlloc(STEP_BYTES);
        st = decompressorNew(COMPRESS_ZSTD, false, &r->unpacker, why);
    }
    strFree(&path);
    strFree(&name);
    return st;
}

void partReaderClose(partReader *r) {
    if (r->fd >= 0) close(r->fd);
    r->fd = -1;
    if (r->cipher) childForget(&r->cipher);
    if (r->unpacker) decompressorFree(r->unpacker);
    r->unpacker = NULL;
    memFree(r->buffer);
    r->buffer = NULL;
}
