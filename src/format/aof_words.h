/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words of commands that values are written as. Private to the folder. ANY_THREAD that owns the
 * writer. */
#ifndef FORMAT_AOF_WORDS_H
#define FORMAT_AOF_WORDS_H

#include "ds/listpack.h"
#include "format/rdb_writer.h"

/* Begins a command of so many words, which must follow. */
void aofCommandBegin(rdbWriter *w, uint64_t argc);
void aofWord(rdbWriter *w, slice text);
/* Begins a word: `len` bytes and a line end must follow. */
void aofWordBegin(rdbWriter *w, size_t len);
void aofNumber(rdbWriter *w, int64_t value);
void aofUnsigned(rdbWriter *w, uint64_t value);
void aofItem(rdbWriter *w, const listpackItem *i);

#endif
