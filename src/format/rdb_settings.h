/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Settings of the format shared by several folders: set by the owners of the directives, used by
 * the readers of values. Main thread. */
#ifndef FORMAT_RDB_SETTINGS_H
#define FORMAT_RDB_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/rdb_value.h"

/* Limits of the packed encodings; Valkey's defaults before the first call. */
void rdbSetLimits(const rdbLimits *limits);
const rdbLimits *rdbLimitsNow(void);
/* rdb-version-check relaxed: files and payloads of other servers and later versions are
 * accepted. */
void rdbSetVersionsRelaxed(bool on);
bool rdbVersionsRelaxed(void);
/* The directive outgoing-format: which servers can read the data that this server sends. */
typedef enum rdbForm {
    RDB_FORM_VALKEY, /* the version of files of this server */
    RDB_FORM_LOWEST, /* the lowest version that Valkey reads and that has the value */
    RDB_FORM_REDIS,  /* the lowest version that Redis reads and that has the value */
} rdbForm;
/* RDB_FORM_VALKEY or RDB_FORM_REDIS. */
void rdbSetOutgoingForm(rdbForm form);
rdbForm rdbOutgoingForm(void);
/* rdbcompression: of files and payloads. */
void rdbSetCompression(bool on);
bool rdbCompressionOn(void);
/* DEBUG SET-SKIP-CHECKSUM-VALIDATION. */
void rdbSetChecksumSkipped(bool on);
bool rdbChecksumSkipped(void);
/* Packed values (listpacks, intsets and their predecessors) that readers have checked since the
 * start or the reset. */
uint64_t rdbPackedChecks(void);
void rdbCountPackedCheck(void);
void rdbResetPackedChecks(void);

#endif
