/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The manifest of a multi-part append only file: the list of its files. A base file has the dataset
 * at some time, the incremental files have the commands since then, in order; history files are no
 * longer needed and will be deleted. One thread at a time. */
#ifndef FORMAT_AOF_MANIFEST_H
#define FORMAT_AOF_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"

/* Maximal size of a line in bytes, with its line break. */
enum { AOF_MANIFEST_LINE_MAX = 1024 };

/* The value is the letter in the manifest. */
typedef enum aofFileType { AOF_BASE = 'b', AOF_HISTORY = 'h', AOF_INCR = 'i' } aofFileType;

typedef struct aofFile {
    char *name; /* without a path; owned */
    int64_t seq;
    aofFileType type;
} aofFile;

/* In the order of the manifest: the base file (at most one), history files, incremental files by
 * ascending seq. */
typedef struct aofManifest {
    aofFile *files;
    int count, cap;
    int64_t base_seq, incr_seq; /* of the current base and the last incremental file; 0: none yet */
} aofManifest;

/* Where a manifest is invalid. */
typedef struct aofManifestError {
    int line; /* from 1; 0: not in a line */
    str text; /* the line, without its line break; the caller frees it */
    reason why;
} aofManifestError;

/* Parses the content of a manifest. On success `*out` is the caller's, to be freed with
 * aofManifestClear(); a manifest without files is valid, an empty one is not. On failure ERR_SYNTAX
 * with `*error` filled. */
status aofManifestParse(slice content, aofManifest *out, aofManifestError *error) MUST_USE;
/* Appends the manifest's content. */
void aofManifestPrint(const aofManifest *m, str *out);
void aofManifestClear(aofManifest *m);
/* A copy, which the caller clears. */
aofManifest aofManifestCopy(const aofManifest *m);

/* The base file; NULL if there is none. The pointer is valid until the next change. */
const aofFile *aofManifestBase(const aofManifest *m);
/* Number of files of a type, and the last one in the order of the manifest (NULL: none). */
int aofManifestCount(const aofManifest *m, aofFileType type);
const aofFile *aofManifestLast(const aofManifest *m, aofFileType type);
/* Adds a file. A base file must not exist yet; the seq of an incremental file must exceed those
 * before. Copies `name`. */
void aofManifestAdd(aofManifest *m, aofFileType type, const char *name, int64_t seq);
/* Makes the base file, and the incremental files but the last `keep`, history files. */
void aofManifestRetire(aofManifest *m, int keep);
/* Removes the file at this index. */
void aofManifestRemove(aofManifest *m, int index);

#endif
