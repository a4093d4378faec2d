/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values in files of other servers that this server has no type for: those of modules that are not
 * loaded, vector sets, arrays; and the commands that change them. Directive foreign-values: the
 * file is refused, after all of it was read so that the report is complete, or loaded without them.
 * Main thread. */
#ifndef PERSIST_FOREIGN_H
#define PERSIST_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"

/* A load begins: what an earlier one has found is forgotten. */
void foreignBegin(void);
/* Such a value was found and skipped: its type, its key, the bytes that it takes in the file. */
void foreignAdd(const char *type, slice key, uint64_t bytes);
/* Data of a module's type outside of keys were skipped. */
void foreignAddAux(const char *type);
/* True if the load has found one and must fail. */
bool foreignRefuses(void);
/* True if foreign-values is `skip`. */
bool foreignSkips(void);
/* True if a command of the append only file or of a primary that does not exist here does nothing
 * and succeeds: one about the producers of a stream; under `skip` also one that changes vector
 * sets, arrays, and values of the usual modules of Redis. */
bool foreignSkipsCommand(slice name);
/* Logs what was found, if anything, a line per type. */
void foreignLog(void);
/* Appends the types and numbers of keys, as "vectorset=12,array=3". */
void foreignAppendTypes(str *out);
/* Ends the report of a load whose file was loaded: INFO's counters are those of this load. */
void foreignLoaded(void);
/* INFO's fields; nothing if no value and no command was skipped. */
void foreignPrintInfo(str *out);
/* Registers with the engine. */
void foreignBeginReplays(void);

#endif
