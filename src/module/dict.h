/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dictionaries of modules. */
#ifndef MODULE_DICT_H
#define MODULE_DICT_H

/* Before the first one is made. */
void dictsStart(void);

#endif
