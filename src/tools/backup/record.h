/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Descriptions of a backup as files: an object of JSON whose last member is the SHA-256 of the text
 * before it, so that a changed description is found. A record written here is
 *
 *   {
 *     "format": 1,
 *     "kind": "segment",
 *     "marks": [[1790000000123,4711],[1790000001125,4900]],
 *     "description_sha256": "..."
 *   }
 *
 * with a member per line. Files may be indented in another way; the checksum then differs, so only
 * records as they were written are accepted. One thread. */
#ifndef TOOLS_BACKUP_RECORD_H
#define TOOLS_BACKUP_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

enum { RECORD_FORMAT = 1 };

/* Appends bytes as a string of JSON, in quotes. Bytes that are no ASCII are written as they are. */
void recordAppendString(str *out, slice text);

/* A record being written. */
void recordBegin(str *out, const char *kind);
void recordText(str *out, const char *name, slice value);
void recordNumber(str *out, const char *name, int64_t value);
/* Begins a member whose value the caller appends. */
void recordMember(str *out, const char *name);
void recordEnd(str *out);
/* recordEnd(), and replaces the file, with fsync. */
status recordSave(str *record, const char *path, reason *why) MUST_USE;

/* Reads a record of this kind and verifies its checksum. The caller frees `out`, also after a
 * failure. */
status recordLoad(const char *path, const char *kind, str *out, reason *why) MUST_USE;
/* The text of a member's value, in quotes if it is a string; NULL if it is missing. */
slice recordRaw(const str *record, const char *name);
/* The value of a text without its quotes; appends nothing if it is missing. */
void recordReadText(const str *record, const char *name, str *out);
/* -1: missing or no number. */
int64_t recordReadNumber(const str *record, const char *name);

#endif
