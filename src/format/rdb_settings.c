/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Settings of the format (rdb_settings.h). */
#include "format/rdb_settings.h"

static struct {
    rdbLimits limits;
    rdbForm outgoing;
    bool relaxed, skip_checksum, no_compression;
    uint64_t packed_checks;
} settings = {.limits = {.hash = {512, 64},
                         .zset = {128, 64},
                         .set = {.packed = {128, 64}, .ints = 512},
                         .list = {.fill = -2},
                         .stream = {.node_bytes = 4096, .node_entries = 100}}};

void rdbSetLimits(const rdbLimits *limits) { settings.limits = *limits; }
const rdbLimits *rdbLimitsNow(void) { return &settings.limits; }
void rdbSetVersionsRelaxed(bool on) { settings.relaxed = on; }
bool rdbVersionsRelaxed(void) { return settings.relaxed; }
void rdbSetOutgoingForm(rdbForm form) { settings.outgoing = form; }
rdbForm rdbOutgoingForm(void) { return settings.outgoing; }
void rdbSetCompression(bool on) { settings.no_compression = !on; }
bool rdbCompressionOn(void) { return !settings.no_compression; }
void rdbSetChecksumSkipped(bool on) { settings.skip_checksum = on; }
bool rdbChecksumSkipped(void) { return settings.skip_checksum; }
uint64_t rdbPackedChecks(void) { return settings.packed_checks; }
void rdbCountPackedCheck(void) { settings.packed_checks++; }
void rdbResetPackedChecks(void) { settings.packed_checks = 0; }
