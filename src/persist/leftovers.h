/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Temporary files in the working directory that processes have left. Main thread only. */
#ifndef PERSIST_LEFTOVERS_H
#define PERSIST_LEFTOVERS_H

/* At the start: removes the files of saves, rewrites and downloads whose process does not exist any
 * more. */
void leftoversRemove(void);

#endif
