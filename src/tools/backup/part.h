/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A part of a backup: a file that may be compressed and then encrypted by another program, with the
 * SHA-256 of the file as it is stored. The name tells how it is stored: dump.rdb.zst.age. One
 * thread per instance. */
#ifndef TOOLS_BACKUP_PART_H
#define TOOLS_BACKUP_PART_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "format/rdb_reader.h"
#include "io/compress.h"
#include "tools/backup/sha256.h"

/* How parts are stored. */
typedef struct partForm {
    bool compress;
    const char *encrypt_to; /* for age if it begins with "age1" or "ssh-", else for gpg; or NULL */
    const char *decrypt_with; /* a command that reads standard input; NULL: by the name */
} partForm;

/* What a description tells of a part. */
typedef struct partInfo {
    str file; /* without its folder */
    uint64_t bytes, plain_bytes;
    char digest[SHA256_TEXT + 1];
} partInfo;

void partInfoClear(partInfo *info);
void partInfoWrite(str *record, const partInfo *info);
status partInfoRead(const str *record, partInfo *out, reason *why) MUST_USE;

typedef struct partWriter {
    str file, path, temporary;
    int fd;         /* of the file; -1 if the cipher has it alone */
    int into;       /* where bytes go: the file, or a pipe to the cipher */
    pid_t cipher;   /* 0: none */
    bool to_stdout; /* no file, and the digest is not known */
    sha256 *hash;   /* of a file that is not encrypted */
    compressor *packer;
    str packed; /* by it, and not written */
    uint64_t bytes, plain_bytes;
} partWriter;

/* Begins a file in a folder; `folder` "-" means standard output. */
status partWriterOpen(partWriter *w, const char *folder, const char *name, const partForm *form,
                      reason *why) MUST_USE;
status partWriterAdd(partWriter *w, const void *bytes, size_t len, reason *why) MUST_USE;
/* Completes the file, flushes it to disk and gives it its name. After a failure it is removed. */
status partWriterEnd(partWriter *w, partInfo *out, reason *why) MUST_USE;
/* Removes what was written. No effect after partWriterEnd(). */
void partWriterAbort(partWriter *w);

/* Compares the size and the SHA-256 of a stored file. */
status partVerify(const char *folder, const partInfo *info, reason *why) MUST_USE;

/* The plain bytes of a part. */
typedef struct partReader {
    rdbSource source;
    int fd;       /* the file, or the output of the cipher */
    pid_t cipher; /* 0: none */
    decompressor *unpacker;
    char *buffer; /* of the unpacker */
    size_t at, end;
    bool ended;
} partReader;

/* Opens a file by its name, whose endings tell how it is stored. */
status partReaderOpen(partReader *r, const char *folder, const char *file, const partForm *form,
                      reason *why) MUST_USE;
/* Accepts a reader that failed to open. */
void partReaderClose(partReader *r);

#endif
