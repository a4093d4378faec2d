/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is wrong with a snapshot that could not be loaded. Main thread only. */
#ifndef PERSIST_RDB_DAMAGE_H
#define PERSIST_RDB_DAMAGE_H

/* Reads the file again, without loading anything, and logs the offset of the damage and the key and
 * type that are there. Nothing is logged about a file with an unknown header, or without damage. */
void rdbDamageLog(const char *path);

#endif
