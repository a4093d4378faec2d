/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sections that modules add to INFO. Main thread only. */
#ifndef MODULE_INFO_H
#define MODULE_INFO_H

#include "base/slice.h"
#include "base/str.h"

/* Before the first one. */
void infosStart(void);
/* Appends the sections of modules that these names ask for: a module, one of its sections, or with
 * `all` everything. `crashed`: for the crash report. */
void infoAppend(str *out, const slice *names, int count, bool all, bool crashed);

#endif
