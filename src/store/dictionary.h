/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dictionaries for compressed values, by class of keys.
 *
 * A class is a database and the prefix of its keys (key_prefix.h); keys of other prefixes, or
 * without one, are in the class of the database with the empty prefix, if there is one. A class has
 * one current dictionary or none; former ones remain as long as values are compressed with them.
 * Each value keeps the number of its dictionary. The caller counts the values: dictionaryUse() when
 * one is stored, dictionaryRelease() when it is gone. Main thread only, except where said
 * otherwise. */
#ifndef STORE_DICTIONARY_H
#define STORE_DICTIONARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "store/value_codec.h"

/* Numbers are 1 to DICTIONARY_ID_MAX, so that one byte holds them. */
enum { DICTIONARY_ID_MAX = 255, DICTIONARY_CLASSES_MAX = 64 };

typedef struct valueDictionary valueDictionary;

/* ------------------------------------------------------------------ values */

/* The current dictionary of the key's class, or NULL. Valid until dictionariesSweep() or
 * dictionaryAdd(). */
const valueDictionary *dictionaryOfKey(int db_id, slice key);
/* The dictionary with this number; NULL if there is none. ANY_THREAD with a hold. */
const valueDictionary *dictionaryById(uint32_t id);
uint32_t dictionaryId(const valueDictionary *d);
/* Valid as long as the dictionary; ANY_THREAD with a hold. */
const valueCodec *dictionaryCodec(const valueDictionary *d);
/* Another number whenever a class gets a first or a newer dictionary. */
uint64_t dictionariesGeneration(void);

/* Returns the bytes written to `out`, or 0 if they do not fit into `cap`: the library wants some
 * bytes more than it writes, at most 32. 1 to 5 us for 1 KB. */
size_t dictionaryCompress(const valueDictionary *d, slice plain, char *out, size_t cap);
/* Expands what dictionaryCompress() wrote for a value of `plain_len` bytes with the dictionary of
 * this number. False if `packed` cannot be that. ANY_THREAD with a hold; 0.5 to 3 us for 1 KB. */
bool dictionaryExpand(uint32_t id, slice packed, char *out, size_t plain_len);

/* One more, or `count` less, values are compressed with the dictionary. */
void dictionaryUse(uint32_t id);
void dictionaryRelease(uint32_t id, uint64_t count);

/* The same for one node of a list or stream. ANY_THREAD. */
void dictionaryCountNodes(uint32_t id, bool more);

/* Between these no dictionary is freed, so that another thread may expand copies of values that
 * have been removed. They can be nested. */
void dictionariesHold(void);
void dictionariesUnhold(void);

/* ------------------------------------------------------------------ dictionaries */

/* Makes a dictionary for keys of the database with this prefix, adding the class if necessary.
 * ERR_LIMIT: too many classes or dictionaries; ERR_RANGE: the prefix is too long; else as
 * valueCodecNew(). */
status dictionaryAdd(int db_id, slice prefix, slice bytes, uint32_t *id, reason *why) MUST_USE;
/* The same with a codec, which is taken, on failure too. */
status dictionaryAddCodec(int db_id, slice prefix, valueCodec *codec, uint32_t *id,
                          reason *why) MUST_USE;
/* The current dictionary of a class, NULL if there is none. */
const valueDictionary *dictionaryOfClass(int db_id, slice prefix);
/* True if there is a place for another dictionary of this class. */
bool dictionaryHasRoom(int db_id, slice prefix);
/* The class of these keys has no current dictionary any more, and is freed with its last one. */
void dictionaryRetire(int db_id, slice prefix);
/* The databases have been swapped: so are their classes. */
void dictionariesSwap(int db_id, int other);
/* Frees dictionaries that have no users: former ones at once, current ones after ten minutes.
 * Called at every tick. */
void dictionariesSweep(int64_t now_ms);
/* Frees all; no value may use one. */
void dictionariesFree(void);

/* ------------------------------------------------------------------ reports */

typedef struct dictionaryReport {
    uint32_t id;
    int db_id;
    slice prefix; /* of its class; borrowed until the next dictionariesSweep() */
    bool is_current;
    uint64_t users;                     /* values that are compressed with it */
    size_t memory;                      /* in bytes */
    uint64_t tried;                     /* values given to dictionaryCompress() */
    uint64_t stored;                    /* those of them that fitted */
    uint64_t plain_bytes, packed_bytes; /* of those that fitted */
    double recent;                      /* packed bytes per plain byte of the last thousands of
                                           values; those that did not fit count 1; 1: none yet */
} dictionaryReport;
/* False if there is none with this number. */
bool dictionaryRead(uint32_t id, dictionaryReport *out);
/* Memory of all dictionaries and of idle contexts, in bytes. */
size_t dictionariesMemory(void);

#endif
